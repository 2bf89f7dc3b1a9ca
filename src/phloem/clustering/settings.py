"""How distances are to be measured, which trees can be made of them, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from phloem.data.alignment import Ambiguity
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError, require_choice, require_count
from phloem.hardware.limits import require_time
from phloem.hardware.machine import available_bytes, gpu_is_here, require_torch, why_not_gpu
from phloem.model.record import SiteModel

# How distances of sequences are to be measured, and which trees can be made of them.


DistanceMethod = Literal["p", "jc69", "k80", "f84", "tn93", "logdet", "poisson", "kimura", "ml"]
Deletion = Literal["pairwise", "complete"]
Saturated = Literal["longest", "error"]
LinkageMethod = Literal["upgma", "wpgma", "single", "complete"]
JoiningMethod = Literal["nj", "bionj", "unj"]
REFERENCES = 8  # clusters that may confirm a pair in simultaneous joining
NUCLEOTIDES = ("dna", "rna")
NUCLEOTIDE_METHODS = ("p", "jc69", "k80", "f84", "tn93", "logdet", "ml")
OTHER_METHODS = ("p", "poisson", "kimura", "ml")


@dataclass(frozen=True)
class DistanceSettings:
    """How to measure distances.

    method: p (proportion of differing sites), jc69, k80, f84, tn93, logdet for nucleotides; p, poisson,
        kimura for amino acids and other states; ml under `model` for any.
    shape: gamma shape of rates across sites in jc69, k80, f84, tn93 and poisson, or None for equal rates.
    ambiguity: a partly ambiguous character counts as missing, or, partial, as an even mixture of the states
        it allows (formula.state_weights; not for ml).
    deletion: leave out a site for the pairs that lack it, or for all. A missing character lacks it.
    saturated: a pair without a finite distance, or farther than `longest`, gets `longest`, or is an error.
    longest: expected substitutions per site.
    frequencies: of A, C, G, T for f84 and tn93; None takes those of the alignment.
    model: numbers of a reversible model, for ml: parse_model("HKY{2.5}+FQ", datatype="dna").evaluate().
    precision: of the matrix. threads: CPU threads.
    device: see select_distance_device.
    """

    method: DistanceMethod = "jc69"
    shape: float | None = None
    ambiguity: Ambiguity = "missing"
    deletion: Deletion = "pairwise"
    saturated: Saturated = "longest"
    longest: float = 5.0
    frequencies: tuple[float, float, float, float] | None = None
    model: SiteModel | None = None
    precision: Literal["float32", "float64"] = "float64"
    threads: int = 2
    device: Device = "cpu"

    def __post_init__(self) -> None:
        settle_fields(self)


def usual_method(kind: str) -> DistanceMethod:
    """The distance of a kind of data where nobody chose one: jc69, poisson, or p for other characters."""
    return "jc69" if kind in NUCLEOTIDES else "poisson" if kind == "protein" else "p"


def check_settings(settings: DistanceSettings, kind: str) -> None:
    """InputError where they do not fit each other, or data of this kind of alphabet."""
    require_count("threads", settings.threads)
    methods = NUCLEOTIDE_METHODS if kind in NUCLEOTIDES else OTHER_METHODS
    if settings.method not in methods:
        raise InputError(
            f"there is no distance '{settings.method}' for {kind} data",
            hint=f"Use one of {', '.join(methods)}.",
        )
    if settings.shape is not None:
        if not (settings.shape > 0 and np.isfinite(settings.shape)):
            raise InputError(f"the gamma shape must be positive, not {settings.shape}", hint="Try 0.5 or 1.")
        if settings.method in ("p", "logdet", "kimura", "ml"):
            raise InputError(
                f"the {settings.method} distance has no gamma form",
                hint="Leave the shape out; for ml name it in the model, as in LG+G4{0.8}.",
            )
    for name, users in (("frequencies", ("f84", "tn93")), ("model", ("ml",))):
        if getattr(settings, name) is not None and settings.method not in users:
            raise InputError(
                f"the {settings.method} distance has no use for '{name}'",
                hint=f"Leave it out, or choose {' or '.join(users)}.",
            )
    if settings.frequencies is not None:
        _check_frequencies(np.asarray(settings.frequencies, np.float64))
    if settings.method == "ml" and settings.model is None:
        raise InputError(
            "maximum-likelihood distances need a model", hint="Name one, such as LG or HKY{2.5}+F."
        )
    if settings.model is not None and settings.model.neighbours is not None:
        raise InputError(
            "distances take sites as independent, and under +AG the rates of neighbours are correlated",
            hint="Write +G in place of +AG.",
        )
    if settings.method == "ml" and settings.ambiguity == "partial":
        raise InputError(
            "maximum-likelihood distances do not average over ambiguous characters",
            hint="Let them count as missing, or choose another distance.",
        )
    if not (settings.longest > 0 and np.isfinite(settings.longest)):
        raise InputError(
            f"the longest distance must be a positive number, not {settings.longest:g}",
            hint="The usual one is 5.",
        )


def _check_frequencies(frequencies: np.ndarray) -> None:
    positive = frequencies.shape == (4,) and bool(np.all(frequencies > 0))
    if not (positive and abs(frequencies.sum() - 1) < 1e-3):
        raise InputError(
            f"frequencies are four positive numbers that sum to 1, not {frequencies.tolist()}",
            hint="Give those of A, C, G and T.",
        )


# What distances and trees of them take: which device, how much memory; asked before any of it is taken.


Device = Literal["auto", "cpu", "gpu"]
GPU_WORTH_SECONDS = 5.0  # loading PyTorch takes about as long


def select_distance_device(
    requested: str, cpu_seconds: float, missing: str | None = None
) -> tuple[Literal["cpu", "gpu"], str]:
    """Where distances, linkage or neighbour joining run, and why.

    requested: "auto", "cpu" or "gpu". cpu_seconds: forecast for two cores. missing: what the GPU kernels lack
    for this task. Raises InputError or DeviceError as select_engine does.
    """
    require_choice("device", requested, get_args(Device))
    if requested == "gpu":
        if missing is not None:
            raise InputError(f"the GPU kernels have no {missing}", hint="Choose the CPU.")
        require_torch()
        return "gpu", "GPU asked for"
    if requested == "cpu":
        return "cpu", "CPU asked for"
    if missing is not None:
        return "cpu", f"CPU chosen: the GPU kernels have no {missing}"
    if not gpu_is_here():
        return "cpu", f"CPU chosen: {why_not_gpu()}"
    if cpu_seconds < GPU_WORTH_SECONDS:
        return "cpu", f"CPU chosen: about {cpu_seconds:.1g} s, less than a GPU takes to start"
    return "gpu", f"GPU chosen: about {cpu_seconds:.0f} s on two cores"


ONE_CALL = 2048  # so few taxa are clustered in one compiled call, in a square of their own
LINKAGE = ("upgma", "wpgma", "single", "complete")
BATCH_ROWS = 256  # rows of a text that are parsed before they are folded into the triangle


def forecast_bytes(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    *,
    cophenetic: bool = False,
) -> int:
    """Bytes that n taxa take beyond the program itself, from reading or measuring to the tree.

    method: a linkage method works inside the triangle below the diagonal, of up to ONE_CALL taxa in a square
    of its own; nj and unj inside the square, bionj has a second one for variances; None is the square of
    distances alone. cophenetic: the distances are kept beside what the tree is made in.
    """
    size = np.dtype(precision).itemsize
    entries = n * (n - 1) // 2 if method in LINKAGE else n * n
    copies = 1 + (method == "bionj") + (method is not None and cophenetic)
    if method in LINKAGE and method != "single" and n <= ONE_CALL:
        entries += n * n
    return copies * entries * size + min(n, BATCH_ROWS) * n * size


def require_memory_for_distances(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    source: str | None,
    *,
    cophenetic: bool = False,
) -> None:
    """Raise InputError, with numbers and a remedy, if the forecast exceeds what is available here."""
    need, free = forecast_bytes(n, method, precision, cophenetic=cophenetic), available_bytes()
    if free is None or need <= free:
        return
    remedies = ["fewer taxa", "a machine with more memory"]
    if precision == "float64":
        remedies.insert(0, "--precision float32 (half of it)")
    if cophenetic:
        remedies.insert(0, "no cophenetic correlation")
    raise InputError(
        f"{n:,} taxa need {need / 1e9:,.1f} GB for distances in {precision}, {free / 1e9:,.1f} GB are there",
        file=source,
        hint=f"Use {', '.join(remedies[:-1])} or {remedies[-1]}.",
    )


LEAST_SECONDS = 1e-4  # of a replicate: its columns are drawn, its tree compared
FASTEST = {True: 1000.0, False: 100.0}  # times as fast as two cores: a GPU, many cores
MOST_REPLICATES = 1_000_000  # leave a support uncertain by 0.05 % at most; whole percents are printed


def require_bootstrap_time(replicates: int, seconds: float, on_gpu: bool, source: str | None) -> None:
    """InputError where replicates take longer than anybody waits, or so many tell nothing more; seconds:
    forecast of one on two cores."""
    each = max(seconds / FASTEST[on_gpu], LEAST_SECONDS)
    what, hint = f"{replicates:,} replicates of the bootstrap", "Ask for 100 or 1,000."
    require_time(what, replicates * each, hint, source)
    if replicates > MOST_REPLICATES:
        told = f"{what} tell no more than {MOST_REPLICATES:,}, which leave a support uncertain by 0.05 %"
        raise InputError(told, file=source, hint=hint)

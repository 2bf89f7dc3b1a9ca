"""`phloem ml` of very many nearly equal genomes: when (unasked), how, and what is written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from phloem.analysis.draw import DrawSettings, at_midpoint, save_picture
from phloem.analysis.likelihood import criteria_line
from phloem.analysis.ml_data import settings_of
from phloem.analysis.ml_effort import USUAL as USUAL_EFFORT
from phloem.analysis.ml_outgroup import hung, outgroup_of, rooted
from phloem.analysis.ml_settings import MlSettings, checkpoint_of, many_trees
from phloem.analysis.model_file import model_file_of, model_string
from phloem.analysis.negative_lengths import trees_to_fit
from phloem.analysis.outputs import write_file, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions, alignment_of, reading_identity
from phloem.data.coding import guess_datatype
from phloem.data.genomes import Genomes
from phloem.errors import InputError, PhloemError, in_file
from phloem.hardware.limits import readable_bytes
from phloem.hardware.machine import available_bytes
from phloem.hardware.ranks import ranks
from phloem.inference.ml.criteria import criteria
from phloem.io.genomes import genomes_of, is_fasta_file, read_genomes
from phloem.io.input_file import first_bytes, input_size, input_stream
from phloem.io.trees import newick_text
from phloem.model.grammar import parse_model
from phloem.model.model import Model

if TYPE_CHECKING:
    from phloem.inference.ml.differences_state import DifferencesResult
    from phloem.inference.ml.search_state import Checkpoint, Told

USUAL = "GTR+F"
_MANY = 500  # genomes, from where differences are thought of unasked
_FEW = 0.005  # differences a site and genome, up to which genomes are nearly equal
_SMALL = 1 << 21  # bytes of a file that has no so many genomes
_SECONDS = 4e-4, 2.5e-4  # of a genome: and for every power of ten of their number
_QUOTED, _LABEL = re.compile(r"'(?:[^']|'')*'"), re.compile(r"\)(\d+)")
_HINT = "Leave it out, or say --engine patterns."


@dataclass(frozen=True, eq=False)
class MlDifferences:
    """reason: why this engine. found: what the search found. outgroup: taxa that the tree is written and
    drawn from. seconds: without reading, which took reading_seconds."""

    settings: MlSettings
    reason: str
    genomes: Genomes
    model: Model
    found: DifferencesResult
    outgroup: tuple[str, ...]
    data: dict[str, object]
    forecast: str
    files: dict[str, str]
    reading_seconds: float
    seconds: float
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def criteria(self) -> tuple[float, float, float]:
        """AIC, AICc, BIC."""
        return criteria(self.found.log_likelihood, self.found.n_free, self.genomes.n_sites)

    @property
    def newick(self) -> str:
        return newick_text([hung(self.found.tree, self.outgroup)]).strip()

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        found, (aic, aicc, bic) = self.found, self.criteria
        shares = shares_as_written(found, self.outgroup)
        supports = {} if shares is None else {"supports": {"SPRTA": shares.tolist()}}
        return {
            "engine": "differences",
            "reason": self.reason,
            "log_likelihood": found.log_likelihood,
            "log_likelihood_is": "to the first order in branch lengths",
            "model": found.model_text,
            "tree": self.newick,
            "free_numbers": found.n_free,
            "aic": aic,
            "aicc": aicc if np.isfinite(aicc) else None,
            "bic": bic,
            "converged": found.converged,
            "placement": {"log_likelihood": found.first},
            "rounds": [one._asdict() for one in found.rounds],
            **supports,
            "reading_seconds": self.reading_seconds,
            "seconds": self.seconds,
            "data": self.data,
            "warnings": list(self.warnings),
            "settings": settings_of(self.settings),
            "provenance": self.provenance,
        }


def why_differences(settings: MlSettings) -> tuple[tuple[Genomes, float, str] | None, tuple[str, ...]]:
    """The genomes, the seconds their reading took, and the reason for this engine, None where the search is
    on patterns; and what is to be said where only an option stands against this engine. Errors: InputError
    for --engine differences with what it cannot do."""
    if settings.engine == "patterns":
        _refuse_sprta(settings)
        return None, ()
    begin = time.perf_counter()
    if settings.engine == "differences":
        for name in _not_here(settings):
            raise InputError(f"--engine differences has no --{name.replace('_', '-')}", hint=_HINT)
        genomes = _genomes(settings)
        return (genomes, time.perf_counter() - begin, "--engine differences"), ()
    read = _readable(settings) if _may_be_outbreak(settings) else None
    reason, against = None if read is None else _reason(read), _not_here(settings)
    if read is None or reason is None or against:
        _refuse_sprta(settings)
        return None, () if reason is None else (_only_patterns(reason, against[0]),)
    return (read, time.perf_counter() - begin, reason), ()


def _only_patterns(reason: str, option: str) -> str:
    """What is said where the data are for this engine, and an option is not."""
    return f"{reason}, and the engine of differences has no --{option.replace('_', '-')}: this is on patterns"


def _refuse_sprta(settings: MlSettings) -> None:
    if settings.sprta:
        raise InputError(
            "--sprta belongs to the engine of differences, and this search is on patterns",
            hint="Say --engine differences, or ask for --alrt 1000.",
        )


def _readable(settings: MlSettings) -> Genomes | None:
    """None where reading or the model fails: whoever reads it next says what is wrong, or has the model."""
    try:
        genomes = read_genomes(settings.alignment, settings.ambiguity)
        if not settings.automatic:
            _model(settings, genomes)
    except PhloemError:
        return None
    return genomes


def _reason(genomes: Genomes) -> str | None:
    """Why not patterns, where they would not fit, or are clearly slower."""
    many, sites = genomes.n_distinct, genomes.n_sites
    mean = float(genomes.substitutions.mean())
    if many < _MANY or mean > _FEW * sites:
        return None
    outbreak = f"{many:,} genomes have {mean:.1f} differences from the commonest states of {sites:,} sites"
    need, free = 512.0 * many * patterns(genomes), available_bytes()
    if free is not None and need > free:
        free_now = readable_bytes(free)
        return f"{outbreak}; messages of patterns need {readable_bytes(need)}, and {free_now} are free"
    return f"{outbreak}: a search on patterns would take far longer"


def patterns(genomes: Genomes) -> int:
    """Distinct columns: equal ones have the same sum of random numbers of the genomes that differ there."""
    rng = np.random.default_rng(0)
    codes = rng.integers(1 << 63, size=(genomes.n_distinct, 16), dtype=np.uint64)
    genome = np.repeat(np.arange(genomes.n_distinct), np.diff(genomes.offsets))
    steps, own = np.zeros(genomes.n_sites + 1, np.uint64), codes[genome, genomes.states]
    np.add.at(steps, genomes.span[:, 0], own)
    np.subtract.at(steps, genomes.span[:, 1], own)
    sums = np.cumsum(steps)[:-1]
    return len(np.unique(np.stack([sums, genomes.reference.astype(np.uint64)]), axis=1).T)


def _not_here(settings: MlSettings) -> list[str]:
    """Options that were given, and that this engine does not obey."""
    usual = MlSettings(settings.alignment)
    others = (
        "partitions", "part", "merge", "merge_percent", "linkage", "link", "fast", "thorough",
        "keep_identical", "alrt", "ufboot", "bnni", "bootstrap", "sampling", "genetic_code", "model_set",
        "rate_set", "frequency_set", "most_classes", "criterion", "partition_name", "constraint", "gamma",
        "ancestral", "iqtree_files", "abayes", "auspice", "fixed_tree", "lengths", "parametric_alrt", "lbp",
    )  # fmt: skip
    found = [name for name in others if getattr(settings, name) != getattr(usual, name)]
    numbers = {"starts": USUAL_EFFORT.starts, "patience": USUAL_EFFORT.patience}
    found += [name for name, number in numbers.items() if getattr(settings, name) not in (None, number)]
    found += ["device gpu"] if settings.device == "gpu" else []
    return [*found, *(["model auto"] if settings.automatic else [])]


def _only_fasta(settings: MlSettings) -> bool:
    """Whether nothing is asked of the reading that one pass over a file cannot do."""
    plain = DataOptions(settings.alignment, datatype=settings.datatype, ambiguity=settings.ambiguity)
    same = reading_identity(settings) == reading_identity(plain)
    return same and settings.datatype in (None, "dna", "rna")


def _may_be_outbreak(settings: MlSettings) -> bool:
    """A FASTA file of many nucleotide sequences; asked cheaply."""
    if not _only_fasta(settings) or input_size(settings.alignment) < _SMALL >> 7:
        return False
    beginning = first_bytes(settings.alignment, 1 << 16)
    if not is_fasta_file(settings.alignment) or not _are_nucleotides(beginning, settings.datatype):
        return False
    seen = 0
    with input_stream(settings.alignment) as stream:
        while piece := stream.read(_SMALL):
            seen += piece.count(b">")
            if seen >= _MANY:
                return True
    return False


def _are_nucleotides(beginning: bytes, datatype: str | None) -> bool:
    lines = [line for line in beginning.splitlines() if not line.startswith(b">")]
    text = np.frombuffer(b"".join(b"".join(lines).split()), np.uint8)
    return datatype is not None or (len(text) > 0 and guess_datatype(text[None, :]) in ("dna", "rna"))


def _genomes(settings: MlSettings) -> Genomes:
    """Errors: InputError as reading, and for data that are no nucleotides."""
    if _only_fasta(settings) and is_fasta_file(settings.alignment):
        if not _are_nucleotides(first_bytes(settings.alignment, 1 << 16), settings.datatype):
            raise _no_nucleotides(settings.alignment)
        return read_genomes(settings.alignment, settings.ambiguity)
    alignment = alignment_of(settings)
    if alignment.alphabet.kind not in ("dna", "rna"):
        raise _no_nucleotides(settings.alignment)
    return genomes_of(alignment)


def _no_nucleotides(file: str) -> InputError:
    return InputError(
        "--engine differences is for nucleotides, and these data are none",
        file=file,
        hint="Say --engine patterns, or leave the engine to phloem.",
    )


def _model(settings: MlSettings, genomes: Genomes) -> Model:
    """GTR+F unless one is named; errors of models that this engine does not have."""
    from phloem.inference.ml.differences_search import counted_frequencies, refuse

    given = USUAL if settings.model is None else model_string(settings.model)
    model = parse_model(given, datatype="dna", empirical_frequencies=counted_frequencies(genomes))
    refuse(model)
    return model


def run_differences(
    settings: MlSettings, given: tuple[Genomes, float, str], told: Told | None, say: Callable[[str], None]
) -> tuple[MlDifferences, Checkpoint]:
    """The search; its checkpoint is still there. say: called with the forecast, before it begins."""
    from phloem.inference.ml.differences_search import DifferencesSettings, bytes_of, search_differences
    from phloem.inference.ml.differences_state import DifferencesState

    genomes, reading_seconds, reason = given
    model, begin = _model(settings, genomes), time.perf_counter()
    outgroup = outgroup_of(settings.outgroup, genomes.taxa)
    seconds = genomes.n_distinct * (_SECONDS[0] + _SECONDS[1] * np.log10(genomes.n_distinct))
    need = readable_bytes(bytes_of(genomes))
    duration = f"{max(seconds, 1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    forecast = f"about {need} of memory and {duration} are forecast"
    say(f"engine of differences: {reason}. {forecast[0].upper()}{forecast[1:]}.")
    threads = settings.threads or ranks().cores
    wanted = DifferencesSettings(settings.radius, settings.seed, threads, settings.sprta)
    checkpoint = checkpoint_of(settings, ["differences", model.text()], DifferencesState.from_json)
    trees = [] if settings.tree is None else trees_to_fit(settings.tree)
    with in_file(settings.tree):
        found = search_differences(genomes, model, wanted, told, checkpoint, *trees[:1])
    result = MlDifferences(
        settings,
        reason,
        genomes,
        model,
        found,
        outgroup,
        _data(settings, genomes),
        forecast,
        _files(settings),
        reading_seconds,
        time.perf_counter() - begin,
        provenance(settings.inputs) | {"seed": settings.seed},
        (*many_trees(len(trees)), *(rooted(found.tree, outgroup)[1] if outgroup else ()), *_warnings(found)),
    )
    return result, checkpoint


def shares_as_written(found: DifferencesResult, outgroup: tuple[str, ...]) -> np.ndarray | None:
    """The supports in the order in which the labels stand in the text of the tree that hangs from the
    outgroup: numbers of branches travel with them where the root moves, so theirs do."""
    if found.supports is None or found.tree.labels is None:
        return found.supports
    count = iter(range(len(found.supports)))
    numbered = tuple(None if label is None else str(next(count)) for label in found.tree.labels)
    text = newick_text([hung(replace(found.tree, labels=numbered), outgroup)])
    return found.supports[[int(place) for place in _LABEL.findall(_QUOTED.sub("", text))]]


def _warnings(found: DifferencesResult) -> tuple[str, ...]:
    from phloem.inference.ml.differences_search import long_branches

    lines: tuple[str, ...] = ()
    if not found.converged:
        lines = ("the last fit of lengths and rates did not converge",)
    long = long_branches(found.tree)
    if long:
        lines += (
            f"{long} branches are so long that the first order is far off: check these genomes, or say "
            "--engine patterns",
        )
    return lines


def _files(settings: MlSettings) -> dict[str, str]:
    sites = f"{settings.file_prefix}.sites"
    return {name: what for name, what in settings.files.items() if name != sites}


def _data(settings: MlSettings, genomes: Genomes) -> dict[str, object]:
    return {
        "taxa": genomes.n_taxa,
        "distinct": genomes.n_distinct,
        "sites": genomes.n_sites,
        "patterns": patterns(genomes),
        "datatype": settings.datatype or "dna",
        "states": 4,
        "substitutions_per_genome": float(genomes.substitutions.mean()),
        "missing_per_genome": float(genomes.missing.mean()),
        "ambiguity": settings.ambiguity,
    }


def write_differences(result: MlDifferences) -> None:
    """All files; the JSON last: with it all is there."""
    prefix, found = result.settings.file_prefix, result.found
    head = "" if found.supports is None else "[branch labels, in percent: SPRTA]\n"
    write_file(f"{prefix}.tree", f"{head}{result.newick}\n")
    write_file(f"{prefix}.model", model_file_of(result.model, found.model_text).text())
    if result.settings.picture is not None:
        where = result.outgroup
        shown = rooted(found.tree, where)[0] if where else at_midpoint(found.tree)
        save_picture(shown, result.settings.picture, DrawSettings())
    write_file(f"{prefix}.report", "\n".join(report_lines(result)) + "\n")
    write_json(result.to_json(), f"{prefix}.json")


def data_line(result: MlDifferences) -> str:
    """What was read."""
    data = result.data
    return (
        f"{data['taxa']:,} taxa, {data['distinct']:,} distinct, {data['sites']:,} sites, {data['datatype']}"
    )


def round_lines(found: DifferencesResult) -> list[str]:
    """How the search went."""
    lines = [f"all genomes placed: {found.first:.4f}"]
    for number, one in enumerate(found.rounds, 1):
        moved = f"{one.moved:,} of {one.tried:,} subtrees moved"
        lines.append(f"round {number}: {moved}, {one.log_likelihood:.4f}")
    return lines


def report_lines(result: MlDifferences) -> list[str]:
    """What people read."""
    found, tree = result.found, result.found.tree
    lines = [
        f"phloem {result.provenance['version']}, {result.provenance['date']}",
        "",
        f"alignment: {result.settings.alignment}",
        data_line(result),
        *wrap(f"engine of differences: {result.reason}", 80, subsequent_indent="  "),
        f"seconds: {result.seconds:.1f}, reading {result.reading_seconds:.1f}; seed {result.settings.seed}",
        "",
        f"model: {found.model_text}",
        f"log-likelihood: {found.log_likelihood:.4f} (to the first order in branch lengths)",
        f"free numbers: {found.n_free:,}",
        criteria_line(*result.criteria),
        f"tree length: {tree.lengths[:-1].sum():.6f} substitutions per site",
        f"inner branches with a length: {tree.n_nodes - tree.n_tips - 1:,}",
        "",
        *round_lines(found),
    ]
    lines += support_lines(found)
    return [*lines, *(f"warning: {warning}" for warning in result.warnings)]


def support_lines(found: DifferencesResult) -> list[str]:
    """How many branches are well supported."""
    if found.supports is None or not len(found.supports):
        return []
    high = int((found.supports >= 0.95).sum())
    return [f"SPRTA mean {100 * found.supports.mean():.1f} %, {high:,} branches of 95 % or more"]

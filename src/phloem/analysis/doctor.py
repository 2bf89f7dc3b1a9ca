"""What this machine has, and whether phloem computes a known answer on it."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from phloem.errors import PhloemError
from phloem.hardware.machine import Hardware, detect_hardware
from phloem.pruning.calibration import known_speeds
from phloem.pruning.gpu.cost import Speeds

# First 180 sites of five hominoids, mitochondrial DNA (Hayasaka et al. 1988, Mol. Biol. Evol. 5:626).
_SEQUENCES = {
    "Homo_sapiens": (
        "AAGCTTCACCGGCGCAGTCATTCTCATAATCGCCCACGGGCTTACATCCTCATTACTATTCTGCCTAGCAAACTCAAACTACGAACGCAC"
        "TCACAGTCGCATCATAATCCTCTCTCAAGGACTTCAAACTCTACTCCCACTAATAGCTTTTTGATGACTTCTAGCAAGCCTCGCTAACCT"
    ),
    "Pan": (
        "AAGCTTCACCGGCGCAATTATCCTCATAATCGCCCACGGACTTACATCCTCATTATTATTCTGCCTAGCAAACTCAAATTATGAACGCAC"
        "CCACAGTCGCATCATAATTCTCTCCCAAGGACTTCAAACTCTACTCCCACTAATAGCCTTTTGATGACTCCTAGCAAGCCTCGCTAACCT"
    ),
    "Gorilla": (
        "AAGCTTCACCGGCGCAGTTGTTCTTATAATTGCCCACGGACTTACATCATCATTATTATTCTGCCTAGCAAACTCAAACTACGAACGAAC"
        "CCACAGCCGCATCATAATTCTCTCTCAAGGACTCCAAACCCTACTCCCACTAATAGCCCTTTGATGACTTCTGGCAAGCCTCGCCAACCT"
    ),
    "Pongo": (
        "AAGCTTCACCGGCGCAACCACCCTCATGATTGCCCATGGACTCACATCCTCCCTACTGTTCTGCCTAGCAAACTCAAACTACGAACGAAC"
        "CCACAGCCGCATCATAATCCTCTCTCAAGGCCTTCAAACTCTACTCCCCCTAATAGCCCTCTGATGACTTCTAGCAAGCCTCACTAACCT"
    ),
    "Hylobates": (
        "AAGCTTTACAGGTGCAACCGTCCTCATAATCGCCCACGGACTAACCTCTTCCCTGCTATTCTGCCTTGCAAACTCAAACTACGAACGAAC"
        "TCACAGCCGCATCATAATCCTATCTCGAGGGCTCCAAGCCTTACTCCCACTGATAGCCTTCTGATGACTCGCAGCAAGCCTCGCTAACCT"
    ),
}
_TREE = "((Homo_sapiens:0.05,Pan:0.06):0.02,Gorilla:0.06,(Pongo:0.13,Hylobates:0.17):0.07);"
_MODEL = "GTR{1.2,4.0,0.7,0.9,5.0}+F{0.35,0.30,0.10,0.25}+G4{0.5}"
# Printed by IQ-TREE 2.0.7 (-te TREE -blfix) for these sequences, tree and model.
KNOWN_LOG_LIKELIHOOD = -506.5918
_TOLERANCE = {"float64": 2e-4, "float32": 5e-3}

Engine = Literal["reference", "cpu", "gpu"]
Precision = Literal["float64", "float32"]

_LIBRARIES = ("numpy", "scipy", "numba", "torch", "triton", "matplotlib", "mpi4py", "arviz-stats")


@dataclass(frozen=True)
class KnownAnswer:
    """One engine's answer. seconds: the first call, with compilation. error: what it raised, or None."""

    engine: str
    precision: str
    log_likelihood: float | None
    seconds: float
    passed: bool
    error: str | None


@dataclass(frozen=True)
class Diagnosis:
    """hardware, library versions (None = not installed), known answers, where compiled code is kept, and the
    engines' speeds by kind of problem, as far as `auto` has measured them."""

    hardware: Hardware
    python: str
    libraries: dict[str, str | None]
    cache_directory: str
    cache_writable: bool
    answers: tuple[KnownAnswer, ...]
    speeds: dict[str, Speeds]

    @property
    def healthy(self) -> bool:
        return all(answer.passed for answer in self.answers)


def diagnose() -> Diagnosis:
    """Look at the machine and run the known-answer test on every engine that can run here."""
    hardware = detect_hardware()
    engines: list[tuple[Engine, Precision]] = [("reference", "float64"), ("cpu", "float64")]
    on_gpu = bool(hardware.accelerators) and hardware.torch_installed
    if on_gpu:
        engines += [("gpu", "float64"), ("gpu", "float32")]
    cache, writable = _cache()
    with tempfile.TemporaryDirectory() as folder:
        answers = tuple(known_answer(engine, precision, Path(folder)) for engine, precision in engines)
    versions = {name: _version(name) for name in _LIBRARIES}
    speeds = known_speeds() if on_gpu else {}
    return Diagnosis(hardware, platform.python_version(), versions, cache, writable, answers, speeds)


def known_answer(engine: Engine, precision: Precision, folder: Path) -> KnownAnswer:
    """Read, build and evaluate the known problem on one engine."""
    from phloem.io.alignment import read_alignment
    from phloem.io.trees import read_tree
    from phloem.likelihood.tree_likelihood import TreeLikelihood

    (folder / "hominoids.fasta").write_text("".join(f">{k}\n{v}\n" for k, v in _SEQUENCES.items()))
    (folder / "hominoids.nwk").write_text(_TREE + "\n")
    start = time.perf_counter()
    try:
        alignment = read_alignment(folder / "hominoids.fasta", datatype="dna")
        tree = read_tree(folder / "hominoids.nwk")
        likelihood = TreeLikelihood(alignment, tree, _MODEL, engine=engine, precision=precision)
        value, error = likelihood.log_likelihood(), None
    except PhloemError as problem:
        value, error = None, str(problem)
    seconds = time.perf_counter() - start
    passed = value is not None and abs(value - KNOWN_LOG_LIKELIHOOD) < _TOLERANCE[precision]
    return KnownAnswer(engine, precision, value, seconds, passed, error)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cache() -> tuple[str, bool]:
    """Where Numba keeps compiled code: NUMBA_CACHE_DIR, else beside the source if writable."""
    import phloem

    beside = Path(phloem.__file__).parent
    folder = os.environ.get("NUMBA_CACHE_DIR", str(beside))
    return folder, os.access(folder, os.W_OK)

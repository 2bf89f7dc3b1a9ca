"""Which substitution models there are for each kind of data, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from phloem.errors import ModelError, count_of
from phloem.model.amino_acid import (
    AMINO_ACIDS,
    FUSED_MATRICES,
    ChosenMatrix,
    EmpiricalMatrix,
    EmpiricalModel,
    FrequenciesOfChoice,
    empirical_matrices,
    profile_mixtures,
)
from phloem.model.codon import GY94, GY94GTR, MG94
from phloem.model.codon_sites import BetaOmegas, CodonSites, FreeOmegas, NearlyNeutral, OmegaClasses
from phloem.model.doublet import DoubletModel, doublet_names
from phloem.model.frequencies import (
    BuiltInFrequencies,
    CodonTable,
    EqualPositions,
    FrequencyModel,
    PositionFrequencies,
)
from phloem.model.general import IrreversibleModel, MkModel, ReversibleModel
from phloem.model.nucleotide import (
    NUCLEOTIDES,
    NucleotideModel,
    NucleotideModelName,
    code_name,
    nucleotide_names,
)
from phloem.model.substitution import SubstitutionFamily


@dataclass(frozen=True)
class Family:
    """canonical: the name written in model strings. build: from a frequency model to the substitution model,
    or to the mixture of a codon site model.

    default_frequencies: the suffix meant when the string has none; 'own': the model brings its own.
    allowed_frequencies: suffixes it can have; empty where it can have none.
    built_in: its own frequencies where default_frequencies is 'own'. ascertained: the name implies +ASC.
    """

    canonical: str
    build: Callable[[FrequencyModel], SubstitutionFamily | CodonSites]
    default_frequencies: str
    allowed_frequencies: tuple[str, ...]
    built_in: FrequencyModel | None = None
    ascertained: bool = False


ANY_STATE_FREQUENCIES = ("F", "FO", "FQ")


POSITION_FREQUENCIES = ("FQ", "F1X4", "F3X4", "FO1X4", "FO3X4")
ANY_CODON_FREQUENCIES = (*ANY_STATE_FREQUENCIES, *POSITION_FREQUENCIES[1:])


def families(datatype: str, states: tuple[str, ...], table: CodonTable | None) -> Mapping[str, Family]:
    """Accepted names in upper case → family. table: for codon models."""
    if datatype in ("dna", "rna"):
        return _nucleotide_families()
    if datatype == "protein":
        return _amino_acid_families()
    if table is not None:
        return _codon_families(table)
    if datatype == "doublet":
        return _doublet_families(states)
    return _state_families(states)


_CODON_NAMES = {
    "GY94": ("GY94", "GY", "M0"),
    "GY94GTR": ("GY94GTR", "GYGTR"),
    "MG94": ("MG94", "MG"),
    "MG94K": ("MG94K", "MGK", "MG94HKY85", "MG94XHKY85", "MG94×HKY85"),
}


_CODON_SITES = re.compile(r"M(1A|2A|[378])(?:K(\d+))?")
CODON_SITE_NAMES = ("M1a", "M2a", "M3", "M7", "M8")


def codon_site_family(name: str, table: CodonTable) -> Family | None:
    """M1a, M2a, M3 (3 classes), M7 and M8 (10 of the beta), or with other counts M3K2, M7K5, M8K5."""
    match = _CODON_SITES.fullmatch(name.upper())
    if match is None or (match.group(2) and match.group(1) in ("1A", "2A")):
        return None
    kind, count = match.group(1), count_of(match.group(2) or ("3" if match.group(1) == "3" else "10"))
    if not 1 <= count <= 256:
        raise ModelError(f"{name} asks for {count} classes", hint="Use 1 to 256.")
    classes: OmegaClasses
    if kind in ("1A", "2A"):
        classes = NearlyNeutral(kind == "2A")
    elif kind == "3":
        classes = FreeOmegas(count)
    else:
        classes = BetaOmegas(count, kind == "8")
    return Family(classes.label, lambda f: CodonSites(table, f, classes), "F3X4", ANY_CODON_FREQUENCIES)


def datatypes_of(name: str) -> tuple[str, ...]:
    """The data types that have a model of that name."""
    names = {
        "dna": set(_nucleotide_families()),
        "protein": {*_amino_acid_families(), *FUSED_MATRICES, *profile_mixtures()},
        "codon": {alias for aliases in _CODON_NAMES.values() for alias in aliases}
        | {name.upper() for name in CODON_SITE_NAMES},
        "doublet": set(_doublet_families(())),
        "standard": set(_state_families(("0", "1"))),
    }
    return tuple(kind for kind, known in names.items() if name.upper() in known)


def named_code(name: str) -> Family | None:
    """A six-digit nucleotide code, such as 010020, as a family."""
    return _nucleotide(code_name(name)) if len(name) == 6 and count_of(name) >= 0 else None


def _nucleotide(name: NucleotideModelName) -> Family:
    return Family(
        name.canonical,
        lambda frequencies: NucleotideModel(name, frequencies),
        "FQ" if name.equal else "FO",
        ANY_STATE_FREQUENCIES,
    )


def _nucleotide_families() -> dict[str, Family]:
    result = {alias: _nucleotide(name) for alias, name in nucleotide_names().items()}
    unrest = Family("UNREST", lambda _: IrreversibleModel("UNREST", NUCLEOTIDES), "own", ())
    return result | {"UNREST": unrest, "12.12": unrest}


_AMINO_ACID_ALIASES = {"DCMUT": ("DAYHOFF-DCMUT", "DAYHOFFDCMUT"), "JTTDCMUT": ("JTT-DCMUT",)}
_AMINO_ACID_ALIASES |= {"POISSON": ("JC",), "MTREV": ("MTREV24",), "BLOSUM62": ("BLOSUM",)}


def _amino_acid_families() -> dict[str, Family]:
    result: dict[str, Family] = {}
    for matrix in empirical_matrices().values():
        family = _empirical(matrix)
        name = matrix.name.upper()
        result |= {n: family for n in (name, *_AMINO_ACID_ALIASES.get(name, ()))}
    start = empirical_matrices()["LG"].exchangeability
    general = Family(
        "GTR20", lambda f: ReversibleModel("GTR20", AMINO_ACIDS, f, start), "FO", ANY_STATE_FREQUENCIES
    )
    irreversible = Family("UNREST", lambda _: IrreversibleModel("UNREST", AMINO_ACIDS), "own", ())
    several = Family("AAMIXED", ChosenMatrix, "own", ANY_STATE_FREQUENCIES, FrequenciesOfChoice())
    result |= {"AAMIXED": several, "MIXED": several}
    return result | {"GTR20": general, "GTR": general, "UNREST": irreversible}


def _empirical(matrix: EmpiricalMatrix) -> Family:
    built_in = BuiltInFrequencies(matrix.frequencies)
    return Family(matrix.name, lambda f: EmpiricalModel(matrix, f), "own", ANY_STATE_FREQUENCIES, built_in)


def _codon_families(table: CodonTable) -> dict[str, Family]:
    gy = Family("GY94", lambda f: GY94(table, f), "F3X4", ANY_CODON_FREQUENCIES)
    gtr = Family("GY94GTR", lambda f: GY94GTR(table, f), "F3X4", ANY_CODON_FREQUENCIES)
    mg = Family("MG94", lambda f: _mg94(table, f, False), "F3X4", POSITION_FREQUENCIES)
    mgk = Family("MG94K", lambda f: _mg94(table, f, True), "F3X4", POSITION_FREQUENCIES)
    by_name = {"GY94": gy, "GY94GTR": gtr, "MG94": mg, "MG94K": mgk}
    return {alias: by_name[name] for name, aliases in _CODON_NAMES.items() for alias in aliases}


def _mg94(table: CodonTable, frequencies: FrequencyModel, with_kappa: bool) -> MG94:
    assert isinstance(frequencies, PositionFrequencies | EqualPositions)
    return MG94(table, frequencies, with_kappa)


def _doublet_families(states: tuple[str, ...]) -> dict[str, Family]:
    def family(label: str, name: NucleotideModelName) -> Family:
        return Family(label, lambda f: DoubletModel(label, name, f), "FO", ANY_STATE_FREQUENCIES)

    every = Family("S16", lambda f: ReversibleModel("S16", states, f), "FO", ANY_STATE_FREQUENCIES)
    return {alias: family(*found) for alias, found in doublet_names().items()} | {"S16": every}


def _state_families(states: tuple[str, ...]) -> dict[str, Family]:
    any_f = ANY_STATE_FREQUENCIES
    mk = Family("MK", lambda f: MkModel("MK", states, f), "FQ", any_f)
    mkv = Family("MK", lambda f: MkModel("MK", states, f), "FQ", any_f, ascertained=True)
    ordered = Family("ORDERED", lambda f: MkModel("ORDERED", states, f, ordered=True), "FQ", any_f)
    reversible = Family("GTRK", lambda f: ReversibleModel("GTRK", states, f), "FO", any_f)
    symmetric = Family("SYMK", lambda f: ReversibleModel("SYMK", states, f), "FQ", any_f)
    irreversible = Family("UNRESTK", lambda _: IrreversibleModel("UNRESTK", states), "own", ())
    result = {
        "MK": mk,
        "MKV": mkv,
        "ORDERED": ordered,
        "GTRK": reversible,
        "GTR": reversible,
        "GTRX": reversible,
    }
    result |= {"SYMK": symmetric, "SYM": symmetric, "UNRESTK": irreversible, "UNREST": irreversible}
    if len(states) == 2:
        result |= {"JC2": mk, "GTR2": reversible, "BIN": reversible}
    return result


def default_states(datatype: str, n_states: int | None) -> tuple[str, ...]:
    """State symbols where the caller gives none: 0 1 … 9 A B …, then numbers."""
    fixed = {"dna": NUCLEOTIDES, "rna": NUCLEOTIDES, "binary": ("0", "1"), "protein": AMINO_ACIDS}
    fixed["doublet"] = tuple(a + b for a in NUCLEOTIDES for b in NUCLEOTIDES)
    if datatype in fixed:
        return fixed[datatype]
    if n_states is None or not 2 <= n_states <= 256:
        raise ModelError(
            f"a model of {datatype} characters needs the number of states, between 2 and 256, not {n_states}"
        )
    return tuple(str(i) for i in range(n_states))

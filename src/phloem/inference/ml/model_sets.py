"""Which models a choice of model tries: families with their frequencies, and rates across sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from phloem.data.alphabet import Alphabet
from phloem.errors import InputError, ModelError
from phloem.model.amino_acid import FUSED_MATRICES, empirical_matrices, profile_mixtures
from phloem.model.families import families
from phloem.model.model_string import split_model
from phloem.model.nucleotide import PAIRS, nucleotide_names

RATES = ("E", "I", "G4", "I+G4", "R", "I+R")  # what a set of rates may name; R stands for +R2, +R3, …
USUAL_RATES = ("E", "I", "G4", "I+G4", "R")
MOST_CLASSES = 10  # of +R

_FREE = ("GTR", "TVM", "TIM1", "TIM2", "TIM3", "TPM2u", "TPM3u", "K3Pu", "TN93", "HKY", "F81")
_EQUAL = ("SYM", "TVMe", "TIM1e", "TIM2e", "TIM3e", "TPM2", "TPM3", "K3P", "TNe", "K80", "JC")
_CODONS = ("GY94", "MG94K", "MG94")
_POSITIONS = ("F3X4", "F1X4")


class Base(NamedTuple):
    """A model without its rates across sites. text: as model strings begin. code: of a nucleotide model,
    which of AC AG AT CG CT GT share a rate. frequencies: its suffix. whole: it brings its own rates."""

    text: str
    code: str = ""
    frequencies: str = ""
    whole: bool = False

    @property
    def n_rates(self) -> int:
        """Free exchangeabilities of a nucleotide model."""
        return max(len(set(self.code)) - 1, 0)

    def contains(self, other: Base) -> bool:
        """Whether the other, with the same rates across sites, is this one with some numbers held equal."""
        if not (self.code and other.code) or self.frequencies != other.frequencies or self == other:
            return False
        shared = set(zip(self.code, other.code))
        return len(shared) == len(set(self.code))


def bases(
    alphabet: Alphabet, names: Sequence[str] | None = None, frequencies: Sequence[str] | None = None
) -> list[Base]:
    """Families with their frequencies, the most general first.

    names: of families, or model strings that bring their own rates (LG4X, C20, anything with a +); by default
    those of the data type. frequencies: suffixes (F, FO, FQ, F3X4 …) for families that may have several; by
    default what is counted in the data, of empirical matrices their own too, of other characters equal and
    fitted ones (counted ones cost the same, for a lower likelihood). Errors: ModelError for names that there
    are not, InputError for frequencies of which one is of no family.
    """
    kind = alphabet.kind
    if kind in ("dna", "rna"):
        found = _nucleotides(names or (*_FREE, *_EQUAL), frequencies)
    elif kind == "protein":
        found = _proteins(names or _matrices(), frequencies)
    elif kind == "codon":
        found = _others(names or _CODONS, frequencies or _POSITIONS, alphabet)
    elif kind == "doublet":
        found = _others(names or ("SH94GTR", "SH94K", "SH94"), frequencies or ("FO",), alphabet)
    else:
        usual = ("MK", "ORDERED") if alphabet.n_states > 2 else ("MK",)
        found = _others(names or usual, frequencies or ("", "FO"), alphabet)
    had = {base.frequencies for base in found if not base.whole}
    if unused := [suffix for suffix in frequencies or () if suffix not in had]:
        raise InputError(
            f"no family of this set has the frequencies {', '.join(unused)}",
            hint="Leave them out of --frequency-set.",
        )
    return list(dict.fromkeys(found))


def rate_names(given: Sequence[str] | None) -> tuple[str, ...]:
    """Members of RATES, by any of their usual spellings; InputError for others."""
    if given is None:
        return USUAL_RATES
    spelled = {"": "E", "G": "G4", "I+G": "I+G4", "G+I": "I+G4", "G4+I": "I+G4", "R+I": "I+R"}
    names = tuple(dict.fromkeys(spelled.get(g.upper().strip("+"), g.upper().strip("+")) for g in given))
    for name in names:
        if name not in RATES:
            raise InputError(
                f"'{name}' is no member of a set of rates", hint=f"Choose of {', '.join(RATES)}."
            )
    return names


def _whole(name: str) -> bool:
    head = split_model(name)[0].name.upper()
    mixtures = {n.upper() for n in (*FUSED_MATRICES, *profile_mixtures())}
    return "+" in name or "*" in name or head == "MIX" or head in mixtures


def _matrices() -> tuple[str, ...]:
    """Published matrices of their own, those that are parts of mixtures left out; LG first."""
    parts = {part for members, _ in FUSED_MATRICES.values() for part in members}
    names = [name for name in empirical_matrices() if name not in parts and name != "LG"]
    return ("LG", *names)


def _listed(names: Sequence[str], bases_of: Callable[[str], list[Base]]) -> list[Base]:
    """Of every name its bases, whole models last."""
    found = [[Base(name, whole=True)] if _whole(name) else bases_of(name) for name in names]
    return sorted((base for of_name in found for base in of_name), key=lambda b: b.whole)


def _nucleotides(names: Sequence[str], frequencies: Sequence[str] | None) -> list[Base]:
    known = nucleotide_names()

    def bases(name: str) -> list[Base]:
        family = known.get(name.upper())
        if family is None or family.tied:
            raise _unknown(name, (*_FREE, *_EQUAL))
        if family.equal:
            return [Base(family.canonical, family.code, "FQ")]
        return [Base(f"{family.canonical}+{s}", family.code, s) for s in tuple(frequencies or ("F",))]

    return sorted(_listed(names, bases), key=lambda b: (b.whole, -b.n_rates, b.frequencies == "FQ"))


def _proteins(names: Sequence[str], frequencies: Sequence[str] | None) -> list[Base]:
    known = families("protein", (), None)

    def bases(name: str) -> list[Base]:
        if name.upper() not in known or known[name.upper()].canonical == "AAMIXED":
            raise _unknown(name, _matrices())
        own = known[name.upper()].built_in is not None
        suffixes = tuple(frequencies or (("", "F") if own else ("F",)))
        return [Base(_joined(known[name.upper()].canonical, s), "", s) for s in suffixes]

    return _listed(names, bases)


def _others(names: Sequence[str], frequencies: Sequence[str], alphabet: Alphabet) -> list[Base]:
    from phloem.likelihood.model_for_alignment import codon_table

    known = families(alphabet.kind, tuple(alphabet.states), codon_table(alphabet))

    def bases(name: str) -> list[Base]:
        family = known.get(name.upper())
        if family is None:
            raise _unknown(name, [f.canonical for f in known.values()])
        allowed = [s for s in frequencies if s == "" or s.upper() in family.allowed_frequencies]
        return [Base(_joined(family.canonical, s), "", s) for s in allowed]

    return _listed(names, bases)


def _joined(name: str, suffix: str) -> str:
    return f"{name}+{suffix}" if suffix else name


def _unknown(name: str, known: Sequence[str]) -> ModelError:
    return ModelError(
        f"'{name}' is no family of models for these data", hint=f"Known: {', '.join(dict.fromkeys(known))}."
    )


def exchangeabilities(values: dict[str, float]) -> dict[str, float]:
    """Rate by pair of nucleotides, from values by any of the pairs' parameters; what has none has GT's, 1."""
    return {pair: values.get(f"rate_{pair}", 1.0) for pair in PAIRS}

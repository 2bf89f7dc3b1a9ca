"""The parts of the data as the commands of a MRBAYES block describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phloem.data.alphabet import TRANSLATED
from phloem.data.doublets import columns_text
from phloem.io.mrbayes import MrBayesCommand, Option, Value

GENETIC_CODES = {
    "universal": 1, "vertmt": 2, "yeast": 3, "mycoplasma": 4, "invermt": 5, "metmt": 5, "ciliate": 6,
    "echinoderm": 9, "euplotid": 10,
}  # fmt: skip
_DEFAULTS = {
    "nucmodel": "4by4", "nst": "1", "code": "universal", "rates": "equal", "covarion": "no",
    "omegavar": "equal", "parsmodel": "no", "statefreqmodel": "stationary", "statefrmod": "stationary",
    "usegibbs": "no", "ngammacat": "4", "nlnormcat": "4", "nbetacat": "5", "aamodelpr": "fixed(poisson)",
    "symdirihyperpr": "fixed(infinity)",
    "topologypr": "uniform", "ratepr": "fixed", "brlenspr": "unconstrained:gammadirichlet(1,0.1,1,1)",
    "clockvarpr": "strict", "covswitchpr": "uniform(0,100)", "aarevmatpr": "dirichlet(1)",
    "revratepr": "symdir(1)", "ny98omega1pr": "beta(1,1)", "ny98omega3pr": "exponential(1)",
    "m3omegapr": "exponential", "codoncatfreqs": "dirichlet(1,1,1)",
}  # fmt: skip
NUCLEOTIDES = ("dna", "rna")


@dataclass(frozen=True)
class Setting:
    """An option's value and the command that gave it."""

    option: Option
    command: MrBayesCommand


@dataclass
class Division:
    """A part of the data as the commands describe it. datatype: as io has it (restriction data are binary).
    sites: columns that are not excluded. links: parameter → a number, the same for linked divisions.
    translated: whether these are amino acids of nucleotides. partner: column → its partner in a stem."""

    name: str
    datatype: str
    sites: np.ndarray
    settings: dict[str, Setting] = field(default_factory=dict)
    links: dict[str, int] = field(default_factory=dict)
    translated: bool = False
    partner: Mapping[int, int] = field(default_factory=dict)

    def as_read(self) -> Division:
        """With nucmodel=protein nucleotides are amino acids, with nucmodel=doublet columns stand in pairs."""
        if self.doublet:
            return replace(self, sites=self.pairs())
        amino = self.datatype in NUCLEOTIDES and self.value("nucmodel").word == "protein"
        return replace(self, datatype="protein", translated=True) if amino else self

    def value(self, option: str) -> Value:
        """What holds: what was set, or MrBayes' default."""
        if option in self.settings:
            found = self.settings[option].option.value
            return Value("") if found is None else found
        word, _, inside = _DEFAULTS.get(option, "").partition("(")
        first, _, second = word.partition(":")
        return Value(first, second, tuple(inside.removesuffix(")").split(",")) if inside else None)

    def refuse(self, option: str, told: str, hint: str) -> Exception:
        """An error that points at the line of an option that was set."""
        setting = self.settings[option]
        return setting.command.error(told, hint, setting.option.line)

    def numbers(self, option: str, *counts: int) -> tuple[float, ...]:
        """The numbers in an option's parentheses; an error where there are others, or another count."""
        given = self.value(option).arguments or ()
        try:
            numbers = tuple(float(word) for word in given)
        except ValueError:
            numbers = ()
        if not numbers or (counts and len(numbers) not in counts):
            wanted = " or ".join(str(count) for count in counts) or "some"
            raise self.refuse(
                option, f"{option} needs {wanted} number(s) in parentheses", "Correct or delete it."
            )
        return numbers

    def of_columns(self) -> dict[str, Any]:
        """Data type and genetic code as options, where several columns are a site."""
        if self.doublet:
            return {"datatype": "doublet"}
        if not (self.codon or self.translated):
            return {}
        kind = "codon" if self.codon else TRANSLATED
        return {"datatype": kind, "genetic_code": GENETIC_CODES[self.value("code").word]}

    @property
    def doublet(self) -> bool:
        return self.datatype in NUCLEOTIDES and self.value("nucmodel").word == "doublet"

    def pairs(self) -> np.ndarray:
        """Columns, two after two a pair of PAIRS, in the order of the first; an error where one has none."""
        sites = self.sites.tolist()
        own = {column: self.partner.get(column) for column in sites}
        if alone := [column + 1 for column, partner in own.items() if partner not in own]:
            told = f"column {alone[0]} of part '{self.name}' has no partner in it, as doublets have"
            hint = "Pair it in PAIRS, exclude it, or leave it to a part with nucmodel=4by4."
            raise self.refuse("nucmodel", told, hint)
        return np.array([(a, b) for a, b in own.items() if b is not None and a < b], np.int64).ravel()

    @property
    def columns(self) -> str:
        """Its columns as text, of doublets in pairs."""
        return columns_text("doublet" if self.doublet else self.datatype, self.sites)

    @property
    def codon(self) -> bool:
        return self.datatype in NUCLEOTIDES and self.value("nucmodel").word == "codon"

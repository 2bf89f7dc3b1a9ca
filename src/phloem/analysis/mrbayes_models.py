"""From what LSET, PRSET, LINK and UNLINK say of a division of the data to model strings, priors and links.

Settings are looked at when all commands are read, as MrBayes does: what a later command replaces needs no
support, and errors name the line of what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phloem.analysis.mrbayes_divisions import NUCLEOTIDES, Division
from phloem.data.alphabet import STANDARD_SYMBOLS
from phloem.model.nucleotide import PAIRS

_MATRICES = {
    "poisson": "Poisson", "equalin": "Poisson", "jones": "JTT", "dayhoff": "Dayhoff", "mtrev": "mtREV",
    "mtmam": "mtMAM", "wag": "WAG", "rtrev": "rtREV", "cprev": "cpREV", "blosum": "Blosum62",
    "blossum": "Blosum62", "lg": "LG", "gtr": "GTR20",
}  # fmt: skip
_NOT_YET = {
    ("rates", "kmixture"): "Choose rates=gamma, or a model with +R4 by --model.",
    ("omegavar", "m10"): "Choose omegavar=equal, ny98 or m3.",
    ("parsmodel", "yes"): "Choose parsmodel=no.",
    ("usegibbs", "yes"): "Choose usegibbs=no: rates of sites are integrated over.",
    ("statefreqmodel", "directional"): "Choose statefreqmodel=stationary.",
    ("statefreqmodel", "mixed"): "Choose statefreqmodel=stationary.",
    ("statefrmod", "directional"): "Choose statefrmod=stationary.",
    ("statefrmod", "mixed"): "Choose statefrmod=stationary.",
    ("brlenspr", "fixed"): "Leave it out: branch lengths are sampled.",
}
_NUCLEOTIDES = {"1": "F81", "2": "HKY", "mixed": "MIXED", "6": "GTR"}
_DOUBLETS = {"1": "SH94", "2": "SH94K", "mixed": "SH94MIXED", "6": "SH94GTR"}
_OF_STATES = ("omega", "statefreq", "pinvar")  # not shared by nucleotides, doublets and codons
_OF_CLASSES = ("ny98omega1pr", "ny98omega3pr", "m3omegapr", "codoncatfreqs")
CLASSES_OF_OMEGA = ("omega_1", "omega_3", "omegas", "mixture_weights")
_KINDS = {"codon": "codons", "doublet": "doublets", "binary": "restriction data", "standard": "standard data"}
LINKED = {  # MrBayes' name of a parameter → phloem's
    "tratio": ("kappa",),
    "revmat": ("rates",),
    "omega": ("omega",),
    "statefreq": ("frequencies",),
    "shape": ("alpha",),
    "sigma": ("sigma",),
    "correlation": ("rho",),
    "pinvar": ("p_invariable",),
    "symdir": ("alpha_symdir",),
    "switchrates": ("switch_on", "switch_off"),
    "aamodel": ("aamodel",),
}


@dataclass(frozen=True)
class DivisionModel:
    """text: the model string. priors: phloem's parameter → density. kinds: of parameters that the model has,
    MrBayes' name → what must agree for divisions to share it; free: those that are not fixed. constants:
    characters that cannot be seen are left out of the data."""

    text: str
    priors: dict[str, str]
    kinds: dict[str, tuple[object, ...]]
    free: frozenset[str]


Counted = Callable[[Sequence[Division]], tuple[float, ...]]


def check_supported(division: Division) -> None:
    """InputError that names the line of a setting that phloem does not have, where it concerns the data."""
    nucleotide, codon = division.datatype in NUCLEOTIDES, division.codon
    concerns = {
        "nst": nucleotide, "nucmodel": nucleotide, "omegavar": codon,
        "aamodelpr": division.datatype == "protein",
    }  # fmt: skip
    for option in division.settings:
        word = division.value(option).word.lower()
        hint = _NOT_YET.get((option, word))
        if hint is not None and concerns.get(option, True):
            raise division.refuse(option, f"{option}={word} is not supported yet", hint)
    if codon and division.value("nst").word.lower() == "mixed":
        raise division.refuse("nst", "codon models with nst=mixed are not supported", "Choose nst=6 or 2.")
    if codon and division.value("nst").word == "6" and division.value("omegavar").word != "equal":
        told = "classes of omega with nst=6 are not supported"
        raise division.refuse("omegavar", told, "Choose omegavar=equal, or nst=2.")


def has_covarion(division: Division) -> bool:
    """Whether LSET COVARION holds for these data."""
    if division.value("covarion").word != "yes" or division.codon or division.doublet:
        return False
    return division.datatype in (*NUCLEOTIDES, "protein")


def counts_digits(divisions: Sequence[Division], symbols: str | None) -> bool:
    """Whether the states of standard characters are others in MrBayes, which does not read the symbols that
    the file lists: there they are digits, 0 the lowest. It does not read letters either."""
    listed = symbols or ""
    in_order = not listed.isdecimal() or STANDARD_SYMBOLS.startswith(listed)
    return not in_order and any(d.datatype == "standard" for d in divisions)


def model_notes(divisions: Sequence[Division], symbols: str | None) -> list[str]:
    """What of LSET and PRSET has no meaning for the data that it is of, and what is done otherwise. symbols:
    those that the file lists."""
    notes = []
    if any(d.datatype == "protein" and d.value("aamodelpr").word == "mixed" for d in divisions):
        notes.append("aamodelpr=mixed: VT is IQ-TREE's and RAxML's, MrBayes' has other numbers")
    if any(has_covarion(d) and d.value("rates").word in ("propinv", "invgamma") for d in divisions):
        notes.append("rates: no invariable sites beside covarion=yes, as in MrBayes")
    without = [d for d in divisions if d.value("covarion").word == "yes" and not has_covarion(d)]
    kinds = dict.fromkeys("codon" if d.codon else "doublet" if d.doublet else d.datatype for d in without)
    for kind in kinds:
        notes.append(f"covarion=yes: no meaning for {_KINDS.get(kind, kind)}, as in MrBayes")
    notes += dict.fromkeys(filter(None, map(_note_of_classes, divisions)))
    if any(d.value("rates").word == "adgamma" and not d.codon for d in divisions):
        notes.append("rates=adgamma is Yang's (1995), whose log-likelihoods MrBayes 3.2.7a does not have")
    if counts_digits(divisions, symbols):
        notes.append(f"symbols '{symbols}': not read, as in MrBayes: states are digits, 0 the lowest")
    return notes


def _note_of_classes(division: Division) -> str:
    own, there = division.value("nlnormcat").word, division.value("ngammacat").word
    if division.codon or division.value("rates").word != "lnorm" or own == there:
        return ""
    return f"rates=lnorm has {own} classes, as nlnormcat says; MrBayes 3.2.7a takes {there}, as of ngammacat"


class _Builder:
    """Puts one division's model together."""

    def __init__(self, division: Division, pool: Sequence[Division], counted: Counted) -> None:
        self.d, self.pool, self.counted = division, pool, counted
        self.priors: dict[str, str] = {}
        self.kinds: dict[str, tuple[object, ...]] = {}
        self.free: set[str] = set()

    def note(self, kind: str, option: str, *more: object) -> None:
        """The model has this parameter; its prior is what the option says."""
        division = "nucleotide" if self.d.datatype in NUCLEOTIDES else self.d.datatype
        word = self.d.value("nucmodel").word if kind in _OF_STATES and division == "nucleotide" else ""
        self.kinds[kind] = (division, word, str(self.d.value(option)).lower(), *more)
        if self.d.value(option).word != "fixed":
            self.free.add(kind)

    def given(self, option: str) -> bool:
        return option in self.d.settings

    def fixed(self, option: str, *counts: int) -> str:
        """The values in braces where the option fixes them, else ''."""
        if self.d.value(option).word != "fixed":
            return ""
        return "{" + ",".join(f"{x:g}" for x in self.d.numbers(option, *counts)) + "}"

    def prior(self, name: str, option: str, density: str, *counts: int) -> None:
        """A prior other than the default, which is the same in both programs."""
        if self.given(option):
            numbers = self.d.numbers(option, *counts)
            self.priors[name] = f"{density}({','.join(f'{x:g}' for x in numbers)})"

    def shared_prior(self, name: str, option: str, size: int) -> None:
        """A Dirichlet; of one number every entry gets its share, as there."""
        if self.given(option):
            numbers = self.d.numbers(option, 1, size)
            numbers = (numbers[0] / size,) if len(numbers) == 1 else numbers
            self.priors[name] = f"dirichlet({','.join(f'{x:g}' for x in numbers)})"

    def rates(self) -> str:
        """+I and +G of what LSET RATES says; standard and restriction data have no +I, codons and covarion
        neither. Rates under covarion are those of substitutions alone, *G."""
        word, text = self.d.value("rates").word, ""
        if self.d.codon:
            return ""
        invariable = self.d.datatype not in ("standard", "binary") and not has_covarion(self.d)
        if word in ("propinv", "invgamma") and invariable:
            text += "+I" + self.fixed("pinvarpr", 1)
            self.note("pinvar", "pinvarpr")
            if self.d.value("pinvarpr").word == "uniform":
                self.prior("p_invariable", "pinvarpr", "uniform", 2)
        if word == "gamma" or (word == "invgamma" and self.d.datatype not in ("standard", "binary")):
            text += self._rate_classes("G", "ngammacat", "shape", "alpha")
        if word == "adgamma":
            text += self._correlated_classes()
        if word == "lnorm":
            text += self._rate_classes("LN", "nlnormcat", "sigma", "sigma")
        return text.replace("+", "*", 1) if has_covarion(self.d) else text

    def _rate_classes(self, suffix: str, classes: str, noted: str, parameter: str) -> str:
        """So many classes of rates, whose shape has MrBayes' shapepr."""
        categories = self.d.value(classes).word
        self.note(noted, "shapepr", categories)
        density = self.d.value("shapepr").word
        if density in ("uniform", "exponential"):
            self.prior(parameter, "shapepr", density, 2 if density == "uniform" else 1)
        return f"+{suffix}{categories}" + self.fixed("shapepr", 1)

    def _correlated_classes(self) -> str:
        """+AG: classes whose shape has shapepr, and the correlation of neighbours ratecorrpr."""
        label, brace, shape = self._rate_classes("AG", "ngammacat", "shape", "alpha").partition("{")
        values = [f"alpha={shape.removesuffix('}')}"] if brace else []
        self.note("correlation", "ratecorrpr")
        if self.d.value("ratecorrpr").word == "fixed":
            values.append(f"rho={self.d.numbers('ratecorrpr', 1)[0]:g}")
        else:
            self.prior("rho", "ratecorrpr", "uniform", 2)
        return label + (f"{{{','.join(values)}}}" if values else "")

    def covarion(self) -> str:
        if not has_covarion(self.d):
            return ""
        density = self.d.value("covswitchpr").word
        fixed = self.fixed("covswitchpr", 2)
        self.note("switchrates", "covswitchpr")
        if density != "fixed":
            numbers = ",".join(f"{float(x):g}" for x in self.d.value("covswitchpr").arguments or ())
            self.priors |= {name: f"{density}({numbers})" for name in LINKED["switchrates"]}
        return "+COV" + fixed

    def frequencies(self, n_states: int) -> str:
        """+FO with its prior, +FQ, or +F with the values given or counted."""
        value = self.d.value("statefreqpr")
        self.note("statefreq", "statefreqpr", self.d.value("code").word if self.d.codon else "", n_states)
        if value.word == "fixed":
            words = [word.lower() for word in value.arguments or ()]
            if words and "equal".startswith(words[0]):
                return "+FQ"
            if words and "empirical".startswith(words[0]):
                shares = np.array(self.counted(self.pool))
                shares = np.outer(shares, shares).ravel() if self.d.doublet else shares
                counted = ",".join(f"{x:.10g}" for x in shares)
                return f"+F1X4{{{counted}}}" if self.d.codon else f"+F{{{counted}}}"
            return "+F" + self.fixed("statefreqpr", n_states)
        self.shared_prior("frequencies", "statefreqpr", n_states)
        return "+FO"

    def nucleotides(self, names: Mapping[str, str], n_states: int) -> str:
        """names: of the models by LSET NST."""
        nst = self.d.value("nst").word.lower()
        if nst == "1":
            name = names[nst]
        elif nst == "2":
            name = names[nst] + self.fixed("tratiopr", 1)
            self.note("tratio", "tratiopr")
            if self.d.value("tratiopr").word == "beta":
                self.prior("kappa", "tratiopr", "beta", 2)
        elif nst == "mixed":
            name = names[nst]
            self.note("revmat", "revratepr", nst)
            if self.d.value("revratepr").word != "symdir":
                raise self.d.refuse("revratepr", "revratepr is symdir(number)", "Write symdir(1).")
            self.prior("rates", "revratepr", "dirichlet", 1)
        else:
            name = names["6"] + self.fixed("revmatpr", 6)
            self.rates_of_pairs()
        return name + self.frequencies(n_states)

    def rates_of_pairs(self) -> None:
        """The six exchangeabilities of nucleotides."""
        self.note("revmat", "revmatpr")
        if self.d.value("revmatpr").word == "dirichlet":
            self.shared_prior("rates", "revmatpr", 6)

    def codons(self, n_states: int) -> str:
        name, values = self.omegas()
        if self.d.value("nst").word == "1":
            values.append("kappa=1")
        elif self.d.value("nst").word == "6":
            name += "GTR"
            if self.d.value("revmatpr").word == "fixed":
                rates = np.array(self.d.numbers("revmatpr", 6))
                values += [f"rate_{pair}={x:g}" for pair, x in zip(PAIRS, rates[:-1] / rates[-1])]
            self.rates_of_pairs()
        else:
            if self.d.value("tratiopr").word == "fixed":
                values.append(f"kappa={self.d.numbers('tratiopr', 1)[0]:g}")
            elif self.given("tratiopr"):
                self.prior("kappa", "tratiopr", "beta", 2)
            self.note("tratio", "tratiopr")
        return name + (f"{{{','.join(values)}}}" if values else "") + self.frequencies(n_states)

    def omegas(self) -> tuple[str, list[str]]:
        """The codon model of LSET OMEGAVAR, and what of its omegas is fixed."""
        word = self.d.value("omegavar").word.lower()
        if word == "equal":
            self.note("omega", "omegapr")
            return "GY94", self.fixed_or("omegapr", ("omega",), "omega", {"dirichlet": 2})
        if word == "ny98":
            name, values = "M2a", self.fixed_or("ny98omega1pr", ("omega_1",), "omega_1", {"beta": 2})
            densities = {"uniform": 2, "exponential": 1}
            values += self.fixed_or("ny98omega3pr", ("omega_3",), "omega_3", densities)
            self._check_above_one()
        else:
            elements = ("omega_1", "omega_2", "omega_3")
            name, values = "M3", self.fixed_or("m3omegapr", elements, "omegas", {"exponential": 0})
            if not values:
                self.priors["omegas"] = "ratios(1)"
        weights = tuple(f"mixture_weight_{k}" for k in (1, 2, 3))
        values += self.fixed_or("codoncatfreqs", weights, "mixture_weights", {"dirichlet": 3})
        others = [str(self.d.value(option)).lower() for option in _OF_CLASSES]
        self.note("omega", "codoncatfreqs", word, *others)
        self.free.add("omega")
        return name, values

    def fixed_or(
        self, option: str, elements: Sequence[str], block: str, densities: dict[str, int]
    ) -> list[str]:
        """'element=value' of every element where an option fixes them; else [], and its density, of so many
        numbers, is the prior of the block where it was given."""
        word = self.d.value(option).word
        if not self.given(option):
            return []
        if word == "fixed":
            return [f"{e}={x:g}" for e, x in zip(elements, self.d.numbers(option, len(elements)))]
        if word not in densities:
            raise self.d.refuse(
                option, f"{option}={word} is not supported", f"Choose {', '.join(densities)}."
            )
        if densities[word]:
            self.prior(block, option, word, densities[word])
        return []

    def _check_above_one(self) -> None:
        value = self.d.value("ny98omega3pr")
        if value.word in ("uniform", "fixed") and self.d.numbers("ny98omega3pr")[0] < 1:
            raise self.d.refuse(
                "ny98omega3pr", "the omega of positive selection is 1 or more", "Write uniform(1,50)."
            )

    def protein(self) -> str:
        if self.d.value("aamodelpr").word == "mixed":
            self.note("aamodel", "aamodelpr")
            return "AAMIXED"
        (name,) = self.d.value("aamodelpr").arguments or ("",)
        known = [key for key in (*_MATRICES, "vt") if key.startswith(name.lower())]
        chosen = name.lower() if name.lower() in known else known[0] if len(known) == 1 else ""
        if not chosen:
            raise self.d.refuse("aamodelpr", f"there is no matrix '{name}'", "Choose wag, lg, jones, …")
        if chosen == "vt":
            hint = "Choose another matrix, or --model VT, which is IQ-TREE's and RAxML's."
            raise self.d.refuse("aamodelpr", "MrBayes' VT has other numbers than everybody's", hint)
        self.kinds["aamodel"] = (chosen,)
        text = _MATRICES[chosen]
        if chosen == "gtr":
            text += self.fixed("aarevmatpr", 190)
            self.note("revmat", "aarevmatpr")
            if self.given("aarevmatpr") and self.d.value("aarevmatpr").word == "dirichlet":
                self.shared_prior("exchangeabilities", "aarevmatpr", 190)
        return text + (self.frequencies(20) if chosen in ("gtr", "equalin") else "")

    def standard(self) -> str:
        return "MK" + (self.frequencies(2) if self.d.datatype == "binary" else self.by_character())

    def by_character(self) -> str:
        """+FB5 where the frequencies of standard characters differ; they are equal where the hyperparameter
        is infinite."""
        value, classes = self.d.value("symdirihyperpr"), self.d.value("nbetacat").word
        (word, *_) = value.arguments or ("",)
        if value.word == "fixed" and word.lower() in ("infinity", "-1", "-1.0"):
            return ""
        self.note("symdir", "symdirihyperpr", self.d.name)  # every part's own there, whatever LINK says
        fixed = self.fixed("symdirihyperpr", 1)
        if not fixed:
            density = value.word
            self.prior("alpha_symdir", "symdirihyperpr", density, 2 if density == "uniform" else 1)
        return f"+FB{classes}" + fixed

    def coding(self) -> str:
        """+ASC: which characters cannot have been seen. MrBayes' defaults: variable for standard
        characters, noabsencesites for restriction sites."""
        if self.d.datatype not in ("standard", "binary"):
            return ""
        default = "variable" if self.d.datatype == "standard" else "noabsencesites"
        word = self.d.value("coding").word or default
        suffix = {"all": "", "variable": "+ASC", "informative": "+ASC{informative}"}
        suffix |= {"noabsencesites": "+ASC{0}", "nopresencesites": "+ASC{1}"}
        if word not in suffix or (self.d.datatype == "standard" and "sites" in word):
            hint = "Choose coding=variable, coding=informative or coding=all."
            raise self.d.refuse("coding", f"coding={word} is not supported for {self.d.datatype} data", hint)
        return suffix[word]


def division_model(
    division: Division, counted: Counted, pool: Sequence[Division] = (), n_codons: int = 61
) -> DivisionModel:
    """The model of a division. counted: frequencies in the data of some divisions, as MrBayes counts them;
    pool: those that share this one's. n_codons: sense codons of its genetic code."""
    build = _Builder(division, pool or (division,), counted)
    if division.codon:
        text = build.codons(n_codons)
    elif division.datatype in NUCLEOTIDES:
        text = build.nucleotides(_DOUBLETS, 16) if division.doublet else build.nucleotides(_NUCLEOTIDES, 4)
    else:
        text = build.protein() if division.datatype == "protein" else build.standard()
    text += build.covarion() + build.rates() + build.coding()
    return DivisionModel(text, build.priors, build.kinds, frozenset(build.free))

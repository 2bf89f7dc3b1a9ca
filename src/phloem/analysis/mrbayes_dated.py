"""Dated trees of a MRBAYES block: what its clock, tree prior and calibrations are in `phloem time`.

Only what is the same model there is taken; the rest is an error that says what differs. As in MrBayes, what
is said about clocks has no meaning until `prset brlenspr` asks for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phloem.analysis.constraint_text import HARD, PARTIAL
from phloem.analysis.mrbayes_ages import Known, age_density, number_text
from phloem.analysis.mrbayes_divisions import Division
from phloem.analysis.mrbayes_models import DivisionModel
from phloem.io.mrbayes import MrBayesCommand, Value, rate_shifts
from phloem.tree.match import folded

PLOIDY = {"diploid": 2.0, "zlinked": 1.5, "haploid": 1.0}
OF_CLOCKS_TEXT = """
speciationpr extinctionpr popsizepr growthpr treeagepr cppratepr cppmultdevpr tk02varpr clockratepr
nodeagepr clockvarpr igrvarpr popvarpr samplestrat sampleprob fossilizationpr calwaitpr wnvarpr ilnvarpr
mixedvarpr generatepr speciationrate extinctionrate popsize growthrate cpprate cppmultdev cppevents tk02var
tk02branchrates igrvar igrbranchrates wnvar wnbranchrates ilnvar ilnbranchlens mixedvar mixedbrchrates
ploidy
"""
OF_CLOCKS = frozenset(OF_CLOCKS_TEXT.split())
"""Options of LSET, PRSET and LINK that have no meaning without a clock or species trees."""
OF_OTHER_TREES = {"calibrate": "a clock", "speciespartition": "species trees"}
"""Commands likewise, and what they are about."""
_RELAXED = ("igrvarpr", "tk02varpr", "cppratepr", "cppmultdevpr", "wnvarpr", "ilnvarpr", "mixedvarpr")
_NOISE = "white-noise", "igrvarpr", "exponential(10)"
_ALONG = "autocorrelated", "tk02varpr", "exponential(1)"
_CLOCKS = {"igr": _NOISE, "ibr": _NOISE, "tk02": _ALONG, "bm": _ALONG}
"""clockvarpr of MrBayes 3.2.7a → --clock, what says its variance's prior, and what that is as usual."""
_OTHER_CLOCKS = {"cpp": "its rates change at points of a Poisson process"}
OF_BRANCHES = {"igrvar": "variances", "igrbranchrates": "branch rates"}
OF_BRANCHES |= {"tk02var": "variances", "tk02branchrates": "branch rates"}
"""What LINK and UNLINK may say of the clocks that there are."""
_TREES = ("uniform", "coalescence", "birthdeath", "fossilization")
_OF_TREE = (
    "brlenspr", "topologypr", "clockvarpr", "clockratepr", "treeagepr", "nodeagepr", "speciationpr",
    "extinctionpr", "sampleprob", "samplestrat", "fossilizationpr", "popsizepr", "growthpr", "ploidy",
)  # fmt: skip
_OF_KINDS: dict[str, tuple[str, ...]] = dict.fromkeys(("popsizepr", "growthpr", "ploidy"), ("coalescence",))
_OF_KINDS |= dict.fromkeys(
    ("speciationpr", "extinctionpr", "sampleprob", "samplestrat"), ("birthdeath", "fossilization")
)
_OF_KINDS |= {"fossilizationpr": ("fossilization",), "treeagepr": ("uniform", "birthdeath", "fossilization")}
"""What some of _TREES alone have."""
_RATIOS = {"kappa": "tratio", "omega": "omega"}
_OF_CLASSES = "M2a", "M3"


def what_differs(divisions: Sequence[Division]) -> str:
    """'' where phloem time has the clock and tree prior that divisions with a clock ask for; else why not."""
    d = divisions[0]
    lengths, clock = d.value("brlenspr"), d.value("clockvarpr").word.lower()
    if lengths.second == "fixed":
        return ": phloem time samples ages and topologies, and holds none at a tree's"
    if lengths.word != "clock" or lengths.second.lower() not in _TREES:
        return f": MrBayes 3.2.7a has clock:{', clock:'.join(_TREES)}"
    if clock not in ("strict", *_CLOCKS):
        return f" with clockvarpr={clock}: {_OTHER_CLOCKS.get(clock, 'phloem time has other relaxed clocks')}"
    if d.value("topologypr").word == "fixed":
        return " with topologypr=fixed: phloem time samples topologies"
    for one in divisions:
        unlike = [n for n in _OF_TREE if str(one.value(n)).lower() != str(d.value(n)).lower()]
        if unlike:
            return f" with parts that differ in {unlike[0]}: there is one dated tree of all"
    for name, what in {"brlens": "branch lengths", **OF_BRANCHES}.items():
        if len({one.links.get(name, 0) for one in divisions}) > 1:
            return f" with unlinked {what}: there is one dated tree, and one clock, of all"
    return ""


def clock_notes(
    division: Division, dated: bool, said: Sequence[tuple[MrBayesCommand, str]]
) -> list[tuple[MrBayesCommand, str, str]]:
    """What was said about clocks and species and has no meaning: command, name of command or option, why.
    dated: whether the trees have a clock."""
    ages, found = division.value("nodeagepr").word.lower() == "calibrated", []
    clock, kind = division.value("clockvarpr").word.lower(), division.value("brlenspr").second.lower()
    own = _CLOCKS[clock][1].removesuffix("varpr") if clock in _CLOCKS else "no other"
    for command, name in said:
        other = OF_OTHER_TREES.get(name, "a clock")
        if not dated or other != "a clock":
            found.append((command, name, f"no meaning without {other}"))
        elif name == "calibrate" and not ages:
            found.append((command, name, "no meaning while nodeagepr=unconstrained, as in MrBayes"))
        elif name in (*_RELAXED, *OF_BRANCHES) and not name.startswith(own):
            found.append((command, name, f"no meaning while clockvarpr={clock}"))
        elif kind not in _OF_KINDS.get(name, (kind,)):
            found.append((command, name, f"no meaning with clock:{kind}"))
    return found


@dataclass(frozen=True)
class Dated:
    """What a block says about dated trees. file: of the data. division: the first one, whose tree is that of
    all. models: of substitution, of every division; priors: of their numbers, as --prior has them.
    constraints: of topologypr, by name, each (kind, sets of taxa, command). known: calibrations, the last of
    a name holds. taxa: of the trees; deleted: names of those that are not."""

    file: str
    division: Division
    models: Sequence[DivisionModel]
    priors: Sequence[str]
    constraints: Mapping[str, tuple[str, Sequence[Sequence[str]], MrBayesCommand]]
    known: Sequence[Known]
    taxa: Sequence[str]
    deleted: Collection[str] = ()

    def options(self) -> dict[str, Any]:
        """Options of `phloem time`, but those of data and run. InputError for what is another model there."""
        kind = self.division.value("brlenspr").second.lower()
        rate, clock, spread = self._clock_rate(), "strict", list[str]()
        if (word := self.division.value("clockvarpr").word.lower()) in _CLOCKS:
            clock, option, usual = _CLOCKS[word]
            spread = [f"clock_variance={self._density(option, usual, known=('uniform', 'exponential'))}"]
        if kind == "coalescence":
            tree, priors = self._coalescent()
        elif kind == "birthdeath":
            tree, priors = self._births_and_deaths()
        elif kind == "fossilization":
            tree, priors = self._fossils()
        else:
            tree, priors = {"tree_prior": "uniform", "tip_age": self._tip_ages()}, []
        return {
            "clock": clock, **tree,
            "prior": [*self._substitution(), f"clock_rate={rate}", *spread, *priors], **self._clades(kind),
        }  # fmt: skip

    def refuse(self, option: str, told: str, hint: str) -> Exception:
        """An error at the line of an option, or where it was left out, of brlenspr."""
        return self.division.refuse(option if option in self.division.settings else "brlenspr", told, hint)

    def _substitution(self) -> list[str]:
        """Priors of the substitution model. A ratio x of two rates is a share in MrBayes: where x / (1 + x)
        is beta(a,b), x is betaprime(a,b), 1 / (1 + x)² of beta(1,1)."""
        found = dict[str, str]()
        for text in self.priors:
            name, _, density = text.partition("=")
            is_ratio = name.partition("{")[0] in _RATIOS
            found[name] = f"betaprime{density[density.index('(') :]}" if is_ratio else density
        for model in self.models:
            own = {name: "ratios(1)" for name, kind in _RATIOS.items() if kind in model.free}
            if model.text.startswith(_OF_CLASSES):
                own.pop("omega", None)
            if model.text.startswith("M2a") and "omega_3=" not in model.text:
                own["omega_3"] = "exponential(1)"  # above 1, where there is none below
            found = own | found
        return [f"{name}={density}" for name, density in found.items()]

    def _numbers(self, option: str, usual: str) -> tuple[str, list[float]]:
        """The density's name and its numbers; usual: MrBayes' default."""
        if option in self.division.settings:
            value = self.division.value(option)
            return value.word.lower(), list(self.division.numbers(option))
        word, _, inside = usual.partition("(")
        return word, [float(x) for x in inside.removesuffix(")").split(",")]

    def _density(self, option: str, usual: str, times: float = 1.0, known: Sequence[str] = ()) -> str:
        """As --prior has it, of a number that is `times` MrBayes'."""
        word, x = self._numbers(option, usual)
        kinds = [kind for kind in (*known, "fixed") if kind.startswith(word)]
        counts = {"fixed": 1, "exponential": 1}
        if len(kinds) != 1 or len(x) != counts.get(kinds[0], 2):
            told = f"{option}={word} is not supported"
            raise self.refuse(option, told, f"Choose {', '.join((*known, 'fixed'))}.")
        kind = kinds[0]
        if kind == "fixed":
            return number_text(times * x[0])
        if kind in ("uniform", "normal"):
            return f"{kind}({number_text(times * x[0])},{number_text(times * x[1])})"
        if kind == "exponential":
            return f"exponential({number_text(x[0] / times)})"
        if kind == "gamma":
            return f"gamma({number_text(x[0])},{number_text(x[1] / times)})"
        return f"{kind}({number_text(x[0] + math.log(times))},{number_text(x[1])})"  # log-normal

    def _clock_rate(self) -> str:
        known = ("normal", "lognormal", "exponential", "gamma")
        return self._density("clockratepr", "fixed(1)", known=known)

    def _coalescent(self) -> tuple[dict[str, Any], list[str]]:
        """N of phloem is its own theta / (2 clock rate): two chromosomes a diploid."""
        if self._numbers("clockratepr", "fixed(1)")[0] != "fixed":
            told = "clock:coalescence with a clock rate that is not fixed is not supported: MrBayes aborts"
            raise self.refuse("clockratepr", told, "Fix it, or give phloem time --tree-prior constant.")
        word, growth = self._numbers("growthpr", "fixed(0)")
        rate = self._numbers("clockratepr", "fixed(1)")[1][0]
        ploidy = self.division.value("ploidy").word.lower() or "diploid"
        full = next((name for name in PLOIDY if name.startswith(ploidy)), "")
        if not full:
            raise self.refuse(
                "ploidy", f"there is no ploidy '{ploidy}'", "Choose diploid, haploid or zlinked."
            )
        size = self._density(
            "popsizepr", "gamma(1,10)", PLOIDY[full], ("uniform", "lognormal", "normal", "gamma")
        )
        if word == "fixed" and growth == [0.0]:
            return {"tree_prior": "constant"}, [f"pop_size={size}"]
        grown = self._density("growthpr", "fixed(0)", rate, ("uniform", "exponential", "normal"))
        return {"tree_prior": "exponential"}, [f"pop_size={size}", f"growth_rate={grown}"]

    def _sampling(self, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """What samplestrat, "random" as usual, says of those that are known: word → options."""
        if "samplestrat" not in self.division.settings:
            return known["random"]
        value = self.division.value("samplestrat")
        words, shifts = [w for w in known if w.startswith(value.word.lower())], rate_shifts(value)
        may_shift = words == ["random"] and len(known) > 1  # with fossils
        if len(words) != 1 or shifts is None or (any(shifts) and not may_shift):
            told = ": rates do not shift here" if shifts and len(words) == 1 else ""
            hint = f"Choose {', '.join(known)}; with clock:fossilization random 2: 60 30, 1: 50."
            if len(known) == 1:
                hint = "Choose random; or clock:fossilization, without fossils with fossilizationpr=fixed(0)."
            raise self.refuse("samplestrat", f"samplestrat={value} is not supported{told}", hint)
        names = ("sampling_proportion", "net_diversification", "relative_death")
        shifting = [
            f"{name}={','.join(number_text(float(a)) for a in ages[::-1])}"
            for name, ages in zip(names, shifts)
            if ages
        ]
        return known[words[0]] | ({"shift": shifting} if shifting else {})

    def _fossils(self) -> tuple[dict[str, Any], list[str]]:
        """Tips have ages, and may be ancestors of others."""
        known: dict[str, dict[str, Any]] = {
            "random": {}, "diversity": {"sampling": "diversified"}, "fossiltip": {"fossils": "ends"}
        }  # fmt: skip
        tree, priors = self._births_and_deaths(known)
        share = self._density("fossilizationpr", "beta(1,1)", known=("beta",))
        tips = self._tip_ages()
        (word, (proportion, *_)), fossils = self._numbers("fossilizationpr", "beta(1,1)"), bool(tips)
        if word == "fixed" and not (0 < proportion < 1 or (proportion == 0 and not fossils)):
            hint = "Write beta(1,1), or a number above 0 and below 1; or 0 without fossils, tips with ages."
            raise self.refuse("fossilizationpr", "no density has this proportion of fossils", hint)
        tree |= {"tree_prior": "fbd-root", "tip_age": tips}
        return tree, [*priors, f"sampling_proportion={share}"]

    def _tip_ages(self) -> list[str]:
        """Those that are not 0."""
        ages = {folded(one.name): one for one in self._ages()}
        tips = [self._tip_age(name, ages[folded(name)]) for name in self.taxa if folded(name) in ages]
        return [text for text in tips if text]

    def _tip_age(self, name: str, one: Known) -> str:
        """As --tip-age has it; '' of a living one."""
        counts = [n for kind, n in (("fixed", 1), ("uniform", 2)) if kind.startswith(one.age.word)]
        try:
            ages = [float(word) for word in one.age.arguments or ()]
        except ValueError:
            ages = []
        if "=" in name or [len(ages)] != counts:
            told = f"the age {one.age} of taxon '{name}' is not supported"
            raise one.command.error(told, "Choose fixed(1) or uniform(1,2), and a name without '='.")
        return "" if set(ages) == {0.0} else f"{name}={','.join(map(number_text, dict.fromkeys(ages)))}"

    def _births_and_deaths(
        self, known: Mapping[str, dict[str, Any]] = {"random": {}}
    ) -> tuple[dict[str, Any], list[str]]:
        d = self.division
        word, x = self._numbers("extinctionpr", "beta(1,1)")
        if word == "fixed" and not 0 < x[0] < 1:
            told = "MrBayes' density has no value at this relative extinction"
            raise self.refuse("extinctionpr", told, "Without extinction: phloem time --tree-prior yule.")
        rate = self._density("speciationpr", "exponential(10)", known=("uniform", "exponential"))
        death = self._density("extinctionpr", "beta(1,1)", known=("beta",))
        tree: dict[str, Any] = {"tree_prior": "bd-root"} | self._sampling(known)
        if "sampleprob" in d.settings:
            try:
                tree["sampled"] = float(d.value("sampleprob").word)
            except ValueError:
                raise self.refuse("sampleprob", "sampleprob is no number", "Correct it.") from None
        return tree, [f"net_diversification={rate}", f"relative_death={death}"]

    def _clades(self, kind: str) -> dict[str, list[str]]:
        """Constraints, ages of some of them, and that of the root."""
        found: dict[str, list[str]] = {"clade": [], "monophyletic": [], "constraint": [], "calibrate": []}
        known = {folded(one.name): one for one in self._ages()}
        rooted = False
        for key, (form, sets, command) in self.constraints.items():
            taxa = sets[0]
            name, whole = re.sub(r"[^\w.-]", "_", key), len(taxa) == len(self.taxa)
            if bad := [taxon for own in sets for taxon in own if "," in taxon or "=" in taxon]:
                raise command.error(f"taxon '{bad[0]}' cannot be named in --clade", "Rename it.")
            if form != HARD:
                if (one := known.pop(key, None)) is not None:
                    raise one.command.error(f"'{one.name}' is no hard constraint", "Calibrate one that is.")
                if form == PARTIAL and len(taxa) == 1:
                    continue  # of every tree
                found["constraint"].append(f"{name} {form}: {' | '.join(', '.join(own) for own in sets)}")
            elif not whole:
                found["clade"].append(f"{name}={','.join(taxa)}")
                found["monophyletic"].append(name)
            if (one := known.pop(key, None)) is not None:
                density = age_density(one.age, one.command.error)
                found["calibrate"].append(f"{'root' if whole else name}={density}")
                rooted = rooted or whole
        for one in known.values() if kind in ("coalescence", "birthdeath") else ():
            self._refuse_age(one, kind)
        if not rooted and kind != "coalescence":
            found["calibrate"].append(f"root={self._tree_age()}")
        return found

    def _ages(self) -> list[Known]:
        """Calibrations that hold, of nodes that exist."""
        if self.division.value("nodeagepr").word.lower() != "calibrated":
            return []
        held = {folded(one.name): one for one in self.known}
        return [one for one in held.values() if not "unconstrained".startswith(one.age.word)]

    def unused(self) -> list[tuple[MrBayesCommand, str, str]]:
        """Calibrations that MrBayes does not obey either, as clock_notes has them."""
        living, named = {folded(taxon) for taxon in self.taxa}, self.constraints
        gone = {folded(taxon) for taxon in self.deleted}
        found = list[tuple[MrBayesCommand, str, str]]()
        for one in self._ages():
            if (name := folded(one.name)) not in living and name not in named:
                why = "the taxon is deleted" if name in gone else "topologypr does not name it, as in MrBayes"
                found.append((one.command, f"calibrate {one.name}", f"no meaning, {why}"))
        return found

    def _refuse_age(self, one: Known, kind: str) -> None:
        """Of a taxon: a living one has the age 0. MrBayes takes all for living in these densities."""
        if folded(one.name) in [folded(taxon) for taxon in self.taxa]:
            if one.age.word == "fixed" and one.age.arguments in (("0",), ("0.0",), ("0.00",)):
                return
            told = f"taxon '{one.name}' has an age, and clock:{kind} is of tips of one time in MrBayes"
            nearest = "constant" if kind == "coalescence" else "fbd-root"
            call = f"phloem time {self.file} --tree-prior {nearest} --tip-age NAME=AGE"
            hint = f"Choose clock:fossilization or clock:uniform, which know ages of tips; or call {call}."
            raise one.command.error(told, hint)

    def _tree_age(self) -> str:
        value = self.division.value("treeagepr") if "treeagepr" in self.division.settings else None
        value = value or Value("gamma", "", ("1", "1"))
        return age_density(value, lambda told, hint: self.refuse("treeagepr", told, hint))

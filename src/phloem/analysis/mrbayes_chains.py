"""What a MRBAYES block says about the run: MCMC, MCMCP, SS, SSP, seeds of SET, burn-in of SUMP and SUMT."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phloem.errors import count_of
from phloem.io.mrbayes import MrBayesCommand, Option

_WHOLE_TEXT = "ngen nruns nchains samplefreq diagnfreq swapfreq nswaps seed swapseed burnin nsteps"
_WHOLE = tuple(_WHOLE_TEXT.split())
_REAL = ("temp", "burninfrac", "stopval", "minpartfreq", "alpha")
_DEFAULTS: dict[str, Any] = {
    "ngen": 1_000_000, "samplefreq": 500, "diagnfreq": 5000, "burninfrac": 0.25, "burnin": 0, "stopval": 0.05,
    "relburnin": "yes", "stoprule": "no", "minpartfreq": 0.1, "diagnstat": "avgstddev",
    "nsteps": 50, "alpha": 0.4, "nswaps": 1, "burninss": -1,
}  # fmt: skip
_NO_MEANING_TEXT = """
printfreq printall printmax allchains allcomps redirect runidseed ordertaxa checkpoint checkfreq savebrlens
savetrees noop startparams append tunefreq mcmcdiagn nperts pbfinitburnin pbfsamplefreq pbfsampletime
pbfsampleburnin startingtrees
"""
_NO_MEANING = frozenset(_NO_MEANING_TEXT.split())
_ONLY = {  # option → the value that is what phloem does, and what to do for another
    "swapadjacent": ("no", "Chains of any two ranks swap; leave it out."),
    "autotune": ("yes", "Moves tune themselves in the first part of the burn-in; leave it out."),
    "pbf": ("no", "Leave it out."),
}
_OF_SUMMARIES_TEXT = """
plot table minprob printtofile outputname allruns nruns pfile autocomplete hpd showtreeprobs savebrparams
minbrparamfreq ntrees calctreeprobs ordertaxa tfile summary consensus minpartfreq conformat displaygeq
"""
_OF_SUMMARIES = frozenset(_OF_SUMMARIES_TEXT.split())


@dataclass
class Chains:
    """values: option → what was said last, and where. MrBayes has one burn-in for MCMC, SUMP and SUMT: what
    was set last holds for all."""

    values: dict[str, tuple[Any, Option, MrBayesCommand]] = field(default_factory=dict)
    burn_ins: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    all_compatible: bool = False
    stones: bool = False

    def take(self, command: MrBayesCommand) -> None:
        """Obey MCMC, MCMCP, SS, SSP, SUMP or SUMT."""
        self.stones = self.stones or command.name == "ss"
        summary = command.name in ("sump", "sumt")
        for option in command.options:
            if option.value is None:
                told = f"{command.name.upper()}: {option.name} has no value"
                raise command.error(told, "Write 'option=value'.", option.line)
            if summary and option.name == "filename":
                self._same_file(option, command)
            elif summary and option.name == "contype":
                self.all_compatible = option.value.word == "allcompat"
            elif not summary or option.name not in _OF_SUMMARIES:
                self.set(option, command)
        if summary:
            self.burn_ins[command.name] = tuple(self.get(n) for n in ("relburnin", "burnin", "burninfrac"))
            if len(set(self.burn_ins.values())) > 1:
                raise command.error(
                    "SUMP and SUMT have different burn-ins, and phloem writes one summary",
                    "Give both the same burn-in.",
                )

    def set(self, option: Option, command: MrBayesCommand) -> None:
        """One option of the run. InputError for what is no value of it, or not supported."""
        name, word = option.name, "" if option.value is None else option.value.word
        if name in _ONLY and word.lower() != _ONLY[name][0]:
            raise command.error(f"{name}={word} is not supported", _ONLY[name][1], option.line)
        if name == "reweight" and any(float(x) for x in (option.value.arguments or ()) if _is_number(x)):  # type: ignore[union-attr]
            raise command.error("REWEIGHT is not supported", "Leave it out.", option.line)
        if name == "starttree" and word not in ("random", "current", "parsimony"):
            hint = "Leave it out for random trees, write 'startvals tau=name', or give --start bionj."
            raise command.error(f"starttree={word} is not supported", hint, option.line)
        value: Any = word
        if name in _WHOLE or name == "burninss":
            counts_stones = name == "burninss" and word.startswith("-")
            number = count_of(word.removeprefix("-") if counts_stones else word)
            if number < 0:
                raise command.error(f"{name} is no whole number: '{word[:40]}'", "Correct it.", option.line)
            value = -number if counts_stones else number
        elif name in _REAL:
            if not _is_number(word):
                raise command.error(f"{name} is no number: '{word[:40]}'", "Correct it.", option.line)
            value = float(word)
        self.values[name] = (value, option, command)

    def get(self, name: str) -> Any:
        return self.values[name][0] if name in self.values else _DEFAULTS.get(name)

    @property
    def lines(self) -> dict[str, int]:
        """phloem's option → line."""
        names = {
            "generations": "ngen", "runs": "nruns", "chains": "nchains", "sample_every": "samplefreq",
            "heating": "temp", "seed": "seed", "swap_seed": "swapseed", "swap_every": "swapfreq",
            "prefix": "filename", "prior_only": "data", "until_converged": "stoprule", "asdsf": "stopval",
            "check_every": "diagnfreq", "stepping_stone": "nsteps", "stone_shape": "alpha",
            "stone_burn_in": "burninss", "stones_from_prior": "fromprior",
        }  # fmt: skip
        found = {ours: self.values[theirs][1].line for ours, theirs in names.items() if theirs in self.values}
        for name in ("burnin", "burninfrac", "relburnin"):
            if name in self.values:
                found["burn_in"] = self.values[name][1].line
        return found

    @property
    def notes(self) -> list[str]:
        """Options that change nothing here, and a burn-in that is not in force."""
        unused = [name for name in self.values if name in _NO_MEANING]
        told = [f"mcmc: no meaning here: {', '.join(unused)}"] if unused else []
        if "burnin" in self.values and self.get("relburnin") == "yes":
            share = f"{100 * self.get('burninfrac'):g} %"
            told.append(f"burnin has no effect while relburnin=yes, as in MrBayes: {share} are left out")
        if self.stones and (said := self.get("burninss")) < -1:
            n = self.get("nsteps") - said
            told.append(
                f"burninss={said}: {-said} of {n} stones' worth are left out, as MrBayes' help says; "
                "3.2.7a takes one of them"
            )
        return told

    def options(self) -> dict[str, Any]:
        """Options of `phloem mcmc`."""
        found = {
            "generations": self.get("ngen"), "sample_every": self.get("samplefreq"),
            "runs": self.get("nruns"),
            "chains": self.get("nchains"), "heating": self.get("temp"), "seed": self.get("seed"),
            "swap_seed": self.get("swapseed"), "swap_every": self._swap_every(),
            "prefix": self.get("filename"), "burn_in": self._burn_in(),
        }  # fmt: skip
        if self.get("data") == "no":
            found["prior_only"] = True
        if self.stones:
            found |= {"stepping_stone": self.get("nsteps"), "stone_shape": self.get("alpha")}
            found |= {"stone_burn_in": self._before_stones()}
            found |= {"stones_from_prior": True} if self.get("fromprior") == "yes" else {}
            if self.get("stoprule") == "yes":
                _, option, command = self.values["stoprule"]
                told = "stoprule=yes is not supported by ss"
                raise command.error(told, "Leave it out: ss runs for ngen generations.", option.line)
        if self.all_compatible:
            found["consensus"] = "allcompat"
        if self.get("stoprule") == "yes":
            for name, value in (("diagnstat", "avgstddev"), ("minpartfreq", 0.1)):
                if self.get(name) != value:
                    _, option, command = self.values[name]
                    told = f"stoprule with {name}={self.get(name)} is not supported"
                    raise command.error(told, f"Choose {value}.", option.line)
            found |= {"until_converged": True, "asdsf": self.get("stopval"), "least_ess": 0.0, "r_hat": 1e9}
            found["check_every"] = self.get("diagnfreq")
        return found

    def dated_options(self) -> dict[str, Any]:
        """Options of `phloem time`, whose warm-up is left out of summaries, too."""
        found = self.options()
        if self.get("starttree") == "parsimony":
            _, option, command = self.values["starttree"]
            told = "starttree=parsimony is not supported where trees have a clock"
            raise command.error(told, "Leave it out: dated chains start from random trees.", option.line)
        found.pop("consensus", None)
        for name in ("burninss", "fromprior"):
            if self.stones and name in self.values and self.get(name) not in (-1, "no"):
                _, option, command = self.values[name]
                told = f"{name} is not supported where trees have a clock"
                raise command.error(
                    told, "Leave it out: the warm-up goes before the first stone.", option.line
                )
        found.pop("stone_burn_in", None)
        share = found.pop("burn_in")
        found["warm_up"] = self.get("burninfrac") if share is None else share
        usual = {"runs": 2, "chains": 4}  # of MrBayes
        return found | {name: n for name, n in usual.items() if found[name] is None}

    def _before_stones(self) -> int | None:
        """Generations before the first stone: burninss counts samples of them, or, below 0, stones that have
        as many; None of one."""
        said = self.get("burninss")
        if said >= 0:
            return said * self.get("samplefreq")
        return None if said == -1 else -said * self.get("ngen") // (self.get("nsteps") - said)

    def _swap_every(self) -> int | None:
        """Generations between swaps: nswaps of them every swapfreq are one every swapfreq / nswaps."""
        wanted, every = self.get("nswaps"), self.get("swapfreq")
        if wanted == 1:
            return every
        every = every or 1
        if wanted == 0 or every % wanted:
            _, option, command = self.values["nswaps"]
            told = f"nswaps={wanted} every {every} generations: swaps are tried one at a time"
            hint = f"Choose a swapfreq that {wanted} divides." if wanted else "Leave it out."
            raise command.error(told, hint, option.line)
        return every // wanted

    def _burn_in(self) -> float | None:
        """The share of samples that is left out."""
        if self.get("relburnin") == "yes":
            return self.get("burninfrac") if "burninfrac" in self.values else None
        n_samples = self.get("ngen") // self.get("samplefreq") + 1
        share = self.get("burnin") / n_samples
        if share >= 1:
            _, option, command = self.values["burnin"]
            told = f"a burn-in of {self.get('burnin'):,} leaves nothing of {n_samples:,} samples"
            raise command.error(told, "Lower it: burnin counts samples.", option.line)
        rounded = round(share, 6)
        return rounded if int(rounded * n_samples) == self.get("burnin") else share + 1e-9

    def _same_file(self, option: Option, command: MrBayesCommand) -> None:
        ours, theirs = self.get("filename"), option.value.word if option.value else ""
        if ours is not None and theirs != ours:
            raise command.error(
                f"{command.name.upper()} is of '{theirs}', and the chains write '{ours}'",
                "Summarise other files with phloem summarise.",
                option.line,
            )


def _is_number(word: str) -> bool:
    try:
        return float(word) == float(word)
    except ValueError:
        return False

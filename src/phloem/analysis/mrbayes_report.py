"""What REPORT of a MRBAYES block asks for: states of ancestors, rates of sites, codons under selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phloem.io.mrbayes import MrBayesCommand, Option

_OPTIONS = {"ancstates": "ancestral", "siterates": "site_table"}
_OF_OMEGA = ("possel", "siteomega")


@dataclass
class Reports:
    """asked: option → whether, and where that was said last."""

    asked: dict[str, tuple[bool, Option, MrBayesCommand]] = field(default_factory=dict)

    def take(self, command: MrBayesCommand) -> list[str]:
        """Names of options that have no meaning here."""
        for option in command.options:
            if option.name in (*_OPTIONS, *_OF_OMEGA):
                yes = option.value is not None and option.value.word.lower() in ("y", "ye", "yes")
                self.asked[option.name] = yes, option, command
        return [option.name for option in command.options if option.name not in self.asked]

    def options(self, models: Sequence[str]) -> dict[str, bool]:
        """Options of `phloem mcmc` and `phloem time`. models: of all parts. InputError for codons under
        selection where no model has classes of omega."""
        if not any(text.startswith(("M2a", "M3")) for text in models):
            why = "is of codons whose omega varies, and there are none"
            self._refuse(_OF_OMEGA, why, "Add lset nucmodel=codon omegavar=ny98, or leave it out.")
        return {ours: True for theirs, ours in _OPTIONS.items() if self._asks(theirs)}

    @property
    def lines(self) -> dict[str, int]:
        """phloem's option → line."""
        return {ours: self.asked[name][1].line for name, ours in _OPTIONS.items() if self._asks(name)}

    def _asks(self, name: str) -> bool:
        return name in self.asked and self.asked[name][0]

    def _refuse(self, names: Sequence[str], why: str, hint: str) -> None:
        for name in filter(self._asks, names):
            _, option, command = self.asked[name]
            raise command.error(f"REPORT {name.upper()} {why}", hint, option.line)

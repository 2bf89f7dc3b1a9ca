"""The parts of the data, and what they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from phloem.errors import InputError, require_choice
from phloem.model.model import Model

LengthLinkage = Literal["linked", "proportional", "unlinked"]


@dataclass(frozen=True)
class PartModel:
    """name: unique. n_sites: characters of the part. site_length: how long one character of it is in the unit
    of the branch lengths: 3 for codons beside nucleotides, so that lengths are per nucleotide, else 1.
    columns: as how many sites one character counts in means over sites, None for site_length: 3 for amino
    acids that were translated, whose nucleotides the file has, although their lengths are per amino acid."""

    name: str
    model: Model
    n_sites: int
    site_length: float = 1.0
    columns: float | None = None

    @property
    def weight(self) -> float:
        """Sites of the part, in means over sites."""
        return self.n_sites * (self.site_length if self.columns is None else self.columns)


@dataclass(frozen=True)
class Linkage:
    """What parts share.

    lengths: linked, every part has the same branch lengths; proportional, the same but for a rate of its own,
    the rates having mean 1 over sites; unlinked, its own. parameters: name of a parameter of the models →
    groups of names of parts that share it; a part in no group has one of its own. together: groups of names
    of parts that are one in their lengths: with one rate where these are proportional, one set where they are
    unlinked. unit_rates: parts whose rate is 1 where lengths are proportional; those of the others have mean
    1 among themselves.
    """

    lengths: LengthLinkage = "linked"
    parameters: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()
    unit_rates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_choice("linkage of branch lengths", self.lengths, ("linked", "proportional", "unlinked"))

    def among(self, names: Collection[str]) -> Linkage:
        """What is left of it where these are all parts."""

        def left(groups: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
            own = (tuple(name for name in group if name in names) for group in groups)
            return tuple(group for group in own if group)

        parameters = {key: left(groups) for key, groups in self.parameters.items()}
        shared = {key: groups for key, groups in parameters.items() if groups}
        alone = tuple(name for name in self.unit_rates if name in names)
        return replace(self, parameters=shared, together=left(self.together), unit_rates=alone)


def check_links(parts: Sequence[PartModel], linkage: Linkage) -> None:
    """InputError for names that are none, or are linked twice."""
    known = {p.name: {q.name for q in p.model.parameters} for p in parts}
    lengths = [name for group in linkage.together for name in group]
    for name in (*lengths, *linkage.unit_rates):
        if name not in known:
            raise InputError(f"there is no part '{name}'", hint=f"Parts are: {', '.join(known)}.")
        if lengths.count(name) > 1:
            raise InputError(f"the branch lengths of part '{name}' are linked twice")
    for parameter, groups in linkage.parameters.items():
        if not any(parameter in own for own in known.values()):
            every = ", ".join(dict.fromkeys(q.name for p in parts for q in p.model.parameters))
            raise InputError(f"no model has a parameter '{parameter}' to link", hint=f"There are: {every}.")
        members = [name for group in groups for name in group]
        for name in members:
            if name not in known:
                raise InputError(f"there is no part '{name}'", hint=f"Parts are: {', '.join(known)}.")
            if parameter not in known[name]:
                raise InputError(f"the model of part '{name}' has no parameter '{parameter}' to link")
            if members.count(name) > 1:
                raise InputError(f"'{parameter}' of part '{name}' is linked twice")

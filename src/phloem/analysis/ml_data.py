"""What `phloem ml` reads: one alignment or its parts, what the parts share, and which sequences are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.likelihood import plain
from phloem.analysis.ml_constraint import read_constraint
from phloem.analysis.ml_held import read_held
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.model_file import (
    holds_parts,
    model_of,
    model_string,
    usual_model,
)
from phloem.analysis.partitioned_likelihood import dropped_columns, read_linkage
from phloem.analysis.reading import Part, alignment_of, of_part, parts_of, without_data
from phloem.data.alignment import Alignment, has_constant_character, taxa_with_data
from phloem.density.parts import Linkage
from phloem.errors import InputError
from phloem.model.grammar import leaves_uninformative
from phloem.model.model import Model
from phloem.tree.constraint import Constraint

if TYPE_CHECKING:
    from phloem.inference.ml.bootstrap import Resampling
    from phloem.inference.ml.held import HeldTree
    from phloem.inference.ml.identical import Distinct
    from phloem.inference.ml.place import Device
    from phloem.inference.ml.searched import Searched


_SEVERAL = 20  # characters of which none is constant: hardly by chance


@dataclass(frozen=True, eq=False)
class MlData:
    """parts: with all sequences; model_text is what --model or the partition file says, None where neither
    does. partitioned: whether a partition file names them. rows: which sequences are searched with, all
    where a constraint or a tree that is held sets equal ones apart, and where copies make characters
    informative. device: where one alignment is searched. tips: column of a table → taxon → text, for
    Nextstrain. held: the tree that is not searched."""

    settings: MlSettings
    parts: tuple[Part, ...]
    partitioned: bool
    rows: Distinct
    warnings: tuple[str, ...]
    constraint: Constraint | None = None
    device: Device = "cpu"
    tips: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    held: HeldTree | None = None

    @property
    def alignment(self) -> Alignment:
        """Of the first part, for its taxa and source."""
        return self.parts[0].alignment

    @property
    def distinct(self) -> tuple[Alignment, ...]:
        """Every part without the copies of sequences."""
        return tuple(self.rows.rows_of(part.alignment) for part in self.parts)

    def texts(self) -> list[str]:
        """The model string of every part, those of --model @FILE with their numbers."""
        return [
            model_string(part.model_text, part.name if self.partitioned else None)
            if part.model_text is not None
            else usual_model(part.alignment.alphabet.kind)
            for part in self.parts
        ]

    def models(self) -> list[Model]:
        """Counted in all sequences."""
        gamma = self.settings.gamma
        if not self.partitioned:
            return [model_of(self.parts[0].model_text, self.alignment, gamma)]
        found = []
        for part in self.parts:
            with of_part(part):
                found.append(model_of(part.model_text, part.alignment, gamma, part.name))
        return found

    def linkage(self, models: Sequence[Model]) -> Linkage | None:
        """What the parts share; None of one alignment."""
        if not self.partitioned:
            return None
        named = {part.name: model for part, model in zip(self.parts, models)}
        return read_linkage(self.settings.linkage or "proportional", self.settings.link, named)

    def searched(self, models: Sequence[Model]) -> Searched:
        """ModelError for models that a search cannot take."""
        from phloem.inference.ml.constrained import data_of
        from phloem.inference.ml.place import Place
        from phloem.inference.ml.searched import SearchedPart

        named = zip(self.parts, self.distinct, models)
        made = [SearchedPart(part.name, data, model) for part, data, model in named]
        return data_of(made, self.linkage(models), self.constraint, Place(self.device))

    def resampling(self, texts: Sequence[str], models: Sequence[Model]) -> Resampling:
        """texts: as of texts()."""
        from phloem.inference.ml.bootstrap import Resampling

        parts = [(part.name, part.alignment, text) for part, text in zip(self.parts, texts)]
        shared = self.linkage(models), self.rows, self.settings.gamma, self.constraint
        return Resampling(parts, *shared, self.device, self.settings.sampling)

    def record(self) -> dict[str, object]:
        """Of all parts together, for people and programs."""
        kinds = list(dict.fromkeys(part.alignment.alphabet.kind for part in self.parts))
        states = [part.alignment.alphabet.n_states for part in self.parts]
        settings: Mapping[str, object] = self.alignment.settings
        found: dict[str, object] = {
            "taxa": self.alignment.n_taxa,
            "sites": sum(part.alignment.n_sites for part in self.parts),
            "datatype": ", ".join(kinds),
            "states": states[0] if len(set(states)) == 1 else states,
            "alignment_settings": {key: plain(value) for key, value in settings.items() if key != "sites"}
            if self.partitioned
            else {key: plain(value) for key, value in settings.items()},
        }
        return found | ({"parts": len(self.parts)} if self.partitioned else {})


def read_ml_data(settings: MlSettings) -> MlData:
    """Errors: InputError as reading; where less than three distinct sequences would be left; for options of
    parts where there are none."""
    data = _of_alignments(settings)
    taxa = data.alignment.taxa
    return replace(data, tips=settings.auspice_options.read(taxa), held=read_held(settings, taxa))


def _of_alignments(settings: MlSettings) -> MlData:
    require_parts(settings.partitioned, settings.linkage, settings.link)
    if not settings.partitioned:
        alignment = alignment_of(settings)
        named = settings.model if not settings.automatic else None
        _require_data([alignment])
        empty = without_data([alignment])
        if settings.genes:
            alignment, empty = _known(alignment)
        own = (Part("", alignment, named),)
        rows = _distinct(own, settings)
        return MlData(settings, own, False, rows, empty, read_constraint(settings, alignment.taxa))
    scheme, parts = parts_of(settings, settings.model if not settings.automatic else None)
    if holds_parts(settings.model):
        parts = tuple(replace(part, model_text=settings.model) for part in parts)
    _require_data([part.alignment for part in parts])
    rows = _distinct(parts, settings)
    empty = without_data([part.alignment for part in parts])
    constraint = read_constraint(settings, parts[0].alignment.taxa)
    return MlData(settings, parts, True, rows, (*dropped_columns(scheme.dropped), *empty), constraint)


def _require_data(alignments: Sequence[Alignment]) -> None:
    """InputError where nothing is known of any taxon."""
    if not np.any([taxa_with_data(one) for one in alignments]):
        raise InputError(
            "nothing is known of any taxon: all characters are gaps or missing",
            file=alignments[0].source,
            hint="Check the data type and the sites that are read, or leave the file out.",
        )


def require_parts(partitioned: bool, linkage: str | None, link: Sequence[str]) -> None:
    """InputError for what parts share where there are none."""
    for name, given in (("linkage", linkage), ("link", link)):
        if given and not partitioned:
            raise InputError(f"--{name} is about parts", hint="Add --partitions FILE, or leave it out.")


def only_variable(parts: Sequence[tuple[str, Alignment]], models: Sequence[Model]) -> list[str]:
    """What is said of parts without a constant character whose model does not know of that. parts: with
    their names."""
    names = [
        f" of part '{name}'" if name else ""
        for (name, data), model in zip(parts, models)
        if data.n_sites >= _SEVERAL and not model.unseen and not has_constant_character(data)
    ]
    said = "if such were left out of the data, branches come out too long, and +ASC is for that"
    return [f"no character{name} is constant: {said}" for name in names]


def _known(alignment: Alignment) -> tuple[Alignment, tuple[str, ...]]:
    """Without the taxa of which nothing is known, and what is said of them."""
    known = taxa_with_data(alignment)
    if known.all():
        return alignment, ()
    kept, left = ([x for x, has in zip(alignment.taxa, known) if bool(has) is some] for some in (True, False))
    codes = np.ascontiguousarray(alignment.codes[known])
    many = "1 taxon" if len(left) == 1 else f"{len(left)} taxa"
    said = f"of {many} nothing is known, and the tree is without: {', '.join(left)}"
    return replace(alignment, taxa=tuple(kept), codes=codes), (said,)


def _distinct(parts: Sequence[Part], settings: MlSettings) -> Distinct:
    from phloem.inference.ml.identical import distinct

    alignments = [part.alignment for part in parts]
    texts = [model_string(p.model_text, p.name or None) for p in parts if p.model_text is not None]
    counted = any(leaves_uninformative(text) for text in texts)  # a copy is a taxon more that has a state
    held = settings.constraint is not None or settings.fixed_tree is not None
    apart = counted or settings.keep_identical or held
    rows = distinct(*alignments, apart=apart)
    if rows.n_copies and len(rows.kept) < 3:
        kept = "1 is" if len(rows.kept) == 1 else f"{len(rows.kept)} are"
        raise InputError(
            f"of {alignments[0].n_taxa} sequences only {kept} distinct: no tree can be told",
            file=alignments[0].source,
            hint="Add taxa, or say --keep-identical.",
        )
    return rows


def columns_of(part: Part) -> np.ndarray:
    """(L,) of every character of a part its column in the file, from 1; of a codon the first."""
    n = part.alignment.n_sites
    columns = np.arange(n) if part.sites is None else part.sites[:: max(len(part.sites) // n, 1)]
    return columns + 1


def settings_of(settings: MlSettings) -> dict[str, object]:
    """The settings as plain numbers, strings and lists."""
    return asdict(settings) | {"link": list(settings.link)}

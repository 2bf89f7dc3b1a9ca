"""What a tree says, as a dataset of Auspice (io/auspice.py), with columns of a table of its tips."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phloem import __version__
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.auspice import OWN_KEYS, Attributes, AuspiceDataset, coloring, label_key, short
from phloem.io.metadata_table import Values, read_metadata
from phloem.tree.reroot import is_support
from phloem.tree.tree import Tree

_PLAIN = {"accession": re.compile(r"[0-9A-Za-z-_.]+"), "url": re.compile(r"https?://.+")}


@dataclass(frozen=True)
class AuspiceOptions:
    """file: that is written. metadata: table of tips, by default that of the dates; columns: of it, which
    are carried along as colourings."""

    file: str | None = None
    metadata: str | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle_fields(self)
        if self.file is None and (self.metadata is not None or self.columns):
            what = "--metadata-column" if self.columns else "--metadata"
            raise InputError(f"{what} is for a dataset of Auspice", hint="Add --auspice FILE.")
        if self.metadata is not None and not self.columns:
            hint = "Name one or more that are to be colourings: --metadata-column country."
            raise InputError("no column of the metadata is asked for", hint=hint)
        for name in self.columns:
            if name.lower() in OWN_KEYS:
                hint = "Give the column another name."
                raise InputError(f"'{name}' is an attribute of Auspice's own", hint=hint)

    def table(self, dates: str | None = None) -> str | None:
        """The table that columns are of; None without columns. InputError where there is none for them."""
        if self.columns and self.metadata is None and dates is None:
            raise InputError("columns are asked for of no table", hint="Add --metadata FILE.")
        return (self.metadata or dates) if self.columns else None

    def read(self, taxa: Sequence[str], dates: str | None = None) -> dict[str, Values]:
        """Column → taxon → text; errors and warnings as of io.metadata_table, and a warning of a column that
        says nothing. dates: the table of dates, in whose place another may be named."""
        table = self.table(dates)
        found = {} if table is None else read_metadata(table, taxa, self.columns)
        for name, values in found.items():
            if not values:
                _warn(f"'{name}' is known of no tip, and is no colouring", table)
        return found


def _warn(told: str, file: str | None = None) -> None:
    at = f"{shown_file(file)}: " if file else ""
    warnings.warn(f"{at}{told}", InputWarning, stacklevel=3)


class NodeAttributes:
    """The dataset of a tree, as it comes together."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.nodes: list[Attributes] = [{} for _ in range(tree.n_nodes)]
        self.branches: list[Attributes] = [{} for _ in range(tree.n_nodes)]
        self.colorings: list[dict[str, str]] = []
        self.names: dict[int, str] = {}

    def put(self, key: str, values: dict[int, Attributes], title: str, kind: str) -> None:
        """An attribute of some nodes, offered as a colouring."""
        if not values:
            return
        for x, own in values.items():
            self.nodes[x][key] = own
        self.colorings.append(coloring(key, title, kind))

    def label(self, key: str, texts: dict[int, str]) -> None:
        """A label of some branches."""
        for x, text in texts.items():
            labels = self.branches[x].setdefault("labels", {})
            assert isinstance(labels, dict)
            labels[label_key(key)] = text

    def divergence(self, since_root: np.ndarray) -> None:
        """(N,) of all nodes."""
        for own, value in zip(self.nodes, since_root.tolist()):
            own["div"] = short(value)

    def support_labels(self) -> None:
        """Labels of inner nodes that are supports: as they are, and those of one number as a colouring."""
        labels = self.tree.labels or ()
        texts = {x: text for x, text in enumerate(labels) if x >= self.tree.n_tips and is_support(text)}
        self.label("support", {x: str(text) for x, text in texts.items()})
        single = {x: text for x, text in texts.items() if text and text != "-" and "/" not in text}
        numbers: dict[int, Attributes] = {x: {"value": float(text)} for x, text in single.items()}
        self.put("support", numbers, "Support", "continuous")

    def metadata(self, columns: Mapping[str, Mapping[str, str]]) -> None:
        """Columns of a table, before all other colourings; a warning of those that the tree has itself."""
        tips = {taxon: x for x, taxon in enumerate(self.tree.taxa)}
        others, self.colorings = self.colorings, []
        for name, found in columns.items():
            of_tips = {tips[taxon]: text for taxon, text in found.items() if taxon in tips}
            if name in _PLAIN:
                self._plain(name, of_tips)
            elif any(name in own for own in self.nodes):
                _warn(f"'{name}' of the tree's own nodes is kept, and the column '{name}' left out")
            else:
                values, kind = _values(of_tips)
                self.put(name, values, name.replace("_", " ").capitalize(), kind)
        self.colorings += others

    def _plain(self, name: str, of_tips: dict[int, str]) -> None:
        """What Auspice shows of a tip, and does not colour by; a warning of what it does not take."""
        fits = {x: text for x, text in of_tips.items() if _PLAIN[name].fullmatch(text)}
        for x, text in fits.items():
            self.nodes[x][name] = text
        wrong = [text for x, text in of_tips.items() if x not in fits]
        if wrong:
            _warn(f"{len(wrong):,} texts of '{name}' are left out, which Auspice does not take: '{wrong[0]}'")

    def dataset(self, title: str, lines: Sequence[str], genome: int | None = None) -> AuspiceDataset:
        """lines: of what was found, for the text below the tree."""
        told = [f"phloem {__version__}", "", *(f"- {_markdown(line)}" for line in lines)]
        description = "\n".join(told)
        return AuspiceDataset(
            self.tree, self.nodes, self.branches, self.colorings, title, description, genome, self.names
        )


def _markdown(line: str) -> str:
    """A line in which names with * and _ stay as they are."""
    return re.sub(r"([\\`*_<\[])", r"\\\1", line)


def _values(of_tips: dict[int, str]) -> tuple[dict[int, Attributes], str]:
    """Numbers where all are, as in augur export, else words."""
    try:
        numbers = {x: float(text) for x, text in of_tips.items()}
    except ValueError:
        numbers = {}
    if numbers and np.isfinite(list(numbers.values())).all():
        return {x: {"value": value} for x, value in numbers.items()}, "continuous"
    return {x: {"value": text} for x, text in of_tips.items()}, "categorical"

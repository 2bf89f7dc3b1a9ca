"""Fits that a killed run had done: the journal's records of them, as plain numbers that are read back as they
were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from phloem.inference.ml.optimum import OptimizeResult
from phloem.io.journal import Journal
from phloem.model.record import ParameterValue
from phloem.tree.tree import Tree

Fit = TypeVar("Fit")


@dataclass(frozen=True, eq=False)
class KeptFits:
    """Fits by name, which are made once. journal: of the work; None keeps nothing. known: what an earlier run
    has done, by the name behind `ahead`. What is fitted follows from what was fitted before, so that the
    names suffice."""

    journal: Journal | None = None
    known: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    ahead: str = ""

    @staticmethod
    def read(journal: Journal | None) -> KeptFits:
        """InputError for the journal of another work."""
        records = () if journal is None else journal.read()
        return KeptFits(journal, {one["fit"]: one["found"] for one in records})

    def of(self, part: str) -> KeptFits:
        """Those of a part, by names of its own."""
        return replace(self, ahead=f"{part}\t")

    def optimum(self, name: str, make: Callable[[], OptimizeResult]) -> OptimizeResult:
        return self.fit(name, make, _plain_optimum, _optimum)

    def fit(
        self,
        name: str,
        make: Callable[[], Fit],
        plain: Callable[[Fit], dict[str, Any]],
        read: Callable[[dict[str, Any]], Fit],
    ) -> Fit:
        """plain, read: to numbers, strings and lists, and back."""
        name = self.ahead + name
        if name in self.known:
            return read(self.known[name])
        found = make()
        if self.journal is not None:
            self.journal.add({"fit": name, "found": plain(found)})
        return found


def plain_values(values: Mapping[str, ParameterValue]) -> dict[str, Any]:
    """Of parameters."""
    return {name: np.asarray(value).tolist() for name, value in values.items()}


def values_of(record: Mapping[str, Any]) -> dict[str, ParameterValue]:
    return {name: np.array(v) if isinstance(v, list) else float(v) for name, v in record.items()}


def plain_tree(tree: Tree) -> dict[str, Any]:
    """Of a tree without labels."""
    shape = {"parent": tree.parent.tolist(), "lengths": tree.lengths.tolist()}
    return {"taxa": tree.taxa, "rooted": tree.rooted} | shape


def tree_of_record(record: Mapping[str, Any]) -> Tree:
    parent, lengths = np.array(record["parent"], np.int32), np.array(record["lengths"], np.float64)
    return Tree(tuple(record["taxa"]), parent, lengths, rooted=record["rooted"])


def _plain_optimum(found: OptimizeResult) -> dict[str, Any]:
    record = {own.name: getattr(found, own.name) for own in fields(OptimizeResult)}
    record |= {"tree": plain_tree(found.tree), "parameters": plain_values(found.parameters)}
    return record | {"branch_lengths": found.branch_lengths.tolist()}


def _optimum(record: dict[str, Any]) -> OptimizeResult:
    made = record | {
        "tree": tree_of_record(record["tree"]),
        "parameters": values_of(record["parameters"]),
        "branch_lengths": np.array(record["branch_lengths"]),
    }
    tuples = {name: tuple(record[name]) for name in ("branch_names", "starting_log_likelihoods")}
    return OptimizeResult(**made | tuples)

"""A tree as a dataset of Auspice, which Nextstrain shows (auspice.us, auspice view): JSON, schema version 2.

Schema: nextstrain/augur, augur/data/schema-export-v2.json. Of what Nextstrain knows of a sample nothing is
made up here: no authors, places or coordinates.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np

from phloem.errors import InputError
from phloem.io.output_file import replaced_text
from phloem.tree.reroot import is_support
from phloem.tree.tree import Tree

OWN_KEYS = ("div", "num_date", "vaccine", "hidden", "none", "gt")
"""Attributes of nodes that Auspice gives a meaning of its own."""
Attributes = dict[str, object]


@dataclass(frozen=True, eq=False)
class AuspiceDataset:
    """tree: rooted as it is shown. nodes: (N) attributes of each, of which `div` (since the root) or
    `num_date` is there: {"value": …, "confidence": …} but for div. branches: (N) `labels` and `mutations` of
    those above them. colorings: key, title and type, in the order in which they are offered. title,
    description (Markdown): shown around the tree. genome: its sites, where there are mutations. names: of
    inner nodes, where others than their labels are theirs."""

    tree: Tree
    nodes: Sequence[Attributes]
    branches: Sequence[Attributes]
    colorings: Sequence[Mapping[str, str]]
    title: str = ""
    description: str = ""
    genome: int | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    updated: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    def __post_init__(self) -> None:
        tree, nodes = self.tree, self.nodes
        if not len(nodes) == len(self.branches) == tree.n_nodes:
            raise InputError("attributes of nodes are one record a node")
        for x, own in enumerate(nodes):
            if not {"div", "num_date"} & own.keys():
                raise InputError(f"node {x} has neither a divergence nor a date")


def write_auspice(path: str | os.PathLike[str], dataset: AuspiceDataset) -> None:
    """The file, whole or not at all. Raises OutputError."""
    with replaced_text(path) as stream:
        stream.writelines(auspice_chunks(dataset))


def auspice_chunks(dataset: AuspiceDataset) -> Iterator[str]:
    """The text in pieces: nested as deeply as the tree, which Python's json cannot be."""
    yield f'{{"version": "v2",\n"meta": {_json(_meta(dataset))},\n"tree": '
    tree, names = dataset.tree, node_names(dataset.tree, dataset.names)
    waiting: list[int | str] = [tree.n_nodes - 1]
    while waiting:
        x = waiting.pop()
        if isinstance(x, str):
            yield x
            continue
        own: Attributes = {"name": names[x], "node_attrs": dataset.nodes[x]}
        if dataset.branches[x]:
            own["branch_attrs"] = dataset.branches[x]
        text = _json(own)
        children = tree.children(x).tolist()
        if not children:
            yield text
            continue
        yield f'{text[:-1]}, "children": [\n'
        waiting.append("]}")
        for k, child in enumerate(reversed(children)):
            waiting += [",\n", child] if k else [child]
    yield "}\n"


def node_names(tree: Tree, given: Mapping[int, str] = MappingProxyType({})) -> list[str]:
    """Of tips, and of inner nodes those given, or their label, where it is a name that no node before has;
    else NODE_0000012."""
    labels = list(tree.labels or [None] * tree.n_nodes)
    names, taken = list(tree.taxa), set(tree.taxa)
    for x in range(tree.n_tips, tree.n_nodes):
        label = given.get(x, labels[x])
        if not label or is_support(label) or label in taken:
            label = f"NODE_{x - tree.n_tips:07d}"
            while label in taken:
                label += "_"
        taken.add(label)
        names.append(label)
    return names


def short(number: float) -> float:
    """As many digits as a date of an hour needs."""
    return float(f"{number:.10g}")


def dated(year: float, limits: Sequence[float] | None = None, inferred: bool | None = None) -> Attributes:
    """The attribute num_date: a decimal year, between which it is, and of tips whether it was estimated."""
    found: Attributes = {"value": short(year)}
    if limits is not None:
        found["confidence"] = [short(float(end)) for end in limits]
    return found if inferred is None else found | {"inferred": inferred}


def of_states(shares: Mapping[str, float]) -> Attributes:
    """The attribute of a discrete trait: the likeliest state, the probabilities of all, and their entropy in
    nats, by which Auspice fades colours."""
    best = max(shares, key=lambda state: shares[state])
    p = np.array([share for share in shares.values() if share > 0])
    entropy = abs(float((p * np.log(p)).sum()))
    confidence = {state: min(short(share), 1.0) for state, share in shares.items()}
    return {"value": best, "confidence": confidence, "entropy": short(entropy)}


def label_key(name: str) -> str:
    """The name of a branch label, letters and digits alone, as the schema wants it."""
    return re.sub("[^a-zA-Z0-9]", "", name) or "label"


def coloring(key: str, title: str, kind: str) -> dict[str, str]:
    """kind: continuous or categorical."""
    return {"key": key, "title": title, "type": kind}


def _meta(dataset: AuspiceDataset) -> dict[str, object]:
    """What stands around the tree."""
    of_dates = any("num_date" in own for own in dataset.nodes)
    colorings = [dict(one) for one in dataset.colorings]
    kinds = {one["key"]: one["type"] for one in colorings}
    found: dict[str, object] = {"title": dataset.title} if dataset.title else {}
    found |= {"updated": dataset.updated, "panels": ["tree"], "colorings": colorings}
    found["filters"] = [key for key, kind in kinds.items() if kind == "categorical" and key != "gt"]
    shown: dict[str, object] = {"distance_measure": "num_date" if of_dates else "div"}
    first = [key for key in kinds if key != "gt"]
    found["display_defaults"] = shown | ({"color_by": first[0]} if first else {})
    if dataset.genome is not None:
        found["genome_annotations"] = {"nuc": {"start": 1, "end": dataset.genome, "strand": "+"}}
        found["panels"] = ["tree", "entropy"]
    if dataset.description:
        found["description"] = dataset.description
    return found


def _json(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)

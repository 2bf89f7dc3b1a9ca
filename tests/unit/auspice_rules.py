"""What Nextstrain's schema of datasets (augur/data/schema-export-v2.json) asks for, as far as phloem uses it,
and what the schema cannot say: names once, no node before its parent, colourings of what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

META = {
    "title", "updated", "panels", "colorings", "filters", "display_defaults", "genome_annotations",
    "description",
}  # fmt: skip
COLORS = {"continuous", "temporal", "ordinal", "categorical", "boolean"}
MUTATION = re.compile(r"[ATCGNYRWSKMDVHB-][0-9]+[ATCGNYRWSKMDVHB-]")


def walk(dataset: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every node and its parent, from the root on."""
    waiting: list[tuple[dict[str, Any], dict[str, Any] | None]] = [(dataset["tree"], None)]
    while waiting:
        node, above = waiting.pop()
        yield node, above
        waiting += [(child, node) for child in node.get("children", [])]


def problems(dataset: dict[str, Any]) -> list[str]:
    """All that is wrong; none of a dataset that Auspice takes."""
    found = [] if set(dataset) == {"version", "meta", "tree"} and dataset["version"] == "v2" else ["version"]
    nodes = list(walk(dataset))
    found += [f"{node.get('name')}: {told}" for node, above in nodes for told in _of_node(node, above)]
    if len({node["name"] for node, _ in nodes}) < len(nodes):
        found.append("a name twice")
    there = {key for node, _ in nodes for key in node["node_attrs"]}
    return [*found, *_of_meta(dataset["meta"], there)]


def _of_meta(meta: dict[str, Any], there: set[str]) -> Iterator[str]:
    day = re.fullmatch(r"\d{4}-\d\d-\d\d", meta["updated"])
    if not {"updated", "panels"} <= set(meta) <= META or not day:
        yield "meta"
    keys = [one["key"] for one in meta["colorings"]]
    if any(one["type"] not in COLORS or set(one) > {"key", "title", "type"} for one in meta["colorings"]):
        yield "colorings"
    if not set(keys) - {"gt"} <= there or len(set(keys)) < len(keys) or not set(meta["filters"]) <= set(keys):
        yield "a colouring of nothing"
    if meta["display_defaults"].get("color_by", "num_date") not in {*keys, "num_date"}:
        yield "color_by"


def _of_node(node: dict[str, Any], above: dict[str, Any] | None) -> Iterator[str]:
    own, date = node["node_attrs"], node["node_attrs"].get("num_date", {}).get("value")
    if not set(node) <= {"name", "node_attrs", "branch_attrs", "children"} or node.get("children") == []:
        yield "keys"
    if not {"div", "num_date"} & set(own):
        yield "no place"
    before = {} if above is None else above["node_attrs"]
    if own.get("div", 0.0) < before.get("div", 0.0) - 1e-9:
        yield "divergence falls"
    if date is not None and date < before.get("num_date", {}).get("value", date) - 1e-6:
        yield "before its parent"
    for key, value in own.items():
        plain = key in ("div", "accession", "url", "hidden")
        if plain == isinstance(value, dict) or not (plain or "value" in value):
            yield f"{key} is {value}"
        elif not plain and isinstance(value.get("confidence"), dict):
            shares = value["confidence"].values()
            if not (all(0 <= p <= 1 for p in shares) and abs(sum(shares) - 1) < 1e-6):
                yield f"{key}: probabilities"
    branch = node.get("branch_attrs", {})
    labels = branch.get("labels", {})
    if any(not re.fullmatch("[a-zA-Z0-9]+", k) or type(v) is not str for k, v in labels.items()):
        yield "labels"
    if not all(MUTATION.fullmatch(text) for text in branch.get("mutations", {}).get("nuc", [])):
        yield "mutations"

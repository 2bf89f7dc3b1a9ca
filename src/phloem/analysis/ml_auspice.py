"""`phloem ml --auspice`: the tree as a dataset for Nextstrain, with --ancestral its mutations too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.auspice import NodeAttributes
from phloem.analysis.draw import at_midpoint
from phloem.analysis.ml_ancestral import named_nodes
from phloem.analysis.ml_data import MlData, columns_of
from phloem.analysis.ml_outgroup import rooted
from phloem.analysis.ml_report import model_text_of
from phloem.errors import InputWarning
from phloem.hardware.limits import require_memory
from phloem.io.auspice import Attributes, coloring, write_auspice
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.tree.tree import Tree, node_depths

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult
    from phloem.inference.ml.tree_search import SearchResult
    from phloem.likelihood.tree_likelihood import TreeLikelihood

_UNDECIDED = 1e-9  # as of --ancestral: likelier than without data, by more than rounding
Letters = list[np.ndarray]  # of every node (L,) int8: the number of its state, -1 where it is not known


def write_for_auspice(result: MlResult, data: MlData) -> None:
    """From its outgroup, or the middle of its longest path, as it is drawn."""
    found, supports, settings = result.found, result.supports, result.settings
    assert found is not None and result.tree is not None
    shown = _rooted(result.tree if supports is None else supports.tree, result.outgroup)
    attributes = NodeAttributes(shown)
    attributes.divergence(node_depths(shown))
    if supports is not None:
        _supports(attributes, supports.names)
    genome = None
    if settings.ancestral:
        genome = _mutations(attributes, found, data, result.outgroup)
    attributes.metadata(data.tips)
    lines = [f"maximum-likelihood tree, log-likelihood {found.optimum.log_likelihood:.6f}"]
    lines.append(f"model {model_text_of(found.optimum)}")
    where = "its outgroup" if result.outgroup else "the middle of its longest path"
    lines.append(f"shown from {where}; lengths are substitutions per site")
    dataset = attributes.dataset(f"Maximum-likelihood tree, {shown.n_tips:,} tips", lines, genome)
    file = settings.auspice_options.file
    assert file is not None
    write_auspice(file, dataset)


def _rooted(tree: Tree, outgroup: Sequence[str]) -> Tree:
    return rooted(tree, outgroup)[0] if outgroup else at_midpoint(tree)


def _supports(attributes: NodeAttributes, names: Sequence[str]) -> None:
    """Of every kind, in percent: a label and a colouring."""
    labels = attributes.tree.labels or ()
    for k, name in enumerate(names):
        parts = {x: text.split("/") for x, text in enumerate(labels) if text}
        own = {x: part[k] for x, part in parts.items() if len(part) == len(names)}
        attributes.label(name, own)
        values: dict[int, Attributes] = {x: {"value": float(text)} for x, text in own.items()}
        attributes.put(name, values, f"Support: {name}", "continuous")


def _mutations(
    attributes: NodeAttributes, found: SearchResult, data: MlData, outgroup: Sequence[str]
) -> int | None:
    """Those of every branch, nodes named as in PREFIX.state, and the number of sites; a warning, and None,
    where sites are no places of a genome of nucleotides."""
    columns = _columns(data)
    if columns is None:
        told = "mutations are of whole alignments of nucleotides, and the dataset of Auspice has none"
        warnings.warn(told, InputWarning, stacklevel=2)
        return None
    tree, whole = found.optimum.tree, attributes.tree
    numbers = (None,) * tree.n_tips + tuple(f"n{x}" for x in range(tree.n_tips, tree.n_nodes))
    numbered = _rooted(data.rows.put_back(replace(tree, labels=numbers)), outgroup)
    if not np.array_equal(numbered.parent, whole.parent):
        raise RuntimeError(
            "the nodes of the tree with its supports are numbered otherwise: please report this"
        )
    inner = {x: name for name, x in named_nodes(tree, data.rows, outgroup).origin.items() if x >= tree.n_tips}
    own_numbers = {x: int(label[1:]) for x, label in enumerate(numbered.labels or ()) if label}
    attributes.names |= {x: inner[number] for x, number in own_numbers.items() if number in inner}
    most = max(part.alignment.n_sites for part in data.parts)
    require_memory(
        "states of all ancestors", 2.0 * whole.n_nodes * most, "Leave --ancestral or --auspice out."
    )
    likelihood = found.likelihood
    texts: list[list[tuple[int, str]]] = [[] for _ in range(whole.n_nodes)]
    for part, own in zip(data.parts, columns):
        one = likelihood.alone(part.name) if isinstance(likelihood, PartitionedLikelihood) else likelihood
        states = part.alignment.alphabet.states
        tips = np.where(part.alignment.codes < len(states), part.alignment.codes.astype(np.int8), -1)
        letters = letters_of_nodes(numbered, _of_ancestors(one), tips)
        for x, changes in enumerate(changes_of_branches(whole, letters)):
            texts[x] += [(int(own[s]), f"{_dna(states[a])}{own[s]}{_dna(states[b])}") for s, a, b in changes]
    for branch, changes_here in zip(attributes.branches, texts):
        if changes_here:
            branch["mutations"] = {"nuc": [text for _, text in sorted(changes_here)]}
    if any(texts):
        attributes.colorings.append(coloring("gt", "Genotype", "categorical"))
    return int(max(own.max() for own in columns))


def _columns(data: MlData) -> list[np.ndarray] | None:
    """Of every part the column of each of its sites, from 1; None where these are not all of one genome."""
    if any(part.alignment.alphabet.kind not in ("dna", "rna") for part in data.parts):
        return None
    if data.settings.sites is not None and any(part.sites is None for part in data.parts):
        return None  # of which nobody knows the place
    columns = [columns_of(part) for part in data.parts]
    together = np.concatenate(columns)
    return columns if len(np.unique(together)) == len(together) else None


def _dna(state: str) -> str:
    return "T" if state == "U" else state


def _of_ancestors(one: TreeLikelihood) -> Letters:
    """By node, the likeliest states of inner nodes at every site; none, (0,), of tips."""
    found: Letters = [np.zeros(0, np.int8)] * one.tree.n_nodes
    for x, posterior in one.states_of_all_nodes():
        if x >= one.tree.n_tips:
            best = posterior.argmax(1)
            decided = posterior.max(1) > one.state_frequencies[best] * (1 + _UNDECIDED)
            found[x] = np.where(decided, best, -1).astype(np.int8)[one.site_pattern]
    return found


def letters_of_nodes(numbered: Tree, ancestors: Letters, tips: np.ndarray) -> Letters:
    """Of every node of the tree as it is shown. numbered: inner nodes labelled n12 by their number among the
    ancestors, but for those that join equal sequences, which have theirs, and a root that was put on a
    branch, which has the states of its nearest child. tips: (T, L) states, -1 of ambiguous characters."""
    labels = numbered.labels or ()
    found: Letters = list(tips)
    for x in range(numbered.n_tips, numbered.n_nodes):
        label, children = labels[x], numbered.children(x).tolist()
        if label is not None:
            found.append(ancestors[int(label[1:])])
            continue
        children.sort(key=lambda c: float(numbered.lengths[c]))
        found.append(found[children[0]])
    return found


def changes_of_branches(tree: Tree, letters: Letters) -> list[list[tuple[int, int, int]]]:
    """Of the branch above every node (site from 0, state above, state below). What is not known at a node is
    as above it, so that a change is told where it is seen."""
    changes: list[list[tuple[int, int, int]]] = [[] for _ in range(tree.n_nodes)]
    known = list(letters)
    for x in range(tree.n_nodes - 2, -1, -1):  # parents come after their children
        above, own = known[tree.parent[x]], letters[x]
        sites = np.flatnonzero((own >= 0) & (above >= 0) & (own != above))
        changes[x] = list(zip(sites.tolist(), above[sites].tolist(), own[sites].tolist()))
        known[x] = np.where(own >= 0, own, above)
    return changes

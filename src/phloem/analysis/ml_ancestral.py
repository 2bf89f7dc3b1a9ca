"""`phloem ml --ancestral`: the states at every inner node with their probabilities, and the tree with names.

The table is written as IQ-TREE's --ancestral writes it, so that what reads one reads the other.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_outgroup import hung
from phloem.data.alphabet import Alphabet
from phloem.inference.ml.identical import Distinct
from phloem.io.output_file import replaced_text
from phloem.io.trees import write_trees
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.searched import Likelihood
    from phloem.inference.ml.tree_search import SearchResult

_UNDECIDED = 1e-9  # a state is named that is likelier than without data, by more than rounding


@dataclass(frozen=True, eq=False)
class NamedNodes:
    """tree: of all sequences, as it is written, inner nodes named Node1, Node2, … in the order of the text.
    origin: name → the node of the tree of the distinct sequences whose states it has; of a node that only
    joins equal sequences their tip."""

    tree: Tree
    origin: Mapping[str, int]


def named_nodes(tree: Tree, rows: Distinct, outgroup: Sequence[str]) -> NamedNodes:
    """tree: of the distinct sequences."""
    own = (None,) * tree.n_tips + tuple(f"n{x}" for x in range(tree.n_tips, tree.n_nodes))
    whole = hung(rows.put_back(replace(tree, labels=own)), outgroup)  # names stay at their nodes
    origin, place = dict[str, int](), {taxon: x for x, taxon in enumerate(tree.taxa)}
    labels, kept = whole.labels or (), _kept(rows)
    named, nodes = with_node_names(whole)
    for name, x in nodes.items():
        label = labels[x]
        if label is None:
            copies = [kept[whole.taxa[c]] for c in whole.children(x).tolist() if c < whole.n_tips]
            origin[name] = place[copies[0]]
        else:
            origin[name] = int(label[1:])
    return NamedNodes(named, origin)


def with_node_names(tree: Tree) -> tuple[Tree, dict[str, int]]:
    """The tree with inner nodes named Node1, Node2, … from the base in the order of its text; name → node."""
    nodes, waiting = dict[str, int](), [tree.n_nodes - 1]
    while waiting:
        x = waiting.pop()
        nodes[f"Node{len(nodes) + 1}"] = x
        waiting += [c for c in reversed(tree.children(x).tolist()) if c >= tree.n_tips]
    names: list[str | None] = [None] * tree.n_nodes
    for name, x in nodes.items():
        names[x] = name
    return replace(tree, labels=tuple(names)), nodes


def _kept(rows: Distinct) -> dict[str, str]:
    """Every taxon → the one of equal sequence that was searched with."""
    taxa = rows.alignment.taxa
    return {taxon: taxa[rows.kept[k]] for taxon, k in zip(taxa, rows.of.tolist())}


def write_ancestral(found: SearchResult, data: MlData, outgroup: Sequence[str], prefix: str) -> None:
    """The table and the tree, of the likelihood as the search left it."""
    nodes = named_nodes(found.optimum.tree, data.rows, outgroup)
    write_trees(f"{prefix}.ancestral.tree", nodes.tree)
    with replaced_text(f"{prefix}.state") as stream:
        stream.writelines(f"{line}\n" for line in state_lines(found.likelihood, found.optimum.tree, nodes))


def state_lines(likelihood: Likelihood, tree: Tree, nodes: NamedNodes) -> Iterator[str]:
    """The table: comments, a head, a row a node and site; of parts one after the other, numbered from 1,
    sites from 1 in each. tree: of the distinct sequences, whose numbers the nodes have."""
    if isinstance(likelihood, PartitionedLikelihood):
        parts = {name: likelihood.alone(name) for name in likelihood.part_names}
    else:
        parts = {"": likelihood}
    yield from state_head({name: one.alignment.alphabet for name, one in parts.items()})
    width = max(one.alignment.alphabet.n_states for one in parts.values())
    names: dict[int, list[str]] = {}
    for name, node in nodes.origin.items():
        names.setdefault(node, []).append(name)
    for number, (part, one) in enumerate(parts.items(), 1):
        if not np.array_equal(one.tree.parent, tree.parent):
            raise RuntimeError("the nodes of a part's tree are numbered otherwise: please report this")
        for node, texts in _texts(one, names.keys(), width):
            for name in names[node]:
                ahead = f"{name}\t{number}" if part else name
                yield from (f"{ahead}\t{site}\t{text}" for site, text in enumerate(texts, 1))


def state_head(alphabets: Mapping[str, Alphabet]) -> Iterator[str]:
    states = list(dict.fromkeys(tuple(alphabet.states) for alphabet in alphabets.values()))
    named = states[0] if len(states) == 1 else [str(k + 1) for k in range(max(map(len, states)))]
    several = "" not in alphabets
    yield "# States at the inner nodes of PREFIX.ancestral.tree: marginal posterior probabilities."
    yield "# State: the likeliest; - where none is likelier than it would be without data."
    if several:
        yield f"# Part: {', '.join(f'{k} = {name}' for k, name in enumerate(alphabets, 1))}"
        yield "# Site: within the part, from 1."
    if len(states) > 1:
        for k, alphabet in enumerate(alphabets.values(), 1):
            yield f"# p_1, p_2, … of part {k}: {', '.join(alphabet.states)}"
    probabilities = (f"p_{state}" for state in named)
    yield "\t".join(["Node", *["Part"] * several, "Site", "State", *probabilities])


def _texts(one: TreeLikelihood, wanted: Container[int], width: int) -> Iterator[tuple[int, list[str]]]:
    """Nodes, and of every site the state and its probabilities, in width columns."""
    states, usual = one.alignment.alphabet.states, one.state_frequencies
    for node, posterior in one.states_of_all_nodes():
        if node in wanted:
            texts = state_texts(posterior, usual, states, width)
            yield node, [texts[k] for k in one.site_pattern.tolist()]


def state_texts(posterior: np.ndarray, usual: np.ndarray, states: Sequence[str], width: int) -> list[str]:
    """Of every row of posterior (P, S) the likeliest state and the probabilities, in width columns. usual:
    (S,) without data."""
    best, left = posterior.argmax(1), ["0.00000"] * (width - len(states))
    decided = posterior.max(1) > usual[best] * (1 + _UNDECIDED)
    return [
        "\t".join([states[k] if clear else "-", *(f"{p:.5f}" for p in row), *left])
        for k, clear, row in zip(best.tolist(), decided.tolist(), posterior.tolist())
    ]

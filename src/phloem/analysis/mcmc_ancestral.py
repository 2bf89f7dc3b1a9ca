"""`--ancestral` of `phloem mcmc` and `phloem time`: the states at the inner nodes of the consensus, or of the
tree that stands for dated ones, averaged over draws.

A node is the youngest ancestor of a clade, of trees without a root as seen from the taxon that they hang
from. A draw that has the clade tells of it, whatever its tree is elsewhere; so do MrBayes' ancestral states
of a constrained clade, and Pagel, Meade and Barker 2004 (Systematic Biology 53:673), whose approach this is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phloem.analysis.mcmc_draws import ChainData, Drawn, Told, likelihood_of
from phloem.analysis.ml_ancestral import state_head, state_texts, with_node_names
from phloem.io.output_file import replaced_text
from phloem.io.trees import newick_text
from phloem.tree.tree import Tree

ENDING, TREE_ENDING = "state", "ancestral.tree"


@dataclass(frozen=True, eq=False)
class NodeStates:
    """tree: the consensus, inner nodes named Node1, Node2, … in the order of its text. share: by name, of the
    draws that have the clade. posterior: by name, (P, S) of every part; site_pattern: (L,) of every part;
    usual: (S,) frequencies of states of every part, over draws."""

    tree: Tree
    share: dict[str, float]
    posterior: dict[str, list[np.ndarray]]
    site_pattern: list[np.ndarray]
    usual: list[np.ndarray]


def node_states(data: ChainData, drawn: Drawn, consensus: Tree, away: str | None, told: Told) -> NodeStates:
    """away: the taxon that the consensus hangs from; None of trees with a root."""
    tree, nodes = with_node_names(consensus)
    taxon = None if away is None else data.taxa.index(away)
    order = [data.taxa.index(name) for name in tree.taxa]
    labels = [str(label) for label in tree.labels or ()]
    of_clade = {clade: labels[x] for x, clade in clades_from(tree.parent, tree.n_tips, order, taxon).items()}
    n_parts, draws = len(data.structure.parts), [draw for run in drawn.evenly() for draw in run]
    sums: dict[str, list[np.ndarray]] = {}
    count = dict.fromkeys(nodes, 0)
    patterns: list[np.ndarray] = [np.empty(0)] * n_parts
    usual: list = [0.0] * n_parts
    for k, draw in enumerate(draws, 1):
        there = clades_from(draw.parent, len(data.taxa), range(len(data.taxa)), taxon)
        names = {x: of_clade[clade] for x, clade in there.items() if clade in of_clade}
        for name in names.values():
            count[name] += 1
        for part in range(n_parts):
            one = likelihood_of(data, part, draw)
            patterns[part], usual[part] = one.site_pattern, usual[part] + one.state_frequencies / len(draws)
            for x, posterior in one.states_of_all_nodes():
                if x in names:
                    own = sums.setdefault(names[x], [np.zeros(1)] * n_parts)
                    own[part] = own[part] + posterior
        told("states of ancestors", k, len(draws))
    means = {name: [x / count[name] for x in own] for name, own in sums.items()}
    return NodeStates(tree, {n: c / len(draws) for n, c in count.items()}, means, patterns, usual)


def clades_from(parent: np.ndarray, n_tips: int, taxa, away: int | None) -> dict[int, int]:
    """Inner nodes of a tree, the base included, with the taxa beyond them as seen from the taxon `away`, as
    bits, or from the root (None). taxa: the number of every tip's taxon. A base of two children is no node of
    a tree without a root, and left out."""
    n_nodes = len(parent)
    below = [1 << taxon for taxon in taxa] + [0] * (n_nodes - n_tips)
    n_children, toward = [0] * n_nodes, [0] * n_nodes
    for x in range(n_nodes):
        up = int(parent[x])
        if up < 0:
            continue
        below[up] |= below[x]
        n_children[up] += 1
        if away is not None and below[x] >> away & 1:
            toward[up] = below[x]
    inner = [x for x in range(n_tips, n_nodes) if parent[x] >= 0 or n_children[x] > 2 or away is None]
    return {x: below[-1] ^ toward[x] if toward[x] else below[x] for x in inner}


def write_states(prefix: str, data: ChainData, found: NodeStates, kept: str) -> None:
    """PREFIX.state, as IQ-TREE and `phloem ml` write it, and PREFIX.ancestral.tree."""
    with replaced_text(f"{prefix}.{TREE_ENDING}", kept=kept) as stream:
        stream.write(newick_text([found.tree], annotations=False))
    with replaced_text(f"{prefix}.{ENDING}", kept=kept) as stream:
        stream.writelines(f"{line}\n" for line in _lines(data, found))


def _lines(data: ChainData, found: NodeStates) -> Iterator[str]:
    parts = data.structure.parts
    alphabets = [data.alignments[part.name].alphabet for part in parts]
    width = max(alphabet.n_states for alphabet in alphabets)
    for name, share in found.share.items():
        yield f"# {name}: its clade is in {100 * share:.3g} % of the draws looked at"
    names = [name for name in found.share if name in found.posterior]
    several = len(parts) > 1
    yield from state_head({part.name if several else "": a for part, a in zip(parts, alphabets)})
    for part, alphabet in enumerate(alphabets):
        numbers, states = data.sites[part], alphabet.states
        patterns, usual = found.site_pattern[part], found.usual[part]
        places = (np.arange(1, len(patterns) + 1) if numbers is None or several else numbers).tolist()
        for name in names:
            texts = state_texts(found.posterior[name][part], usual, states, width)
            ahead = f"{name}\t{part + 1}" if several else name
            yield from (f"{ahead}\t{site}\t{texts[k]}" for site, k in zip(places, patterns.tolist()))

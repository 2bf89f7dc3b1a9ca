"""How many gene trees agree with the branches of a tree: concordance factors, and quartets around a branch.

Around an inner branch of an unrooted binary tree lie four groups of taxa, A and B on one side, C and D on
the other. A gene tree is decisive for the branch if it has taxa of all four. It is concordant if one of its
branches parts its taxa of A and B from those of C and D, discordant of the first kind for A and C from B and
D, of the second for A and D from B and C, else none of the three (Minh, Hahn and Lanfear 2020, Mol. Biol.
Evol. 37:2727). Quartets are one taxon of each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln

from phloem.errors import InputError
from phloem.tree.match import folded, likely_name, respelled, spellings
from phloem.tree.prune import contracted
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree

_RATE = 0.5  # of the Yule prior of branch lengths in coalescent units (Sayyari and Mirarab 2016)
# Of a gene tree's branches, changes a site: other programs write up to 3e-6 where the data have no change.
SHORTEST = 5e-6
_PAIRS = ((1, 2, 3), (2, 1, 3), (3, 1, 2))  # of four groups: which one is with group 0, and the other two


class Concordance(NamedTuple):
    """branches (n,): node numbers of the reference, inner branches. decisive (n,): gene trees. concordant,
    first, second, neither (n,): of these how many agree with the branch, its two alternatives, none.
    quartets (n, 3): sums over gene trees of the shares of their resolved quartets that have each. posterior
    (n,): local posterior probability of the branch's own resolution, from the quartets. short: of every gene
    tree, how many branches were taken for none."""

    branches: np.ndarray
    decisive: np.ndarray
    concordant: np.ndarray
    first: np.ndarray
    second: np.ndarray
    neither: np.ndarray
    quartets: np.ndarray
    posterior: np.ndarray
    short: tuple[int, ...]


def concordance(
    reference: Tree,
    genes: Sequence[Tree],
    files: tuple[str | None, str | None] = (None, None),
    shortest: float = SHORTEST,
) -> Concordance:
    """reference: unrooted, binary; genes: of some of its taxa each, resolved or not, rooted or not. files:
    where they come from, for messages. shortest: inner branches of genes below this length resolve nothing:
    how equal sequences are joined is their order in a file, gene after gene.

    Names of taxa are equal by NEXUS' rule (tree/match.py). Errors: InputError for a reference that is not
    binary, and taxa of genes that it has not.
    """
    branches, groups = around_branches(reference, files[0])
    column = {name: i for i, name in enumerate(reference.taxa)}
    n = len(branches)
    short = []
    counts, decisive, quartets = np.zeros((3, n), np.int64), np.zeros(n, np.int64), np.zeros((n, 3))
    for number, given in enumerate(genes, 1):
        gene = respelled(given, reference.taxa)
        _require_known(gene, reference.taxa, number, files[1])
        gene, taken_out = contracted(unroot(gene), shortest)
        short.append(taken_out)
        colours = groups[[column[name] for name in gene.taxa]]  # (t, n, 4)
        below, total = _below(gene, colours.astype(np.float64)), colours.sum(0).astype(np.float64)
        here = (total > 0).all(-1)
        decisive += here
        for kind, (partner, _, _) in enumerate(_PAIRS):
            counts[kind] += here & _has_split(below, total, partner)
        by_kind = np.stack([_quartets(gene, below, total, pair) for pair in _PAIRS], -1)
        resolved = by_kind.sum(-1)
        some = here & (resolved > 0)
        quartets[some] += by_kind[some] / resolved[some, None]
    own, first, second = counts
    neither = decisive - counts.sum(0)
    posterior = local_posterior(quartets)
    return Concordance(branches, decisive, own, first, second, neither, quartets, posterior, tuple(short))


def _require_known(gene: Tree, taxa: Sequence[str], number: int, file: str | None) -> None:
    known, spelt = set(taxa), spellings(taxa)
    unknown = [name for name in gene.taxa if name not in known]
    if not unknown:
        return
    name = next((name for name in unknown if folded(name) not in spelt), unknown[0])
    near = likely_name(name, taxa)
    hint = f"Is it '{near}'? Rename it in one file." if near else "Take it out, or mend its name."
    what = f"gene tree {number} has a taxon '{name}' that the tree has not"
    raise InputError(what, file=file, taxon=name, hint=hint)


def around_branches(tree: Tree, file: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Inner branches (n,), and bool (T, n, 4): the taxa of the four groups around each; 0 and 1 below it."""
    children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for x in range(tree.n_nodes - 1):
        children[int(tree.parent[x])].append(x)
    root = tree.n_nodes - 1
    inside = np.zeros((tree.n_nodes, tree.n_tips), bool)
    inside[np.arange(tree.n_tips), np.arange(tree.n_tips)] = True
    for x in range(root):
        inside[tree.parent[x]] |= inside[x]
    if len(children[root]) != 3 or any(len(children[x]) != 2 for x in range(tree.n_tips, root)):
        raise InputError(
            "the tree is not an unrooted binary one",
            file=file,
            hint="Resolve its multifurcations; it has four taxa at least, and inner nodes three branches.",
        )
    branches = np.arange(tree.n_tips, root)
    groups = np.zeros((tree.n_tips, len(branches), 4), bool)
    for k, x in enumerate(branches.tolist()):
        up = int(tree.parent[x])
        beside = [inside[y] for y in children[up] if y != x]
        beside += [] if up == root else [~inside[up]]
        for j, members in enumerate([*(inside[y] for y in children[x]), *beside]):
            groups[:, k, j] = members
    return branches, groups


def _below(gene: Tree, colours: np.ndarray) -> np.ndarray:
    """(N, n, 4) how many taxa of every group are below every node."""
    below = np.zeros((gene.n_nodes, *colours.shape[1:]))
    below[: gene.n_tips] = colours
    for x in range(gene.n_nodes - 1):
        below[gene.parent[x]] += below[x]
    return below


def _has_split(below: np.ndarray, total: np.ndarray, partner: int) -> np.ndarray:
    """(n,) whether a branch parts groups 0 and partner from the other two."""
    together = np.isin(np.arange(4), (0, partner))
    one, other = np.where(together, total, 0), np.where(together, 0, total)
    return ((below == one).all(-1) | (below == other).all(-1)).any(0)


def _quartets(gene: Tree, below: np.ndarray, total: np.ndarray, pair: tuple[int, int, int]) -> np.ndarray:
    """(n,) quartets that pair group 0 with pair[0]: at the node where the paths of these two meet, they come
    from two sides, and both others from a third.

    The sum over three unlike sides of a node is written with sums over all sides, whatever its degree.
    """
    b, c, d = pair
    result = np.zeros(below.shape[1])
    at_node: list[list[np.ndarray]] = [[] for _ in range(gene.n_nodes)]
    for x in range(gene.n_nodes - 1):
        at_node[int(gene.parent[x])].append(below[x])
        if x >= gene.n_tips:
            at_node[x].append(total - below[x])
    for own in at_node[gene.n_tips :]:
        side = np.array(own)  # (sides, n, 4)
        first, second, both = side[..., 0], side[..., b], side[..., c] * side[..., d]
        a, s, t = first.sum(0), second.sum(0), both.sum(0)
        result += a * s * t - (first * second).sum(0) * t - (first * both).sum(0) * s
        result += 2.0 * (first * second * both).sum(0) - (second * both).sum(0) * a
    return result


def local_posterior(quartets: np.ndarray) -> np.ndarray:
    """(n,) of the first of three resolutions, from how many genes have each, (n, 3) (Sayyari and Mirarab
    2016, Mol. Biol. Evol. 33:1654): quartets under the multispecies coalescent, each resolution as
    probable before, branch lengths exponential; 1/3 where there are no genes."""
    n = quartets.sum(1, keepdims=True)
    a, b = quartets + 1.0, n - quartets + 2.0 * _RATE
    log_tail = np.log(np.maximum(betainc(b, a, 2.0 / 3.0), 1e-300))  # 1 - I_{1/3}(a, b)
    log_weight = betaln(a, b) + log_tail + quartets * np.log(2.0)
    share = np.exp(log_weight - log_weight.max(1, keepdims=True))
    return share[:, 0] / share.sum(1)

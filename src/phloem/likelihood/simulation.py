"""Alignments drawn from a tree and a model: the process whose likelihood this room computes, run forwards.

It stands here because it needs what a likelihood needs (tree, model, alphabet, transition matrices of the
kernels' specification) and nothing else; no compiled kernel and no engine is used.
"""

from __future__ import annotations

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet, alphabet
from phloem.data.coding import code_type
from phloem.data.translation import distances
from phloem.data.unseen import Unseen, could_be_unseen, unseen_patterns
from phloem.errors import InputError, ModelError, require_count, require_seed
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.state import ModelPoint
from phloem.model.families import datatypes_of
from phloem.model.model import Model
from phloem.model.model_string import split_model
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices
from phloem.pruning.site_order import neighbour_powers
from phloem.tree.build import node_levels
from phloem.tree.tree import Tree, require_lengths

_NUMBERS_AT_ONCE = 1 << 18  # random numbers, or matrix entries, of one block of branches: stays in the cache
_TRIES = 100  # draws for each variable character under +ASC, on average, before giving up


def simulate_alignment(
    tree: Tree, model: Model | str, n_sites: int, seed: int = 1, states: Alphabet | None = None
) -> Alignment:
    """Characters of the tips after evolving n_sites sites down the tree, independent ones but under +AG.

    tree: any shape, multifurcations too; lengths in expected substitutions per site; a root edge plays no
    part, as in the likelihood. model: every parameter needs a value; a text is read for the states, without
    them for the first data type that has a model of that name. states: the alphabet; None takes that
    of the model's data type (the universal code for codons). n_sites: for codons, codons. The same tree,
    model, n_sites and seed give the same alignment. Under +ASC sites that nobody would record are drawn
    again. settings of the result holds what was drawn.
    Errors: InputError for missing or negative lengths and for an irreversible model on an unrooted tree;
    ModelError for parameters without a value and for +ASC where next to no site would be seen.
    """
    if isinstance(model, str):
        kind = next(iter(datatypes_of(split_model(model)[0].name)), "dna")
        model = model_for_alphabet(model, states if states is not None else alphabet(kind))
    states = states if states is not None else alphabet_of(model)
    require_count("the number of sites", n_sites)
    require_seed(seed)
    if tree.n_tips < 2:
        raise InputError("a tree of one tip has nothing to evolve along", hint="Give two tips or more.")
    lengths = require_lengths(tree)
    site_model = _evaluated(model, tree)
    rng = np.random.default_rng(seed)
    shown = model.observed_state.astype(code_type(states.n_states + 1))
    if model.unseen:
        codes = _seen_sites(tree, lengths, site_model, n_sites, rng, shown, model.unseen)
    else:
        codes = shown[evolved_states(tree, lengths, site_model, n_sites, rng)[: tree.n_tips]]
    table = np.vstack([np.eye(states.n_states, dtype=bool), np.ones((1, states.n_states), bool)])
    settings = {"datatype": states.kind, "simulated_under": model.text(), "seed": seed}
    return Alignment(tree.taxa, states, np.ascontiguousarray(codes), table, None, settings)


def alphabet_of(model: Model) -> Alphabet:
    """The alphabet of a model's data type, with as many states as it shows; codons: the universal code."""
    if model.datatype in ("standard", "custom"):
        n = int(model.observed_state.max()) + 1
        return alphabet("standard", symbols="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n])
    return alphabet(model.datatype)


def evolved_like(
    alignment: Alignment, tree: Tree, lengths: np.ndarray, model: SiteModel, observed_state: np.ndarray,
    rng: np.random.Generator, unseen: Unseen = (),
) -> np.ndarray:  # fmt: skip
    """(T, L) codes as those of an alignment, in the order of the tree's taxa, its own: as many sites, without
    the characters that it misses. observed_state: what each of the model's states shows.

    unseen: under +ASC sites that nobody would have recorded are drawn again: those that could be unseen where
    the alignment misses what it misses of that site. ModelError where next to none would be seen.
    """
    n_states, shown = alignment.alphabet.n_states, np.asarray(observed_state)
    codes = np.empty(alignment.codes.shape, code_type(n_states + 1))
    known = np.vstack([np.eye(n_states, dtype=bool), np.ones((1, n_states), bool)])
    left, drawn = np.arange(alignment.n_sites), 0
    while len(left):
        _require_seen(drawn, alignment.n_sites - len(left), alignment.n_sites, unseen)
        apart = None if model.neighbours is None else distances(alignment)
        states = evolved_states(tree, lengths, model, len(left), rng, apart)
        codes[:, left] = shown[states[: tree.n_tips]]
        drawn += len(left)
        if not unseen:
            break
        recorded = np.where(alignment.codes[:, left] == n_states, n_states, codes[:, left])
        left = left[could_be_unseen(recorded, known, unseen)]
    return np.where(alignment.codes < n_states, codes, n_states)


def evolved_states(
    tree: Tree, lengths: np.ndarray, model: SiteModel, n_sites: int, rng: np.random.Generator,
    distance: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """(N, n_sites) the model's state at every node: the root's from its category's frequencies, then level by
    level.

    A site's rate category is drawn once; an invariable site keeps the root's state. P as the engines form it
    (model/transition.py). distance: of every site from the one before it (data.translation.distances), where
    categories of neighbours depend on each other; None: sites are one after the other.
    """
    weights = np.append(model.weights, model.invariant)
    if model.neighbours is None:
        category = rng.choice(len(weights), size=n_sites, p=weights / weights.sum())
    else:
        category = _along_sites(model, np.ones(n_sites, np.int64) if distance is None else distance, rng)
    rooted_in = np.cumsum(np.vstack([model.root_frequencies, model.invariant_frequencies]), axis=1)
    rooted_in /= rooted_in[:, -1:]
    n_states = rooted_in.shape[1]
    states = np.empty((tree.n_nodes, n_sites), code_type(n_states))
    uniform = rng.random(n_sites)
    for c, cumulated in enumerate(rooted_in):
        own = category == c
        states[-1, own] = np.searchsorted(cumulated, uniform[own], side="right")
    entries = (len(model.rates) + 1) * n_states**2
    block = max(1, _NUMBERS_AT_ONCE // max(n_sites, entries))
    level = node_levels(tree.parent)
    order = np.argsort(level, kind="stable")
    for nodes in np.split(order, np.flatnonzero(np.diff(level[order])) + 1)[1:]:
        for start in range(0, len(nodes), block):
            some = nodes[start : start + block]
            table = _cumulative(transition_matrices(lengths[..., some], model))
            states[some] = _drawn(table, category, states[tree.parent[some]], rng)
    return states


def _along_sites(model: SiteModel, distance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n_sites,) categories that are a Markov chain along the sites."""
    assert model.neighbours is not None
    apart, step = np.unique(distance, return_inverse=True)
    cumulated = np.cumsum(neighbour_powers(model.neighbours, apart), axis=-1)
    cumulated /= cumulated[..., -1:]
    first = np.cumsum(model.weights) / model.weights.sum()
    category = np.empty(len(distance), np.int64)
    for i, number in enumerate(rng.random(len(distance))):
        row = first if i == 0 else cumulated[step[i], category[i - 1]]
        category[i] = np.searchsorted(row, number, side="right")
    return category


def _cumulative(p: np.ndarray) -> np.ndarray:
    """(B, C, S, S) probabilities → (B, C+1, S, W) cumulated along the child's state.

    W is the next power of two, filled with 2, which no random number reaches; category C does not change.
    """
    n_branches, n_categories, n_states, _ = p.shape
    width = 1 << (n_states - 1).bit_length()
    table = np.full((n_branches, n_categories + 1, n_states, width), 2.0)
    sums = np.cumsum(p, axis=-1)
    table[:, :-1, :, :n_states] = sums / sums[..., -1:]
    table[:, -1, :, :n_states] = np.triu(np.ones((n_states, n_states)))
    return table


def _drawn(
    table: np.ndarray, category: np.ndarray, above: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(B, L) child states given the parents' (B, L): binary search for a uniform number in each sum."""
    n_branches, n_categories, n_states, width = table.shape
    row = np.arange(n_branches)[:, None] * n_categories + category
    place = (row * n_states + above) * width
    sums, number = table.ravel(), rng.random(above.shape)
    first, step = place.copy(), width // 2
    while step:
        place += step * (number >= sums[place + (step - 1)])
        step //= 2
    return place - first


def _seen_sites(
    tree: Tree, lengths, model: SiteModel, n_sites: int, rng, shown, unseen: Unseen
) -> np.ndarray:
    """(T, n_sites) shown states of sites that are recorded: others are drawn again."""
    known = np.eye(int(shown.max()) + 1, dtype=bool)
    if unseen == "uninformative" and tree.n_tips < 4:
        unseen_patterns(tree.n_tips, len(known), unseen)  # says that there are no others
    kept, found, drawn = [], 0, 0
    while found < n_sites:
        _require_seen(drawn, found, n_sites, unseen)
        codes = shown[evolved_states(tree, lengths, model, n_sites, rng)[: tree.n_tips]]
        seen = ~could_be_unseen(codes, known, unseen)
        kept.append(codes[:, seen])
        found, drawn = found + int(seen.sum()), drawn + n_sites
    return np.concatenate(kept, axis=1)[:, :n_sites]


def _require_seen(drawn: int, found: int, n_sites: int, unseen: Unseen) -> None:
    """ModelError where too many sites were drawn for those that would be recorded."""
    if drawn > _TRIES * (n_sites + 100):
        told = "are informative" if unseen == "uninformative" else "vary"
        message = f"of {drawn:,} sites drawn {found:,} {told}, {n_sites:,} are wanted under +ASC"
        raise ModelError(message, hint="Give longer branches, or leave +ASC out.")


def _evaluated(model: Model, tree: Tree) -> SiteModel:
    if model.free:
        raise ModelError(
            f"parameter '{model.free[0].name}' of model {model.name} has no value to simulate with",
            hint="Write the values in braces, as in HKY{3.5}+F{0.3,0.2,0.2,0.3}+G4{0.5}.",
        )
    if model.n_length_classes > 1:
        raise ModelError(
            f"{model.name} has {model.n_length_classes} sets of branch lengths, and one tree is given",
            hint="Simulate every class on its own tree and join the alignments.",
        )
    point = ModelPoint(model, model.values())
    if not tree.rooted and not point.reversible:
        raise InputError(
            f"model {model.name} is not reversible, so its sites depend on the root, and the tree has none",
            hint="Give a rooted tree: two branches at the base (or [&R]).",
        )
    return point.site_model

"""What chains remember of their splits, how moves fit lengths to it, and that it ends with the tuning."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from phloem.inference.mcmc.compiled.known_splits import KNOWN, NARROWEST, beside
from phloem.inference.mcmc.moves.learnt_nni import fit_lengths, interchange
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.split_memory import EVERY, forget, looked_at, no_splits, note
from phloem.inference.mcmc.start import random_tree, stream
from phloem.pruning.cpu.column_classes import tip_keys
from statistical.mcmc.move_cases import CASES, N_NODES, N_TIPS, NONE, SPLITS, begun, drawn
from statistical.mcmc.prior_sampling import gtr, no_data

T, G = 7, 2
DATA = SimpleNamespace(n_tips=T)


def chains(n: int, seed: int = 1) -> SimpleNamespace:
    """Trees, and lengths that both slots of a chain have, the wrong slot others."""
    rng, trees = np.random.default_rng(seed), []
    for _ in range(n):
        trees.append(random_tree(T, rng))
    state = SimpleNamespace(**no_splits(T, G), slot=rng.integers(0, 2, n), rank=np.arange(n))
    for i, name in enumerate(("parent", "left", "right", "order")):
        setattr(state, name, np.stack([np.stack([tree[i]] * 2) for tree in trees]))
    state.lengths = rng.exponential(size=(n, 2, G, 2 * T - 1))
    return state


def key_of(tips: frozenset) -> np.uint64:
    return np.sum(tip_keys(T)[list(tips)], dtype=np.uint64)


def expected(state) -> dict:
    """By sets of tips: (split, branch beside it) → log lengths (n, G)."""
    found = defaultdict(list)
    for h, slot in enumerate(state.slot):
        parent = state.parent[h, slot]
        below = [frozenset([x]) if x < T else frozenset() for x in range(2 * T - 1)]
        for x in state.order[h, slot][:-1]:
            below[parent[x]] |= below[x]
        root = 2 * T - 2
        ends = [(x, parent[x]) for x in range(root) if x != 0 and parent[x] != root]
        ends += [(0, next(x for x in range(root) if x and parent[x] == root))]  # tip 0's own branch
        for a in ends:
            for b in ends:
                if min(len(below[a[0]]), T - len(below[a[0]])) > 1 and set(a) & set(b):
                    pair = below[a[0]], below[b[0]]
                    found[pair].append(np.log(state.lengths[h, slot][:, b[0]]))
    return found


def largest_error(state) -> float:
    """Of everything noted, over all that trees say."""
    worst, wanted = 0.0, expected(state)
    table = dict(zip(state.split_keys.tolist(), state.split_sums))
    for (split, branch), y in wanted.items():
        sums = np.concatenate([[len(y)], np.sum(y, 0), np.sum(np.square(y), 0)])
        found = table.pop(int(beside.py_func(key_of(split), key_of(branch))), np.zeros(5))
        worst = max(worst, np.abs(found - sums).max())
    return max([worst, *(row[0] for key, row in table.items() if key)])


@pytest.mark.filterwarnings("ignore:overflow")
def test_splits_and_lengths_beside_them_are_those_of_the_trees():
    state = chains(40)
    note(state, T, looked_at(DATA, state))
    assert state.split_looks[0] == 40 and len(expected(state)) > 200 and largest_error(state) < 1e-9
    state.lengths[3] *= 1.01  # controls: one chain's lengths; one look too many; what was forgotten
    assert largest_error(state) > 1e-3
    note(state, T, looked_at(DATA, state)[:1])
    assert largest_error(state) > 0.9
    forget(state)
    assert not state.split_keys.any() and not state.split_sums.any() and state.split_looks[0] == 0


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_full_table_leaves_out_what_is_new_and_goes_on_with_what_it_has():
    state = chains(40)
    state.split_keys, state.split_sums = state.split_keys[:64].copy(), state.split_sums[:64].copy()
    rows = looked_at(DATA, state)
    note(state, T, rows)
    assert np.count_nonzero(state.split_keys) == 32
    keys, before = state.split_keys.copy(), state.split_sums.copy()
    note(state, T, rows)
    assert np.array_equal(state.split_keys, keys) and state.split_sums[:, 0].sum() > before[:, 0].sum() > 40


@pytest.mark.filterwarnings("ignore:overflow")
def test_lengths_are_fitted_to_the_new_split_and_back():
    """There and back nothing is left of it; on the way all five lengths are at the place that they had, in
    units of their standard deviation, where both splits are known."""
    rng, fitted = np.random.default_rng(2), 0
    table = dict(zip(SPLITS.keys.tolist(), SPLITS.sums))
    for _ in range(60):
        state, p = begun(CASES["learnt_nni"], drawn(rng, NONE), stream(1, 0, 0), NONE)
        parent, left, right, order = state.tree
        below = SPLITS.below
        for x in order[order >= N_TIPS]:
            below[x] = below[left[x]] + below[right[x]]
        x = next(x for x in range(N_TIPS, N_NODES - 1) if x != p.beside)
        up, old, was = parent[x], below[x], state.lengths.copy()
        interchange(p, x, up, 1)
        there, new = fit_lengths(p, x, up, old), below[x]
        changed = np.flatnonzero((state.lengths != was).any(0))
        near = [left[x], right[x], right[up] if left[up] == x else left[up], 0 if up == p.beside else up]
        assert set(changed) <= {x, *near}
        for y in changed:
            z = []
            for split, lengths in ((old, was), (new, state.lengths)):
                n, *sums = table[int(beside(split, split if y == x else below[y]))]
                mean, square = np.array(sums).reshape(2, 2) / n
                spread = np.sqrt(square - mean**2 + NARROWEST)
                z.append((np.log(lengths[:, y]) - mean) / spread)
                assert n >= KNOWN
            assert np.allclose(z[0], z[1])
            fitted += 1
        interchange(p, x, up, 1)
        back = fit_lengths(p, x, up, new)
        assert np.allclose(state.lengths, was) and back == pytest.approx(-there) and below[x] == old
    assert fitted > 50


def test_splits_are_learnt_while_moves_adapt_and_for_moves_that_want_them():
    def run_with(weights):
        settings = ChainSettings(
            use_data=False, n_runs=1, n_chains=2, generations=4000, sample_every=100, tuning_generations=1010,
            move_weights=weights,
        )  # fmt: skip
        return advanced(new_run(0, no_data(5), gtr(), settings), 1200)

    run = run_with(None)
    assert run.state.split_looks[0] == 2 * (1000 // EVERY - 250 // EVERY + 1)  # since it began anew
    before = run.state.split_sums.copy()
    run = advanced(run, 1000)
    assert np.array_equal(before, run.state.split_sums) and before.any()
    assert not run_with({"nni": 1}).state.split_keys.any()

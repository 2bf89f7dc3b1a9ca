"""Walks of small changes: what they carry along is the density, and they leave the posterior as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.density.tree_priors.constant import joining
from phloem.inference.time.ancestors.sequences import ACROSS, EXCHANGE, HEIGHT, LEAP, SLIDE
from phloem.inference.time.ancestors.start import can_walk
from phloem.inference.time.run import advanced
from phloem.inference.time.sampler import check_ancestors
from phloem.inference.time.settings import TreeModel
from phloem.inference.time.structure import Clade
from phloem.summary.trace import mixing
from unit.inference.time.test_ancestors import run_of

AROUND = ("root_height", "pop_size_multiplier", "wilson_balding", "ancestral_states")


def walked(run):
    """One walk, and how far the log prior is from what it says; what it took of every kind."""
    state, before = run.state, float(run.state.log_prior[0])
    run = advanced(run, 1)
    check_ancestors(run)
    gained, taken = run.scratch.gained[0, 0], run.scratch.walk[3, :5]
    return run, abs(float(state.log_prior[0]) - before - gained), taken.copy()


@pytest.mark.parametrize("model, clock", [("HKY+FO", "strict"), ("JC+G4", "ucln")])
def test_a_walk_carries_the_density_along(model, clock):
    run, taken = run_of(8, 60, model, clock, {"local_walk": 1.0}), np.zeros(5, np.int64)
    for _ in range(150):
        run, off, own = walked(run)
        assert off < 1e-9
        taken += own
    assert min(taken[[HEIGHT, EXCHANGE, SLIDE, LEAP, ACROSS]]) > 0
    assert (run.state.tried == 8 * 150).all() and run.state.accepted[0] == taken.sum()
    heights, order = run.state.heights[run.state.slot[0]], run.state.order[run.state.slot[0]]
    assert (np.diff(heights[order]) >= 0.0).all()


def test_a_wrong_intensity_is_seen():
    """Planted: pairs wait a hundredth longer than the prior's density says."""
    from phloem.inference.time.compiled.by_address import JOINING

    def longer(t, x, settings, out):
        out[0], out[1] = -np.log(x[0]), 1.01 * t / x[0]
        return 0.0

    run = run_of(8, 60, "HKY+FO", moves={"local_walk": 1.0})
    wrong = replace(run, data=run.data._replace(joining=JOINING.address(longer)))
    assert max(walked(wrong)[1] for _ in range(5)) > 1e-6
    out = np.zeros(2)
    joining(2.0, np.array([4.0]), np.zeros(0), out)
    assert out == pytest.approx([-np.log(4.0), 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_the_posterior_is_that_of_the_moves_of_the_whole_tree(clock):
    more = ("branch_deviation",) if clock == "ucln" else ()
    local = ("narrow_exchange", "subtree_slide", "subtree_leap", "node_height", "fixed_height_spr")
    means = []
    for own in ((*local, *AROUND, *more), ("local_walk", *AROUND, *more)):
        run = advanced(run_of(6, 25, "HKY+FO", clock, dict.fromkeys(own, 1.0), seed=3), 2_000)
        first = run.samples.n
        run = advanced(run, 300_000)
        names = ["tree_length", "root_height", "pop_size", "tree_prior"]
        draws = run.samples.numbers[first:, [2 + run.columns.names.index(name) for name in names]]
        means.append((draws.mean(0), draws.std(0) / np.sqrt(mixing(draws[None])[0])))
    z = (means[0][0] - means[1][0]) / np.hypot(means[0][1], means[1][1])
    assert np.abs(z).max() < 4.0, z


def test_where_a_walk_is_not_possible():
    run = run_of(5, 12, "JC")
    assert can_walk(run.model)
    assert "local_walk" not in [m.name for m in run_of(5, 12, "JC", "ucgd").moves]
    together = Clade("a", ("t1", "t2"), together=True)
    for tree in (TreeModel(prior="skyline", pieces=2), TreeModel(clades=(together,))):
        assert not can_walk(_model(tree))


def _model(tree: TreeModel):
    from phloem.inference.mcmc.structure import structure_of_model
    from phloem.inference.time.structure import time_model
    from phloem.likelihood.model_for_alignment import model_for_alignment
    from unit.inference.time.test_ancestors import TIPS, alignment

    data = alignment(5, 12)
    structure = structure_of_model(model_for_alignment("JC", data, "mean"), 12)
    return time_model(structure, tree, data.taxa, np.stack([TIPS[:5]] * 2, axis=1), float("nan"))

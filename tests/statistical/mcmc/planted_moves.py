"""The sampler with wrong moves in its registry: their errors must show in priors, ranks and posteriors.

Not collected with the other tests: compiled code that holds wrong moves must neither be left in a cache nor
be shared, so test_planted_moves.py runs this file in a process and a cache of their own.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
from scipy import stats

from phloem.hardware import numba_compile
from phloem.inference.mcmc import move_table
from phloem.inference.mcmc.move_table import Move

assert "phloem.inference.mcmc.compiled.dispatch" not in sys.modules  # it would hold the right moves only
RIGHT = move_table.registered()
FACTORS = (0.0, -1.0)
WRONG = (
    "branch_multiplier", "tree_multiplier", "node_slider", "spr", "tbr", "parsimony_spr", "simplex_dirichlet",
    "multiplier", "tied_split_merge",
)  # fmt: skip


def times(move: Move, factor: float) -> Move:
    """The move, its log Hastings ratio multiplied by a factor, compiled; used only where it is named."""
    right = numba_compile.compiled(move.propose, cache=False, _nrt=False)

    def wrong(p):
        ratio = right(p)
        return ratio * factor if ratio > -math.inf else ratio

    return replace(move, name=f"{move.name}_times_{factor:g}", propose=wrong, weight=0)


ALL = dict(RIGHT) | {f"{name}_times_{f:g}": times(RIGHT[name], f) for name in WRONG for f in FACTORS}
move_table.registered = lambda: ALL

from phloem.inference.mcmc.structure import structure_of_model  # noqa: E402
from statistical.mcmc.prior_sampling import gtr, ks_p_value, prior_draws, topology_p_value  # noqa: E402
from statistical.mcmc.test_calibration import MOVES, p_value, ranks  # noqa: E402
from statistical.mcmc.test_mixed_models import MODEL, RATES, visits  # noqa: E402
from statistical.mcmc.test_mrbayes import LARGEST_Z, posterior, primates, z_scores  # noqa: E402
from statistical.mcmc.test_prior import LENGTH_MOVES, REJECT, length_p_values, two_parts  # noqa: E402


def wrong(weights: dict[str, float], *moves: str, factor: float) -> dict[str, float]:
    """The weights with moves' planted versions in their place."""
    return {f"{m}_times_{factor:g}" if m in moves else m: weight for m, weight in weights.items()}


@pytest.mark.parametrize("factor", FACTORS)
def test_ratios_of_the_walks_show_in_topologies(factor):
    """At p_extend = ½ a walk's ratio is 1; elsewhere trees of many cherries get too rare. (SPR proposes
    every topology as often as it leaves it, whatever its ratio: unit/inference/mcmc/test_walks.py holds it.)
    """
    weights = wrong({"tbr": 1}, "tbr", factor=factor)
    _, samples = prior_draws(6, 20000, move_weights=weights, sample_every=20, p_extend=0.9)
    assert topology_p_value(samples, 105) < REJECT


@pytest.mark.parametrize("factor", FACTORS)
def test_places_that_parsimony_likes_show_in_topologies(factor):
    weights = wrong({"parsimony_spr": 1}, "parsimony_spr", factor=factor)
    _, samples = prior_draws(6, 20000, move_weights=weights, sample_every=20)
    assert topology_p_value(samples, 105) < REJECT


@pytest.mark.parametrize("move", ["branch_multiplier", "tree_multiplier", "node_slider", "spr", "tbr"])
@pytest.mark.parametrize("factor", FACTORS)
def test_length_moves(move, factor):
    weights = {move: 1} if move in ("spr", "tbr") else LENGTH_MOVES[move]
    weights = wrong(weights, move, factor=factor)
    _, samples = prior_draws(5, 6000, move_weights=weights, sample_every=150)
    assert min(length_p_values(samples, 5)) < REJECT


@pytest.mark.parametrize("block", ["relative_rates", "frequencies", "partition_rates"])
def test_dirichlet_moves(block):
    """The slider keeps the chain moving where the planted error would hold it."""
    structure = two_parts() if block == "partition_rates" else gtr()
    weights = wrong({f"{block}_dirichlet": 1, f"{block}_slider": 1}, f"{block}_dirichlet", factor=0.0)
    names, samples = prior_draws(3, 6000, structure, move_weights=weights, sample_every=60)
    name, rest, scale = {
        "relative_rates": ("r(A<->C)", 5, 1.0),
        "frequencies": ("pi(A)", 3, 1.0),
        "partition_rates": ("rate{a}", 1, 0.75),
    }[block]
    assert ks_p_value(samples.numbers[:, 2 + names.index(name)] * scale, stats.beta(1, rest)) < REJECT


@pytest.mark.parametrize("factor", FACTORS)
def test_splits_and_unions_of_rates_show_in_models(factor):
    weights = wrong(RATES, "relative_rates_split_merge", factor=factor)
    names, samples = prior_draws(
        3, 12_000, structure_of_model(MODEL), move_weights=weights, sample_every=30, seed=3
    )
    assert visits(names, samples.numbers)[1] < REJECT


def test_the_alpha_move():
    weights = wrong({"alpha_multiplier": 1}, "alpha_multiplier", factor=0.0)
    names, samples = prior_draws(3, 6000, move_weights=weights, sample_every=40)
    assert ks_p_value(samples.numbers[:, 2 + names.index("alpha")], stats.expon()) < REJECT


@pytest.mark.parametrize(
    ("move", "generations"),
    [("branch_multiplier", 50_000), ("tree_multiplier", 50_000), ("relative_rates_dirichlet", 100_000)],
)
def test_the_posterior_moves_away_from_mrbayes(move, generations):
    observed, structure = primates()
    chosen = move_table.chosen_moves(structure, len(observed.taxa), None)
    # joint_normal moves all numbers, rightly and so well that it covers what a wrong move of some does
    usual = {m.name: m.weight for m in chosen if m.name != "joint_normal"}
    summary, _, _ = posterior(generations, move_weights=wrong(usual, move, factor=-1.0))
    assert max(abs(v) for v in z_scores(summary).values()) > LARGEST_Z


@pytest.mark.parametrize(
    "moves", [("branch_multiplier", "node_slider", "tree_multiplier"), ("alpha_multiplier",)]
)
def test_ranks_become_uneven(moves):
    found = ranks(50, seed=6, moves=wrong(MOVES, *moves, factor=-1.0))
    assert min(p_value(rank) for rank in found.values()) < 1e-5

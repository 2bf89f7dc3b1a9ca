"""Random trees to start from have ages that calibrations allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.density.terms.exponential import Exponential
from phloem.density.terms.normal import Normal
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.birth_death_skyline import ORIGIN_GAP
from phloem.errors import InputError
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.calibrated_start import (
    ancestor_of,
    starting_tree,
    starting_values,
    with_possible_ages,
)
from phloem.inference.time.settings import Clade, TreeModel
from phloem.inference.time.structure import time_model
from phloem.model.grammar import parse_model
from phloem.tree.dated import random_dated_tree

TAXA = tuple("abcdefgh")
INNER = Clade("inner", tuple("abc"), together=True, age=Uniform(7.0, 7.5))
OUTER = Clade("outer", tuple("abcde"), together=True, age=Exponential(3.0), offset=7.2)
ROOT = Clade("root", TAXA, age=Uniform(50.0, 51.0))


def tree(seed: int):
    rng = np.random.default_rng(seed)
    members = [np.isin(np.array(TAXA), c.taxa) for c in (INNER, OUTER)]
    return random_dated_tree(np.zeros(8), rng, lambda t, pairs: rng.exponential(1.0 / pairs), members)


@pytest.mark.parametrize("clades", [(INNER,), (OUTER,), (ROOT,), (INNER, OUTER), (INNER, OUTER, ROOT)])
@pytest.mark.parametrize("seed", range(5))
def test_ages_have_densities_above_zero(clades, seed):
    found = with_possible_ages(tree(seed), clades, TAXA)
    assert (found.parent == tree(seed).parent).all() and (found.heights[:8] == 0.0).all()
    assert (found.heights[found.parent[:-1]] > found.heights[:-1]).all()
    for clade in clades:
        age = found.heights[ancestor_of(found, clade, TAXA)] - clade.offset
        assert age > 0 and np.isfinite(clade.age.log_density(np.array([age])))
    plain = tree(seed).heights[ancestor_of(tree(seed), clades[0], TAXA)] - clades[0].offset
    assert plain < 0 or not np.isfinite(clades[0].age.log_density(np.array([plain])))


def test_fixed_ages_are_met_exactly():
    inner, outer = replace(INNER, age=7.0), replace(OUTER, age=1 / 3 + 7.0, offset=0.0)
    found = with_possible_ages(tree(2), (inner, outer, replace(ROOT, age=50.1)), TAXA)
    assert [found.heights[ancestor_of(found, c, TAXA)] for c in (inner, outer, ROOT)] == [7.0, 22 / 3, 50.1]
    assert with_possible_ages(found, (inner, outer), TAXA) is found
    with pytest.raises(InputError, match=r"no age of 'inner' \(fixed\(7.0\)\) is.*can be 6 at most"):
        with_possible_ages(tree(2), (inner, replace(outer, age=6.0)), TAXA)


@pytest.mark.parametrize("seed", range(3))
def test_limits_of_nested_ages_may_overlap(seed):
    """Of the inner one most is above what the outer may be, and all that is likely of it."""
    inner, outer = replace(INNER, age=Uniform(6.0, 60.0)), replace(OUTER, age=Uniform(0.5, 1.0), offset=5.4)
    found = with_possible_ages(tree(seed), (inner, outer, replace(ROOT, age=Uniform(5.0, 6.35))), TAXA)
    ages = [found.heights[ancestor_of(found, clade, TAXA)] for clade in (inner, outer, ROOT)]
    assert 6.0 <= ages[0] < ages[1] < ages[2] <= 6.35
    with pytest.raises(InputError, match=r"'inner' \(uniform\(6,60\)\) is possible.*can be 5.9 at most"):
        with_possible_ages(tree(seed), (inner, replace(outer, age=Uniform(0.0, 0.5))), TAXA)


def test_a_tree_that_is_possible_stays():
    clades = (Clade("all", TAXA, age=Normal(3.0, 2.0)), Clade("loose", tuple("abcd")))
    begun = tree(1)
    assert with_possible_ages(begun, clades, TAXA) is begun


def test_a_tree_is_drawn_in_which_ages_are_possible():
    """Sets that need be no clades, of which some trees have the older within the younger."""
    young, old = (Clade(name, tuple(name), age=Uniform(low, low + 1)) for name, low in (("ab", 1), ("ac", 3)))
    structure = structure_of_model(parse_model("JC", datatype="dna"), 10)
    model = time_model(structure, TreeModel(clades=(young, old)), TAXA, np.zeros((8, 2)), float("nan"))
    for seed in range(5):
        found = starting_tree(model, np.random.default_rng(seed))
        ages = [found.heights[ancestor_of(found, clade, TAXA)] for clade in (young, old)]
        assert 1.0 <= ages[0] <= 2.0 and 3.0 <= ages[1] <= 4.0


def model_with_tips(bounds, *clades, **more):
    structure = structure_of_model(parse_model("JC", datatype="dna"), 10)
    return time_model(structure, TreeModel(clades=clades, **more), TAXA, bounds, float("nan"))


@pytest.mark.parametrize("limits", [(0.0, 10.0), (2.1, 10.0)])
def test_tips_begin_below_what_must_be_older(limits):
    """Also where all ages of a tip are above a likely one of the origin."""
    origin = Clade("origin", TAXA, age=Uniform(1.0, 3.0), above=ORIGIN_GAP)
    bounds = np.zeros((8, 2))
    bounds[:3] = limits
    pair = Clade("pair", ("a", "b"), age=Uniform(0.0, 2.5))
    model = model_with_tips(bounds, origin, pair, prior="fbd")
    for seed in range(3):
        found = starting_tree(model, np.random.default_rng(seed))
        values = starting_values(model, found, None)
        root = found.heights[found.order[-1]]
        assert (found.heights[:3] >= limits[0]).all() and found.heights[0] < 2.5
        assert 1.0 < root + model.above(origin, values) < 3.0
        assert found.heights[ancestor_of(found, pair, TAXA)] < 2.5
    bounds[1] = 2.75
    with pytest.raises(
        InputError, match=r"no age of 'pair' \(uniform\(0,2.5\)\).* 2.5 at most.*'b'.* 2.75 old"
    ):
        starting_tree(model_with_tips(bounds, pair), np.random.default_rng(1))

"""Random trees to start from have ages that calibrations allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.density.terms.exponential import Exponential
from phloem.density.terms.normal import Normal
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.time.calibrated_start import ancestor_of, with_possible_ages
from phloem.inference.time.settings import Clade
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
    with pytest.raises(InputError, match="'outer' has the fixed age 6, and what is in it is 7 old"):
        with_possible_ages(tree(2), (inner, replace(outer, age=6.0)), TAXA)


def test_a_tree_that_is_possible_stays():
    clades = (Clade("all", TAXA, age=Normal(3.0, 2.0)), Clade("loose", tuple("abcd")))
    begun = tree(1)
    assert with_possible_ages(begun, clades, TAXA) is begun

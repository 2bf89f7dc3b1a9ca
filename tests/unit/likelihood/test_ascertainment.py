"""Mkv: conditional on being variable (Lewis 2001, Systematic Biology 50:913)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.errors import InputError
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

TREE = parse_trees("(a:0.3,b:0.2,(c:0.4,d:0.1):0.2);")[0]


def characters(codes) -> Alignment:
    sets = np.vstack([np.eye(2), np.ones(2)]).astype(bool)
    return Alignment(tuple("abcd"), Alphabet("binary", ("0", "1")), np.array(codes, np.uint8), sets)


ALL_VARIABLE = characters([p for p in zip(*[c for c in product((0, 1), repeat=4) if 0 < sum(c) < 4])])


def test_probabilities_of_all_variable_patterns_sum_to_one():
    mkv = TreeLikelihood(ALL_VARIABLE, TREE, "MKV", engine="reference")
    assert np.exp(mkv.site_log_likelihoods()).sum() == pytest.approx(1.0, rel=1e-12)
    mk = TreeLikelihood(ALL_VARIABLE, TREE, "MK", engine="reference")
    assert np.exp(mk.site_log_likelihoods()).sum() < 0.9


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(("asc", "unseen"), [("+ASC{0}", 0), ("+ASC{1}", 4)])
def test_some_constant_characters_are_not_seen(engine, asc, unseen):
    """Restriction sites: the probabilities of all patterns but one sum to one."""
    seen = [c for c in product((0, 1), repeat=4) if sum(c) != unseen]
    model = f"MK+F{{0.3,0.7}}+G4{{0.5}}{asc}"
    found = TreeLikelihood(characters([*zip(*seen)]), TREE, model, engine=engine)
    assert np.exp(found.site_log_likelihoods()).sum() == pytest.approx(1.0, rel=1e-12)
    other = TreeLikelihood(characters([*zip(*seen)]), TREE, "MK+F{0.3,0.7}+G4{0.5}", engine=engine)
    assert np.exp(other.site_log_likelihoods()).sum() < 0.95  # the control
    with pytest.raises(InputError, match="constant"):
        TreeLikelihood(characters([[unseen // 4, 0]] * 3 + [[unseen // 4, 1]]), TREE, model, engine=engine)


def test_sites_and_their_derivatives_sum_to_the_whole():
    mkv = TreeLikelihood(ALL_VARIABLE, TREE, "MKV+G4{0.5}", engine="reference")
    assert mkv.site_log_likelihoods().sum() == pytest.approx(mkv.log_likelihood(), rel=1e-12)
    gradient, h = mkv.gradient().branch_lengths, 1e-6
    np.testing.assert_allclose(mkv.site_branch_derivatives().sum(1), gradient, rtol=1e-8, atol=1e-8)
    up, down = mkv.propose(branch_lengths={"a": 0.3 + h}), 0.0
    mkv.reject()
    down = mkv.propose(branch_lengths={"a": 0.3 - h})
    assert gradient[0] == pytest.approx((up - down) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("last", [0, 2])  # constant, or constant but for missing data (code 2)
def test_a_constant_character_is_an_error(last):
    with pytest.raises(InputError, match=r"1 of 2 characters are constant.*: 2 ") as caught:
        TreeLikelihood(characters([[0, 0], [0, 0], [0, 0], [1, last]]), TREE, "MKV", engine="reference")
    assert caught.value.site == 2

"""Tests of trees against their definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests
from phloem.errors import InputError
from phloem.inference.ml.tree_tests import SCALES, TreeSites, au_p_value, compare_trees, resampled


@pytest.fixture(scope="module")
def sites():
    rng = np.random.default_rng(1)
    common = rng.normal(-4.0, 1.0, 60)
    return common + rng.normal(0.0, 0.25, (4, 60)) - np.array([[0.0], [0.01], [0.04], [0.3]])


WEIGHTS = np.random.default_rng(2).integers(1, 6, 60).astype(float)


def by_hand(sites, seed, replicates):
    """KH, weighted KH, SH and ELW replicate by replicate, from the same draws."""
    rng = np.random.default_rng([seed, 4])
    values, n = sites @ WEIGHTS, len(sites)
    sums = resampled(TreeSites(sites, WEIGHTS), 1.0, replicates, rng)
    means, order = sums.mean(0), np.argsort(-values)
    kh, wkh, sh, elw = np.zeros((4, n))
    error = np.array([[np.sqrt(np.cov(a - b, fweights=WEIGHTS.astype(int))) for a in sites] for b in sites])
    ratio = (values - values[:, None]) / np.where(error > 0, error, np.nan)
    for draw in sums:
        centred, shares = draw - means, np.exp(draw - draw.max())
        elw += shares / shares.sum() / replicates
        for i in range(n):
            rival = order[0] if i != order[0] else order[1]
            kh[i] += centred[rival] - centred[i] >= values[rival] - values[i]
            rival = np.nanargmax(ratio[i])
            wkh[i] += centred[rival] - centred[i] >= values[rival] - values[i]
            sh[i] += max(centred) - centred[i] >= values.max() - values[i]
    return kh / replicates, wkh / replicates, sh / replicates, elw


def test_definitions(sites):
    found = compare_trees(TreeSites(sites, WEIGHTS), 1000, 5)
    kh, wkh, sh, elw = by_hand(sites, 5, 1000)
    np.testing.assert_allclose(found.kh, kh, atol=1e-12)
    np.testing.assert_allclose(found.wkh, wkh, atol=1e-12)
    np.testing.assert_allclose(found.sh, sh, atol=1e-12)
    np.testing.assert_allclose(found.elw, elw, atol=1e-12)
    best = int(np.argmax(found.log_likelihood))
    assert found.sh[best] == 1 > found.wsh[best] == found.wsh.max() and found.difference[best] == 0
    assert found.bootstrap.sum() == pytest.approx(1) == found.elw.sum()
    assert (found.sh >= found.kh - 1e-12)[np.arange(4) != best].all() and found.au.argmax() == best
    assert found.au[3] < 0.05 and not found.in_elw_set[3]
    other, *_ = by_hand(sites + 1e-3 * np.arange(4)[:, None], 5, 1000)
    assert not np.allclose(found.kh, other, atol=1e-12)


def test_the_rival_of_weighted_kh_is_farthest_ahead_in_standard_errors(sites):
    """The second tree is a little better nearly everywhere: the best is farther ahead, not as surely."""
    near = sites[1] - 0.002 + np.random.default_rng(3).normal(0.0, 0.004, 60)
    found = compare_trees(TreeSites(np.vstack([sites, near]), WEIGHTS), 1000, 5)
    kh, wkh, _, _ = by_hand(np.vstack([sites, near]), 5, 1000)
    np.testing.assert_allclose((found.kh, found.wkh), (kh, wkh), atol=1e-12)
    assert found.wkh[4] < found.kh[4] / 2 and found.wkh[0] == found.kh[0]


def test_a_draw_has_as_many_sites_as_its_scale_says():
    parts = (1, 4, 30, 60)  # the first of few sites
    for scale, ends in product(SCALES.tolist(), ((), parts)):
        sums = resampled(TreeSites(np.ones((1, 60)), WEIGHTS, ends), scale, 7, np.random.default_rng(1))
        assert (sums == round(scale * WEIGHTS.sum())).all()


def test_sites_are_drawn_within_their_part(sites):
    """Each part a constant of its own, which drawing all sites together would spread."""
    ends = (20, 60)
    own = np.repeat([[-1.0, -9.0]], [20, 40], axis=1)
    assert np.ptp(resampled(TreeSites(own, WEIGHTS, ends), 1.0, 9, np.random.default_rng(1))) < 1e-9
    assert np.ptp(resampled(TreeSites(own, WEIGHTS), 1.0, 9, np.random.default_rng(1))) > 1
    apart = sites + np.repeat([[0.0, 0.0], [1.2, -0.6], [0.0, 0.0], [0.0, 0.0]], [20, 40], axis=1)
    wide, narrow = (compare_trees(TreeSites(apart, WEIGHTS, e), 2000, 1) for e in ((), ends))
    assert (narrow.kh[1] < 0.05 < wide.kh[1]) if narrow.difference[1] > 0 else wide.kh[1] > 0
    assert not np.allclose(narrow.wsh, wide.wsh)
    same = compare_trees(TreeSites(sites[[0, 0]], WEIGHTS, ends), 1000, 1)
    assert same.wsh.tolist() == same.sh.tolist() == [1, 1]


def test_a_tree_as_good_as_another_lowers_no_p_value(sites):
    """Of trees that differ in a branch of length zero alone, up to what fits leave, both are the best."""
    alone = compare_trees(TreeSites(sites, WEIGHTS), 2000, 3)
    again = compare_trees(TreeSites(sites[[0, 1, 2, 3, 0]] - np.eye(5)[4][:, None] * 1e-7, WEIGHTS), 2000, 3)
    np.testing.assert_allclose(again.au[:4], alone.au, atol=1e-12)
    assert again.au[4] == again.au[0] and again.bootstrap.sum() == pytest.approx(1)
    worse = compare_trees(TreeSites(sites[[0, 1, 2, 3, 0]] - np.eye(5)[4][:, None] * 1e-3, WEIGHTS), 2000, 3)
    assert worse.au[4] < again.au[4] and worse.bootstrap[4] == 0 < again.bootstrap[4]  # 0.2 log units


QUINTET = ">a\nACGTACGTAA\n>b\nACGTACGTCA\n>c\nACGAACGTCC\n>d\nACGATCGTCG\n>e\nACCATCGTCT\n"
FIRST, OTHER = "(a,b,(c,(d,e)));", "(a,c,(b,(d,e)));"


def verdicts(tmp_path, text, **options):
    (tmp_path / "a.fasta").write_text(QUINTET)
    (tmp_path / "t.nwk").write_text(text)
    given = str(tmp_path / "a.fasta"), str(tmp_path / "t.nwk")
    options = {"model": "JC", "prefix": str(tmp_path / "x"), "redo": True, "replicates": 1000} | options
    return run_tree_tests(TreeTestsSettings(*given, **options))


def test_a_topology_that_stands_twice_is_tested_once(tmp_path):
    again = "((d,e),c,(b,a)9:2)8;"
    once, twice = verdicts(tmp_path, FIRST + OTHER), verdicts(tmp_path, FIRST + again + OTHER)
    for name, column in twice.tests._asdict().items():
        np.testing.assert_array_equal(column, getattr(once.tests, name)[[0, 0, 1]], err_msg=name)
    assert once.warnings == () and "once, as that: 2 as 1" in twice.warnings[0]
    table = (tmp_path / "x.tests.tsv").read_text().splitlines()
    sites = np.loadtxt(tmp_path / "x.sites.tsv", skiprows=1)
    assert len(table) == 4 and (sites[:, 1] == sites[:, 2]).all() and (sites[:, 1] != sites[:, 3]).any()
    with pytest.raises(InputError, match="the 2 trees have one topology") as caught:
        verdicts(tmp_path, FIRST + "((a,b),(c,(d,e)));")
    assert caught.value.file == str(tmp_path / "t.nwk")


def test_where_the_root_means_something_it_tells_trees_apart(tmp_path):
    rooted = "((a,b),(c,(d,e)));(a,(b,(c,(d,e))));"
    assert verdicts(tmp_path, rooted, model="UNREST").warnings == ()


@pytest.mark.parametrize(("d", "c"), [(0.5, 0.3), (1.2, -0.4), (-0.3, 0.1), (1.0, 0.8)])
def test_the_unbiased_p_value_of_shares_that_follow_its_law(d, c):
    shares = 1 - ndtr(d * np.sqrt(SCALES) + c / np.sqrt(SCALES))
    assert au_p_value(shares, SCALES, 10**8) == pytest.approx(1 - ndtr(d - c), abs=1e-6)
    assert au_p_value(shares, SCALES[::-1], 10**8) != pytest.approx(1 - ndtr(d - c), abs=1e-3)


def test_trees_that_are_never_or_always_the_best():
    assert au_p_value(np.zeros(10), SCALES, 1000) == 0 and au_p_value(np.ones(10), SCALES, 1000) == 1
    few = np.array([3e-4, 1e-4, *np.zeros(8)])  # three replicates of 10,000 tell nothing of a slope
    assert au_p_value(few, SCALES, 10_000) == 0


@pytest.mark.slow
def test_p_values_of_equal_trees_are_spread_evenly():
    """Trees that are equally good: AU rejects about as often as it says."""
    rng, p = np.random.default_rng(6), []
    for _ in range(40):
        own = rng.normal(-4.0, 1.0, 300) + rng.normal(0.0, 0.3, (2, 300))
        p.append(compare_trees(TreeSites(own, np.ones(300)), 1000, 1).au[0])
    assert 0.3 < np.mean(p) < 0.7 and np.mean(np.array(p) < 0.1) < 0.25


def test_too_little_to_test(sites, tmp_path):
    with pytest.raises(InputError, match="two at least"):
        compare_trees(TreeSites(sites[:1], WEIGHTS), 1000, 1)
    with pytest.raises(InputError, match="10 replicates"):
        compare_trees(TreeSites(sites, WEIGHTS), 10, 1)
    (tmp_path / "a.fasta").write_text(">a\nAC\n>b\nAC\n>c\nAG\n")
    (tmp_path / "one.nwk").write_text("(a,b,c);")
    settings = TreeTestsSettings(
        str(tmp_path / "a.fasta"), str(tmp_path / "one.nwk"), prefix=str(tmp_path / "x")
    )
    with pytest.raises(InputError, match="wants two trees"):
        run_tree_tests(settings)
    with pytest.raises(InputError, match="--linkage is about parts"):
        run_tree_tests(replace(settings, linkage="unlinked"))

"""Posterior predictive checks: their statistics by hand, genealogies by their intensities, and data that the
model cannot have made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time.draws import trace_columns
from phloem.inference.time.predictive import (
    _evolved,
    joinings,
    predictive_checks,
    tree_statistics,
    waiting_of,
)
from phloem.inference.time.settings import TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.simulation import evolved_states
from phloem.model.grammar import parse_model
from phloem.summary.predictive import site_statistics
from phloem.tree.dated import random_dated_tree
from phloem.tree.tree import Tree, lengths_of_heights

TAXA = tuple("abcdef")
TIPS = np.array([0.0, 0.0, 1.0, 1.5, 2.0, 3.0])
SITES = 600


def model_of(prior="constant", **more):
    structure = structure_of_model(parse_model("JC", datatype="dna"), SITES)
    return time_model(structure, TreeModel(prior=prior, **more), TAXA, np.stack([TIPS, TIPS], 1), 2000.0)


def test_statistics_of_sites_by_hand():
    codes = np.array([[0, 0, 1, 4], [0, 1, 1, 9], [0, 2, 4, 3]])  # 4 and more: not known
    found = site_statistics(codes, 4)
    assert found["distinct_columns"] == 4
    assert found["multinomial_log_likelihood"] == pytest.approx(4 * np.log(1 / 4))
    assert found["constant_columns"] == 3 / 4
    assert found["states_a_column"] == (1 + 3 + 1 + 1) / 4
    assert found["differences"] == pytest.approx((0 + 1 + 0) / 3)  # the last column has one known state
    n = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [1, 0, 1, 1]])
    e = n.sum(1, keepdims=True) * n.sum(0) / n.sum()
    assert found["composition"] == pytest.approx(((n - e) ** 2 / e).sum())


NUMBERS = {
    "constant": {"pop_size": 3.0},
    "exponential": {"pop_size": 3.0, "growth_rate": 0.4},
    "skygrid": {f"pop_size_{k + 1}": size for k, size in enumerate([2.0, 5.0, 0.5, 3.0])},
}


def size_at(prior, numbers, model):
    """The population's size by age."""
    if prior != "skygrid":
        return lambda t: numbers["pop_size"] * np.exp(-numbers.get("growth_rate", 0.0) * t)
    sizes, spacing = list(numbers.values()), float(model.parameters.settings[0])
    return lambda t: sizes[min(int(t / spacing), 3)]


@pytest.mark.parametrize("prior", NUMBERS)
def test_waiting_times_have_the_populations_intensity(prior):
    model = model_of(prior, **({"pieces": 4} if prior == "skygrid" else {}))
    waiting, size = waiting_of(model, NUMBERS[prior]), size_at(prior, NUMBERS[prior], model)

    def intensity(t):
        return 1.0 / size(t)

    for t, pairs, e in ((0.0, 1, 0.3), (0.7, 6, 2.0), (1.1, 3, 5.0), (4.0, 1, 1.0)):
        w = waiting(t, pairs, 0, e)
        cells = [k * float(model.parameters.settings[0]) for k in range(4)] if prior == "skygrid" else []
        inside = [x for x in cells if t < x < t + w]
        area = pairs * quad(intensity, t, t + w, points=inside or None)[0]
        assert area == pytest.approx(e, rel=1e-8)
        assert pairs * quad(intensity, t, t + 1.01 * w, points=inside or None)[0] > e * (1 + 1e-4)


def test_a_skylines_joinings_have_their_groups_sizes():
    model, rng = model_of("skyline", pieces=2), np.random.default_rng(1)
    numbers = {"pop_size_1": 1e-9, "pop_size_2": 7.0, "group_size_1": 3.0, "group_size_2": 2.0}
    waiting = waiting_of(model, numbers)
    roots = np.array([np.sort(joinings(np.zeros(6), waiting, rng)[6:]) for _ in range(4000)])
    assert roots[:, 2].max() < 1e-6 < roots[:, 3].min()
    assert abs(roots[:, 3].mean() - 7.0 / 3.0) < 0.2 and abs(roots[:, 4].mean() - 7.0 * (1 / 3 + 1)) < 0.5


def test_statistics_of_trees():
    tree = random_dated_tree(TIPS, np.random.default_rng(2), lambda t, pairs: 2.0 / pairs)
    length = lengths_of_heights(tree.parent, tree.heights).sum()
    assert tree_statistics(tree.heights, 6) == pytest.approx((length, tree.heights[-1]))


def drawn(model, n=60, size=3.0, rate=0.1, like=None):
    """Draws of the prior with these numbers as a sampler would have them."""
    rng, columns = np.random.default_rng(3), trace_columns(model)
    known = {"pop_size": size, "clock_rate": rate}
    numbers = np.array([[known.get(name, np.nan) for name in ("LnL", "LnPr", *columns.names)]] * n)
    trees = []
    for _ in range(n):
        tree = random_dated_tree(TIPS, rng, lambda t, pairs: rng.exponential(3.0 / pairs))
        trees.append(tree.sorted()[:2])
    trees = [like or tree for tree in trees]
    sets = np.stack([[heights, np.full(len(heights), rate)] for _, heights in trees])
    parents = np.stack([parent for parent, _ in trees]).astype(np.int32)
    lengths = np.stack([lengths_of_heights(*tree) for tree in trees])
    return columns, Samples(np.arange(n), numbers, parents, lengths, sets)


def data_of(model, samples, rates=(1.0,)):
    """An alignment that evolved down the first draw's tree, columns at each of these rates."""
    rng, parent = np.random.default_rng(4), samples.parent[0].astype(np.int64)
    site_model = model.engine.site_model(0, model.engine.space.start())
    blocks = []
    for factor in rates:
        lengths = factor * samples.lengths[0] * samples.sets[0, 1]
        tree = Tree(TAXA, parent, lengths)
        blocks.append(evolved_states(tree, lengths, site_model, SITES // len(rates), rng)[:6])
    rows = {name: "".join("ACGT"[x] for x in row) for name, row in zip(TAXA, np.hstack(blocks))}
    rows["a"] = "N" * 50 + rows["a"][50:]
    return alignment_from_sequences(rows, alphabet("dna"))


def checked(alignment, columns, samples):
    found = predictive_checks(columns, [samples, samples], 5, [alignment], 80, seed=1)
    return {check.name: check for check in found}


def test_data_of_the_model_lie_among_the_simulated():
    model = model_of()
    tree = drawn(model)[1]
    own = tree.parent[0], tree.sets[0, 0]
    columns, samples = drawn(model, like=own)
    alignment = data_of(model, samples)
    found = checked(alignment, columns, samples)
    assert set(found) == {*site_statistics(alignment.codes, 4), "tree_length", "root_height"}
    assert all(0.02 < check.p < 0.98 and check.low <= check.mean <= check.high for check in found.values())
    assert checked(alignment, columns, samples) == found
    other = checked(data_of(model, samples, (0.0, 2.0)), columns, samples)  # rates that JC does not have
    assert other["constant_columns"].p < 0.01 and other["distinct_columns"].p > 0.95
    codes = _evolved(columns, (samples, 0), 0, alignment, np.random.default_rng(1))
    assert ((codes < 4) == (alignment.codes < 4)).all() and (alignment.codes > 3).sum() == 50


def test_trees_that_the_tree_prior_does_not_make_are_seen():
    model = model_of()
    columns, samples = drawn(model)
    alignment = data_of(model, samples)
    right = checked(alignment, columns, samples)
    assert 0.2 < right["tree_length"].p < 0.8 and 0.2 < right["root_height"].p < 0.8
    place = ("LnL", "LnPr", *columns.names).index("pop_size")
    numbers = samples.numbers.copy()
    numbers[:, place] *= 10.0
    wrong = checked(alignment, columns, replace(samples, numbers=numbers))
    assert wrong["tree_length"].p > 0.95


def test_every_part_is_simulated_by_its_model_its_rate_and_its_clock():
    """Two parts on clocks of their own, the second ten times as fast. The control: parts change places."""
    parts = [PartModel(name, parse_model("JC", datatype="dna"), SITES) for name in ("slow", "fast")]
    structure = structure_of_parts(parts, Linkage("unlinked"))
    model = time_model(structure, TreeModel(), TAXA, np.stack([TIPS, TIPS], 1), 2000.0)
    columns, one = trace_columns(model), drawn(model_of())[1]
    own = Samples(*(np.repeat(getattr(one, name)[:1], 60, axis=0) for name in one.__dataclass_fields__))
    sets = np.stack(
        [own.sets[:, 0], np.full_like(own.sets[:, 0], 0.02), np.full_like(own.sets[:, 0], 0.2)], 1
    )
    numbers = np.full((60, 2 + len(columns.names)), 3.0)
    samples = replace(own, sets=sets, numbers=numbers)
    data = []
    for rate in (0.02, 0.2):
        like = replace(own, sets=np.stack([own.sets[:, 0], np.full_like(own.sets[:, 0], rate)], 1))
        data.append(data_of(model_of(), like))
    found = {c.name: c for c in predictive_checks(columns, [samples], 0, data, 50, seed=1)}
    assert {name for name in found if name.startswith("differences")} == {
        "differences{slow}",
        "differences{fast}",
    }
    of_sites = [c for name, c in found.items() if "{" in name]
    assert len(of_sites) == 12 and all(0.01 < c.p < 0.99 for c in of_sites)
    swapped = {c.name: c for c in predictive_checks(columns, [samples], 0, data[::-1], 50, seed=1)}
    assert swapped["differences{slow}"].p == 0.0 and swapped["differences{fast}"].p == 1.0

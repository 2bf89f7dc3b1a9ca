"""The compiled sampler's slopes of the whole joint density, by every coordinate it moves, against differences
of its own density: every clock and every tree prior, and dates at held distances.

Nothing is compiled for it: one leapfrog step leaves the slope at its end, and a refreshed state its density.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.traits import TipTraits
from phloem.density import clocks, heights, local_clocks, tip_heights, traits
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors import constant
from phloem.density.tree_priors.tree_prior import LEVEL, ORIGIN_GAP, registered
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time.ancestors.chain import answer
from phloem.inference.time.ancestors.larger.chain import answer_coded
from phloem.inference.time.ancestors.sequences import SLOPES as ANCESTORS_SLOPES
from phloem.inference.time.compiled import by_address
from phloem.inference.time.compiled.coordinates import from_coordinates
from phloem.inference.time.compiled.run import REFRESH, SAMPLE, advance
from phloem.inference.time.records import DATES, JOINT, LOG_MEAN
from phloem.inference.time.run import new_run
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel
from phloem.inference.time.start import ALONG
from phloem.inference.time.structure import CLOCKS, PIECES, time_model
from phloem.inference.time.traits import TraitModel
from phloem.likelihood.model_for_alignment import model_for_alignment

pytestmark = pytest.mark.slow
TAXA = tuple("abcdefg")
CLADES = (
    Clade("old", tuple("abcd"), together=True, age=Normal(6.0, 2.0)),
    Clade("own", tuple("ab"), clock=True),
    Clade("other", tuple("efg"), clock=True),
)


TRAIT = TraitModel(
    TipTraits("place", TAXA, tuple("XYZ"), np.eye(3, dtype=bool)[[0, 1, 2, 0, 1, 1, 2]]), False, True, True
)


def alignment_of(kind):
    rng, letters = np.random.default_rng(3), {"dna": list("ACGT"), "protein": list("ARNDCQEGHILKMFPSTWYVBX")}
    if kind == "codon":
        rows = {name: "".join(rng.choice(["GCA", "GCC", "TCA", "AAA", "RAA"], 30)) for name in TAXA}
        return alignment_from_sequences(rows, alphabet("codon"))
    odds = [0.4, 0.3, 0.2, 0.1] if kind == "dna" else None
    rows = {name: "".join(rng.choice(letters[kind], 60, p=odds)) for name in TAXA}
    return alignment_from_sequences(rows, alphabet(kind))


MODELS = {"dna": "HKY+FO+G4", "protein": "WAG+FO+G4", "codon": "GY94+FO+G4"}


def run_of(
    clock, prior, move="hamilton", trait=None, parts=None, ancestors="summed", kind="dna", clades=(),
    uncertain=False, **more,
):  # fmt: skip
    """A run at numbers that are nothing special, with one move of one step. parts: how lengths of two are
    linked. ancestors: summed over, or sampled. uncertain: dates of five of the seven tips are sampled."""
    rng, alignment = np.random.default_rng(4), alignment_of(kind)
    tips = np.array([0.0, 0.3, 1.1, 2.0, 0.7, 2.9, 1.5]) * (not registered()[prior].contemporaneous)
    known = (*(c for c in CLADES if clock.startswith("local") or not c.clock), *clades)
    if registered()[prior].needs_root:
        known += (Clade("root", TAXA, age=Gamma(3.0, 0.5), offset=1.0),)
    sites = ({} if parts or kind == "protein" else {"kappa": LogNormal(1.0, 1.25)}) | (
        {LEVEL: LogNormal(0.5, 1.0)} if prior == "skygrid" else {}
    )
    pieces = 3 if prior in PIECES else None
    tree = TreeModel(clock=clock, prior=prior, pieces=pieces, clades=known, priors=sites, **more)
    site_model = model_for_alignment(MODELS[kind] + "+I" * (ancestors == "summed"), alignment, "median")
    structure, observed = structure_of_model(site_model, alignment.n_sites), observations(alignment)
    if parts:
        own = [replace(alignment, codes=alignment.codes[:, at]) for at in (slice(0, 35), slice(35, 60))]
        models = [PartModel(name, site_model, each.n_sites, 1) for name, each in zip("ab", own)]
        structure = structure_of_parts(models, Linkage(parts, {"alpha": (("a", "b"),)}))
        observed = [observations(each) for each in own]
    model = time_model(structure, tree, TAXA, tip_bounds(tips, uncertain), float("nan"), trait)
    settings = TimeSettings(
        n_runs=1, generations=10, most_steps=1, move_weights={move: 1.0}, ancestors=ancestors
    )
    run = new_run(0, observed, model, settings)
    s = int(run.state.slot[0])
    run.state.steps[:, LOG_MEAN] = np.log(1e-6)
    values, own = run.state.values[s], rng.uniform(0.8, 1.25, run.state.values.shape[1])
    for block in model.space.blocks:
        if block.support == "choice":
            continue
        here = model.space.place(block.name)
        values[here] *= own[here]
        if block.support == "simplex":
            values[here] /= values[here].sum()
    for k, name in enumerate(model.rate_names):
        values[model.space.place(name)] = 0.05 * (1 + k)
    if clock != "strict":
        run.state.deviations[s] = 0.4 * rng.normal(size=(model.n_clocks, 13))
    set_lengths(run, s)
    refresh(run)
    return run


def tip_bounds(tips, uncertain):
    """(T, 2) heights, in the middle of which chains begin; one may be the youngest or the second."""
    wide = np.array([0.0, 0.2, 0.8, 0.0, 0.7, 0.5, 1.0]) * uncertain
    return np.stack([tips - wide, tips + wide], axis=1)


def set_lengths(run, s):
    """Branch lengths of a slot, by the plain functions of the clock."""
    state, clock = run.state, run.data.clock
    values = state.values[s]
    for k, (rate, spread) in enumerate(clock_numbers(run)):
        e = state.deviations[s, k]
        if clock.along:
            b = local_clocks.Branches(
                clock.kind, 7, state.parent[s], state.left[s], state.right[s], state.order[s],
                state.heights[s], e, values[rate : rate + clock.size], clock.member,
                np.zeros(26, np.int64), np.zeros(26, np.int64), np.zeros(26),
            )  # fmt: skip
            assert ALONG[clock.kind][0](b, state.lengths[s, k]) == 1.0
            continue
        own = clock.kind, values[rate], clocks.log_spread(clock.kind, values[spread] if spread >= 0 else 0.0)
        clocks.set_lengths(*own, state.parent[s], state.heights[s], e, state.lengths[s, k])


def clock_numbers(run):
    """Of every clock which numbers its rate and its spread are, by their names."""
    model = run.model
    rates = [model.space.place(name).start for name in model.rate_names]
    return zip(rates, [model.space.place(name).start for name in model.spread_names] or [-1] * len(rates))


def refresh(run) -> float:
    """Log likelihood and log prior of the accepted state, each times its power, from nothing."""
    run.scratch.done[:] = 0, -1, 0, 0
    advance(run.data, run.state, run.scratch, 1, REFRESH)
    power, state = run.scratch.power, run.state
    return float(power[0] * state.log_likelihood[0] + power[1] * state.log_prior[0])


def step(run):
    """Coordinates (D,) at the end of one step, slopes there, and which of them the move changes."""
    run.scratch.done[:] = 0, -1, 0, 0
    advance(run.data, run.state, run.scratch, 1, SAMPLE)
    return run.scratch.y.copy(), run.scratch.slope + run.scratch.kick, np.flatnonzero(run.scratch.scale > 0.0)


def density_at(run, y, which, lengths):
    """Of the accepted state moved to coordinates; with which == DATES at these branch lengths."""
    state, s, n, k = run.state, int(run.state.slot[0]), 13, run.model.n_clocks
    first = (1 + k) * n
    total = from_coordinates.py_func(run.data.blocks, np.ones(99, np.uint8), y[first:], state.values[s])
    limits, own = np.zeros((2, n)), (state.left[s], state.parent[s], state.order[s])
    if len(run.data.moving):
        total += tip_heights.from_shares(run.scratch.tip_limits, y, state.heights[s])
    heights.set_anchors(own[0], state.right[s], own[2], state.heights[s], limits[0])
    known = run.data.calibrations
    heights.set_limits(own[1], run.scratch.ancestors, known.least, known.most, *limits)
    total += heights.from_ratios(*own, *limits, y[:n], state.heights[s])
    state.order[s] = np.argsort(state.heights[s], kind="stable")
    clock = run.data.clock
    if which == JOINT:
        state.deviations[s] = y[n:first].reshape(k, n)
        set_lengths(run, s)
        return total + refresh(run)
    values = state.values[s]
    for c, (rate, spread) in enumerate(clock_numbers(run)):
        wide = clocks.log_spread(clock.kind, values[spread])
        state.lengths[s, c] = lengths[c]
        own = clock.kind, values[rate], wide, state.parent[s], state.heights[s], lengths[c]
        clocks.set_deviations(*own, state.deviations[s, c])
        lasting = state.heights[s, state.parent[s, :-1]] > state.heights[s, :-1]
        total -= lasting.sum() * np.log(wide)
    return total + refresh(run)


def slope_error(run, which):
    """Largest error of a slope relative to the largest slope."""
    y, slope, moved = step(run)
    lengths = run.state.lengths[int(run.state.slot[0])].copy()
    h, expected = 1e-3, []
    for i in moved:
        e = h * np.eye(len(y))[i]
        f = [density_at(run, y + k * e, which, lengths) for k in (-2, -1, 1, 2)]
        expected.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h))
    assert len(moved) > 6
    assert np.abs(expected).max() > 1.0
    return np.abs(slope[moved] - expected).max() / np.abs(expected).max()


CASES = [(clock, "constant") for clock in CLOCKS] + [("ucln", prior) for prior in registered()]


@pytest.mark.parametrize("clock, prior", CASES)
def test_slopes_of_the_joint_density(clock, prior):
    assert slope_error(run_of(clock, prior), JOINT) < 1e-6


UNCERTAIN = [(clock, "constant", JOINT) for clock in CLOCKS]
UNCERTAIN += [("ucln", name, JOINT) for name, prior in registered().items() if not prior.contemporaneous]
UNCERTAIN += [("ucln", "skyride", DATES), ("ucgd", "constant", DATES), ("white-noise", "bdss", DATES)]


@pytest.mark.parametrize("ancestors", ["summed", "sampled"])
@pytest.mark.parametrize("clock, prior, which", UNCERTAIN)
def test_slopes_by_dates_of_tips(clock, prior, which, ancestors, monkeypatch):
    move = "hamilton" if which == JOINT else "hamilton_dates"
    trait = TRAIT if prior == "skyride" else None
    if ancestors == "sampled" and prior != "constant":
        pytest.skip("the tree prior does not know how the likelihood is found")
    run = run_of(clock, prior, move, trait, ancestors=ancestors, uncertain=True)
    assert slope_error(run, which) < 1e-6
    assert (run.scratch.scale[:7] > 0.0).tolist() == [False, True, True, False, True, True, True]
    right = step

    def planted(run):  # one date's slope is one in a hundred too large
        y, slope, moved = right(run)
        slope[np.argmax(np.abs(slope[:7]))] *= 1.01
        return y, slope, moved

    monkeypatch.setitem(globals(), "step", planted)
    assert slope_error(run, which) > 1e-5


@pytest.mark.parametrize("which", [JOINT, DATES])
def test_slopes_by_dates_of_tips_that_are_ancestors(which):
    move = "hamilton" if which == JOINT else "hamilton_dates"
    run = with_ancestors(run_of("ucln", "fbd", move, uncertain=True))
    assert slope_error(run, which) < 1e-6
    assert (run.scratch.scale[7:13] > 0).sum() == 4 and (run.scratch.scale[:7] > 0).sum() == 5


def test_slopes_by_dates_that_have_densities():
    """A normal one, and where ages of the root and of a clade have limits."""
    ages = {"abcd": Uniform(0.5, 25.0), TAXA: Uniform(0.0, 80.0), "f": Normal(2.6, 0.3)}
    clades = [Clade("".join(t), tuple(t), len(t) > 1, age=a) for t, a in ages.items()]
    run = run_of("ucln", "constant", clades=clades, uncertain=True)
    assert slope_error(run, JOINT) < 1e-6
    assert run.scratch.scale[5] > 0.0 and len(run.data.ages.kind) == 4


def test_slopes_where_ages_have_limits():
    """Of the root, and of a clade's node, whose parent may then be older."""
    ages = {"abcd": Uniform(0.5, 25.0), TAXA: Uniform(0.0, 80.0)}
    run = run_of(
        "ucln", "constant", clades=[Clade("".join(t), tuple(t), True, age=a) for t, a in ages.items()]
    )
    assert slope_error(run, JOINT) < 1e-6
    tops, s = run.scratch.tops, int(run.state.slot[0])
    nodes, above = np.flatnonzero(np.isfinite(tops)), run.state.parent[s]
    assert len(nodes) == 2 and any(tops[x] < run.state.heights[s, above[x]] for x in nodes if above[x] >= 0)


def test_slopes_where_an_origin_has_a_density():
    origin = Clade("origin", TAXA, age=Gamma(9.0, 0.5), offset=2.0, above=ORIGIN_GAP)
    options = {"numbers": "diversification", "condition": "survival", "sampled": 0.4}
    run = run_of("ucln", "fbd", clades=(origin,), options=options)
    assert slope_error(run, JOINT) < 1e-6


SMOOTH = (clocks.STRICT, *clocks.SMOOTH)
ANCESTRAL = [(clock, "fbd", JOINT) for clock, kind in CLOCKS.items() if kind in SMOOTH]
ANCESTRAL += [("ucln", "fbd-root", JOINT), ("white-noise", "fbd-root", JOINT)]
ANCESTRAL += [(clock, "fbd-root", DATES) for clock in ("ucln", "ucgd", "white-noise")]


def with_ancestors(run):
    """The same where two tips, one below the other, are ancestors of others."""
    state, s = run.state, int(run.state.slot[0])
    tips, above = [], state.parent[s]
    for f in np.argsort(state.heights[s, :7]):
        q = above[f]
        sibling = state.right[s, q] if state.left[s, q] == f else state.left[s, q]
        if above[q] >= 0 and state.heights[s, sibling] < state.heights[s, f] and len(tips) < 2:
            state.heights[s, q] = state.heights[s, f]
            tips.append(int(f))
    assert len(tips) == 2
    state.order[s] = state.order[s, np.argsort(state.heights[s, state.order[s]], kind="stable")]
    set_lengths(run, s)
    refresh(run)
    return run


@pytest.mark.parametrize("clock, prior, which", ANCESTRAL)
def test_slopes_where_tips_are_ancestors(clock, prior, which, monkeypatch):
    move = "hamilton" if which == JOINT else "hamilton_dates"
    run = with_ancestors(run_of(clock, prior, move))
    assert slope_error(run, which) < 1e-6
    held = (run.scratch.scale[:13] > 0).sum()
    assert held == 4  # of six joinings
    exchanged = run.data._replace(tree_settings=run.data.tree_settings * 0.9)
    object.__setattr__(run, "data", exchanged)
    _, slope, moved = step(run)
    object.__setattr__(run, "data", run.data._replace(tree_settings=run.data.tree_settings / 0.9))
    assert np.abs(slope[moved] - step(run)[1][moved]).max() > 1e-3  # the control: another share sampled


def test_slopes_of_rates_by_the_variance_of_their_logarithms():
    run = run_of("autocorrelated", "constant", clock_sd="log")
    assert run.model.clock == clocks.AUTOCORRELATED_LOG and slope_error(run, JOINT) < 1e-6


def leaning_slopes(table, before, now, cell, rng, asked, by_length):
    """One slope by a length is one in a hundred too large."""
    value = answer(table, before, now, cell, rng, asked, by_length)
    by_length[0] *= 1.01 if asked[0] == ANCESTORS_SLOPES else 1.0
    return value


def leaning_coded(table, before, now, cell, rng, asked, by_length):
    """The same of many states."""
    value = answer_coded(table, before, now, cell, rng, asked, by_length)
    by_length[0] *= 1.01 if asked[0] == ANCESTORS_SLOPES else 1.0
    return value


@pytest.mark.parametrize(
    "clock, prior, kind",
    [("strict", "exponential", "dna"), ("ucln", "constant", "dna"), ("ucln", "constant", "protein"),
     ("strict", "constant", "codon")],
)  # fmt: skip
def test_slopes_with_ancestors(clock, prior, kind):
    run = run_of(clock, prior, ancestors="sampled", kind=kind)
    sites = np.random.default_rng(1).integers(0, 4, run.state.category.shape)
    run.state.category[:] = sites  # all rates occur
    refresh(run)
    assert slope_error(run, JOINT) < 1e-6
    address = by_address.ANCESTORS.address(leaning_slopes if kind == "dna" else leaning_coded)
    object.__setattr__(run, "data", run.data._replace(ancestors=address))
    assert slope_error(run, JOINT) > 1e-5


of_trait = uncounted(traits.trait_density)


def leaning(trait, before, now, x_before, x, memory, slot, asked):
    """The trait's density, one slope of which is one in a hundred too large."""
    value = of_trait(trait, before, now, x_before, x, memory, slot, asked)
    memory.by_height[now.parent.shape[0] - 1] *= 1.01
    return value


@pytest.mark.parametrize("move, which", [("hamilton", JOINT), ("hamilton_dates", DATES)])
def test_slopes_with_a_trait(move, which):
    run = run_of("ucln", "constant", move, TRAIT)
    assert slope_error(run, which) < 1e-6
    density = by_address.TRAIT.address(leaning)
    object.__setattr__(run, "data", run.data._replace(trait_density=density))
    assert slope_error(run, which) > 1e-5


def test_slopes_of_parts_with_rates_of_their_own():
    run = run_of("ucln", "constant", parts="proportional")
    place, n = run.model.space.place, len(run.model.space.elements)
    assert place("kappa{a}") != place("kappa{b}") and n - place("partition_rates").start == 2
    assert slope_error(run, JOINT) < 1e-6
    one = run.data._replace(part_of=np.zeros_like(run.data.part_of))  # planted: all cells are of the first
    object.__setattr__(run, "data", one)
    assert slope_error(run, JOINT) > 1e-3


CLOCKS_OF_PARTS = [(clock, "hamilton", JOINT) for clock in CLOCKS]
CLOCKS_OF_PARTS += [(clock, "hamilton_dates", DATES) for clock in ("ucln", "ucgd", "white-noise")]


@pytest.mark.parametrize("clock, move, which", CLOCKS_OF_PARTS)
def test_slopes_of_parts_with_clocks_of_their_own(clock, move, which):
    run = run_of(clock, "constant", move, TRAIT if clock == "ucln" else None, "unlinked")
    n, moved = 13, 12 * (which == JOINT and CLOCKS[clock] in clocks.SMOOTH)
    assert slope_error(run, which) < 1e-6
    for k in range(2):
        assert (run.scratch.scale[(1 + k) * n : (2 + k) * n] > 0).sum() == moved
    exchanged = run.data.clock._replace(rate=run.data.clock.rate[::-1].copy())  # planted
    object.__setattr__(run, "data", run.data._replace(clock=exchanged))
    assert slope_error(run, which) > 1e-3


@pytest.mark.parametrize("clock", ["ucln", "random"])
def test_slopes_of_a_power_of_the_likelihood(clock, monkeypatch):
    run = run_of(clock, "constant")
    run.scratch.power[0] = 0.3
    assert slope_error(run, JOINT) < 1e-6
    right = step

    def whole(run):  # a step that forgets the power
        run.scratch.power[0] = 1.0
        found = right(run)
        run.scratch.power[0] = 0.3
        return found

    monkeypatch.setitem(globals(), "step", whole)
    assert slope_error(run, JOINT) > 1e-2


HEATED = [(clock, "hamilton", JOINT) for clock in CLOCKS if clock not in ("strict", "random")]
HEATED += [("ucln", "hamilton_dates", DATES), ("white-noise", "hamilton_dates", DATES)]


@pytest.mark.parametrize("ancestors", ["summed", "sampled"])
@pytest.mark.parametrize("clock, move, which", HEATED)
def test_slopes_of_a_power_of_the_posterior(clock, move, which, ancestors, monkeypatch):
    """Of a heated chain: of prior, likelihood and trait, but not of Jacobians."""
    run = run_of(clock, "skyride", move, TRAIT if clock == "ucln" else None, ancestors=ancestors)
    run.scratch.power[:] = 0.3
    assert slope_error(run, which) < 1e-6
    right = step

    def whole(run):  # a step that forgets the prior's power
        run.scratch.power[1] = 1.0
        found = right(run)
        run.scratch.power[1] = 0.3
        return found

    monkeypatch.setitem(globals(), "step", whole)
    assert slope_error(run, which) > 1e-2


HELD = [("ucln", "cv"), ("ucln", "log"), ("ucln", "log-median"), ("ucgd", "cv"), ("white-noise", "cv")]


@pytest.mark.parametrize("clock, sd", HELD)
@pytest.mark.parametrize("prior", ["constant", "skyride"])
def test_slopes_at_held_distances(clock, sd, prior):
    assert slope_error(run_of(clock, prior, "hamilton_dates", clock_sd=sd), DATES) < 1e-6


def wrong(g, x, settings, by_height, by_number):
    """The constant coalescent, one slope of which is one in a thousand too large."""
    size, k, exposure, joinings, last = x[0], 0, 0.0, 0, 0.0
    for i in range(g.order.shape[0]):
        node = g.order[i]
        exposure += 0.5 * k * (k - 1) * (g.heights[node] - last)
        last = g.heights[node]
        if node < g.n_tips:
            k += 1
        else:
            by_height[node] -= 1.001 * (k - 1) / size
            joinings += 1
            k -= 1
    by_number[0] += (exposure / size - joinings) / size
    return -joinings * np.log(size) - exposure / size


@pytest.mark.parametrize("move, which", [("hamilton", JOINT), ("hamilton_dates", DATES)])
def test_a_wrong_slope_is_seen(move, which):
    run = run_of("ucln", "constant", move)
    right = run.data.tree_density
    assert right == by_address.TREE_PRIOR.address(constant.density)
    object.__setattr__(run, "data", run.data._replace(tree_density=by_address.TREE_PRIOR.address(wrong)))
    assert slope_error(run, which) > 1e-5

"""Every tree prior there is: derivatives, plain against compiled form, integrals over three dated taxa.

The table is made by looking into the folder: a prior joins by existing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import CONDITION, ENDS, FREE
from phloem.density.tree_priors.tree_prior import LEVEL, REMOVAL, Genealogy, Scale, chosen, registered
from phloem.errors import InputError
from phloem.tree.dated import dated_tree, random_dated_tree

OPTIONS = {
    "skygrid": {"cutoff": 6.0},
    "skygrid-linear": {"cutoff": 6.0},
    "bd": {"sampled": 0.3},
    "bd-root": {"sampled": 0.3},
    "bdss": {"sampled": 0.2},
    "bdsky": {"sampled": 0.2},
    "fbd": {"sampled": 0.2},
    "fbd-root": {"sampled": 0.2},
}
every = pytest.mark.parametrize("prior", registered().values(), ids=lambda prior: prior.name)


def drawn(prior, n_tips=9, seed=1, **options):
    """A random tree, numbers that are nothing special, and the prior's settings."""
    rng = np.random.default_rng(seed)
    tips = np.zeros(n_tips) if prior.contemporaneous else np.sort(rng.uniform(0, 4, n_tips)).round(2)
    tips[0] = 0.0
    tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(5.0 / pairs))
    parameters = prior.parameters(Scale(5.0, n_tips, 3), OPTIONS.get(prior.name, {}) | options)
    groups = np.array([2, 3, n_tips - 6]) if parameters.n_groups else np.zeros(0, np.int64)
    x = np.concatenate([np.zeros(0), *(b.start for b in parameters.blocks)])
    x = x * rng.uniform(0.7, 1.4, len(x)) + (0.03 if prior.name == "exponential" else 0.0)
    room = np.zeros(3 * len(tree.parent), np.int64)
    g = Genealogy(tree.heights, tree.order, n_tips, groups, tree.parent, pieces=room)
    return g, x, parameters.settings


def slopes(prior, g, x, settings):
    by_height, by_number = np.zeros(len(g.heights)), np.zeros(len(x))
    value = prior.density(g, x, settings, by_height, by_number)
    return value, by_height, by_number


def slope_error(prior, g, x, settings):
    """Largest difference of the derivatives from central ones of the NumPy form, relative to the largest."""
    _, by_height, by_number = slopes(prior, g, x, settings)

    def moved(vector, i, field):
        ends = []
        for sign in (1, -1):
            other = vector.copy()
            other[i] += sign * 1e-6
            own = (g._replace(heights=other), x) if field == "heights" else (g, other)
            ends.append(prior.log_density(*own, settings))
        return (ends[0] - ends[1]) / 2e-6

    tips = [] if prior.contemporaneous else np.flatnonzero(g.heights[: g.n_tips] > 0)  # others are of the end
    nodes = [*tips, *range(g.n_tips, len(g.heights))]
    heights = np.array([moved(g.heights, i, "heights") for i in nodes])
    numbers = np.array([moved(x, i, "numbers") for i in range(len(x))])
    found, expected = np.append(by_height[nodes], by_number), np.append(heights, numbers)
    return np.abs(found - expected).max() / np.abs(expected).max()


@every
@pytest.mark.parametrize("seed", [1, 2])
def test_the_compiled_form_is_the_numpy_form_and_its_derivatives(prior, seed):
    g, x, settings = drawn(prior, seed=seed)
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 4e-8  # 2e-8 are rounding, of values that differ by 1e-6


INFECTING_ON = {REMOVAL: True}
"""Where the probability that a sample ends its lineage has a prior."""


@pytest.mark.parametrize("condition", ["time", "sampling", "survival"])
@pytest.mark.parametrize(
    "name, shifts",
    [("bdss", ()), ("bdsky", ()), ("bdsky", ("becoming_uninfectious_rate", "sampling_proportion"))],
)
def test_samples_that_may_end_their_lineages(name, shifts, condition):
    """At 1 they do, at 0 they live on as fossils do; some are ancestors of others."""
    prior = registered()[name]
    options = {"condition": condition, "shift": dict(zip(shifts, ((1.1,), (2.0,))))}
    g, x, settings = drawn(prior, seed=3, **options, **INFECTING_ON)
    assert settings[ENDS] == FREE and prior.samples(INFECTING_ON) == "ancestors" and not prior.samples({})
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 4e-8
    fixed, rest = settings.copy(), np.delete(x, len(x) - 2)
    for at in (0.0, 1.0):
        fixed[ENDS], x[-2] = at, at
        expected = prior.log_density(g, rest, fixed)
        assert prior.log_density(g, x, settings) == pytest.approx(expected, rel=1e-12)
        assert slopes(prior, g, x, settings)[0] == pytest.approx(expected, rel=1e-12)
    x[-2] = 0.3
    joined = [np.flatnonzero(g.parent == x) for x in range(g.n_tips, len(g.parent))]
    tip = next(max(two, key=g.heights.__getitem__) for two in joined if two.max() < g.n_tips)
    heights = g.heights.copy()
    heights[g.parent[tip]] = heights[tip]  # of two sisters, the older is an ancestor of the younger
    g = g._replace(heights=heights, order=np.argsort(heights, kind="stable"))
    by_height, by_number = np.zeros(len(g.heights)), np.zeros(len(x))
    value = prior.density(g, x, settings, by_height, by_number)
    assert value == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    ends = [prior.log_density(g, x + d * (np.arange(len(x)) == len(x) - 2), settings) for d in (1e-6, -1e-6)]
    assert by_number[-2] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
    x[-2] = 1.0
    assert prior.log_density(g, x, settings) == -np.inf == slopes(prior, g, x, settings)[0]


@pytest.mark.parametrize("name", ["bdss", "bdsky"])
def test_samples_that_end_their_lineages_are_no_ancestors(name):
    ends = INFECTING_ON | {"fossils": "ends"}
    for options, message in (({"fossils": "tips"}, "are no ancestors"), (ends, "leave out")):
        with pytest.raises(InputError, match=message):
            registered()[name].parameters(Scale(5.0, 9, 3), options)


SHIFTING = {
    "bdss": {"shift": {"birth_rate": (1.15,), "sampling_rate": (2.0, 3.1)}},
    "bdsky": {"shift": {"reproductive_number": (1.15,), "sampling_proportion": (2.0, 3.1)}},
    "fbd": {"shift": {"net_diversification": (1.15,), "relative_death": (2,)}, "numbers": "diversification"},
}


@pytest.mark.parametrize("condition", ["time", "sampling", "survival"])
@pytest.mark.parametrize("name", SHIFTING)
@pytest.mark.parametrize("shifts", [True, False])
def test_what_a_process_since_an_origin_is_conditioned_on(name, condition, shifts):
    prior, options = registered()[name], SHIFTING[name] | {"condition": condition}
    if not shifts:
        options["shift"] = {"reproductive_number": ()} if name == "bdsky" else {}
    g, x, settings = drawn(prior, seed=2, **options)
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 4e-8
    free = settings.copy()
    free[CONDITION] = 0.0
    gained = prior.log_density(g, x, settings) - prior.log_density(g, x, free)
    assert (gained > 1e-3) == (condition != "time")


def test_survival_is_what_is_left_when_deaths_and_births_balance():
    """Where λ = μ there is a limit, 1 / (1/ρ + λt); near it the compiled form takes another way."""
    for difference in (0.0, 1e-9, 1e-6, 1e-3):
        value = epochs.through(0.4 + difference, 0.4, 3.0, 1.0 / 0.2)
        assert value[0] == pytest.approx(1.0 / 0.2 + 0.4 * 3.0, rel=3.0 * difference + 1e-12)
        moved = [epochs.through(0.4 + difference + d, 0.4, 3.0, 1.0 / 0.2)[0] for d in (1e-6, -1e-6)]
        assert value[1] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-5)


def test_survival_needs_the_share_of_the_living():
    with pytest.raises(InputError, match="the share of the living"):
        registered()["fbd"].parameters(Scale(5.0, 9, 3), {"condition": "survival"})


@pytest.mark.parametrize(
    "prior", [p for p in registered().values() if LEVEL in p.options], ids=lambda p: p.name
)
def test_a_prior_of_the_youngest_size_stands_for_one_over_it(prior):
    g, x, settings = drawn(prior, **{LEVEL: True})
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 2e-8
    _, _, without = drawn(prior)
    gained = prior.log_density(g, x, settings) - prior.log_density(g, x, without)
    assert gained == pytest.approx(np.log(x[0]), rel=1e-12)


@every
def test_a_wrong_derivative_is_seen(prior):
    def planted(g, x, settings, by_height, by_number):
        value = prior.density(g, x, settings, by_height, by_number)
        by_height[g.order[-1]] *= 1.001
        return value

    g, x, settings = drawn(prior)
    assert slope_error(replace(prior, density=planted), g, x, settings) > 1e-6


@pytest.mark.parametrize("prior", [p for p in registered().values() if p.joining], ids=lambda p: p.name)
def test_a_joining_moves_by_itself(prior):
    """Where one joining has another height, the density changes by its own term and by every pair's wait."""

    def gained(own, g, x, settings, place, t):
        lineages, out = np.cumsum(np.where(g.order >= g.n_tips, -1, 1)), np.zeros((2, 2))
        times, old = g.heights[g.order], g.heights[g.order[place]]
        for row, at in enumerate((old, t)):
            own(at, x, settings, out[row])
        low, high, step = min(t, old), max(t, old), 1 if t > old else 0
        change, wait = out[1, 0] - out[0, 0], np.zeros(2)
        for m in range(len(times) - 1):
            begin, end = max(times[m], low), min(times[m + 1], high)
            if begin < end:
                for row, at in enumerate((begin, end)):
                    own(at, x, settings, out[0])
                    wait[row] = out[0, 1]
                change -= (2 * step - 1) * (lineages[m] - 1 + step) * (wait[1] - wait[0])
        return change

    g, x, settings = drawn(prior, n_tips=12, seed=3)
    found = 0
    for place, node in enumerate(g.order[:-1]):
        if node < g.n_tips:
            continue
        for t in (0.6 * g.heights[node] + 0.4 * g.heights[g.order[place - 1]], 1.07 * g.heights[node]):
            heights = g.heights.copy()
            heights[node] = t
            order = np.argsort(heights, kind="stable")
            if t >= g.heights[g.order[-1]] or np.cumsum(np.where(order >= g.n_tips, -1, 1))[:-1].min() < 1:
                continue
            after = prior.log_density(g._replace(heights=heights, order=order), x, settings)
            change = after - prior.log_density(g, x, settings)
            assert gained(prior.joining, g, x, settings, place, t) == pytest.approx(change, abs=1e-10)

            def planted(t, x, settings, out):
                prior.joining(t, x, settings, out)
                out[0] += 1e-3 * t
                return 0.0

            assert gained(planted, g, x, settings, place, t) != pytest.approx(change, abs=1e-6)
            found += 1
    assert found > 10


def histories(tips):
    """Of three dated tips: every pair that joins first, as a function of both heights to a genealogy."""
    for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        parent = np.array([0, 0, 0, 4, -1])
        parent[[a, b]], parent[c] = 3, 4

        def genealogy(low, high, parent=parent):
            tree = dated_tree(parent, np.array([*tips, low, high]))
            return Genealogy(tree.heights, tree.order, 3, np.array([1, 1]), tree.parent)

        yield max(tips[a], tips[b]), tips[c], genealogy


def pieces(low, scale, breaks, n):
    """Gauss–Legendre points and weights on (low, ∞), by pieces between breaks, the last one mapped."""
    x, w = np.polynomial.legendre.leggauss(n)
    x, w = (x + 1) / 2, w / 2
    ends = [low, *[b for b in sorted(breaks) if b > low]]
    points = [a + (b - a) * x for a, b in pairwise(ends)]
    weights = [(b - a) * w for a, b in pairwise(ends)]
    points.append(ends[-1] + scale * x / (1 - x))
    weights.append(scale * w / (1 - x) ** 2)
    return np.concatenate(points), np.concatenate(weights)


def mass(prior, tips, x, settings, breaks, scale, n=14):
    total = 0.0
    for first, third, genealogy in histories(tips):
        lows, low_weights = pieces(first, scale, [*breaks, third], n)
        for low, weight in zip(lows, low_weights):
            highs, high_weights = pieces(max(low, third), scale, breaks, n)
            for high, other in zip(highs, high_weights):
                total += weight * other * np.exp(prior.log_density(genealogy(low, high), x, settings))
    return total


CASES = {
    "constant": ([3.0], [], 1.0),
    "exponential": ([30.0, 1.1], [2.5, 4.0, 6.0], 1.0),
    "skyline": ([2.0, 5.0], [], np.exp(-2.5) / 2.0 / 2.0),  # with p(N₁) p(N₂ | N₁)
    "skygrid": ([2.0, 4.0, 3.0, 1.3], [1.5, 3.0], None),
    "skygrid-linear": ([2.0, 4.0, 3.0, 1.3], [1.5, 3.0], None),
    "yule": ([0.3], [], 0.5),  # without the coefficient of labelled histories, 2^(T-1) / T! of three tips
    "bd": ([0.4, 0.6], [], 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_integrals_over_three_taxa(name):
    prior, (x, breaks, expected) = registered()[name], CASES[name]
    tips = [0.0, 0.0, 0.0] if prior.contemporaneous else [0.0, 0.7, 1.9]
    settings = np.array([1.0]) if name == "bd" else np.array([0.0 if name == "skyline" else 1.5, 0.0])
    if expected is None:  # the smoothing of the sizes
        theta, precision = np.log(x[:-1]), x[-1]
        expected = (
            precision / (2 * np.pi) * np.exp(-0.5 * precision * (np.diff(theta) ** 2).sum() - theta.sum())
        )
    found = mass(prior, tips, np.array(x), settings, breaks, 3.0)
    assert found == pytest.approx(expected, rel=2e-4)
    planted = replace(prior, log_density=lambda *a: prior.log_density(*a) + 1e-3)
    assert mass(planted, tips, np.array(x), settings, breaks, 3.0) != pytest.approx(expected, rel=2e-4)


def stretches(ages, numbers):
    """A number through time by its shifts, an event at one being of the younger stretch."""
    return lambda t: numbers[int(np.searchsorted(ages, t, side="left"))]


def along(rates, breaks, begin, end, unseen, seen):
    """E and g of Stadler 2010 from a time to an older one, by Runge–Kutta; rates (λ, μ, ψ) are constant
    between breaks."""
    y = np.array([unseen, seen])
    for low, high in pairwise([begin, *(t for t in breaks if begin < t < end), end]):
        birth, death, sampling = rates(high)

        def slope(t, y, birth=birth, death=death, both=birth + death + sampling):
            return [death - both * y[0] + birth * y[0] ** 2, (2 * birth * y[0] - both) * y[1]]

        if high > low:
            y = solve_ivp(slope, (low, high), y, rtol=1e-11, atol=1e-14).y[:, -1]
    return y


def by_equations(rates, breaks, rho, ends, ancestor):
    """The density of ((0, 0.6), 0.9), its tips' ages, that join at 1.4 and 2.2, since an origin at 2.9. Where
    a lineage outlives its sample, as it does with probability 1 - ends, nothing that is sampled may come of
    one that is no ancestor, and of a labelled tree every joining has two ways of saying which is which."""
    low, high, origin = 1.4, 2.2, 2.9

    def unseen(t):
        return along(rates, breaks, 0.0, t, 1 - rho, 1.0)[0]

    def edge(begin, end, first):
        return along(rates, breaks, begin, end, unseen(begin), first)[1]

    after = [ends + (1 - ends) * unseen(t) for t in (0.6, 0.9)]
    one = edge(0.0, 0.6 if ancestor else low, rho)
    three = edge(0.9, high, rates(0.9)[2] * after[1])
    if ancestor:
        low = 0.6
        joined = edge(low, high, rates(low)[2] * (1 - ends) * one)
    else:
        joined = edge(low, high, 2 * rates(low)[0] * one * edge(0.6, low, rates(0.6)[2] * after[0]))
    tree = dated_tree(np.array([3, 3, 4, 4, -1]), np.array([0.0, 0.6, 0.9, 1.4, high]))
    heights = np.array([*tree.heights[:3], low, high])
    order = np.argsort(heights, kind="stable")
    g = Genealogy(heights, order, 3, np.zeros(0, np.int64), tree.parent)
    return g, edge(high, origin, 2 * rates(high)[0] * joined * three), (joined * three, unseen(high))


BIRTHS, DEATHS, SHARES = ((0.7, 1.9), (1.3, 0.8, 1.7)), ((0.4,), (0.4, 0.7)), ((0.9, 2.5), (0.25, 0.6, 0.35))
"""Of three numbers the ages at which they shift, one of them the age of a sample, and values."""


@pytest.mark.parametrize("shifting", [False, True])
@pytest.mark.parametrize(
    ("name", "ends", "ancestor"),
    [("bdss", 1.0, False), ("bdsky", 1.0, False), ("fbd", 0.0, False), ("fbd", 0.0, True)]
    + [(name, 0.3, ancestor) for name in ("bdss", "bdsky") for ancestor in (False, True)],
)
def test_births_deaths_and_samples_by_their_differential_equations(name, ends, ancestor, shifting):
    cases = [c if shifting else ((), c[1][:1]) for c in (BIRTHS, DEATHS, SHARES)]
    first, second, third = (stretches(*case) for case in cases)

    def rates(t):
        a, b, c = first(t), second(t), third(t)
        if name != "bdsky":
            return a, b, c
        sampling = b * c / (1 - (1 - ends) * c)  # of δ = μ + r ψ and s = ψ / (μ + ψ)
        return a * b, b - ends * sampling, sampling

    breaks, rho = sorted(age for ages, _ in cases for age in ages), 0.3
    g, whole, _ = by_equations(rates, breaks, rho, ends, ancestor)
    prior, free = registered()[name], [ends] * (0 < ends < 1)
    x = np.array([*(v for _, values in cases for v in values), *free, 2.9 - 2.2])

    def settings(own):
        names = [b.name for b in own.parameters(Scale(1.0, 3, 2), {}).blocks]
        bare = list(dict.fromkeys(n.rstrip("_123") for n in names))[:3]
        shift = dict(zip(bare, (ages for ages, _ in cases))) if shifting or own.name == "bdsky" else {}
        options = ({"shift": shift} if shift else {}) | {REMOVAL: bool(free)}
        return own.parameters(Scale(1.0, 3, 2), {"sampled": rho} | options).settings

    assert prior.log_density(g, x, settings(prior)) == pytest.approx(np.log(whole), rel=1e-8)
    assert slopes(prior, g, x, settings(prior))[0] == pytest.approx(np.log(whole), rel=1e-8)
    for place in range(len(x)):
        moved = x.copy()
        moved[place] *= 1.01
        assert prior.log_density(g, moved, settings(prior)) != pytest.approx(np.log(whole), rel=1e-5)
    if not shifting and not free:
        other = registered()["fbd" if name == "bdss" else "bdss"]
        assert other.log_density(g, x, settings(other)) != pytest.approx(np.log(whole), rel=1e-4)


@pytest.mark.parametrize("ancestor", [False, True])
def test_shifts_given_the_root_by_their_differential_equations(ancestor):
    cases = ((BIRTHS[0], (0.6, 0.2, 0.9)), (DEATHS[0], (0.3, 0.6)), SHARES)
    first, second, third = (stretches(*case) for case in cases)

    def rates(t):
        birth = first(t) / (1 - second(t))
        death = birth * second(t)
        return birth, death, death * third(t) / (1 - third(t))

    g, _, (below, unseen) = by_equations(rates, (0.4, 0.7, 0.9, 1.9), 0.3, 0.0, ancestor)
    prior, x = registered()["fbd-root"], np.array([v for _, values in cases for v in values])
    names = ("net_diversification", "relative_death", "sampling_proportion")
    shift = {"shift": dict(zip(names, (ages for ages, _ in cases)))}
    settings = prior.parameters(Scale(1.0, 3, 2), {"sampled": 0.3} | shift).settings
    expected = np.log(2 * below / (1 - unseen) ** 2)
    assert prior.log_density(g, x, settings) == pytest.approx(expected, rel=1e-8)
    assert slopes(prior, g, x, settings)[0] == pytest.approx(expected, rel=1e-8)
    assert prior.log_density(g, 1.01 * x, settings) != pytest.approx(expected, rel=1e-5)


def test_slopes_foretell_a_shift():
    """By heights they are those of the density but next to a shift, where they add up to its jump."""
    prior, scale = registered()["bdsky"], Scale(5.0, 4, 1)
    settings = prior.parameters(scale, {"shift": {"reproductive_number": (1.0,)}}).settings
    x, heights = np.array([0.6, 2.5, 3.0, 0.2, 0.3]), np.array([0.0, 0.1, 0.2, 1.0, 2.0])
    tree = dated_tree(np.array([3, 3, 4, 4, -1]), heights)

    def at(t):
        heights[3] = t
        by_height, by_number = np.zeros(5), np.zeros(5)
        g = Genealogy(heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
        return prior.density(g, x, settings, by_height, by_number), by_height[3]

    jump, times = at(1.0 + 1e-9)[0] - at(1.0)[0], np.linspace(0.97, 1.03, 6001)
    assert jump == pytest.approx(np.log(2.5 / 0.6), abs=1e-6)
    values, own = np.array([at(t) for t in times]).T
    gained = float(((own[1:] + own[:-1]) / 2).sum() * 1e-5)
    assert gained == pytest.approx(values[-1] - values[0], rel=2e-3)
    assert np.abs(np.gradient(values, times) - own)[times < 0.98].max() < 1e-5
    assert gained - jump != pytest.approx(values[-1] - values[0], rel=0.1)  # without a ramp


def test_shifts_that_cannot_be_are_refused():
    scale, prior = Scale(5.0, 9, 3), registered()["bdsky"]
    for shift, told in (
        ({"pop_size": [1.0]}, "no 'pop_size' that shifts"),
        ({"sampling_proportion": [0.0]}, "ages above 0"),
        ({"sampling_proportion": [1.0, 1.0]}, "each another"),
    ):
        with pytest.raises(InputError, match=told):
            prior.parameters(scale, {"shift": shift})
    with pytest.raises(InputError, match="--cutoff"):
        prior.parameters(scale, {"shift": {"reproductive_number": [1.0]}, "cutoff": 3.0})
    with pytest.raises(InputError, match="do not shift"):
        options = {"sampling": "diversified", "shift": {"sampling_proportion": [1.0]}}
        registered()["fbd-root"].parameters(scale, options)
    blocks = prior.parameters(scale, {"shift": {"sampling_proportion": [2.0]}}).blocks
    assert [b.name for b in blocks] == [
        "reproductive_number_1", "reproductive_number_2", "reproductive_number_3",
        "becoming_uninfectious_rate", "sampling_proportion_1", "sampling_proportion_2", "origin_gap",
    ]  # fmt: skip


def given_root(prior, x, settings, root, tips=(0.0, 0.0, 0.0)):
    """∫ over the other node's height, summed over the three histories of three tips."""
    points, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for low, other, genealogy in histories(tips):
        for a, b in pairwise([low, *[y for y in (other,) if y > low], root]):
            for point, weight in zip(a + (b - a) * (points + 1) / 2, (b - a) * weights / 2):
                total += weight * np.exp(prior.log_density(genealogy(point, root), np.array(x), settings))
    return total


@pytest.mark.parametrize("tips", [(0.0, 0.0, 0.0), (0.0, 0.1, 0.6), (0.0, 0.5, 0.0)])
@pytest.mark.parametrize("root", [0.7, 3.0])
def test_uniform_ages_are_a_distribution_given_the_root(root, tips):
    prior = registered()["uniform"]
    assert given_root(prior, [], np.zeros(0), root, tips) == pytest.approx(1.0, rel=1e-12)
    planted = replace(prior, log_density=lambda *a: prior.log_density(*a) - 1e-6 * a[0].heights[3])
    assert given_root(planted, [], np.zeros(0), root, tips) != pytest.approx(1.0, rel=1e-9)


def test_dated_clades_are_pieces_of_uniform_ages():
    """Each as a tree of its own, in which those inside it are tips."""
    prior = registered()["uniform"]
    g, x, settings = drawn(prior, n_tips=12, seed=5)
    inner = [x for x in range(12, 22) if (g.parent == x)[12:].any()]
    g = g._replace(dated=np.array([inner[0], -1, 22, inner[-1]]))
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 4e-8
    alone = prior.log_density(g._replace(dated=np.zeros(0, int)), x, settings)
    assert abs(prior.log_density(g, x, settings) - alone) > 0.1


@pytest.mark.parametrize("root", [0.9, 3.0])
def test_ages_below_a_dated_clade_are_a_distribution(root):
    """Three tips and an older one beside them: the clade's age is given, as is the root's."""
    prior, age, total = registered()["uniform"], 0.8, 0.0
    points, weights = np.polynomial.legendre.leggauss(20)
    for parent in ([4, 4, 5, 6, 5, 6, -1], [4, 5, 4, 6, 5, 6, -1], [5, 4, 4, 6, 5, 6, -1]):
        for point, weight in zip(age * (points + 1) / 2, age * weights / 2):
            tree = dated_tree(np.array(parent), np.array([0, 0, 0, 0.4, point, age, root]))
            g = Genealogy(tree.heights, tree.order, 4, np.zeros(0, np.int64), tree.parent, np.array([5]))
            total += weight * np.exp(prior.log_density(g, np.zeros(0), np.zeros(0)))
    assert total == pytest.approx(1.0, rel=1e-12)
    undated = prior.log_density(g._replace(dated=g.groups), np.zeros(0), np.zeros(0))
    assert undated != pytest.approx(prior.log_density(g, np.zeros(0), np.zeros(0)), rel=1e-3)


def test_births_and_deaths_given_the_root_by_their_differential_equations():
    """Of all living species: two lineages from the root that have living descendants, one of which splits.
    With a share of them log priors that MrBayes printed are met (tests/golden/test_mrbayes_dated.py)."""
    birth, death, low, root = 1.3, 0.4, 0.8, 1.7

    def along(begin, end, unseen, seen):
        def slope(t, y):
            both = birth + death
            return [death - both * y[0] + birth * y[0] ** 2, (2 * birth * y[0] - both) * y[1]]

        return solve_ivp(slope, (begin, end), [unseen, seen], rtol=1e-11, atol=1e-14).y[:, -1]

    one = along(0.0, low, 0.0, 1.0)
    joined, long = along(low, root, one[0], birth * one[1] ** 2), along(0.0, root, 0.0, 1.0)
    whole = joined[1] * long[1] / (1 - long[0]) ** 2
    prior, x = registered()["bd-root"], np.array([birth - death, death / birth])
    g = next(genealogy for _, _, genealogy in histories([0.0, 0.0, 0.0]))(low, root)
    settings = prior.parameters(Scale(1.0, 3, 1), {}).settings
    assert prior.log_density(g, x, settings) == pytest.approx(np.log(whole), rel=1e-8)
    assert prior.log_density(g, 1.01 * x, settings) != pytest.approx(np.log(whole), rel=1e-5)
    half = prior.parameters(Scale(1.0, 3, 1), {"sampled": 0.5}).settings
    assert tuple(half) == (0.5, 6.0)


def test_what_is_not_there_is_refused():
    with pytest.raises(InputError, match="tree prior"):
        chosen("coalescent", {})
    with pytest.raises(InputError, match="has no option 'cutoff'"):
        chosen("yule", {"cutoff": 3.0})


def test_a_skyride_is_a_skyline_of_single_joinings_with_another_smoothing():
    """Minin, Bloomquist and Suchard 2008 with weights by the times between midpoints, relative to the
    root."""
    ride, line = registered()["skyride"], registered()["skyline"]
    g, x, settings = drawn(ride, n_tips=6)
    ones = g._replace(groups=np.ones(5, np.int64))
    theta, t = np.log(x[:-1]), np.append(0.0, np.sort(g.heights[6:]))
    midpoints = (t[1:] + t[:-1]) / 2
    field = 2.0 * np.log(x[-1] / (2 * np.pi)) - theta.sum()
    field -= 0.5 * x[-1] * (t[-1] * np.diff(theta) ** 2 / np.diff(midpoints)).sum()
    smoothing = -theta[0] - (theta[:-1] + np.exp(np.diff(theta))).sum()
    coalescent = line.log_density(ones, x[:-1], np.zeros(1)) - smoothing
    assert ride.log_density(g, x, settings) == pytest.approx(coalescent + field, rel=1e-12)
    assert ride.log_density(g, x, settings) != pytest.approx(coalescent + 1.01 * field, rel=1e-12)

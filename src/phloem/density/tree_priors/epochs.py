"""Births, deaths and samples whose rates shift at given times: what densities of such trees share.

Between two shifts rates are those of one epoch, the youngest the first (Stadler, Kühnert, Bonhoeffer and
Drummond 2013, Proc. Natl. Acad. Sci. 110:228; Gavryushkina, Welch, Stadler and Drummond 2014, PLoS Comput.
Biol. 10:e1003919). Within an epoch all is as in fossils.py, z being its young end: a lineage there is seen
with 1 - p₀ of the epoch before, and leads to what is seen of it with the product of 4/q over
the epochs that it crosses. An event at the time of a shift is of the younger epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.term import Family
from phloem.density.tree_priors.fossils import (
    LOG_4,
    Part,
    added,
    begins_with_ancestor,
    by_rates,
    constant,
    joined,
    of_end,
    of_node,
    plain_events,
    plain_log_q,
    plain_unseen,
    rates_of,
    reaching,
    unseen,
)
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters
from phloem.errors import InputError, require_choice
from phloem.hardware.numba_compile import uncounted

BY_RATES, OF_EPIDEMIC, OF_SPECIES = range(3)
"""What the three numbers of an epoch are: λ, μ, ψ; R, δ, s (an epidemic's); d, a, s (of species)."""
RAMP = 0.01
"""Half of how long a shift takes for the slopes, as a share of the epoch before it (docs/experiments.md)."""
RHO, ENDS, FORM, ROOTED, DIVERSE, CONDITION, EPOCHS, FIRST = range(8)
"""Of settings: ρ; the probability that a sample ends its lineage, FREE where it is x[-2]; the form; whether
the density is one given the root's age, or of a process that began x[-1] above it;
fossilised_birth_death_root.py's; what such a process is conditioned on, a place in CONDITIONS; K. Then K
young ends of epochs, and for each of the three numbers the place of every epoch's in x."""
CONDITIONS = ("time", "sampling", "survival")
"""On when it began, and that something of it was sampled, and that of it at the end, height 0."""
OF_SAMPLING, OF_SURVIVAL = 1.0, 2.0
FREE = -1.0


def laid_out(
    header: Sequence[float], blocks: Sequence[Block], priors: Mapping[str, Family], options: Mapping[str, Any]
) -> Parameters:
    """Parameters with settings. header: settings up to CONDITION, which the option "condition" says. blocks:
    the three numbers', then what is left; those whose rates shift, by the option "shift" (name → ages),
    become one a stretch of time, the youngest first. InputError for shifts of other numbers, and survival
    where no share of the living was sampled."""
    condition = str(options.get("condition") or CONDITIONS[0])
    require_choice("--condition", condition, CONDITIONS)
    if condition == "survival" and not header[RHO] > 0.0:
        raise InputError(
            "--condition survival: the share of the living that was sampled is not known",
            hint="Say it, as in --sampled 1, or choose --condition sampling.",
        )
    header = (*header, float(CONDITIONS.index(condition)))
    shifts = {name: np.sort(np.asarray(ages, float)) for name, ages in (options.get("shift") or {}).items()}
    names = [block.name for block in blocks[:3]]
    for name, ages in shifts.items():
        if name not in names:
            raise InputError(f"there is no '{name}' that shifts", hint=f"There are: {', '.join(names)}.")
        if not (ages > 0).all() or len(set(ages)) < len(ages):
            raise InputError(f"'{name}' shifts at ages above 0, each another", hint="Mend --shift.")
    begins = np.unique(np.concatenate([[0.0], *shifts.values()]))
    own, places, all_priors, n = list[Block](), list[np.ndarray](), dict[str, Family](), 0
    for block in blocks[:3]:
        ages = shifts.get(block.name, np.zeros(0))
        places.append(n + np.searchsorted(ages, begins, side="right"))
        n += len(ages) + 1
        for name in of_stretches(block.name, len(ages) + 1):
            own.append(Block(name, block.support, block.start, block.lower, block.upper))
            all_priors[name] = priors[block.name]
    all_priors |= {block.name: priors[block.name] for block in blocks[3:]}
    settings = np.concatenate([[*header, float(len(begins))], begins, *places])
    return Parameters((*own, *blocks[3:]), all_priors, settings, shifts=shifts)


def of_stretches(name: str, n: int) -> list[str]:
    """What a number of each of n stretches of time is called."""
    return [f"{name}_{i + 1}" for i in range(n)] if n > 1 else [name]


def places_of_first(settings: np.ndarray, ages: np.ndarray) -> np.ndarray:
    """(n,) which stretch of an epoch's first number some ages (n,) are in."""
    k = int(settings[EPOCHS])
    epoch = np.maximum(np.searchsorted(settings[FIRST : FIRST + k], ages) - 1, 0)
    return settings[FIRST + k + epoch].astype(int)


@uncounted
def numbers_at(x, settings, i):
    """Those of epoch i."""
    k = int(settings[EPOCHS])
    first = FIRST + k + i
    return x[int(settings[first])], x[int(settings[first + k])], x[int(settings[first + 2 * k])]


@uncounted
def ending(x, settings):
    """The probability that a sample ends its lineage."""
    return x[x.shape[0] - 2] if settings[ENDS] == FREE else settings[ENDS]


@uncounted
def rates_by(form, ends, a, b, c):
    """λ, μ and ψ by an epoch's numbers, where a sample ends its lineage with probability ends. R = λ / δ or d
    = λ - δ and a = δ / λ, δ = μ + ends ψ the rate at which lineages end, and s = ψ / (μ + ψ)."""
    if form == BY_RATES:
        return a, b, c
    birth, ended = (a * b, b) if form == OF_EPIDEMIC else (a / (1.0 - b), b * (a / (1.0 - b)))
    sampling = c * ended / (1.0 - (1.0 - ends) * c)
    return birth, ended - ends * sampling, sampling


@uncounted
def by_numbers(form, ends, a, b, c, by):
    """Slopes by an epoch's numbers, and by ends, from those by λ, μ and ψ."""
    if form == BY_RATES:
        return by[0], by[1], by[2], 0.0
    left = 1.0 / (1.0 - (1.0 - ends) * c)
    by_ended = by[1] * (1.0 - ends * c * left) + by[2] * c * left
    ended = b if form == OF_EPIDEMIC else a * b / (1.0 - b)
    by_c = (by[2] - ends * by[1]) * ended * left * left
    by_ends = -c * c * ended * left * left * (by[2] - ends * by[1]) - by[1] * c * ended * left
    if form == OF_EPIDEMIC:
        return by[0] * b, by[0] * a + by_ended, by_c, by_ends
    by_a, by_b = 1.0 / (1.0 - b), a / ((1.0 - b) * (1.0 - b))
    by_b_ended = by[0] * by_b + by_ended * (a / (1.0 - b) + b * by_b)
    return by[0] * by_a + by_ended * b * by_a, by_b_ended, by_c, by_ends


@uncounted
def add_slopes(x, settings, i, by, by_number):
    """Those by the numbers of epoch i, from those by its λ, μ and ψ."""
    k, (a, b, c) = int(settings[EPOCHS]), numbers_at(x, settings, i)
    by_a, by_b, by_c, by_ends = by_numbers(settings[FORM], ending(x, settings), a, b, c, by)
    by_number[int(settings[FIRST + k + i])] += by_a
    by_number[int(settings[FIRST + 2 * k + i])] += by_b
    by_number[int(settings[FIRST + 3 * k + i])] += by_c
    if settings[ENDS] == FREE:
        by_number[x.shape[0] - 2] += by_ends


@uncounted
def rates_at(x, settings, i):
    """λ, μ and ψ of epoch i."""
    a, b, c = numbers_at(x, settings, i)
    return rates_by(settings[FORM], ending(x, settings), a, b, c)


@uncounted
def first_rates(x, settings):
    """The Rates of the youngest epoch."""
    birth, death, sampling = rates_at(x, settings, 0)
    return rates_of(birth, death, sampling, settings[RHO], 0.0)


@uncounted
def next_rates(x, settings, i, r):
    """Those of epoch i by those of the one before, which say what is seen of a lineage at its young end."""
    birth, death, sampling = rates_at(x, settings, i)
    since = settings[FIRST + i]
    return rates_of(birth, death, sampling, 1.0 - math.exp(unseen(r, since, False).value), since)


@uncounted
def rates_in(x, settings, i):
    """Those of epoch i."""
    r = first_rates(x, settings)
    for j in range(1, i + 1):
        r = next_rates(x, settings, j, r)
    return r


@uncounted
def epoch_at(t, settings):
    """Which one a time is in."""
    i = 0
    while i + 1 < int(settings[EPOCHS]) and t > settings[FIRST + i + 1]:
        i += 1
    return i


@uncounted
def ramp(x, settings, t, i):
    """Where a joining at t, in epoch i, is next to a shift: the slope that log λ would have if it went over
    to the other epoch's in a straight line there, 0 elsewhere. The density jumps instead, of which no slope
    knows; trajectories that are told of a jump in time turn back at it or pay for it, and are accepted by the
    exact density whatever they were told."""
    for j in (i, i + 1):
        if 0 < j < int(settings[EPOCHS]):
            shift = settings[FIRST + j]
            half = RAMP * (shift - settings[FIRST + j - 1])
            if abs(t - shift) < half:
                young, old = rates_at(x, settings, j - 1)[0], rates_at(x, settings, j)[0]
                return math.log(old / young) / (2.0 * half)
    return 0.0


@uncounted
def of_beginning(r, t, rooted):
    """Log density of the lineage that all come of, t its beginning; or, rooted, of what is known of the root
    at t besides its being a joining: that both of its branches were seen, given its age."""
    own = reaching(r, t)
    if rooted:
        own = added(own, unseen(r, t, True), -2.0)
        own = added(own, Part(math.log(r.birth), 0.0, 0.0, 0.0, 1.0 / r.birth, 0.0, 0.0), -1.0)
    return own


@uncounted
def add_epochs(g, x, settings, by_height, by_number):
    """The density of plain_density, compiled, and its slopes: from the oldest epoch to the youngest, each of
    which is told the slope by what is seen at its old end."""
    root, last, value = g.order.shape[0] - 1, 0, 0.0
    rooted, ends, top, by_ends = settings[ROOTED] == 1.0, ending(x, settings), g.order[root], 0.0
    if rooted and begins_with_ancestor(g):
        return -math.inf
    gap = 0.0 if rooted else x[x.shape[0] - 1]
    oldest = epoch_at(g.heights[top] + gap, settings)
    place, lineages, by_seen = root, 1, 0.0
    for i in range(oldest, -1, -1):
        r = rates_in(x, settings, i)
        if i == oldest:
            part = of_beginning(r, g.heights[top] + gap, rooted)
            if settings[CONDITION] == OF_SAMPLING:
                part = added(part, unseen(r, g.heights[top] + gap, True), -1.0)
            by_height[top] += part.by_time
            if not rooted:
                by_number[x.shape[0] - 1] += part.by_time
        else:
            part = added(constant(0.0), reaching(r, settings[FIRST + i + 1]), float(lineages))
        while place >= 0 and (i == 0 or g.heights[g.order[place]] > settings[FIRST + i]):
            node = g.order[place]
            if of_end(g, r, node):
                last += 1
            else:
                own, slope = of_node(g, r, ends, node, by_height)
                part, by_ends = added(part, own, 1.0), by_ends + slope
                if node >= g.n_tips:
                    by_height[node] += ramp(x, settings, g.heights[node], i)
            lineages += 1 if node >= g.n_tips else -1
            place -= 1
        value += part.value
        if i < oldest:
            gone = unseen(r, settings[FIRST + i + 1], False)
            part = added(part, gone, -by_seen * math.exp(gone.value))
        by_birth, by_death, by_sampling, by_seen = by_rates(r, part)
        add_slopes(x, settings, i, (by_birth, by_death, by_sampling), by_number)
    if settings[ENDS] == FREE:
        by_number[x.shape[0] - 2] += by_ends
    if settings[CONDITION] == OF_SURVIVAL:
        lost, by_time = add_reciprocal_survival(x, settings, g.heights[top] + gap, by_number)
        value += lost
        by_height[top] += by_time
        by_number[x.shape[0] - 1] += by_time
    return value + (last * math.log(settings[RHO]) if last > 0 else 0.0)


@uncounted
def through(birth, ended, u, v):
    """What v, the reciprocal of the probability that a lineage leaves some of the living that were sampled,
    becomes after a time u: dv/dt = λ - (λ-μ) v (Kendall 1948, Ann. Math. Stat. 19:1). And its slopes by λ, μ
    and v."""
    r = birth - ended
    kept = math.exp(-r * u)
    if abs(r * u) < 1e-5:
        gone, by_r = u * (1.0 - 0.5 * r * u), u * u * (r * u / 3.0 - 0.5)
    else:
        gone = -math.expm1(-r * u) / r
        by_r = (u * kept - gone) / r
    of_r = birth * by_r - u * kept * v
    return kept * v + birth * gone, gone + of_r, -of_r, kept


@uncounted
def add_reciprocal_survival(x, settings, t, by_number):
    """Minus the log probability that a lineage at t leaves some of the living that were sampled, its slope by
    t, and those by numbers added. Where samples end lineages, they end them here too."""
    ends, oldest = ending(x, settings), epoch_at(t, settings)
    factor, value, by_time = 1.0, 0.0, 0.0
    for i in range(oldest, -1, -1):
        v = 1.0 / settings[RHO]
        for j in range(i + 1):
            birth, death, sampling = rates_at(x, settings, j)
            ended = death + ends * sampling
            until = t if j == oldest else settings[FIRST + j + 1]
            v, by_birth, by_ended, by_v = through(birth, ended, until - settings[FIRST + j], v)
        if i == oldest:
            value, by_time, factor = math.log(v), (birth - (birth - ended) * v) / v, 1.0 / v
        by = factor * by_birth, factor * by_ended, factor * ends * by_ended
        add_slopes(x, settings, i, by, by_number)
        if settings[ENDS] == FREE:
            by_number[x.shape[0] - 2] += factor * by_ended * rates_at(x, settings, i)[2]
        factor *= by_v
    return value, by_time


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    r, crossed = first_rates(x, settings), 0.0
    for i in range(1, epoch_at(t, settings) + 1):
        crossed += reaching(r, settings[FIRST + i]).value
        r = next_rates(x, settings, i, r)
    out[0] = crossed + joined(r, t).value
    out[1] = 0.0
    return 0.0


# The specification, in NumPy.


def plain_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Of a labelled tree with dated tips: with G(t) the product of 4/q from the present to t over the epochs
    between, and λ, ψ and p₀ those of the epoch of their time,

    log p = log B + Σ_joinings log 2λ G(t) + Σ_samples log ψ + Σ_ancestors log (1-r) + Σ_others [log (r +
    (1-r) p₀(t)) - log G(t)] + n₀ log ρ,

    r the probability that a sample ends its lineage; n₀ tips at height 0 where ρ > 0. B = G(origin), the
    origin x[-1] above the root, over 1 - p₀(origin) given that something was sampled (CONDITION), or over
    what that is without samples before the end; or, given the root's age t, G(t) / [λ (1 - p₀(t))²], and
    nothing where the root is a sample."""
    k, rooted = int(settings[EPOCHS]), bool(settings[ROOTED])
    r_ends = float(x[-2]) if settings[ENDS] == FREE else float(settings[ENDS])
    begins, places = settings[FIRST : FIRST + k], settings[FIRST + k :].reshape(3, k).astype(int)
    if rooted and begins_with_ancestor(g):
        return -math.inf
    rates, seen, crossed = [], float(settings[RHO]), [0.0]
    for i in range(k):
        numbers = (float(x[place]) for place in places[:, i])
        rates.append(rates_of(*rates_by(settings[FORM], r_ends, *numbers), seen, begins[i]))
        if i + 1 < k:
            seen = 1.0 - float(plain_unseen(rates[i], begins[i + 1]))
            crossed.append(crossed[i] + LOG_4 - plain_log_q(rates[i], begins[i + 1]))

    def over(t: np.ndarray, term: Callable[[Any, np.ndarray, int], np.ndarray]) -> float:
        """Σ of a term of (rates, times, epoch)."""
        epoch = np.maximum(np.searchsorted(begins, t) - 1, 0)
        return float(sum(term(rates[i], t[epoch == i], i).sum() for i in range(k)))

    def log_g(r: Any, t: np.ndarray, i: int) -> np.ndarray:
        return crossed[i] + LOG_4 - plain_log_q(r, t)

    root = g.heights[g.order[-1:]]
    joinings, dated, ends = plain_events(g, float(settings[RHO]))
    total = over(root if rooted else root + x[-1], log_g)
    if rooted:
        total -= over(root, lambda r, t, i: np.log(r.birth) + 2 * np.log(1 - plain_unseen(r, t)))
    if settings[CONDITION] == OF_SAMPLING:
        total -= over(root + x[-1], lambda r, t, i: np.log(1 - plain_unseen(r, t)))
    elif settings[CONDITION] == OF_SURVIVAL:
        total -= math.log(plain_survival(rates, begins, float(root[0] + x[-1]), settings[RHO], r_ends))
    total += over(joinings, lambda r, t, i: np.log(2 * r.birth) + log_g(r, t, i))
    total += over(dated, lambda r, t, i: np.log(np.full(len(t), r.sampling))) - over(ends, log_g)
    total += over(ends, lambda r, t, i: np.log(r_ends + (1 - r_ends) * plain_unseen(r, t)))
    if len(ends) < len(dated):
        total += (len(dated) - len(ends)) * (math.log(1 - r_ends) if r_ends < 1 else -math.inf)
    present = g.n_tips - len(dated)
    return total + (present * math.log(settings[RHO]) if present else 0.0)


def plain_survival(rates: Sequence[Any], begins: np.ndarray, t: float, rho: float, ends: float) -> float:
    """The probability that a lineage at t leaves some of the living that were sampled: with w that at the
    young end of an epoch, w (λ-μ) / [λw + (λ(1-w) - μ) exp(-(λ-μ)u)] after a time u (Stadler 2010)."""
    w = float(rho)
    for i, r in enumerate(rates):
        until = min(t, begins[i + 1]) if i + 1 < len(begins) else t
        if until <= begins[i]:
            break
        birth, ended = r.birth, r.death + ends * r.sampling
        net, u = birth - ended, until - begins[i]
        if net == 0.0:
            w = w / (1.0 + birth * w * u)
        else:
            w = w * net / (birth * w + (birth * (1.0 - w) - ended) * math.exp(-net * u))
    return w

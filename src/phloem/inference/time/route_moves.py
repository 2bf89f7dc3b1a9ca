"""Moves of the set of routes of a trait, numbers that are 0 or 1, and of the rates of those that there are
and of the others. Among all numbers the trait's clock comes first, then rates and set, as many of each.

What a route does is its rate times the clock over the sum of the rates there are (density/traits.py). Moves
that are `alone` hold that of all other routes: the clock changes with the sum.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, multiplied, uniform
from phloem.inference.mcmc.move_table import Move


@uncounted
def _flipped(p):
    i = below(p.rng, p.numbers.shape[0])
    p.numbers[i] = 1.0 - p.numbers[i]


def flip(p):
    """One route, uniformly, comes or goes. Symmetric: log Hastings ratio 0."""
    _flipped(p)
    return 0.0


@uncounted
def _one_of(p, routes, value):
    """A place of a value, uniformly; -1 where it is nowhere."""
    n, found = 0, -1
    for i in range(routes.shape[0]):
        if routes[i] == value:
            n += 1
            if below(p.rng, n) == 0:
                found = i
    return found


def flip_alone(p):
    """The same, all other routes as fast as before. Log Hastings ratio log(μ'/μ) of the clock μ."""
    n = p.numbers.shape[0]
    rates = p.values[p.first - n : p.first]
    before = _total(rates, p.numbers)
    _flipped(p)
    return _clock_for(p, p.first - n - 1, before, _total(rates, p.numbers))


@uncounted
def _total(rates, routes):
    total = 0.0
    for i in range(rates.shape[0]):
        total += rates[i] * routes[i]
    return total


@uncounted
def _clock_for(p, clock, before, after):
    """Lets the clock change as the sum of rates does. The log Hastings ratio of that."""
    if not (before > 0.0 and after > 0.0):
        return -math.inf
    p.values[clock] *= after / before
    return math.log(after / before)


def swap(p):
    """One of the routes there are goes and one of the others comes, with the rate of the one that goes, which
    takes that of the other. Symmetric: log Hastings ratio 0."""
    gone, comes = _one_of(p, p.numbers, 1.0), _one_of(p, p.numbers, 0.0)
    if gone < 0 or comes < 0:
        return -math.inf
    n = p.numbers.shape[0]
    rates = p.values[p.first - n : p.first]
    p.numbers[gone], p.numbers[comes] = 0.0, 1.0
    rates[gone], rates[comes] = rates[comes], rates[gone]
    return 0.0


@uncounted
def _multiplied(p, value):
    """x' = x exp(tuning (U - ½)), reflected, for the rate of one route that is there (1) or not (0). Log
    Hastings ratio log(x'/x)."""
    n = p.numbers.shape[0]
    i = _one_of(p, p.values[p.first + n : p.first + 2 * n], value)
    if i < 0:
        return -math.inf
    old = p.numbers[i]
    p.numbers[i] = multiplied(old, p.tuning * (uniform(p.rng) - 0.5), p.low, p.high)
    return math.log(p.numbers[i] / old)


def of_routes(p):
    """The rate of one of the routes there are."""
    return _multiplied(p, 1.0)


def of_others(p):
    """Of one there is not: what it has when it comes."""
    return _multiplied(p, 0.0)


def of_routes_alone(p):
    """The rate of one of the routes there are, all others as fast as before. Log Hastings ratio log(x'/x) +
    log(μ'/μ)."""
    n = p.numbers.shape[0]
    routes = p.values[p.first + n : p.first + 2 * n]
    before = _total(p.numbers, routes)
    ratio = _multiplied(p, 1.0)
    return ratio + _clock_for(p, p.first - 1, before, _total(p.numbers, routes))


FLIP, SWAP = Move("flip", ("choice",), flip, 1), Move("swap", ("choice",), swap, 1)
FLIP_ALONE = Move("flip_alone", ("choice",), flip_alone, 1)
RATE, RATE_ALONE, RATE_OF_OTHERS = (
    Move(move.__name__, ("positive",), move, 1, 0.811, 0.25, (1e-3, 20.0))
    for move in (of_routes, of_routes_alone, of_others)
)
OF_SET, OF_RATES = (FLIP, FLIP_ALONE, SWAP), (RATE, RATE_ALONE, RATE_OF_OTHERS)
ALONE = FLIP_ALONE, RATE_ALONE
"""Those that change the trait's clock."""

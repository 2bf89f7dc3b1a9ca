"""Metropolis-coupled chains of one run, many generations in one call."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled, merged
from phloem.inference.mcmc.compiled.evaluate import evaluate, take_slots
from phloem.inference.mcmc.compiled.prior import log_prior
from phloem.inference.mcmc.compiled.propose import begin, propose
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.records import SIMPLEX_DIRICHLET

TUNING_BATCH = 100


@compiled
def advance(data, state, work, n_generations, tune, refresh):
    """n_generations of every chain, each followed by one attempt to swap temperatures.

    tune: adapt the moves, which only burn-in may (a chain that adapts is not a Markov chain). refresh: first
    fill the caches of every chain, its log-likelihood and log prior, from its accepted state (a start, or a
    checkpoint).
    """
    for generation in range(-refresh, n_generations):
        for h in range(state.slot.shape[0]):
            step(data, state, work, h, tune, generation < 0)
        if generation >= 0:
            if state.slot.shape[0] > 1:
                swap(
                    data.heat,
                    state.log_likelihood,
                    state.log_prior,
                    state.rank,
                    state.swap_rng,
                    state.swaps_tried,
                    state.swaps_accepted,
                )
            state.generation[0] += 1


@merged
def step(data, state, work, h, tune, refresh):
    """One Metropolis–Hastings step of chain h at its temperature: posterior**heat (Altekar et al. 2004).
    refresh: propose the present state itself, trusting no cache, and take it."""
    begin(state, h)
    rank, move, ratio = state.rank[h], 0, math.inf
    if not refresh:
        u = uniform(state.rng[h])
        while data.move_cumulative[move] < u:
            move += 1
        ratio = propose(data, state, work, h, move)
        if ratio > -math.inf:
            ratio *= data.hastings_factor[move]
    taken = False
    if ratio > -math.inf:
        prior = log_prior(data, state, h)
        likelihood = evaluate(data, state, work, h, refresh) if data.use_data else 0.0
        change = likelihood - state.log_likelihood[h] + prior - state.log_prior[h]
        ratio += data.heat[rank] * change
        if refresh or ratio >= 0.0 or math.log(uniform(state.rng[h])) < ratio:
            taken = True
            state.log_likelihood[h], state.log_prior[h] = likelihood, prior
            state.slot[h] = 1 - state.slot[h]
            take_slots(state, work, h)
    if not refresh:
        state.tried[rank, move] += 1
        state.accepted[rank, move] += taken
        if tune and data.move_target[move] > 0.0:
            _tune(data, state, rank, move, taken)


@merged
def _tune(data, state, rank, move, taken):
    """Every TUNING_BATCH attempts, widen or narrow by exp(± min(0.5, 1/√batch)) towards the target
    acceptance (Roberts and Rosenthal 2009, J. Comput. Graph. Stat. 18:349). A Dirichlet's concentration is
    a width's inverse."""
    state.batch_tried[rank, move] += 1
    state.batch_accepted[rank, move] += taken
    if state.batch_tried[rank, move] == TUNING_BATCH:
        batch = (state.tried[rank, move] - 1) // TUNING_BATCH + 1
        change = min(0.5, 1.0 / math.sqrt(float(batch)))
        wider = state.batch_accepted[rank, move] > data.move_target[move] * TUNING_BATCH
        if wider == (data.move_kind[move] == SIMPLEX_DIRICHLET):
            change = -change
        value = state.tuning[rank, move] * math.exp(change)
        state.tuning[rank, move] = min(max(value, data.move_bounds[move, 0]), data.move_bounds[move, 1])
        state.batch_tried[rank, move] = 0
        state.batch_accepted[rank, move] = 0


@compiled
def swap(heat, log_likelihood, log_prior, rank, rng, tried, accepted):
    """Two chains, uniformly, exchange temperatures with probability min(1, exp[(β_i - β_j)(log p_j - log
    p_i)]), p the posterior (Geyer 1991; Altekar, Dwarkadas, Huelsenbeck and Ronquist 2004, Bioinformatics
    20:407)."""
    n = rank.shape[0]
    i = below(rng, n)
    j = (i + 1 + below(rng, n - 1)) % n
    a, b = rank[i], rank[j]
    difference = log_likelihood[j] + log_prior[j] - log_likelihood[i] - log_prior[i]
    low, high = min(a, b), max(a, b)
    tried[low, high] += 1
    if math.log(uniform(rng)) < (heat[a] - heat[b]) * difference:
        accepted[low, high] += 1
        rank[i], rank[j] = b, a

"""Metropolis-coupled chains of one run, many generations in one call, by one thread or several.

A chain waits for another one only where they are to swap temperatures, so threads take whichever chain can go
on. Every chain has a stream of random numbers of its own, and every swap its numbers drawn beforehand: what
happens does not depend on which thread does it, nor on how many there are. A large part of the data is
several cells, ranges of its columns on a grid that depends on the data alone; a thread without a chain of its
own takes cells of another one's proposal, and their log-likelihoods are added in order. Of cells that another
process has, the loop asks its caller.
"""

from __future__ import annotations

import math

from phloem.density.terms.compiled.dispatch import log_prior
from phloem.hardware.numba_compile import uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.jumps import note_proposal
from phloem.inference.mcmc.compiled.model import leads, model_differs, set_model
from phloem.inference.mcmc.compiled.propose import begin, mark_moved, propose
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.undefined import is_defined, note
from phloem.inference.mcmc.compiled.working import chain_working
from phloem.inference.mcmc.records import COMPILED, KIND, LIKELIHOOD, OF_TOPOLOGY, PRIOR, WORKING
from phloem.pruning.cpu.cell import settle_cell
from phloem.pruning.cpu.cell_loops import propose_cell
from phloem.pruning.cpu.cell_records import ProposedTree
from phloem.pruning.cpu.schedule import exchange, fetch_add, give_way, read_shared

TUNING_BATCH = 100
FINISHED = -1
SAMPLE, TUNE, REFRESH = range(3)  # tasks
_PATIENCE = 200


@uncounted
def draw_swaps(rng, n_chains, pair, log_uniform):
    """Of every generation: two chains, uniformly, and the logarithm that decides whether they swap."""
    for g in range(len(pair)):
        i = below(rng, n_chains)
        pair[g, 0], pair[g, 1] = i, (i + 1 + below(rng, n_chains - 1)) % n_chains
        log_uniform[g] = math.log(uniform(rng))


@uncounted
def advance(data, state, shared, scratch, n_generations, task, resume, first):
    """Take chains on, as one thread of the run, until each has done n_generations since it began.

    task: SAMPLE; TUNE: adapt the moves, which only burn-in may (a chain that adapts is not a Markov chain);
    REFRESH: one generation in which every chain takes its present state, trusting no cache, at a start or
    from a checkpoint. resume: a chain whose models the caller has just written, or -1. first: the chain to
    look at first. Returns FINISHED, or a chain that waits, locked, for the caller to write the models of its
    proposal, or (shared.asks) the values of cells that are not here: call again with resume.
    """
    return _advance(
        by_reference(data), by_reference(state), by_reference(shared), by_reference(scratch), n_generations,
        task, resume, first,
    )  # fmt: skip


@uncounted
def _advance(data, state, shared, scratch, n_generations, task, resume, first):
    n_chains, idle, i, left = len(state.slot), 0, 0, True
    while True:
        h = resume
        if h < 0:
            if i == n_chains:
                if not left:
                    return FINISHED
                if read_shared(shared.stop, 0) != 0:
                    return FINISHED
                i, left = 0, False
                idle += 1
                if idle > _PATIENCE:
                    give_way()
            h = (first + i) % n_chains
            i += 1
            if read_shared(shared.swapped, h) >= n_generations:
                continue
            left = True
            if exchange(shared.lock, h, 1) != 0:
                if read_shared(shared.next_cell, h) < data.numbers.shape[1]:  # another thread has it: help
                    take_cells(data, state, shared, scratch, h)
                continue
        resume = -1
        if shared.done[h] == shared.swapped[h] and shared.done[h] < n_generations:
            if _step(data, state, shared, scratch, h, task):
                return h
            shared.done[h] += 1
            idle = 0
        if shared.done[h] > shared.swapped[h]:
            _finish_swap(state, shared, h, data, task)
        exchange(shared.lock, h, 0)


@uncounted
def _finish_swap(state, shared, h, data, task):
    """Swap the temperatures of chain h, which this thread has, where its generation asks for that and the
    other chain has come as far; without a partner there is nothing to wait for."""
    g, i, j = shared.swapped[h], -1, -1
    if len(state.slot) > 1 and task != REFRESH:
        i, j = shared.pair[g, 0], shared.pair[g, 1]
    if h != i and h != j:
        shared.swapped[h] = g + 1
    else:
        other = j if h == i else i
        if exchange(shared.lock, other, 1) == 0:
            if shared.done[other] == g + 1 and shared.swapped[other] == g:
                swap_chains(
                    data.heat, (state.log_prior, state.log_likelihood, state.log_working), state.rank,
                    state.swaps_tried, state.swaps_accepted, i, j, shared.log_uniform[g],
                )  # fmt: skip
                shared.swapped[other] = g + 1
                shared.swapped[h] = g + 1
            exchange(shared.lock, other, 0)


@uncounted
def swap_chains(heat, logs, rank, tried, accepted, i, j, log_uniform):
    """Exchange temperatures with probability min(1, exp Σ (β_i - β_j)(log p_j - log p_i)), p what heat has
    powers of (Geyer 1991; Altekar, Dwarkadas, Huelsenbeck and Ronquist 2004, Bioinformatics 20:407). logs: of
    log prior, log-likelihood, and whatever else, those of all chains, (H,) each."""
    a, b = rank[i], rank[j]
    gain = 0.0
    for k in range(len(logs)):
        gain += (heat[a, k] - heat[b, k]) * (logs[k][j] - logs[k][i])
    low, high = min(a, b), max(a, b)
    tried[low, high] += 1
    if log_uniform < gain:
        accepted[low, high] += 1
        rank[i], rank[j] = b, a


@uncounted
def _step(data, state, shared, scratch, h, task):
    """One Metropolis–Hastings step of chain h at its temperature: posterior**heat (Altekar et al. 2004), or
    at its powers of prior and likelihood.
    Returns True where the caller must first write models, make a proposal that asks for gradients, or find
    out what other processes' cells come to; the proposal is then kept and taken up again."""
    rank, refresh = state.rank[h], task == REFRESH
    fresh = shared.move[h] < 0
    if fresh:
        begin(state, h)
        move, ratio = 0, 0.0
        if not refresh:
            u = uniform(state.rng[h])
            while state.cumulative[move] < u:
                move += 1
            if data.moves.gradients[move] > 0:
                shared.move[h] = move
                return True
            ratio = propose(data, state, shared, scratch, h, move)
        shared.move[h], shared.ratio[h] = move, ratio
    move, ratio = shared.move[h], shared.ratio[h]
    taken, waits, likelihood, prior, working = False, False, 0.0, -math.inf, 0.0
    if ratio > -math.inf:
        prior = chain_prior(data, state, h, 1 - state.slot[h])
    if prior > -math.inf:
        working = chain_working(data, state, h, 1 - state.slot[h], scratch.keys[0])
    if refresh:
        state.log_prior[h], state.log_working[h] = prior, working
    if prior > -math.inf and data.use_data:
        if shared.asks[h] == 0:
            waits = fresh and _models_wait(data, state, h, scratch, refresh)
            if not waits:
                _evaluate(data, state, shared, scratch, h, move, refresh)
                waits = data.numbers.shape[1] < shared.cell_values.shape[1]
                shared.asks[h] = waits
        else:
            shared.asks[h] = 0
        for cell in range(0 if waits else shared.cell_values.shape[1]):
            likelihood += shared.cell_values[h, cell]
    if not waits:
        defined = refresh or judge(state, h, move, ratio, prior, likelihood)
        if prior > -math.inf:
            ratio += data.heat[rank, PRIOR] * (prior - state.log_prior[h])
            ratio += data.heat[rank, LIKELIHOOD] * (likelihood - state.log_likelihood[h])
            if data.heat[rank, WORKING] > 0.0:
                ratio += data.heat[rank, WORKING] * (working - state.log_working[h])
            taken = refresh or ratio >= 0.0 or math.log(uniform(state.rng[h])) < ratio
            taken = taken and defined
            _settle(data, state, shared, h, taken, likelihood, prior, refresh)
            if taken:
                state.log_working[h] = working
        shared.move[h] = -1
        if not refresh:
            state.tried[rank, move] += 1
            state.accepted[rank, move] += taken
            if task == TUNE and rank == 0:
                note_proposal(data, state, shared, scratch, h, move, prior > -math.inf, taken)
            if task == TUNE and data.moves.target[move] > 0.0:
                tune_move(data, state, rank, move, taken)
    return waits


@uncounted
def judge(state, h, move, ratio, prior, likelihood):
    """Whether chain h's proposal can be judged; where not, it is counted. ratio: log Hastings ratio; where
    that or the prior is none, what would come after it is not evaluated: -inf, and 0."""
    defined = is_defined(ratio, prior, likelihood)
    if not defined:
        state.undefined[state.rank[h], move] += 1
        note(state.undefined_last[h], move, ratio, prior, likelihood, state.values[h, 1 - state.slot[h]])
    return defined


@uncounted
def chain_prior(data, state, h, slot):
    """Log prior density of a slot of chain h: of its numbers, and of every set of branch lengths, which it
    gathers with those of tips' branches first. Uniform topologies add a constant, which is left out."""
    total = log_prior(data.number_priors, state.values[h, slot])
    root = 2 * data.n_tips - 2
    left, right = state.left[h, slot], state.right[h, slot]
    beside = left[root] if right[root] == 0 else right[root]
    for g in range(state.lengths.shape[2]):
        lengths = state.lengths[h, slot, g]
        # the node beside tip 0 has no branch of its own: the last one stands in for it, and the root has none
        last = lengths[root - 1]
        lengths[beside] = last if beside != root - 1 else 0.0
        total += log_prior(data.length_priors, lengths[: root - 1])
        lengths[beside] = 0.0
        if beside != root - 1:
            lengths[root - 1] = last
    return total


@uncounted
def _models_wait(data, state, h, scratch, refresh):
    """Write the models of the proposal that the compiled recipes cover; True if there are others. refresh:
    write them whatever changed, so that numbers do not depend, in their last bits, on how they were made."""
    waits = False
    old, new = state.values[h, state.slot[h]], state.values[h, 1 - state.slot[h]]
    for cell in range(data.numbers.shape[1]):
        part = data.part_of[cell]
        if not leads(data.part_of, cell):
            continue
        compiled = data.recipes.rows[part, KIND] == COMPILED
        differs = model_differs(data.recipes, part, old, new)
        if compiled and (differs or refresh):
            set_model(data.recipes, part, new, data.numbers[h, cell], data.addresses[h, cell], scratch)
        waits = waits or (differs and not compiled)
    return waits


@uncounted
def _evaluate(data, state, shared, scratch, h, move, everything):
    """Log-likelihoods of the proposal of chain h, all its cells here, some of which idle threads may take;
    everything: trust no cache."""
    old, new, n_cells = state.slot[h], 1 - state.slot[h], data.numbers.shape[1]
    left, right, order = state.left[h, new], state.right[h, new], state.order[h, new]
    reordered = everything or data.moves.on[move] == OF_TOPOLOGY
    if reordered:
        mark_moved(
            data.n_tips, (state.left[h, old], state.right[h, old]), left, right, order, shared.keys[h],
            shared.new_keys[h], shared.moved[h],
        )  # fmt: skip
    shared.reordered[h], shared.everything[h], shared.cells_done[h] = reordered, everything, 0
    exchange(shared.next_cell, h, 0)
    take_cells(data, state, shared, scratch, h)
    patience = 10 * _PATIENCE
    while read_shared(shared.cells_done, h) < n_cells:
        patience -= 1
        if patience < 0:
            give_way()


@uncounted
def take_cells(data, state, shared, scratch, h):
    """Evaluate cells of chain h's proposal that no thread has taken. A thread that comes late finds that
    there are none, or takes one of the next proposal, which is complete where a cell of it can be had."""
    while True:
        cell = fetch_add(shared.next_cell, h, 1)
        if cell >= data.numbers.shape[1]:
            break
        old, new, everything = state.slot[h], 1 - state.slot[h], shared.everything[h] != 0
        tree = ProposedTree(
            state.left[h, new], state.right[h, new], state.parent[h, new], state.order[h, new],
            shared.reordered[h], shared.moved[h], state.lengths[h, new], state.lengths[h, old],
        )  # fmt: skip
        part = data.part_of[cell]
        differs = model_differs(data.recipes, part, state.values[h, old], state.values[h, new])
        differs = differs or (everything and data.recipes.rows[part, KIND] == COMPILED)
        shared.cell_values[h, data.first_cell + cell] = propose_cell(
            data.numbers[h, cell], data.addresses[h, cell], tree, differs, everything, scratch.cell
        )
        fetch_add(shared.cells_done, h, 1)


@uncounted
def _settle(data, state, shared, h, taken, likelihood, prior, refresh):
    if taken:
        state.log_likelihood[h], state.log_prior[h] = likelihood, prior
        if data.use_data:
            for cell in range(data.numbers.shape[1]):
                settle_cell(data.numbers[h, cell], data.addresses[h, cell])
        if refresh or data.moves.on[shared.move[h]] == OF_TOPOLOGY:
            for x in range(data.n_tips, shared.keys.shape[1]):
                shared.keys[h, x] = shared.new_keys[h, x]
        state.slot[h] = 1 - state.slot[h]


@uncounted
def tune_move(data, state, rank, move, taken):
    """Every TUNING_BATCH attempts, widen or narrow by exp(± min(0.5, 1/√batch)) towards the target
    acceptance (Roberts and Rosenthal 2009, J. Comput. Graph. Stat. 18:349). A Dirichlet's concentration is
    a width's inverse."""
    state.batch_tried[rank, move] += 1
    state.batch_accepted[rank, move] += taken
    if state.batch_tried[rank, move] == TUNING_BATCH:
        batch = (state.tried[rank, move] - 1) // TUNING_BATCH + 1
        change = min(0.5, 1.0 / math.sqrt(float(batch)))
        wider = state.batch_accepted[rank, move] > data.moves.target[move] * TUNING_BATCH
        if wider == (data.moves.narrows[move] != 0):
            change = -change
        value = state.tuning[rank, move] * math.exp(change)
        state.tuning[rank, move] = min(max(value, data.moves.bounds[move, 0]), data.moves.bounds[move, 1])
        state.batch_tried[rank, move] = 0
        state.batch_accepted[rank, move] = 0

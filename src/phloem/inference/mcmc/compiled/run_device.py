"""Metropolis-coupled chains whose likelihood lies on a device: all chains propose, one launch evaluates them,
all are settled, two may swap. Moves, priors, acceptance and random numbers are those of run.py.

Threads may help with what is done chain by chain. Each has chains of its own, for which it looks first; the
caller takes what nobody has begun, so that it never waits for a thread that does not come. A chain's numbers
do not depend on who works on it.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.model import model_differs, set_model
from phloem.inference.mcmc.compiled.propose import begin, propose
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.run import TUNE, chain_prior, swap_chains, tune_move
from phloem.inference.mcmc.records import COMPILED, KIND, OF_TOPOLOGY
from phloem.pruning.cpu.cell_records import INVARIANT, SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.chain_evaluation import await_values, launch, prepare
from phloem.pruning.cpu.chain_state import MODEL, N_BRANCHES, N_EDITS
from phloem.pruning.cpu.chain_steps import lay_out, write_part
from phloem.pruning.cpu.chain_versions import READY, settle_version
from phloem.pruning.cpu.schedule import exchange, fetch_add, give_way, raise_to, read_shared
from phloem.pruning.cpu.storage import float64_at, int64_at

FINISHED = -1
PROPOSE, EVALUATE, SETTLE = range(3)  # where advance_device goes on
MODELS_WAIT = -2

# Words of ChainShared.crew, each in a cache line of its own, and then one for every chain: the last round in
# which somebody took it. A round is one kind of work on every chain, 8 · number + kind.
ROUND, DONE, LEAVE, TASK, THREADS, FIRST_CLAIM = range(0, 48, 8)
PROPOSING, PREPARING, WRITING, SETTLING = range(4)
_PATIENCE = 4_000  # looks, some microseconds
_IDLE = 20_000  # times that a helper offers its core to others, some milliseconds, before it goes


@uncounted
def advance_device(data, state, shared, scratch, device, n_generations, resume):
    """Take all chains on until they have done n_generations since shared.done was 0.

    device: (chains, change, record) of pruning.gpu.forest.GpuForest. resume: PROPOSE; EVALUATE, after the
    models of the chains whose shared.waits is 1 were set; SETTLE, after the forest evaluated what it could
    not from here. Returns FINISHED, MODELS_WAIT, or the forest's status.
    """
    chains, _, record = device
    n_chains, phase = len(state.slot), resume
    while shared.done[0] < n_generations:
        if phase != SETTLE:
            _everyone(PROPOSING if phase == PROPOSE else PREPARING, data, state, shared, scratch, device)
            waiting, status, n_active = False, READY, 0
            for h in range(n_chains):
                waiting = waiting or (phase == PROPOSE and shared.waits[h] != 0)
                status = max(status, shared.status[h])
                n_active += record.active[h]
            if waiting:
                return MODELS_WAIT
            if status == READY and n_active > 0:
                status = lay_out(chains, record.active, record.words)
            if status == READY and n_active > 0:
                _everyone(WRITING, data, state, shared, scratch, device)
                status = launch(chains, record)
            if status == READY:
                status = await_values(chains.trees, record)
            if status != READY:
                return status
        _everyone(SETTLING, data, state, shared, scratch, device)
        g = shared.done[0]
        if n_chains > 1 and shared.pair[g, 0] >= 0:
            swap_chains(
                data.heat, state.log_likelihood, state.log_prior, state.rank, state.swaps_tried,
                state.swaps_accepted, shared.pair[g, 0], shared.pair[g, 1], shared.log_uniform[g],
            )  # fmt: skip
        shared.done[0] = g + 1
        phase = PROPOSE
    return FINISHED


@uncounted
def _everyone(kind, data, state, shared, scratch, device):
    """One kind of work on every chain: begin a round, do one's own part, and wait for the others'."""
    crew, n_chains = shared.crew, len(state.slot)
    now = (crew[ROUND] >> 3) * 8 + 8 + kind
    exchange(crew, DONE, 0)
    exchange(crew, ROUND, now)
    turns, last = 0, n_chains // crew[THREADS]
    while read_shared(crew, DONE) < n_chains:
        if turns == 0 or turns > _PATIENCE:
            work(data, state, shared, scratch, device, now, 0, last)
            last = n_chains
        turns += 1
        if turns > _PATIENCE:
            give_way()


@uncounted
def assist(data, state, shared, scratch, device, place):
    """Help advance_device, as the place[0]-th of place[1] threads, until told to leave, or nothing was to do
    for a while."""
    crew, n_chains, seen, turns = shared.crew, len(state.slot), 0, 0
    first, last = place[0] * n_chains // place[1], (place[0] + 1) * n_chains // place[1]
    while read_shared(crew, LEAVE) == 0 and turns < _PATIENCE + _IDLE:
        now = read_shared(crew, ROUND)
        turns += 1
        if now != seen:
            work(data, state, shared, scratch, device, now, first, last)
            seen, turns = now, 0
        elif turns > _PATIENCE:
            give_way()


@uncounted
def work(data, state, shared, scratch, device, now, first, last):
    """A round's work on those of the chains first … last - 1 that nobody has begun."""
    chains, change, record = device
    kind, task, n = now & 7, shared.crew[TASK], 0
    for h in range(first, last):
        if raise_to(shared.crew, FIRST_CLAIM + 8 * h, now) >= now:
            continue
        if kind == PROPOSING:
            propose_chain(data, state, shared, scratch, change, h)
            shared.status[h] = READY
        if kind == PREPARING or (kind == PROPOSING and shared.waits[h] == 0):
            shared.status[h] = prepare(chains, change, record.active, h)
        elif kind == WRITING and record.active[h]:
            write_part(chains, change, h, record.words)
        elif kind == SETTLING:
            value = chains.trees.value[1 - chains.trees.accepted[h], h]
            if chains.trees.pending[h] == 0:
                value = state.log_likelihood[h]
            settle_chain(data, state, shared, h, value, task)
            settle_version(chains, change, h, shared.taken[h])
        n += 1
    if n > 0:
        fetch_add(shared.crew, DONE, n)


@uncounted
def propose_chain(data, state, shared, scratch, change, h):
    """Make chain h's proposal and write it as a change for the device; shared.waits[h] = 1 where its model
    must be set by the caller."""
    begin(state, h)
    u, move = uniform(state.rng[h]), 0
    while data.moves.cumulative[move] < u:
        move += 1
    ratio = propose(data, state, shared, scratch, h, move)
    prior = -math.inf
    if ratio > -math.inf:
        prior = chain_prior(data, state, h, 1 - state.slot[h])
    shared.move[h], shared.ratio[h], shared.prior[h], shared.waits[h] = move, ratio, prior, 0
    if prior == -math.inf:
        return
    old, new = state.slot[h], 1 - state.slot[h]
    if data.moves.on[move] == OF_TOPOLOGY:
        _write_edits(data.n_tips, state.left[h], state.right[h], old, new, change, h)
    for x in range(state.lengths.shape[3] - 1):
        differs = False
        for g in range(state.lengths.shape[2]):
            differs = differs or state.lengths[h, old, g, x] != state.lengths[h, new, g, x]
        if differs:
            change.branches[h, change.counts[h, N_BRANCHES]] = x
            change.counts[h, N_BRANCHES] += 1
            for g in range(state.lengths.shape[2]):
                change.lengths[h, g, x] = state.lengths[h, new, g, x]
    if model_differs(data.recipes, 0, state.values[h, old], state.values[h, new]):
        if data.recipes.rows[0, KIND] == COMPILED:
            numbers, addresses = data.numbers[h, 0], data.addresses[h, 0]
            set_model(data.recipes, 0, state.values[h, new], numbers, addresses, scratch)
            write_model(numbers, addresses, shared.fields, change, h)
        else:
            shared.waits[h] = 1


@merged
def _write_edits(n_tips, left, right, old, new, change, h):
    """Nodes whose two children are others."""
    for x in range(n_tips, left.shape[1]):
        l, r, a, b = left[new, x], right[new, x], left[old, x], right[old, x]
        if (l == a and r == b) or (l == b and r == a):
            left[new, x], right[new, x] = a, b
            continue
        k = change.counts[h, N_EDITS]
        change.edits[h, k, 0], change.edits[h, k, 1], change.edits[h, k, 2] = x, l, r
        change.counts[h, N_EDITS] = k + 1


@uncounted
def write_model(numbers, addresses, fields, change, h):
    """The model in the slot of chain h's cell that is not in use, as the device wants it. fields: (F + 1,)
    first word of weights, process, invariant, invariant frequencies, frequencies, values, right, left and
    generator, and the padded number of states."""
    n = cell_numbers(numbers)
    slot = 1 - int64_at(addresses[SLOT], (2,))[0]
    model, words, w = cell_model(n, addresses, slot), change.numbers[h], fields[9]
    for c in range(n.categories):
        words[fields[0] + c] = model.weights[c]
        change.rates[h, c], change.length_set[h, c] = model.rates[c], model.length_class[c]
    whole = words.view(np.int64)
    for c in range(n.categories):
        whole[fields[1] + c] = model.process[c]
    words[fields[2]] = float64_at(addresses[INVARIANT], (2,))[slot]
    for i in range(n.states):
        words[fields[3] + i] = model.invariant_frequencies[i]
    for m in range(n.processes):
        for i in range(n.states):
            words[fields[4] + m * w + i] = model.root_frequencies[m, i]
            words[fields[5] + m * w + i] = model.values[m, i]
            for k in range(n.states):
                right = model.right[m, i, k] if n.padded == 4 else model.right[m, k, i]
                words[fields[6] + (m * w + i) * w + k] = right
                words[fields[7] + (m * w + i) * w + k] = model.left[m, i, k]
    change.counts[h, MODEL] = 1


@uncounted
def settle_chain(data, state, shared, h, likelihood, task):
    """Accept chain h's proposal or not, at its temperature; shared.taken[h] says which."""
    rank, move, ratio, prior = state.rank[h], shared.move[h], shared.ratio[h], shared.prior[h]
    taken = False
    if prior > -math.inf:
        change = likelihood - state.log_likelihood[h] + prior - state.log_prior[h]
        ratio += data.heat[rank] * change
        taken = ratio >= 0.0 or math.log(uniform(state.rng[h])) < ratio
        if taken:
            old, new = state.slot[h], 1 - state.slot[h]
            if model_differs(data.recipes, 0, state.values[h, old], state.values[h, new]):
                slot = int64_at(data.addresses[h, 0][SLOT], (2,))
                slot[0] = 1 - slot[0]
            state.log_likelihood[h], state.log_prior[h] = likelihood, prior
            state.slot[h] = new
    shared.taken[h], shared.move[h] = taken, -1
    state.tried[rank, move] += 1
    state.accepted[rank, move] += taken
    if task == TUNE and data.moves.target[move] > 0.0:
        tune_move(data, state, rank, move, taken)

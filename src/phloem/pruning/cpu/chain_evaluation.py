"""A generation of many chains on a device, compiled: launch what chain_steps lists, wait for the values,
settle."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.chain_state import MODEL, N_BRANCHES, N_EDITS
from phloem.pruning.cpu.chain_steps import (
    FIRST_COPY,
    N_COPIES,
    N_MATRICES,
    N_POST,
    N_ROOT,
    N_ROWS,
    N_STEPS,
    N_TOTALS,
    lay_out,
    write_part,
)  # fmt: skip
from phloem.pruning.cpu.chain_versions import CHUNK, NO_ROOM, READY, propose_version, settle_version
from phloem.pruning.cpu.schedule import call_with_two, exchange, give_way, read_shared

# What evaluate answers besides READY and NO_ROOM (arrays must grow). NO_GRAPH: nothing was captured for a
# list of this size yet.
NO_GRAPH, NO_ANSWER, NO_NUMBER = range(2, 5)
NOTHING_YET = 0x7FF8_5EED_5EED_5EED  # a NaN that no arithmetic makes
_PATIENCE = 100_000  # looks, a fraction of a millisecond


@uncounted
def room(n):
    """The least k with 2**k not less than n."""
    k = 0
    while (1 << k) < n:
        k += 1
    return k


@uncounted
def graph_key(words, parts):
    """Sizes of the three launches for a list: programs that bring it up, steps, programs that do them."""
    up = room(words[FIRST_COPY] // CHUNK + 2 + words[N_COPIES])
    return up, room(words[N_STEPS]), room(words[N_POST] * parts + words[N_ROOT] + words[N_TOTALS])


@uncounted
def evaluate(chains, change, device):
    """Evaluate the proposals of all chains that have one; trees.value then has their values. READY or why
    not.

    Chains without a change keep their state and are left out: device.active (H,) says which take part.
    """
    status = begin(chains, change, device)
    return await_values(chains.trees, device) if status == READY else status


@uncounted
def begin(chains, change, device):
    """The first half of evaluate, which does not wait: await_values is the second. Between them the host may
    prepare another set of chains."""
    n_active = 0
    for chain in range(len(device.active)):
        status = prepare(chains, change, device.active, chain)
        if status != READY:
            return status
        n_active += device.active[chain]
    if n_active == 0:
        return READY
    status = lay_out(chains, device.active, device.words)
    if status != READY:
        return status
    for chain in range(len(device.active)):
        if device.active[chain]:
            write_part(chains, change, chain, device.words)
    return launch(chains, device)


@uncounted
def prepare(chains, change, active, chain):
    """Write the version that a chain proposes, if it does; active[chain] says so."""
    count = change.counts[chain]
    active[chain] = 0
    if count[N_BRANCHES] + count[N_EDITS] + count[MODEL] == 0:
        return READY
    for k in range(count[N_BRANCHES]):
        for s in range(change.lengths.shape[1]):
            if not np.isfinite(change.lengths[chain, s, change.branches[chain, k]]):
                return NO_NUMBER
    active[chain] = 1
    return propose_version(chains, change, chain)


@uncounted
def launch(chains, device):
    """Have the device do the list."""
    limits, words = device.limits, device.words
    if chains.places.used[1] > limits[0] or len(chains.places.rows) > limits[1]:
        return NO_ROOM
    if words[N_ROWS] > limits[2] or words[N_MATRICES] > limits[3]:
        return NO_ROOM
    graph = device.graphs[graph_key(words, chains.shape.parts)]
    if graph == 0:
        return NO_GRAPH
    expect_values(device)
    return start_graph(device, graph)


@uncounted
def start_graph(device, graph):
    """Launch what was captured, one thread at a time: where many do at once, the driver's own lock puts them
    to sleep."""
    turns = 0
    while read_shared(device.launching, 0) != 0 or exchange(device.launching, 0, 1) != 0:
        turns += 1
        if turns > _PATIENCE:
            give_way()
    failed = call_with_two(device.driver[0], graph, device.driver[1])
    exchange(device.launching, 0, 0)
    return NO_ANSWER if failed != 0 else READY


@uncounted
def expect_values(device):
    for chain in range(len(device.active)):
        if device.active[chain]:
            device.found[chain] = NOTHING_YET


@uncounted
def await_values(trees, device):
    """Wait until the device has written every active chain's value over NOTHING_YET, and leave the proposals
    pending."""
    for chain in range(len(device.active)):
        turns = 0
        while device.active[chain] and read_shared(device.found, chain) == NOTHING_YET:
            turns += 1
            if turns > _PATIENCE:
                give_way()
            if turns > 1_000_000_000:
                return NO_ANSWER
    values = device.found.view(np.float64)
    for chain in range(len(device.active)):
        if device.active[chain] and np.isnan(values[chain]):
            return NO_NUMBER
    for chain in range(len(device.active)):
        trees.pending[chain] = device.active[chain]
        if device.active[chain]:
            trees.value[1 - trees.accepted[chain], chain] = values[chain]
    return READY


@uncounted
def settle(chains, change, accept):
    """Accept or reject every pending proposal, and forget the changes. accept: (H,)."""
    for chain in range(len(accept)):
        settle_version(chains, change, chain, accept[chain])

"""Distinct columns of an edited tree, numbered without its patterns, against those of the whole alignment."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.random_edits import children_first, edits, interchange, regraft
from gpu.random_problems import random_case
from phloem.pruning.cpu.chain_evaluation import settle
from phloem.pruning.cpu.chain_state import (
    COLUMNS_IN,
    LEFT,
    N_EDITS,
    RIGHT,
    ROWS,
    SIZE,
    Chains,
    ListShape,
    build_state,
    make_numbering,
    make_scratch,
    no_change,
)
from phloem.pruning.cpu.chain_steps import lay_out, write_part
from phloem.pruning.cpu.chain_versions import READY, propose_version
from phloem.pruning.cpu.column_classes import column_classes
from phloem.pruning.tree_data import TreeData


def chains_of(problem, lazy):
    trees, places, _ = build_state(TreeData.of([problem]), problem.left[None], problem.right[None], 1)
    n_root = int(places.of[0, 0, -1, SIZE])
    places = places._replace(rows=np.concatenate([places.rows, np.zeros(100_000, np.int64)]))
    shape = ListShape(32, 16, problem.n_categories, problem.repeats, lazy)
    scratch, numbering = make_scratch(1, trees.node.shape[2]), make_numbering(trees.node.shape[2], n_root)
    return Chains(trees, places, scratch, shape, np.zeros((0, 3), np.int64), numbering)


def differing_nodes(chains, problem) -> int:
    """Nodes whose rows are not those of the alignment under the accepted tree."""
    trees, wrong = chains.trees, 0
    node = trees.node[trees.accepted[0], 0]
    left, right, number = children_first(node[:, LEFT], node[:, RIGHT])
    classes = column_classes(left, right, problem.tip_codes, problem.repeats)
    for x in range(len(node)):
        size, start = chains.places.of[0, node[x, COLUMNS_IN], x, [SIZE, ROWS]]
        packed, rows = chains.places.rows[start : start + size], classes.columns(number[x])
        found = packed & 0xFFFFFFFF, packed >> 32
        wanted = classes.left_class[rows], classes.right_class[rows]
        wrong += not (np.array_equal(found, wanted))
    return wrong


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "size, repeats", [((9, 70, 4, 1), True), ((30, 400, 4, 2), True), ((7, 30, 20, 1), False)]
)
def test_a_walk_of_trees(size, repeats, lazy):
    from dataclasses import replace

    rng, problem = np.random.default_rng(size[0]), replace(random_case(*size).problem, repeats=repeats)
    chains, change = chains_of(problem, lazy), no_change(1, 2 * size[0] - 1, 1, size[3], 0)
    words = np.zeros(200_000, np.int64)
    for step in range(60):
        node = chains.trees.node[chains.trees.accepted[0], 0]
        old = node[:, LEFT].copy(), node[:, RIGHT].copy()
        new = (regraft if step % 3 == 0 else interchange)(*old, rng)
        for k, edit in enumerate(edits(old, new)):
            change.edits[0, k], change.counts[0, N_EDITS] = edit, k + 1
        assert propose_version(chains, change, 0) == READY
        assert lay_out(chains, np.ones(1, np.int64), words) == READY
        write_part(chains, change, 0, words)
        chains.trees.pending[:] = 1
        settle(chains, change, np.array([step % 4 != 1]))
        assert differing_nodes(chains, problem) == 0
    node = chains.trees.node[
        chains.trees.accepted[0], 0
    ]  # negative control: two tips change places, unnoticed
    inner = np.flatnonzero((node[:, LEFT] >= 0) & (node[:, LEFT] < size[0]))[:2]
    node[inner, LEFT] = node[inner[::-1], LEFT]
    assert differing_nodes(chains, problem) > 0

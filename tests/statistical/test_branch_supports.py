"""Supports of branches on simulated data: how often a branch of some support is one of the true tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from phloem.data.patterns import site_patterns
from phloem.inference.ml.branch_tests import (
    ABAYES,
    ALRT,
    LOCAL,
    PARAMETRIC,
    UFBOOT,
    SupportSettings,
    parametric_alrt,
)
from phloem.inference.ml.search import fit_lengths
from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import half_edges, preorder
from phloem.tree.match import match_taxa
from phloem.tree.random import uniform_unrooted
from phloem.tree.splits import tree_splits

N_TREES = 200
NAMES = ALRT, PARAMETRIC, LOCAL, ABAYES, UFBOOT
BINS = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0 + 1e-9])
SETTINGS = SearchSettings(patience=4, threads=1)


@pytest.fixture(scope="module")
def found() -> dict[str, np.ndarray]:
    """Name of a support → (n, 2): share, and whether the branch is true."""
    rows: dict[str, list[tuple[float, bool]]] = {name: [] for name in NAMES}
    for k in range(N_TREES):
        tree = uniform_unrooted(16, np.random.default_rng([77, k]), 0.04)
        data = simulate_alignment(tree, parse_model("HKY{2.5}+FQ", datatype="dna"), 250, seed=k + 1)
        wanted = SupportSettings(1000, 1000, lbp=1000, abayes=True, parametric_alrt=True)
        model = model_for_alignment("HKY+FQ", data)
        result = search_tree(data, model, None, SETTINGS, None, wanted)
        truth = {split.tobytes() for split in tree_splits(match_taxa(tree, data.taxa))}
        for split in tree_splits(result.optimum.tree):
            key = split.tobytes()
            for name, one in rows.items():
                one.append((result.supports[name][key], key in truth))
    return {name: np.array(one, float) for name, one in rows.items()}


def overconfident(rows: np.ndarray) -> list[str]:
    """Bins in which fewer branches are true than their supports say, by four standard errors."""
    wrong = []
    for low, high in pairwise(BINS):
        inside = rows[(rows[:, 0] >= low) & (rows[:, 0] < high)]
        if len(inside):
            said, true = inside.mean(0)
            error = np.sqrt(max((inside[:, 0] * (1 - inside[:, 0])).mean(), 1e-3) / len(inside))
            if true < said - 4 * error:
                wrong.append(f"{low:.2f}: {said:.3f} said, {true:.3f} true of {len(inside)}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", [ALRT, LOCAL, ABAYES, UFBOOT])
def test_no_support_promises_more_than_is_true(found, name):
    rows = found[name]
    assert not overconfident(rows)
    raised = np.column_stack([1 - (1 - rows[:, 0]) ** 3, rows[:, 1]])
    assert overconfident(raised)


@pytest.mark.slow
def test_ufboot_is_not_far_below_the_truth_either(found):
    """Minh et al. 2013: near the probability that the branch is true."""
    rows = found[UFBOOT]
    for low, high in pairwise(BINS):
        inside = rows[(rows[:, 0] >= low) & (rows[:, 0] < high)]
        assert inside[:, 1].mean() - inside[:, 0].mean() < 0.2
    brier = ((rows[:, 0] - rows[:, 1]) ** 2).mean()
    assert brier < 0.06  # IQ-TREE 2.0.7: 0.054 on 60 of these trees
    assert ((rows[:, 1].mean() - rows[:, 1]) ** 2).mean() > 0.07  # one number for all branches is worse


@pytest.mark.slow
@pytest.mark.parametrize("name, most", [(PARAMETRIC, 0.06), (LOCAL, 0.075), (ABAYES, 0.06)])
def test_the_supports_of_three_resolutions_tell_true_branches_from_others(found, name, most):
    """aLRT is no probability that a branch is true: it promises too much where it is 0.7 to 0.9."""
    rows = found[name]

    def wrong(rows: np.ndarray) -> bool:
        high = rows[rows[:, 0] >= 0.95]
        return bool(((rows[:, 0] - rows[:, 1]) ** 2).mean() > most or high[:, 1].mean() < 0.98)

    assert not wrong(rows)
    shuffled = np.random.default_rng(1).permutation(rows[:, 0])  # planted: supports of other branches
    assert wrong(np.column_stack([shuffled, rows[:, 1]]))


@pytest.mark.slow
def test_parametric_alrt_of_a_branch_without_length_is_seldom_high():
    """Four tips of a star: in at most 1 of 20 data sets the best resolution has 0.95, and so on."""
    star, none = parse_trees("(a:0.1,b:0.1,(c:0.1,d:0.1):0);")[0], np.zeros(0, np.int32)
    values = []
    for k in range(1500):
        data = simulate_alignment(star, parse_model("JC", datatype="dna"), 500, seed=k + 1)
        model, patterns = model_for_alignment("JC", data), site_patterns(data)
        messages = DirectedMessages([engine_problem(patterns, model, (none, none))], 3)
        messages.set_models([model.evaluate()], [1.0])
        edges = half_edges(star, data.taxa)
        fit_lengths(messages, edges, 1e-3)
        messages.fill(edges.back, edges.lengths, preorder(edges.back))
        inner = np.flatnonzero((np.arange(len(edges.back)) >= 4) & (edges.back >= 4))[:1]
        values.append(np.sort(messages.resolutions(edges.back, edges.lengths, inner).values[0])[::-1])
    shares = parametric_alrt(np.array(values))
    levels = np.array([0.7, 0.8, 0.9, 0.95])

    def too_often(shares: np.ndarray) -> np.ndarray:
        allowed = 1 - levels + 3 * np.sqrt(levels * (1 - levels) / len(shares))
        return (shares >= levels[:, None]).mean(1) > allowed

    assert not too_often(shares).any()
    assert (shares >= 0.7).mean() > 0.15  # nor hardly ever
    assert too_often(np.cbrt(shares)).all()  # planted: beside one of half χ², not the largest of three

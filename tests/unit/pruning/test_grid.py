"""Columns in cells: the numbers of one piece, and the same bits on any number of processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem import TreeLikelihood, read_alignment
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.pruning import grid
from phloem.pruning.calibration import sample_problem
from phloem.pruning.cpu.regions import column_sizes
from phloem.pruning.grid import GridEvaluator, InThisProcess, OnRanks, in_order, useful_shares
from phloem.tree.random import uniform_unrooted
from unit.inference.mcmc.ranks_in_threads import led

PRIMATES = read_alignment(Path(__file__).resolve().parents[3] / "examples/primates.nex")
RANDOM = uniform_unrooted(PRIMATES.n_taxa, np.random.default_rng(1))
TREE = replace(RANDOM, taxa=PRIMATES.taxa, lengths=np.full(RANDOM.n_nodes, 0.1))
MODEL = "HKY{4}+FQ+I{0.2}+G4{0.5}"
CELLS = 5


@pytest.fixture
def in_cells(monkeypatch):
    """Small data in cells, and all processes of use."""

    def shares(ranks, selection, problems):
        size = min(ranks.size, CELLS)
        return [(k + 1) * CELLS // size - k * CELLS // size for k in range(size)], "shared"

    monkeypatch.setattr(grid, "cells_of", lambda problem, engine: CELLS)
    monkeypatch.setattr(grid, "measured_shares", shares)


def likelihood_on(ranks: Ranks) -> TreeLikelihood:
    return TreeLikelihood(PRIMATES, TREE, MODEL, OnRanks("cpu", ranks), threads=1)


def everything(of: TreeLikelihood) -> list[np.ndarray]:
    """What every engine offers, proposals included."""
    value, g, second = of.log_likelihood(), of.gradient(), of.second_derivatives()
    found = [value, g.log_likelihood, g.branch_lengths, list(g.parameters.values()), second]
    found += [of.site_log_likelihoods(), of.site_branch_derivatives()]
    name = of.branch_names[3]
    found += [of.log_likelihood(), of.propose({name: 0.3})]
    of.reject()
    found.append(of.propose(parameters={"kappa": 2.0}))
    of.accept()
    return [np.asarray(one) for one in (*found, of.log_likelihood())]


def on(size: int) -> list[np.ndarray]:
    return led(size, lambda ranks: everything(likelihood_on(ranks)))


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_cells_have_the_numbers_of_one_piece(monkeypatch, in_cells):
    found = on(1)
    monkeypatch.undo()
    whole = everything(TreeLikelihood(PRIMATES, TREE, MODEL, "cpu", threads=1))
    for a, b in zip(found, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-10 * np.abs(b).max())
    right = grid.alike_together  # planted: a pattern is lost
    monkeypatch.setattr(grid, "cells_of", lambda problem, engine: CELLS)
    monkeypatch.setattr(grid, "alike_together", lambda problem: right(problem)[1:])
    assert abs(likelihood_on(Ranks()).log_likelihood() - whole[0]) > 1.0


def test_bits_do_not_depend_on_the_number_of_processes(in_cells, monkeypatch):
    alone = on(1)
    for size in (2, 3, 5, 8):
        assert same(alone, on(size)), size

    def added_up(ranks, number, method, arguments):  # planted: every process adds up what its cells say
        answers = grid._HELD[number, ranks.number].ask(method, *arguments)
        if method == "second_derivatives" and answers:
            answers = [sum(answers)]
        return ranks.gather(answers)

    monkeypatch.setattr(grid, "_ask", added_up)
    assert not all(same(alone, on(size)) for size in (2, 3))


def test_what_was_never_recorded_is_subtracted_once(in_cells, monkeypatch):
    """+ASC: the characters of a cell, and all patterns that stand for what nobody records."""
    rows = {"a": "010011010", "b": "011011001", "c": "110100110", "d": "100101111", "e": "101010101"}
    data = alignment_from_sequences(rows, alphabet("binary"))
    tree = parse_trees("((a:0.1,b:0.3):0.1,c:0.2,(d:0.1,e:0.2):0.3);")[0]
    model = model_for_alignment("MK+ASC", data)

    def cut(cells: int) -> TreeLikelihood:
        monkeypatch.setattr(grid, "cells_of", lambda problem, engine: cells)
        return TreeLikelihood(data, tree, model, OnRanks("reference", Ranks()))

    def numbers(of: TreeLikelihood) -> list[np.ndarray]:
        g, second = of.gradient(), of.second_derivatives()
        found = of.log_likelihood(), of.site_log_likelihoods(), g.branch_lengths, second
        return [np.asarray(one) for one in found]

    whole = numbers(cut(1))
    for a, b in zip(numbers(cut(3)), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
    right = grid.cell_problem

    def forgetful(problem, patterns):  # planted: cells have what was observed only
        return right(replace(problem, ascertained=np.zeros_like(problem.ascertained)), patterns)

    monkeypatch.setattr(grid, "cell_problem", forgetful)
    assert abs(cut(3).log_likelihood() - whole[0]) > 0.1


class Stub:
    """An evaluator that says a number, or cannot."""

    def __init__(self, value: float | None) -> None:
        self.value, self.pending = value, False

    def propose(self, *_) -> float:
        if self.value is None:
            raise NumericalError("no number")
        self.pending = True
        return self.value

    def reject(self) -> None:
        if not self.pending:
            raise RuntimeError("no proposal is pending")
        self.pending = False


def test_a_proposal_that_fails_in_one_cell_is_taken_back_in_all():
    stubs = [Stub(1.0), Stub(None), Stub(2.0)]
    evaluator = GridEvaluator(np.arange(8), InThisProcess(stubs))
    with pytest.raises(NumericalError, match="no number"):
        evaluator.propose(np.zeros(3), np.zeros(1))
    assert not any(stub.pending for stub in stubs)


def test_sums_are_compensated_in_order():
    parts = [1e16, 1.0, -1e16, 1.0]
    assert in_order(parts) == 2.0 and sum(parts) != 2.0
    assert in_order([1.0, -np.inf]) == -np.inf and np.isnan(in_order([np.inf, -np.inf]))


def test_cells_depend_on_the_problem_alone():
    small, large = sample_problem(4, "float64", 2000, 4), sample_problem(20, "float64", 12_000, 4)
    assert (
        grid.cells_of(small, "cpu") == 1 == grid.cells_of(large, "reference") == grid.cells_of(large, "gpu")
    )
    assert 4 < grid.cells_of(large, "cpu") <= grid.MOST_CELLS
    alike = replace(large, tip_codes=large.tip_codes % 2, repeats=True)  # few distinct columns below a node
    assert grid.cells_of(alike, "cpu") < grid.cells_of(large, "cpu")


def test_patterns_that_look_alike_are_neighbours():
    problem = TreeLikelihood(PRIMATES, TREE, "JC", "reference")._problem
    order = grid.alike_together(problem)
    assert sorted(order) == list(range(problem.tip_codes.shape[1]))

    def columns(order) -> int:
        cells = [grid.cell_problem(problem, part) for part in np.array_split(order, 4)]
        return sum(int(column_sizes(cell).sum()) for cell in cells)

    rng = np.random.default_rng(1)
    assert columns(order) < 0.97 * columns(rng.permutation(len(order)))


def test_as_many_processes_as_save_time():
    assert useful_shares(8, [1e-3] * 4, 1e-4) == [2, 2, 2, 2]
    assert useful_shares(8, [1e-3] * 4, 1e-2) == [8]
    assert useful_shares(3, [1e-3] * 8, 1e-4) == [1, 1, 1]
    assert useful_shares(12, [1e-3, 3e-3], 1e-4) == [9, 3]  # a slow one has fewer
    assert useful_shares(4, [1e-3, 9e-3], 1e-4) == [4]

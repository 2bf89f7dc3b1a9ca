"""Who has which chains and columns of `phloem mcmc`, as far as that saves more than messages take."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.analysis import processes
from phloem.analysis.division import (
    Processes,
    busiest_bytes,
    cells_of_chain,
    chain_bytes,
    divide,
    divide_dated,
    gpus_of_use,
)
from phloem.analysis.time import TimeTreeSettings, most_processes
from phloem.data.patterns import site_patterns
from phloem.inference.mcmc import spread
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.time.settings import TimeSettings
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.pruning.cpu.cell_memory import Part, column_ranges
from phloem.pruning.cpu.forest import Forest
from phloem.tree.layout import tree_layout
from phloem.tree.random import uniform_unrooted

ROOT = Path(__file__).resolve().parents[3]
PRIMATES = read_alignment(ROOT / "examples/primates.nex")
ONE = ChainSettings(n_runs=1, n_chains=1)


@pytest.fixture
def problems(monkeypatch):
    """Two parts of six cells or so each, and swaps that cost nothing."""
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_ENTRIES", 600)
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_COLUMNS", 1)
    monkeypatch.setattr("phloem.analysis.division.SWAP_SECONDS", {"cpu": 0.0, "gpu": 0.0})
    monkeypatch.setattr(spread, "PAUSE_SECONDS", 0.0)
    tree = replace(uniform_unrooted(12, np.random.default_rng(1)), taxa=PRIMATES.taxa)
    model = model_for_alignment("GTR+G4", PRIMATES)
    return [engine_problem(site_patterns(PRIMATES), model, tree_layout(tree, PRIMATES.taxa).children)] * 2


def test_columns_are_divided_where_that_saves_more_than_messages_cost(problems):
    n_cells = 2 * cells_of_chain(problems[0], on_device=False)
    assert n_cells > 8
    four = divide(problems, ONE, Processes(4, 1, 0.0))
    assert four.ranks_a_chain == four.busy == 4
    assert four.text("by MPI") == "4 processes, by MPI; each has some columns of a chain, which 4 share"
    alone = divide(problems, ONE, Processes(1, 1, 0.0))
    assert 2 < alone.seconds / four.seconds <= 4
    dear = divide(problems, ONE, Processes(4, 1, 1.0))
    assert dear.busy == dear.ranks_a_chain == 1 and dear.seconds == alone.seconds
    assert dear.text("by MPI").endswith(
        "3 idle: asking each other for parts of a likelihood would take longer than dividing it saves"
    )
    many = divide(problems, ONE, Processes(1000, 1, 0.0))
    assert many.busy == n_cells and "idle: asking" in many.text("")
    assert divide(problems, ONE, Processes(4, 64, 0.0)).ranks_a_chain == 1  # threads have all cells at once


def test_few_chains_of_small_data_stay_on_one_gpu(problems):
    """A run's: whole runs have GPUs of their own. The control: more chains, larger data, are on all."""
    asked = replace(ONE, gpus=4, n_chains=4)
    found = [gpus_of_use(problems[:1], replace(asked, n_runs=runs)) for runs in (1, 2, 5)]
    assert [n for n, _ in found] == [1, 2, 4] and ["small" in why for _, why in found] == [True, True, False]
    larger = problems * 2, asked
    assert gpus_of_use(*larger) == (4, "") == gpus_of_use(problems[:1], replace(asked, n_chains=9))


def test_gpus_beyond_the_chains_have_columns_of_each_where_these_are_many(problems, monkeypatch):
    many, why = replace(ONE, gpus=30, n_chains=9), "there are no more chains, and columns of each are too few"
    assert gpus_of_use(problems[:1], many) == (9, f"{why} for another")
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.DEVICE_WORK", 1.0)  # the control: large parts
    assert cells_of_chain(problems[0], on_device=True) == 8
    assert gpus_of_use(problems[:1], many) == (27, "too few for another part of every chain")
    assert gpus_of_use(problems[:1], replace(many, gpus=27)) == (27, "")
    assert gpus_of_use(problems[:1], replace(many, gpus=90)) == (72, f"{why} for another")
    two = replace(ONE, n_chains=2)
    found = divide(problems, two, Processes(5, 1, 0.0, gpu=True))
    assert (found.ranks_a_run, found.ranks_a_chain, found.busy) == (2, 2, 4)
    threads = divide(problems, two, Processes(5, 16, 0.0, gpu=True))  # those of the host prepare, at most
    assert (threads.ranks_a_chain, threads.seconds) == (2, found.seconds)
    dated = divide_dated(problems, TimeSettings(n_runs=1), Processes(4, 1, 0.0, gpu=True))
    assert dated.ranks_a_chain == 4
    hidden = replace(problems[0], ascertained=np.arange(problems[0].tip_codes.shape[1]) < 1)
    assert cells_of_chain(hidden, on_device=True) == 1


def test_chains_come_first(problems):
    five = divide(problems, replace(ONE, n_chains=2), Processes(5, 1, 0.0))
    assert (five.ranks_a_run, five.ranks_a_chain, five.busy) == (2, 2, 4)
    assert five.text("").endswith("which 2 share, 1 idle: too few for another part of every chain")
    assert divide(problems, replace(ONE, n_runs=2, n_chains=4), Processes(7, 1, 0.0)).ranks_a_chain == 1
    whole = divide(problems, ONE, Processes(3, 1, 0.0, whole="of a reason"))
    assert whole.busy == 1 and whole.text("").endswith("2 idle: of a reason")
    small = [replace(problems[0], tip_codes=problems[0].tip_codes[:, :9])]
    assert "too little to divide" in divide(small, ONE, Processes(3, 1, 0.0)).text("")
    hidden = replace(problems[0], ascertained=np.arange(problems[0].tip_codes.shape[1]) < 1)
    assert cells_of_chain(hidden, on_device=False) == 1


def test_fast_processes_have_more(problems):
    """A slow one among three: chains, or runs, by measured speeds are ready sooner than equal shares; the
    error planted is that of speeds in another order."""
    uneven = (1.0, 0.25, 1.0)
    for settings, by in ((replace(ONE, n_chains=12), divide), (TimeSettings(n_runs=6), divide_dated)):
        there = Processes(3, 1, 0.0, whole="of a reason", speeds=uneven)
        found = by(problems, settings, there)
        sizes = [len(share.chains) * len(share.runs) for share in found.shares]
        assert sizes[1] == min(sizes) < sizes[0] and found.text("").endswith(
            "; by measured speeds, which differ"
        )
        equal = by(problems, settings, replace(there, speeds=()))
        assert not equal.uneven and found.seconds < 0.7 * 4 * equal.seconds  # the slow one's equal share
        wrong = by(problems, settings, replace(there, speeds=(0.25, 1.0, 1.0)))
        assert wrong.shares != found.shares


def test_columns_of_dated_runs(problems):
    chains = TimeSettings(n_runs=2)
    two = divide_dated(problems, chains, Processes(2, 1, 0.0))
    assert (two.ranks_a_chain, two.busy) == (1, 2) and "whole runs" in two.text("")
    five = divide_dated(problems, chains, Processes(5, 4, 0.0))
    assert (five.ranks_a_chain, five.busy) == (2, 4)
    assert five.text("").endswith("which 2 share, 1 idle: too few for another part of every run")
    assert five.seconds < two.seconds < divide_dated(problems, chains, Processes(1, 1, 0.0)).seconds
    assert divide_dated(problems, chains, Processes(4, 1, 1.0)).busy == 2
    # a run's chains are in threads, unless processes share their columns
    coupled = replace(chains, n_chains=3)
    assert divide_dated(problems, coupled, Processes(4, 4, 0.0)).ranks_a_chain == 1
    assert divide_dated(problems, coupled, Processes(12, 2, 0.0)).ranks_a_chain == 6
    whole = divide_dated(problems, chains, Processes(4, 1, 0.0, whole="of a reason"))
    assert whole.busy == 2 and whole.text("").endswith("2 idle: of a reason")


def test_scaling_is_replayed_of_what_one_process_measured(tmp_path):
    """benchmarks/scaling.py, of one process that sent no messages, and with a second one that did."""
    one = [1, 4e-3, 4e-3, 0, 1.0]
    two = [2, 3e-3, 2e-3, 0, 1.1]
    for name, rows, messages in (("one", [one], []), ("two", [one, two], [[2, 1e-5]])):
        (tmp_path / name).write_text(json.dumps([[4, 0, 3], rows, [1.0], messages]) + "\n")
        command = [sys.executable, str(ROOT / "benchmarks/scaling.py"), "--read", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "too few processes to test it on" in done.stdout
        assert len(done.stdout.splitlines()) == 4 + len(rows)
    (tmp_path / "none").write_text(json.dumps([[4, 0, 3], [], [1.0], []]) + "\n")
    command[-1] = str(tmp_path / "none")  # control: nothing was measured
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("n_states", [4, 20])
def test_memory_of_chains_is_what_they_have(problems, n_states):
    """The arrays of a forest's cells, which are made before the first generation."""
    problem, one = problems[0], np.zeros(4, np.int64)
    sets = np.eye(n_states, dtype=bool)
    codes = np.minimum(problem.tip_codes, n_states - 1)
    problem = replace(problem, tip_codes=codes, state_sets=sets)
    whole = Part(codes, sets, problem.pattern_weights, problem.ascertained, one, one)
    forest = Forest(column_ranges(whole, 0), 2)
    names = ("values", "taken", "left", "right", "matrices", "class_of")
    arrays = [getattr(cell, name) for cell in forest.cells[1] for name in names]
    assert chain_bytes(problem) == pytest.approx(sum(array.nbytes for array in arrays), rel=0.02)
    settings = ChainSettings(n_runs=2, n_chains=4)
    found = [divide([problem], settings, Processes(size, 1, 0.0)) for size in (1, 2, 8, 16)]
    assert [busiest_bytes(one, 1600) for one in found] == [12_800, 6_400, 1_600, 800]


def test_processes_for_dated_trees_are_as_many_as_could_have_a_share(monkeypatch):
    settings = TimeTreeSettings(
        alignment=str(ROOT / "examples/primates.nex"), model="HKY+G4", chains=TimeSettings(n_runs=2)
    )
    assert most_processes(settings) == 2
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.DEVICE_WORK", 1.0)
    assert most_processes(settings) == 16
    seen: list[list[str]] = []
    monkeypatch.setattr(processes, "_gpus_of", lambda text: ["0", "1", "2"])
    monkeypatch.setattr(processes, "show_gpus", seen.append)
    for n_useful, more in ((2, lambda: 16), (2, lambda: 2), (2, None), (3, lambda: 1)):
        processes.devices_here("all", "auto", n_useful, more=more)
    assert [len(gpus) for gpus in seen] == [3, 2, 2, 3]

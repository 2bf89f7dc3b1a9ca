"""Runs and chains on several processes: the same samples, bit for bit, on any number of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.density.parts import PartModel
from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc import seen, spread, weights
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.records import BY_MODEL, COMPILED, KIND, ChainState
from phloem.inference.mcmc.sampler import Where, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import (
    Share,
    group_speeds,
    own_state,
    shares,
    shares_text,
    useful_ranks,
    whole_state,
)
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time import sampler as time_sampler
from phloem.inference.time.sampler import sample as sample_dated
from phloem.inference.time.sampler import swaps_of
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.io.date_table import read_dates
from phloem.likelihood.model_for_alignment import model_for_alignment
from unit.inference.mcmc.ranks_in_threads import on_ranks

ROOT = Path(__file__).resolve().parents[4]
PRIMATES = read_alignment(ROOT / "examples/primates.nex")
STRUCTURE = structure_of_model(model_for_alignment("GTR+I+G4", PRIMATES))
# moves are tuned every 100 tries: enough generations that tuning of a heat changes and wanders
SETTINGS = ChainSettings(
    generations=2_400, sample_every=40, check_every=600, tuning_generations=2_000, threads=2
)


def sampled(size: int, settings: ChainSettings = SETTINGS, prefix: str | None = None, speeds=()):
    """The runs, on so many ranks."""

    def work(ranks):
        plain, where = plain_likelihood([PRIMATES], STRUCTURE), Where("cpu", ranks, speeds=speeds)
        return sample(observations(PRIMATES), STRUCTURE, settings, prefix, None, None, None, plain, where)

    return on_ranks(size, work)


def numbers(result) -> list[np.ndarray]:
    """Everything drawn, and every field of the states."""
    found = [
        getattr(run.samples, name) for run in result.runs for name in ("generation", "numbers", "parent")
    ]
    return found + [array for run in result.runs for array in run.state]


def same(a, b) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(numbers(a), numbers(b), strict=True))


def test_an_error_on_one_thread_ends_all():
    """Of the tests' own stand-in for a launcher: whoever waits for it, in whatever way, learns of it."""

    def work(ranks):
        if ranks.number == 3:
            raise KeyError("planted")
        return ranks.exchanged(np.zeros(1), 3) if ranks.number else ranks.groups_of(4).gather("here")

    with pytest.raises(KeyError, match="planted"):
        on_ranks(4, work)


@pytest.fixture(scope="module")
def alone():
    return sampled(1)


# Runs or chains in unequal shares, and one left over; the others of the slow suite.
@pytest.mark.parametrize(
    "size", [pytest.param(n, marks=[pytest.mark.slow] * (n in (2, 8))) for n in (2, 3, 5, 8, 9)]
)
def test_samples_and_states_do_not_depend_on_the_number_of_ranks(alone, size):
    uneven = (1.0, 0.2, 0.9, 0.9, 0.2) if size == 5 else ()
    found = sampled(size, speeds=uneven)
    assert len(found.runs[0].samples.generation) == 61 and found.diagnosis == alone.diagnosis
    assert same(alone, found)


def test_swaps_between_ranks_happen(alone):
    assert all(run.state.swaps_accepted.sum() > 50 for run in alone.runs)
    assert any((run.state.tuning[0] != run.state.tuning[1]).any() for run in alone.runs)


def test_what_stays_behind_with_a_chain_is_seen(alone, monkeypatch):
    """The error planted: how moves are tuned at a heat does not travel with it."""
    right = Ranks.exchanged

    def exchanged(self, message, partner):
        return np.concatenate([right(self, message, partner)[:3], message[3:]])

    monkeypatch.setattr(Ranks, "exchanged", exchanged)
    assert not same(alone, sampled(4))


def test_learning_from_own_chains_alone_is_seen(alone, monkeypatch):
    """The error planted: how numbers vary together is learnt from the chains of one process."""
    monkeypatch.setattr(spread.Swaps, "shared", lambda self, rows: rows)
    assert not same(alone, sampled(4))


def test_shares_of_moves_are_learnt_alike(monkeypatch):
    """The error planted: what moves brought is that of the chains of one process."""
    monkeypatch.setattr(weights, "LEAST_LOOKS", 2)
    one, three = sampled(1), sampled(3)
    usual = weights.cumulative_shares(np.array([move.weight for move in one.runs[0].moves]))
    assert all(not np.allclose(run.state.cumulative, usual) for run in one.runs)
    assert same(one, three)
    right = spread.Swaps.shared

    def shared(self, rows):
        return rows if rows.shape[1] == one.runs[0].state.jumps.size else right(self, rows)

    monkeypatch.setattr(spread.Swaps, "shared", shared)
    assert not same(one, sampled(3))


def test_another_decision_is_seen(alone, monkeypatch):
    """The error planted: swaps between ranks are decided by other numbers than those within one."""
    right = spread.Swaps.swap
    monkeypatch.setattr(spread.Swaps, "swap", lambda self, *a: right(self, *a[:3], a[3] - 1.0))
    assert not same(alone, sampled(4))


def test_a_checkpoint_goes_on_on_another_number_of_ranks(alone, tmp_path):
    prefix = str(tmp_path / "x")
    sampled(3, replace(SETTINGS, generations=1_200), prefix)
    longer = sampled(5, SETTINGS, prefix)
    assert longer.resumed_at == 1_200  # slots of the states may differ: a start takes the other one
    assert all(np.array_equal(a.state.rng, b.state.rng) for a, b in zip(alone.runs, longer.runs))
    sampled(1, SETTINGS, str(tmp_path / "y"))
    for name in ("run1.p", "run2.p", "run1.t", "run2.t"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes()


def test_every_field_of_a_state_is_told_what_it_is():
    named = (*spread.OF_CHAINS, *spread.OF_HEATS, *spread.SUMS, *spread.OF_ALL)
    assert sorted(named) == sorted(ChainState._fields)


def test_parts_of_a_state_make_it_whole(alone):
    whole = alone.runs[0].state
    again = whole_state([own_state(whole, chains) for chains in (range(0, 1), range(1, 3), range(3, 4))])
    assert all(np.array_equal(a, b) for a, b in zip(whole, again))


def test_who_has_what():
    assert shares(2, 4, 1, 9) == (Share((0, 1), range(4)),)
    assert shares(3, 4, 2, 9) == (Share((0,), range(4)), Share((1, 2), range(4)))
    halves = range(2), range(2, 4)
    assert shares(2, 4, 4, 9) == tuple(Share((run,), half) for run in (0, 1) for half in halves)
    for n_runs, n_chains, size in ((1, 4, 3), (2, 4, 5), (2, 3, 8), (3, 1, 7), (2, 64, 16)):
        given = shares(n_runs, n_chains, size, 9)
        assert len(given) == size
        for run in range(n_runs):
            own = [share.chains for share in given if run in share.runs]
            assert [c for chains in own for c in chains] == list(range(n_chains))
            assert max(map(len, own)) - min(map(len, own)) <= 1
    assert shares_text(shares(2, 1, 3, 9), "by MPI", "why").endswith("each has whole runs, 1 idle: why")
    uneven = (0.2, 1.0, 1.0)
    assert shares(6, 4, 3, 9, uneven) == tuple(Share(runs, range(4)) for runs in ((0,), (1, 2, 3), (4, 5)))
    assert shares(1, 4, 3, 2, uneven) == (
        Share((0,), range(1)), Share((0,), range(1, 4)), Share((), range(0))
    )  # fmt: skip
    assert group_speeds((1.0, 2.0, 3.0, 4.0, 9.0), 2) == (3.0, 7.0)
    idle = shares(2, 4, 6, 2)
    assert sum(not share.chains for share in idle) == 2 and "2 idle" in shares_text(idle, "by MPI")


def test_chains_are_divided_where_that_saves_more_than_swaps_cost():
    assert useful_ranks(4, 4, lambda n: 1e-6 * n, 1e-4) == 1
    assert useful_ranks(4, 4, lambda n: 1e-2 * n, 1e-4) == 4
    assert (
        useful_ranks(4, 3, lambda n: 1e-2 * n, 1e-4) == 2
    )  # a third rank would not shorten the largest share
    assert useful_ranks(64, 2, lambda n: 1e-3 + 1e-9 * n, 1e-4) == 1


# Columns of a chain, of two parts with models of their own.

FEW = replace(SETTINGS, n_runs=1, generations=1_000, tuning_generations=800, check_every=500)


@pytest.fixture
def small_ranges(monkeypatch):
    """Columns in ranges of some tens, where the sampler would take thousands; and moves' weights are learnt
    from few looks."""
    monkeypatch.setattr(weights, "LEAST_LOOKS", 2)
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_ENTRIES", 900)
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_COLUMNS", 1)


def columns_sampled(size: int, n_chains: int, ranks_a_chain: int):
    """One run of two parts, on so many ranks."""
    halves = [replace(PRIMATES, codes=half.copy()) for half in np.array_split(PRIMATES.codes, 2, axis=1)]
    models = [model_for_alignment(text, half) for text, half in zip(("GTR+I+G4", "HKY+G4"), halves)]
    parts = [
        PartModel(f"p{i}", model, half.n_sites, 1.0) for i, (model, half) in enumerate(zip(models, halves))
    ]
    structure, data = structure_of_parts(parts), [observations(half) for half in halves]
    settings = replace(FEW, n_chains=n_chains)

    def work(ranks):
        plain = plain_likelihood(halves, structure)
        where = Where("cpu", ranks, ranks_a_chain=ranks_a_chain)
        if not where.reads(1, n_chains):  # it has no data but what it is sent
            return sample((), structure, settings, where=where)
        return sample(data, structure, settings, None, None, None, None, plain, where)

    return on_ranks(size, work)


def test_columns_of_chains_do_not_depend_on_the_number_of_ranks(small_ranges, monkeypatch):
    one, two = columns_sampled(1, 1, 1), columns_sampled(1, 2, 1)
    assert one.runs[0].shared.cell_values.shape[1] == 8 and one.runs[0].samples.n == 26
    usual = weights.cumulative_shares(np.array([move.weight for move in one.runs[0].moves]))
    assert not np.allclose(one.runs[0].state.cumulative, usual)
    for size, ranks_a_chain in ((2, 2), (3, 3), (5, 5)):
        found = columns_sampled(size, 1, ranks_a_chain)
        assert same(one, found), size
        assert found.runs[0].data.numbers.shape[1] < found.runs[0].shared.cell_values.shape[1]
    assert same(two, columns_sampled(5, 2, 2))  # one is left over
    right = spread.Columns.gather

    def wrong(self, values, drawn):
        right(self, values, drawn)
        values[:] = np.sort(values)

    monkeypatch.setattr(spread.Columns, "gather", wrong)  # planted: another order of the sums
    assert not same(one, columns_sampled(2, 1, 2))


def test_processes_are_sent_their_columns_only(small_ranges, monkeypatch):
    right, found = seen.Seen.of, []

    def of(self, number):
        found.append((self.dealt[number], right(self, number)))
        return found[-1][1]

    monkeypatch.setattr(seen.Seen, "of", of)
    columns_sampled(3, 1, 3)
    for own, given in found:
        there = [i for i, cell in enumerate(given.cells) if cell.tip_codes.shape[1] > 0]
        assert there == list(own) and all(len(given.cells[i].weights) == 0 for i in range(8) if i not in own)
    assert sorted(len(own) for own, _ in found) == [2, 3, 3]

    def wrong(self, number):
        own = right(self, number)
        cells = [replace(c, weights=c.weights[::-1] * (1.0 + number)) for c in own.cells]
        return replace(own, cells=tuple(cells))

    monkeypatch.setattr(seen.Seen, "of", wrong)  # planted: one is sent its columns with other weights
    with pytest.raises(NumericalError, match="not that of the reference"):
        columns_sampled(2, 1, 2)


def test_work_of_own_cells_alone_is_seen(small_ranges, monkeypatch):
    """The error planted: what moves cost is that of the cells of one process."""
    monkeypatch.setattr(spread.Columns, "summed", lambda self, counts: counts)
    with pytest.raises(NumericalError, match="round differently"):  # what is learnt differs then
        columns_sampled(2, 1, 2)


def test_processes_that_draw_other_proposals_are_stopped(small_ranges, monkeypatch):
    right = spread.Columns.gather

    def wrong(self, values, drawn):
        right(self, values, [x * (1 + 1e-15 * self.beside.number) for x in drawn])

    monkeypatch.setattr(spread.Columns, "gather", wrong)
    with pytest.raises(NumericalError, match="round differently"):
        columns_sampled(2, 1, 2)


def test_who_has_which_columns():
    for work, size in (([1.0] * 7, 3), ([5.0, 1, 1, 1], 3), ([1, 1, 1, 9.0], 2), ([1.0, 1.0], 2), ([3.0], 1)):
        dealt = spread.dealt_cells(work, size)
        assert [i for cells in dealt for i in cells] == list(range(len(work)))
        assert len(dealt) == size and all(dealt)
    assert [len(cells) for cells in spread.dealt_cells([1.0] * 7, 3)] in ([2, 3, 2], [3, 2, 2], [2, 2, 3])
    assert spread.dealt_cells([5.0, 1, 1, 1], 2) == (range(1), range(1, 4))
    assert spread.dealt_cells([1.0] * 8, 2, (3.0, 1.0)) == (range(6), range(6, 8))
    assert spread.dealt_cells([1.0] * 3, 3, (9.0, 1.0, 1.0)) == (range(1), range(1, 2), range(2, 3))
    assert spread.useful_columns(128, 8, 1, 1e-1, 1e-4) == 8
    assert spread.useful_columns(128, 8, 4, 1e-4, 1e-4) == 1
    assert spread.useful_columns(3, 8, 1, 1.0, 1e-4) == 3 and spread.useful_columns(1, 8, 1, 1.0, 0.0) == 1
    text = shares_text(shares(1, 2, 2, 9), "by MPI", "why", 5, 2)
    assert text == "5 processes, by MPI; each has some columns of a chain, which 2 share, 1 idle: why"


def test_processes_are_timed_beside_the_first(monkeypatch):
    def found(*seconds):
        left = list(seconds)
        monkeypatch.setattr(spread, "fastest", lambda work, times: left.pop())
        return on_ranks(len(seconds), spread.measured_speeds)

    assert found(1.0, 1.2) == () and spread.measured_speeds(Ranks()) == ()
    assert sorted(found(1.0, 2.0)) in ([0.5, 1.0], [1.0, 2.0])
    assert spread._products(False)()[0, 0] == pytest.approx(1 / 300)


# Dated trees: whole runs.

DENGUE = read_alignment(ROOT / "tests/golden/time_trees/data/dengue4.fasta")


@pytest.fixture(scope="module")
def dated():
    dates = read_dates(ROOT / "tests/golden/time_trees/data/dengue4.dates.tsv", DENGUE.taxa)
    structure = structure_of_model(model_for_alignment("JC", DENGUE), DENGUE.n_sites)
    model = time_model(structure, TreeModel(), DENGUE.taxa, np.stack(dates.ages, 1), dates.latest)

    def work(size: int, prefix: str | None = None, generations: int = 600, speeds=(), **more):
        usual = {"n_runs": 3, "generations": generations, "sample_every": 20, "check_every": 200}
        settings = TimeSettings(**usual | more)
        return on_ranks(
            size,
            lambda ranks: sample_dated(
                observations(DENGUE), model, settings, prefix, where=Where("cpu", ranks, speeds=speeds)
            ),
        )

    return work


def test_dated_trees_do_not_depend_on_the_number_of_ranks(dated, monkeypatch):
    alone = dated(1)
    assert [run.number for run in alone.runs] == [0, 1, 2] and alone.runs[2].samples.n == 31
    for size in (2, 3, 5):
        found = dated(size, speeds=(1.0, 0.3) if size == 2 else ())
        assert same(alone, found) and found.diagnosis == alone.diagnosis
        assert found.generations == alone.generations
    right = time_sampler.new_run
    monkeypatch.setattr(time_sampler, "new_run", lambda r, *a, **b: replace(right(r % 2, *a, **b), number=r))
    assert not same(alone, dated(3))


def test_coupled_dated_trees_do_not_depend_on_the_number_of_ranks(dated, tmp_path):
    own = {"n_chains": 2, "tuning_generations": 100}
    alone, prefix = dated(1, **own), str(tmp_path / "x")
    assert all(run.state.swaps_tried.sum() == 30 for run in alone.runs)
    assert same(alone, dated(2, **own))
    dated(2, prefix, 400, **own)
    on = dated(3, prefix, **own)
    assert on.resumed_at == 400 and swaps_of(on.runs) == swaps_of(alone.runs)
    assert all(np.array_equal(a.samples.numbers, b.samples.numbers) for a, b in zip(alone.runs, on.runs))


def test_dated_trees_go_on_on_another_number_of_ranks(dated, tmp_path):
    dated(2, str(tmp_path / "x"), 400)
    longer = dated(3, str(tmp_path / "x"))
    dated(1, str(tmp_path / "y"), 400)
    once = dated(1, str(tmp_path / "y"))
    assert longer.resumed_at == 400 and same(longer, once)
    for name in ("run1.log", "run3.log", "run2.trees", "ckp.run3.samples"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes(), name


# Columns of a dated chain, of two parts with models of their own.


@pytest.fixture
def in_columns(monkeypatch):
    """One run, in cells of some tens of columns, on so many ranks. The second part's model is one that only
    Python makes."""
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_ENTRIES", 100)
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_COLUMNS", 1)
    halves = [replace(DENGUE, codes=half.copy()) for half in np.array_split(DENGUE.codes, 2, axis=1)]
    models = [model_for_alignment(text, half) for text, half in zip(("HKY", "GTR+R2"), halves)]
    parts = [
        PartModel(f"p{i}", model, half.n_sites, 1.0) for i, (model, half) in enumerate(zip(models, halves))
    ]
    dates = read_dates(ROOT / "tests/golden/time_trees/data/dengue4.dates.tsv", DENGUE.taxa)
    ages = np.stack(dates.ages, 1)
    model = time_model(structure_of_parts(parts), TreeModel(), DENGUE.taxa, ages, dates.latest)
    usual = TimeSettings(n_runs=1, generations=400, sample_every=20, check_every=200)

    def work(size: int, prefix: str | None = None, **more):
        settings = replace(usual, **more)

        def each(ranks):
            uneven = (0.3, 1.0, 0.6) if size == 3 else ()
            where = Where("cpu", ranks, ranks_a_chain=size // settings.n_runs, speeds=uneven)
            if not where.reads(settings.n_runs, 1):  # it has no data but what it is sent
                return sample_dated((), model, settings, where=where)
            plain = time_sampler.plain_time_likelihood(halves, model)
            data = [observations(half) for half in halves]
            return sample_dated(data, model, settings, prefix, plain=plain, where=where)

        return on_ranks(size, each)

    return work


def test_columns_of_dated_chains_do_not_depend_on_the_number_of_ranks(in_columns, monkeypatch):
    one = in_columns(1)
    run = one.runs[0]
    tried = {move.name: n for move, n in zip(run.moves, run.state.tried)}
    assert tried["hamilton"] > 0 and len(run.data.clock_of) == 10 and run.samples.n == 21
    assert run.data.recipes.rows[:, KIND].tolist() == [COMPILED, BY_MODEL]
    for size in (2, 3, 5):
        found = in_columns(size)
        assert same(one, found), size
        assert found.runs[0].data.numbers.shape[0] < 10
    own = {"n_chains": 2, "tuning_generations": 100}
    assert same(in_columns(1, **own), in_columns(2, **own))
    right = spread.Columns.gather

    def wrong(self, values, drawn):
        right(self, values, drawn)
        values[:] = np.sort(values, axis=0)

    monkeypatch.setattr(spread.Columns, "gather", wrong)  # planted: another order of the sums
    assert not same(one, in_columns(2))


def test_slopes_of_own_cells_alone_are_seen(in_columns, monkeypatch):
    right = spread.Columns.gather
    monkeypatch.setattr(
        spread.Columns, "gather", lambda self, values, drawn: right(self, values[:, :1], drawn)
    )
    with pytest.raises(NumericalError, match="round differently"):
        in_columns(2)


def test_columns_of_dated_chains_go_on_on_another_number_of_ranks(in_columns, tmp_path):
    for prefix, sizes in (("x", (3, 2)), ("y", (1, 1))):
        in_columns(sizes[0], str(tmp_path / prefix), generations=200, tuning_generations=150)
        longer = in_columns(sizes[1], str(tmp_path / prefix), tuning_generations=150)
        assert longer.resumed_at == 200
    for name in ("run1.log", "run1.trees", "ckp.run1.samples"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes(), name

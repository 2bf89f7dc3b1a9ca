"""`phloem time --partitions`: parts on one clock or with their own, their numbers linked or not; what it
refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis import time_start
from phloem.analysis.dated_input import DateOptions
from phloem.analysis.time import TimeTreeSettings, run_time, time_input
from phloem.analysis.time_record import time_identity
from phloem.errors import InputError
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.time.run import new_run
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.io.trees import read_trees
from phloem.tree.reroot import unroot
from phloem.tree.tree import lengths_of_heights

PARTS = "HKY+FO+G4, a = 1-12\nJC, b = 13-20\n"


@pytest.fixture
def settings(tmp_path):
    rng = np.random.default_rng(1)
    rows = (f">t{i}\n{''.join(rng.choice(list('ACGT'), 20))}\n" for i in range(5))
    (tmp_path / "a.fasta").write_text("".join(rows))
    (tmp_path / "parts").write_text(PARTS)
    chains = TimeSettings(generations=3000, sample_every=50, check_every=1000, n_runs=1, threads=1)
    return TimeTreeSettings(
        str(tmp_path / "a.fasta"), partitions=str(tmp_path / "parts"), prior=("clock_rate=1",),
        prefix=str(tmp_path / "out"), chains=chains, device="cpu",
    )  # fmt: skip


CHARACTERS = "t0 0010120\nt1 1010021\nt2 0101122\nt3 1101210\nt4 0110231\n"


def of_characters(settings, **more):
    file = Path(settings.alignment).with_name("characters.nex")
    head = "#NEXUS\nbegin data; dimensions ntax=5 nchar=7; format datatype=standard; matrix\n"
    file.write_text(f"{head}{CHARACTERS}; end;\n")
    return replace(settings, alignment=str(file), partitions=None, **more)


def test_standard_characters_have_their_own_numbers_of_states(settings):
    """Every sample's likelihood is that of the pieces, which share the clock's rate and alpha; with all
    states of the matrix it is another."""
    own = of_characters(settings, model="MK+G4")
    data = time_input(own)
    assert [a.alphabet.n_states for a in data.alignments] == [2, 3, 4] and data.n_sites == 7
    run = new_run(0, data.observed(), data.model, own.chains)
    assert not any(name.startswith("rate{") for name in run.columns.names) and "alpha" in run.columns.names
    start = dict(zip(("LnL", "LnPr", *run.columns.names), run.samples.numbers[0]))
    lengths = lengths_of_heights(run.samples.parent, run.samples.sets[:, 0])[0]
    given = run.samples.parent[0], lengths, start
    assert data.plain_likelihood()(run.samples.parent[0], run.samples.sets[0], start) == pytest.approx(
        start["LnL"], rel=1e-9
    )
    every = time_input(replace(own, character_states="all"))
    assert len(every.alignments) == 1 and every.alignments[0].alphabet.n_states == 4
    other = plain_likelihood(every.alignments, every.model.engine)(*given)
    assert other != pytest.approx(start["LnL"], rel=1e-6)


def test_options_of_characters(settings):
    ordered = time_input(of_characters(settings, model="MK", ordered="5-6"))
    models = [part.model.text() for part in ordered.model.engine.parts]
    assert models == ["MK", "MK", "ORDERED", "ORDERED"]
    seen = time_input(of_characters(settings, model="MK+ASC", asc="mrbayes"))
    assert seen.unrecorded == (3, 0, 0)
    with pytest.raises(InputError, match="no model here has it"):
        time_input(of_characters(settings, model="MK", asc="mrbayes"))
    with pytest.raises(InputError, match="and the data are dna"):
        time_input(replace(settings, character_states="all"))
    fewer = time_input(of_characters(settings, model="MK", without=("t4",)))
    assert fewer.taxa == ("t0", "t1", "t2", "t3") and all(a.n_taxa == 4 for a in fewer.alignments)
    plain, own = of_characters(settings, model="MK"), of_characters(settings, model="MK", ordered="5-6")
    model = time_input(plain).model
    assert time_identity(plain, model) != time_identity(own, model)


@pytest.mark.parametrize("linkage", [None, "linked"])
def test_every_sample_has_the_likelihood_of_all_parts(settings, linkage):
    own = replace(settings, linkage=linkage)
    data = time_input(own)
    run_time(own)
    run = new_run(0, data.observed(), data.model, own.chains)
    rates = [name for name in run.columns.names if name.startswith("rate{")]
    assert rates == ([] if linkage else ["rate{a}", "rate{b}"])
    assert data.n_sites == 20 and [len(a.taxa) for a in data.alignments] == [5, 5]
    rows = [line.split("\t") for line in Path(f"{own.prefix}.run1.log").read_text().splitlines()]
    names, last = rows[0], [float(x) for x in rows[-1]]
    numbers = dict(zip(names[3:], last[3:]))
    if not linkage:
        mean = 0.6 * numbers["rate{a}"] + 0.4 * numbers["rate{b}"]
        assert mean == pytest.approx(1.0, abs=1e-9)
    plain, sample = plain_likelihood(data.alignments, data.model.engine), run.samples
    lengths = lengths_of_heights(sample.parent, sample.sets[:, 0])[0]
    start = dict(zip(("LnL", "LnPr", *run.columns.names), sample.numbers[0]))
    assert plain(sample.parent[0], lengths, start) == pytest.approx(start["LnL"], rel=1e-9)
    other = dict(start) | {"kappa": start["kappa"] * 1.5}  # planted: another number of one part
    assert plain(sample.parent[0], lengths, other) != pytest.approx(start["LnL"], rel=1e-6)


def written(prefix):
    """The last trees of a run, and the numbers of their lines."""
    rows = [line.split("\t") for line in Path(f"{prefix}.run1.log").read_text().splitlines()]
    trees = read_trees(f"{prefix}.run1.trees")
    assert len(trees) == len(rows) - 1
    return zip(trees[-5:], [dict(zip(rows[0], map(float, row))) for row in rows[-5:]])


@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_parts_with_clocks_of_their_own_have_the_likelihood_of_their_rates(settings, clock):
    (Path(settings.partitions)).write_text("HKY+FO+G4, a = 1-9\nJC, b = 10-15\nJC, c = 16-20\n")
    tree, held = TreeModel(clock=clock, prior="constant"), ("clock_rate{a}=1",)
    own = replace(settings, linkage="unlinked", link=("lengths:b,c",), tree=tree, prior=held)
    data = time_input(own)
    result = run_time(own)
    plain, names = plain_likelihood(data.alignments, data.model.engine), ("a.rate", "b+c.rate")
    for drawn, numbers in written(own.prefix):
        rates = np.array([[drawn.annotations[x][n] for x in range(drawn.n_nodes - 1)] for n in names])
        lengths = np.c_[rates * drawn.lengths[:-1], np.zeros(2)]
        trees = [unroot(replace(drawn, lengths=own_lengths)) for own_lengths in lengths]
        found = [np.stack([x.lengths for x in each]) for each in (trees, trees[::-1])]
        assert plain(trees[0].parent, found[0], numbers) == pytest.approx(numbers["LnL"], rel=1e-6)
        assert plain(trees[0].parent, found[1], numbers) != pytest.approx(numbers["LnL"], rel=1e-5)  # planted
        for name, of_branches in zip(("a", "b,c"), rates):
            if clock == "strict":
                assert of_branches == pytest.approx(numbers[f"clock_rate{{{name}}}"], rel=1e-5)
            else:
                assert numbers[f"mean_rate{{{name}}}"] == pytest.approx(
                    of_branches @ drawn.lengths[:-1] / drawn.lengths.sum(), rel=1e-5
                )
        assert numbers["clock_rate{a}"] == 1.0
    shown = set(names) <= set(result.tree.annotations[0])
    assert shown == (clock != "strict") and "clock_rate{b,c}" in result.parameters.names


def test_what_parts_share_is_part_of_the_analysis(settings, tmp_path):
    def identity(own):
        return str(time_identity(own, time_input(own).model))

    both = replace(settings, model="HKY+FO+G4")
    (tmp_path / "parts").write_text("DNA, a = 1-12\nDNA, b = 13-20\n")
    linked = replace(both, link=("kappa",))
    assert "kappa{a}" in time_input(both).model.space.elements
    assert "kappa" in time_input(linked).model.space.elements
    own = replace(both, linkage="unlinked", prior=())
    assert "clock_rate{a}" in time_input(own).model.space.elements
    together = time_input(replace(own, link=("lengths:a,b",))).model
    assert together.n_clocks == 1 and "clock_rate" in together.space.elements
    assert identity(own) != identity(replace(own, link=("lengths:a,b",)))
    seen = {identity(both), identity(linked), identity(replace(both, linkage="linked"))}
    (tmp_path / "parts").write_text("DNA, a = 1-13\nDNA, b = 14-20\n")
    assert len(seen | {identity(both)}) == 4


@pytest.mark.parametrize(
    "change, message",
    [
        ({"partitions": None, "link": ("kappa",)}, "there is one"),
        ({"link": ("lengths:a,b",)}, "a rate each or one for all"),
        ({"linkage": "unlinked", "link": ("rate=1:a",), "prior": ()}, "no part has a rate"),
    ],
)
def test_what_cannot_be_is_refused(settings, change, message):
    with pytest.raises(InputError, match=message):
        time_input(replace(settings, **change))


def test_a_device_is_advised_by_all_parts(settings, monkeypatch):
    """Every part has a problem in the forecasts; a model that a device does not make keeps all on CPUs."""
    asked = []
    monkeypatch.setattr(
        time_start, "select_chains", lambda device, problems, *more: asked.append((device, problems()))
    )
    data = time_input(settings)
    time_start.time_selection(replace(settings, device="gpu"), data)
    ((device, problems),) = asked
    assert device == "gpu" and len(problems) == len(data.alignments) > 1
    shapes = [problem.state_sets.shape[1] for problem in problems]
    assert shapes == [part.model.n_states for part in data.model.engine.parts]


def test_parts_start_from_least_squares_of_those_that_are_alike(settings, tmp_path):
    """The tree of the columns of all parts of the commonest data type; dates are the tips'."""
    rows = [line for line in (tmp_path / "a.fasta").read_text().splitlines()]
    named = "\n".join(f"{row}|{2000 + i // 2}" if row[0] == ">" else row for i, row in enumerate(rows))
    (tmp_path / "a.fasta").write_text(named + "\n")
    dated = replace(settings, dates=DateOptions(date_field=-1, date_delimiter="|"), prior=())
    own = replace(dated, chains=replace(settings.chains, start="lsd"))
    data = time_input(own)
    origin = time_start.time_origin(own, data)
    (tmp_path / "one").write_text("HKY+FO+G4, a = 1-20\n")
    whole = replace(own, partitions=str(tmp_path / "one"))
    assert np.array_equal(origin.tree.heights, time_start.time_origin(whole, time_input(whole)).tree.heights)
    (tmp_path / "one").write_text("HKY+FO+G4, a = 1-12\n")
    first = replace(own, partitions=str(tmp_path / "one"), unassigned_sites="drop")
    other = time_start.time_origin(first, time_input(first))
    assert not np.array_equal(origin.tree.heights, other.tree.heights)  # planted: the first part alone
    result = run_time(replace(own, predictive=5))
    assert {c.name for c in result.predictive} >= {"differences{a}", "differences{b}", "tree_length"}

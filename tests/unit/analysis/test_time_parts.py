"""`phloem time --partitions`: parts on one clock, their numbers linked or not; what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.time import TimeTreeSettings, run_time, time_input
from phloem.analysis.time_record import time_identity
from phloem.errors import InputError
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.time.run import new_run
from phloem.inference.time.settings import TimeSettings
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


def test_what_parts_share_is_part_of_the_analysis(settings, tmp_path):
    def identity(own):
        return str(time_identity(own, time_input(own).model))

    both = replace(settings, model="HKY+FO+G4")
    (tmp_path / "parts").write_text("DNA, a = 1-12\nDNA, b = 13-20\n")
    linked = replace(both, link=("kappa",))
    assert "kappa{a}" in time_input(both).model.space.elements
    assert "kappa" in time_input(linked).model.space.elements
    seen = {identity(both), identity(linked), identity(replace(both, linkage="linked"))}
    (tmp_path / "parts").write_text("DNA, a = 1-13\nDNA, b = 14-20\n")
    assert len(seen | {identity(both)}) == 4


@pytest.mark.parametrize(
    "change, message",
    [
        ({"predictive": 10}, "--predictive is for one part"),
        ({"chains": TimeSettings(start="lsd")}, "--start lsd is for one part"),
        ({"partitions": None, "link": ("kappa",)}, "there is one"),
        ({"link": ("lengths:a,b",)}, "a rate each or one for all"),
    ],
)
def test_what_cannot_be_is_refused(settings, change, message):
    with pytest.raises(InputError, match=message):
        time_input(replace(settings, **change))


def test_a_device_is_refused(settings):
    data = time_input(settings)
    with pytest.raises(InputError, match="run on CPUs"):
        new_run(0, data.observed(), data.model, settings.chains, device="gpu")
    with pytest.raises(InputError, match="run on CPUs"):
        run_time(replace(settings, device="gpu"))

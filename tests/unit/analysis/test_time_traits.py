"""`phloem time --trait`: what it writes, what it refuses, and that a resumed one is the same."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.draw import DrawTreeSettings, run_draw
from phloem.analysis.time import TimeTreeSettings, run_time, time_input
from phloem.analysis.time_traits import TraitOptions
from phloem.errors import InputError
from phloem.inference.time.settings import TimeSettings
from phloem.io.trees import read_tree
from phloem.plot.drawing import DrawSettings
from unit.auspice_rules import problems, walk

TABLE = "name\tlocation\thost\n" + "".join(
    f"t{i}_{2000 + i}\t{place}\tbird\n" for i, place in enumerate(["New York", "Rome", "Rome", "?", "Hanoi"])
)


@pytest.fixture
def settings(tmp_path):
    rng = np.random.default_rng(1)
    rows = (f">t{i}_{2000 + i}\n{''.join(rng.choice(list('ACGT'), 20))}\n" for i in range(5))
    (tmp_path / "a.fasta").write_text("".join(rows))
    (tmp_path / "dates.tsv").write_text("".join(f"t{i}_{2000 + i}\t{2000 + i}\n" for i in range(5)))
    (tmp_path / "traits.tsv").write_text(TABLE)
    options = TraitOptions(str(tmp_path / "traits.tsv"), "location", "asymmetric", bssvs=True)
    chains = TimeSettings(generations=3000, sample_every=50, check_every=1000, n_runs=1, threads=1)
    return TimeTreeSettings(
        str(tmp_path / "a.fasta"), dates=str(tmp_path / "dates.tsv"), model="HKY+FO+G4", trait=options,
        prefix=str(tmp_path / "out"), chains=chains, device="cpu",
    )  # fmt: skip


def test_states_routes_and_pictures(settings, tmp_path):
    result = run_time(settings)
    named = {route.name for route in result.routes}
    assert len(named) == 6 and "New York->Rome" in named
    assert sorted(r.probability for r in result.routes) == [r.probability for r in result.routes][::-1]
    shown = result.parameters.names
    assert "trait_clock" in shown and "n_routes" in shown and not any("->" in name for name in shown)
    tree = read_tree(str(tmp_path / "out.mcc.tre"))
    for node in range(tree.n_nodes):
        own = tree.annotations[node]
        assert own["location"] == own["location.set"][0] and own["location.prob"] == max(
            own["location.set.prob"]
        )
        assert abs(sum(own["location.set.prob"]) - 1.0) < 1e-9
    known = {tree.taxa[x]: tree.annotations[x]["location"] for x in range(5)}
    assert known["t0_2000"] == "New York" and known["t4_2004"] == "Hanoi"
    rows = (tmp_path / "out.routes.tsv").read_text().splitlines()
    assert len(rows) == 7 and rows[0].split("\t")[:2] == ["route", "probability"]
    assert len(json.loads((tmp_path / "out.json").read_text())["routes"]) == 6
    assert ">New York<" in (tmp_path / "out.trait.svg").read_text()
    picture = DrawSettings(colour_by="location", shape="circular")
    run_draw(DrawTreeSettings(str(tmp_path / "out.mcc.tre"), str(tmp_path / "b.svg"), picture=picture))
    assert ">Hanoi<" in (tmp_path / "b.svg").read_text()
    sampled = (tmp_path / "out.run1.trees").read_text().splitlines()[-2]
    assert sampled.count("location=") == 9 and 'location="New York"' in sampled

    more = replace(settings, auspice=True, metadata=settings.trait.table, metadata_column=("host",))
    assert str(tmp_path / "out.auspice.json") in run_time(more).files  # of a finished analysis too
    found = json.loads((tmp_path / "out.auspice.json").read_text())
    own = {node["name"]: node["node_attrs"] for node, _ in walk(found)}
    assert problems(found) == [] and own["t0_2000"]["num_date"] == {"value": 2000.0, "inferred": False}
    assert own["t0_2000"]["host"] == {"value": "bird"} and "confidence" in own["NODE_0000003"]["location"]
    assert own["NODE_0000003"]["num_date"]["confidence"][0] < own["NODE_0000003"]["num_date"]["value"] < 2000
    half = replace(settings, prefix=str(tmp_path / "half"))
    run_time(replace(half, chains=replace(half.chains, generations=1000, tuning_generations=400)))
    whole = replace(settings, prefix=str(tmp_path / "whole"))
    run_time(replace(whole, chains=replace(whole.chains, tuning_generations=400)))
    run_time(replace(half, chains=replace(half.chains, tuning_generations=400)))
    for file in ("run1.log", "run1.trees", "mcc.tre", "routes.tsv"):
        assert (tmp_path / f"half.{file}").read_text() == (tmp_path / f"whole.{file}").read_text()


def test_without_data_nothing_is_known_of_the_trait(settings):
    prior = replace(settings, chains=replace(settings.chains, use_data=False))
    assert time_input(prior).model.trait.tips.possible.all()
    assert not time_input(settings).model.trait.tips.possible.all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"column": None}, "2 columns besides the names"),
        ({"column": "host"}, "'host' has 1 states"),
        ({"rates": "both"}, "unknown value of 'rates'"),
    ],
)
def test_what_cannot_be_is_refused(settings, change, message):
    with pytest.raises(InputError, match=message):
        time_input(replace(settings, trait=replace(settings.trait, **change)))


def test_other_refusals(settings, tmp_path):
    few = replace(settings, trait=replace(settings.trait, bssvs=True))
    with pytest.raises(InputError, match="traits that have all routes"):
        replace(few, chains=replace(settings.chains, stones=20, generations=100_000))
    (tmp_path / "traits.tsv").write_text(TABLE.replace("location", "rate"))
    with pytest.raises(InputError, match="another annotation"):
        time_input(replace(settings, trait=replace(settings.trait, column="rate")))
    with pytest.raises(InputError, match="there is no 'trait_clock'"):
        time_input(replace(settings, trait=None, prior=("trait_clock=exponential(1)",)))


def test_dates_where_the_latest_one_is_uncertain(settings, tmp_path):
    """Heights are above the youngest tip, which is of another date in every draw: those of the other tips
    are what the table says all the same."""
    dates = "".join(f"t{i}_{2000 + i}\t{'2004..2009' if i == 4 else 2000 + i}\n" for i in range(5))
    (tmp_path / "dates.tsv").write_text(dates)
    result = run_time(replace(settings, trait=None, auspice=True))
    found = json.loads((tmp_path / "out.auspice.json").read_text())
    own = {node["name"]: node["node_attrs"]["num_date"] for node, _ in walk(found)}
    assert problems(found) == []
    for i in range(4):
        assert own[f"t{i}_{2000 + i}"] == {"value": 2000.0 + i, "inferred": False}
    last = own["t4_2004"]
    assert last["inferred"] and 2004 <= last["confidence"][0] < last["value"] < last["confidence"][1] <= 2009
    tips = [result.tree.annotations[x]["height_95%_HPD"] for x in range(4)]
    assert all(high - low > 0.5 for low, high in tips), "which dates by heights would be wrong by"


def test_what_is_asked_wrongly_for_auspice(settings):
    for more, told in (
        ({"metadata_column": ("host",)}, "is for a dataset of Auspice"),
        ({"auspice": True, "chains": replace(settings.chains, stones=5), "trait": None}, "no tree to show"),
    ):
        with pytest.raises(InputError, match=told) as error:
            replace(settings, **more)
        assert error.value.hint
    with pytest.raises(InputError, match="no column is called 'hosts'"):
        run_time(replace(settings, auspice=True, metadata_column=("hosts",), metadata=settings.trait.table))

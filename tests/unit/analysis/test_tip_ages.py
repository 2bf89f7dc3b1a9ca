"""Ages of tips that `--tip-age` says, which stand in the place of dates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.dated_input import DateOptions
from phloem.analysis.time import run_time
from phloem.analysis.time_data import time_input
from phloem.analysis.time_options import time_settings
from phloem.analysis.time_record import time_identity
from phloem.analysis.time_start import with_engine
from phloem.density.terms.normal import Normal
from phloem.errors import InputError
from phloem.inference.time.draws import trace_columns

FASTA = ">living\nACGT\n>old=1\nACGA\n>older\nACGG\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "a.fasta").write_text(FASTA)
    return str(tmp_path / "a.fasta")


def read(file, *ages, **more):
    options = {"alignment": file, "model": "JC", "tip_age": list(ages), "tree_prior": "fbd"} | more
    settings = time_settings(options)
    return settings, time_input(settings)


def test_they_are_heights_of_tips_others_of_the_present(file):
    _, found = read(file, "old=1=2", "older = 3.5,4")
    assert found.model.tip_bounds.tolist() == [[0, 0], [2, 2], [3.5, 4]]
    assert found.dates.latest == 0.0 and found.model.samples_ancestors
    assert not read(file, "older=3", fossils="tips")[1].model.samples_ancestors
    assert not read(file)[1].model.samples_ancestors  # all are of one time
    with pytest.raises(InputError, match="no sample is an ancestor"):
        read(file, "older=3", clock="random")


def test_where_all_are_old_ages_count_from_the_present_too(file):
    """So that the root of fossils 100 old that is said to be 110 to 130 old is that old, not 210 to 230."""
    ages = ("living=100", "old=1=101,103", "older=104")
    more = {"calibrate": ["root=uniform(110,130)"], "prefix": str(Path(file).with_name("it"))}
    settings, found = read(file, *ages, **more)
    assert found.model.tip_bounds.tolist() == [[100, 100], [101, 103], [104, 104]]
    assert found.model.youngest == 0.0 and found.model.scale.time == pytest.approx(20.0)
    assert any("100 after the youngest taxon" in text for text in found.told)
    assert not any("after the youngest" in text for text in read(file, "older=104")[1].told)
    grows = read(file, *ages, tree_prior="exponential")[1]
    assert any("size is that of the present" in text for text in grows.told)
    chains = replace(settings.chains, n_runs=1, generations=4_000, until_converged=False)
    drawn = run_time(replace(settings, chains=chains))
    low, high = (drawn.parameters.hpd_low, drawn.parameters.hpd_high)
    root = drawn.parameters.names.index("age(root)")
    assert 110 <= low[root] < high[root] <= 130 and drawn.ages_before == "the present"
    past = Path(f"{settings.file_prefix}.past.tsv").read_text().splitlines()
    assert past[1].startswith("100\t-100\t")


def test_an_error_is_a_density_of_the_age(file):
    settings, found = read(file, "older=4520±35", "old=1=12+/-4")
    tips = [(one.name, one.taxa, one.age) for one in found.model.clades]
    assert tips == [("tip old=1", ("old=1",), Normal(12, 4)), ("tip older", ("older",), Normal(4520, 35))]
    assert found.model.tip_bounds.tolist() == [[0, 0], [0, 31], [4353.75, 4686.25]]
    columns = trace_columns(found.model).names
    assert {"date(old=1)", "date(older)"} <= set(columns) and not any(c.startswith("age(") for c in columns)
    identity = time_identity(settings, found.model)
    assert identity["moves of uncertain dates"] == "trajectories"  # of which older checkpoints knew nothing
    assert identity != time_identity(settings, read(file, "older=4520±35", "old=1=12+/-5")[1].model)


@pytest.mark.parametrize(
    "ages, told",
    [
        (["older=-1"], "no age of a tip"),
        (["older=3,2"], "no age of a tip"),
        (["older=1,2,3"], "no age of a tip"),
        (["older"], "no age of a tip"),
        (["older=old"], "no age of a tip"),
        (["older=-5±2"], "no age of a tip"),
        (["older=5±0"], "no age of a tip"),
        (["eldest=3"], "the data lack: 'eldest'"),
        (["older=3", "older=4"], "'older' twice"),
    ],
)
def test_what_is_no_age_is_refused(file, ages, told):
    with pytest.raises(InputError, match=told):
        read(file, *ages)


def test_ages_and_dates_do_not_go_together(file):
    with pytest.raises(InputError, match="not both"):
        read(file, "older=3", date_field=-1)


def test_other_ages_are_another_analysis_and_none_are_what_older_checkpoints_say(file):
    def identity(*ages):
        settings, found = read(file, *ages)
        return time_identity(settings, found.model)["dates"]

    assert identity("older=3") == identity("older=3") != identity("older=4")
    settings, found = read(file, "older=3")
    assert time_identity(settings, found.model)["fossils"] == "ancestors"
    settings, found = read(file, "older=3", tree_prior="constant")
    assert not {"fossils", "moves of uncertain dates"} & set(time_identity(settings, found.model))
    assert DateOptions("t.tsv").tip_age == () and identity() is None
    assert identity("older=3")["tip_age"] == ("older=3",)
    assert np.isfinite(read(file, "older=3")[1].model.tip_bounds).all()


def test_sequences_of_ancestors_are_not_sampled_where_samples_may_be_one(file):
    settings, found = read(file, "older=3", engine="ancestors")
    with pytest.raises(InputError, match="where a sample may be one"):
        with_engine(settings, found)
    settings, found = read(file, "older=3", engine="ancestors", fossils="tips")
    assert with_engine(settings, found)[0].chains.ancestors == "sampled"


def test_a_clade_of_one_taxon_is_no_way_to_say_its_age(file):
    with pytest.raises(InputError, match="clade 'x' needs at least two taxa") as caught:
        read(file, "older=3", clade=["x=older"], calibrate=["x=normal(3,1)"])
    assert "--tip-age" in caught.value.hint

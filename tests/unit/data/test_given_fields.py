import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mcmc_options import mcmc_settings
from phloem.analysis.ml_settings import MlSettings, replicates_of
from phloem.analysis.time import TimeSettings, TimeTreeSettings
from phloem.errors import InputError


def test_paths_and_numbers_of_numpy_become_plain():
    options = {
        "alignment": Path("a.nex"),
        "prefix": Path("b"),
        "seed": np.int32(7),
        "heating": np.float32(0.5),
    }
    settings = mcmc_settings(options | {"without": ["x"], "seed": np.int32(7), "generations": np.int64(10)})
    assert json.loads(json.dumps(asdict(settings)))["chains"]["seed"] == 7
    assert (settings.alignment, settings.prefix, settings.without) == ("a.nex", "b", ("x",))
    assert type(settings.chains.generations) is int and settings.chains.heating == 0.5


def test_a_text_alone_is_one_of_several():
    settings = TimeTreeSettings(alignment="a.fasta", dates=Path("d.tsv"), clade="pair=x,y")
    assert settings.clade == ("pair=x,y",) and settings.date_source.dates == "d.tsv"
    assert settings == TimeTreeSettings(alignment="a.fasta", dates="d.tsv", clade=("pair=x,y",))


def test_replicates_are_a_number_or_a_word():
    assert replicates_of(MlSettings(alignment="a.fasta", bootstrap=np.int64(20))) == 20
    assert replicates_of(MlSettings(alignment="a.fasta", bootstrap="auto")) == "auto"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"redo": "no"}, "'redo' must be True or False, not 'no'"),
        ({"seed": 1.5}, "'seed' must be a whole number, not 1.5"),
        ({"alrt": True}, "'alrt' must be a whole number, not True"),
        ({"threads": "2"}, "'threads' must be a whole number or None, not '2'"),
        ({"merge_percent": "10"}, "'merge_percent' must be a number or None"),
        ({"gamma": "average"}, "unknown value of 'gamma': 'average'\n  hint: Choose one of mean, median."),
        ({"engine": "cpu"}, "Choose one of auto, patterns, differences."),
        ({"link": 3}, "'link' must be several values, not 3"),
        ({"outgroup": ["a"]}, "'outgroup' must be a text or None, not ['a']"),
    ],
)
def test_what_a_field_cannot_take_is_refused(given, message):
    with pytest.raises(InputError) as error:
        MlSettings(**{"alignment": "a.fasta"} | given)
    assert message in str(error.value)


def test_an_object_in_the_place_of_a_file_is_refused():
    with pytest.raises(InputError, match=r"'alignment' must be a text, not of type object\n.*their names"):
        MlSettings(alignment=object())


def test_what_says_itself_what_is_wrong_still_does():
    with pytest.raises(InputError, match="generations must be a whole number of at least 1, not 0"):
        TimeSettings(generations=0)

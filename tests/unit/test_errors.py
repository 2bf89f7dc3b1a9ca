from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import InputError, ModelError, in_file, require_choice, require_count, require_seed


def test_the_column_of_a_model_error_is_not_a_line_of_a_file():
    assert str(ModelError("unknown model", column=3)).startswith("model string, column 3: ")
    assert str(InputError("odd", file="a.fa", line=2, column=3)).startswith("a.fa:2:3: ")


def test_a_file_is_added_where_none_is_named():
    with pytest.raises(InputError, match=r"^a\.nwk: odd \(taxon 'odd'\) \(site 2\)$"), in_file("a.nwk"):
        raise InputError("odd", taxon="odd", site=2)
    with pytest.raises(InputError, match=r"^b\.fa: odd \(site 2\)$"), in_file("a.nwk"):
        raise InputError("odd", file="b.fa", site=2)
    with pytest.raises(InputError, match=r"^odd$"), in_file("a.nwk"):
        raise InputError("odd")


@pytest.mark.parametrize("value", [0, -2, 1.5, 2.0, float("nan"), "2", None])
def test_a_count_is_a_whole_number_of_at_least_one(value):
    with pytest.raises(InputError, match="threads must be a whole number of at least 1"):
        require_count("threads", value)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, float("nan"), "1"])
def test_a_seed_is_a_whole_number_of_63_bits(seed):
    with pytest.raises(InputError, match="the seed must be a whole number of 0"):
        require_seed(seed)
    require_seed(np.int64(0))
    require_seed(2**63 - 1)


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_counts(value):
    require_count("threads", value)


def test_a_choice_is_one_of_those_listed():
    require_choice("colour", "red", ("red", "blue"))
    with pytest.raises(InputError, match="unknown colour 'green'\n  hint: Choose one of red, blue"):
        require_choice("colour", "green", ("red", "blue"))

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import (
    InputError,
    ModelError,
    count_of,
    in_file,
    require_choice,
    require_count,
    require_seed,
)


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


@pytest.mark.parametrize("quoted", ["A" * 6000, "a b " * 1500, "9" * 6000, "x" * 81])
def test_a_message_quotes_eighty_characters_at_most(quoted):
    for error in (
        InputError(f"'{quoted}' is no number", taxon=quoted, hint=f"Write it as '{quoted}'."),
        InputError(f"+G{quoted} asks for {quoted} classes"),
        ModelError(f"unknown suffix '{quoted}' of '{quoted}'"),
    ):
        assert len(str(error)) < 500 or " " in quoted[:2] + quoted[-2:]
        assert "is no number" in str(error) or "classes" in str(error) or "' of '" in str(error)


def test_what_is_shorter_is_quoted_whole():
    words = "x" * 80
    path = "/a/long/path" * 20
    error = InputError(f"'{words}' of {words}", file=path, taxon=words, hint=f"See {path}.")
    assert error.message == f"'{words}' of {words}" and str(error).count(words) == 2
    assert str(error).startswith(path) and str(error).endswith(f"{path}."), "names of files stay whole"


def test_numbers_that_users_write():
    assert [count_of(text) for text in ("0", "007", "123456789012345678")] == [0, 7, 123456789012345678]
    assert [count_of(text) for text in ("", "-1", "1.5", "²", "٣", "1_000", " 1")] == [-1] * 7
    assert count_of("9" * 6000) == 10**18


def test_a_hint_quotes_no_endless_word():
    path = "/" + "folder/" * 60
    error = InputError("odd", hint=f"Character sets of the file: {'x' * 10_000}. See {path}.")
    assert len(str(error)) < 700 and error.hint.endswith(f"{'x' * 60}… See {path}.")

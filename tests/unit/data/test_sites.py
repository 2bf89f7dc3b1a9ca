import pytest

from phloem.data.sites import parse_sites
from phloem.errors import InputError

CHARSETS = {"one": "1-3", "both": "one, 8", "loop": "pool", "pool": "loop", "a-b": "4"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1-3", [1, 2, 3]),
        ("1-9\\3", [1, 4, 7]),
        ("2-.\\3", [2, 5, 8]),
        ("7-", [7, 8, 9]),
        (".", [9]),
        ("1\\4", [1, 5, 9]),
        ("8-9, 1 1-2", [1, 2, 8, 9]),
        ("1 - 2", [1, 2]),
        ("all", list(range(1, 10))),
        ("ONE", [1, 2, 3]),
        ("both 5", [1, 2, 3, 5, 8]),
        ("'a-b'", [4]),
    ],
)
def test_columns(text, expected):
    assert (parse_sites(text, 9, CHARSETS) + 1).tolist() == expected


@pytest.mark.parametrize(
    "text, expected",
    [("not 1, 3-5", [2, 6, 7, 8, 9]), ("NOT one", [4, 5, 6, 7, 8, 9]), (" not 1-9\\2,", [2, 4, 6, 8])],
)
def test_all_other_columns(text, expected):
    assert (parse_sites(text, 9, CHARSETS) + 1).tolist() == expected


@pytest.mark.parametrize("text", ["not", "not ", "not all", "not 1-9", "not 10", "1 not 2", "not x"])
def test_bad_columns_of_all_others(text):
    with pytest.raises(InputError) as error:
        parse_sites(text, 9, CHARSETS)
    assert error.value.hint
    assert parse_sites("not 1", 9, {"not": "5"}).tolist() == [0, 4]  # a set of that name comes first


def test_many_sets_of_sets():
    doubling = {f"s{i}": f"s{i + 1} s{i + 1}" for i in range(45)} | {"s45": "3"}
    assert parse_sites("s0", 9, doubling).tolist() == [2]
    chain = {f"s{i}": f"s{i + 1}" for i in range(5000)} | {"s5000": "3"}
    with pytest.raises(InputError):
        parse_sites("s0", 9, chain)


@pytest.mark.parametrize(
    "text", ["", " ", "0", "0-3", "5-3", "10", "1-10", "1-9\\0", "x", "loop", "1-3x", "-3", "1e3", "9" * 40]
)
def test_bad_columns(text):
    with pytest.raises(InputError) as error:
        parse_sites(text, 9, CHARSETS)
    assert error.value.hint


def test_sites_are_text():
    with pytest.raises(InputError, match="as text, not as int"):
        parse_sites(5, 10)

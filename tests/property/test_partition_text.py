"""Partition files written and read again, and damaged ones."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phloem.data.sites import format_sites, parse_sites
from phloem.errors import PhloemError
from phloem.io.partitions import read_partitions

many = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

MODELS = ("GTR+G4", "HKY{2.5}+F{0.1,0.2,0.3,0.4}", "LG", "GY94+F3X4", "DNA", "AA", "MK+ASC")


@many
@given(st.sets(st.integers(0, 80), min_size=1))
def test_columns_as_text_and_back(columns):
    sites = np.array(sorted(columns), np.int64)
    assert parse_sites(format_sites(sites), 81).tolist() == sites.tolist()


@many
@given(st.integers(2, 9), st.sets(st.integers(0, 8)), st.sets(st.integers(0, 80), max_size=3))
def test_columns_by_strides_as_text_and_back(period, chosen, changed):
    """Positions of codons, with columns more or less: equal runs, which are written as strides."""
    sites = np.array(sorted({i for i in range(81) if i % period in chosen} ^ changed), np.int64)
    if len(sites):
        assert parse_sites(format_sites(sites), 81).tolist() == sites.tolist()


def test_first_and_second_positions_are_two_strides():
    assert format_sites(np.array([0, 1, 3, 4, 6, 7, 10])) == "1-7\\3, 2-8\\3, 11"
    assert format_sites(np.array([0, 2, 4, 8, 11])) == "1-5\\2, 9, 12"
    assert format_sites(np.array([0, 1, 2, 4, 5, 6, 8, 9, 10])) == "1-3, 5-7, 9-11"


@st.composite
def partitions(draw):
    """Which subset (0 … k-1, each with at least one column) every column is in, and the models."""
    n_subsets = draw(st.integers(1, 5))
    more = draw(st.lists(st.integers(0, n_subsets - 1), max_size=60))
    owner = draw(st.permutations([*range(n_subsets), *more]))
    return np.array(owner), draw(st.lists(st.sampled_from(MODELS), min_size=n_subsets, max_size=n_subsets))


def as_list(texts, models):
    return "\n".join(f"{model}, s{i} = {text}" for i, (text, model) in enumerate(zip(texts, models)))


def as_iqtree(texts, models):
    sets = "\n".join(f"charset s{i} = {text};" for i, text in enumerate(texts))
    items = ", ".join(f"{model}:s{i}" for i, model in enumerate(models))
    return f"#nexus\nbegin sets;\n{sets}\ncharpartition p = {items};\nend;"


def as_mrbayes(texts, models):
    sets = "\n".join(f"charset s{i} = {text};" for i, text in enumerate(texts))
    names = ", ".join(f"s{i}" for i in range(len(texts)))
    return f"#NEXUS\nbegin mrbayes;\n{sets}\npartition p = {len(texts)}: {names};\nset partition=p;\nend;"


@many
@given(partitions(), st.sampled_from([as_list, as_iqtree, as_mrbayes]))
def test_every_form_gives_the_partition_back(tmp_path, drawn, form):
    owner, models = drawn
    texts = [format_sites(np.flatnonzero(owner == i)).replace(",", " ") for i in range(len(models))]
    (tmp_path / "file").write_text(form(texts, models))
    scheme = read_partitions(tmp_path / "file", len(owner))
    found = np.full(len(owner), -1)
    for number, subset in enumerate(scheme.subsets):
        found[subset.sites] = number
    assert found.tolist() == owner.tolist()
    if form is not as_mrbayes:
        kinds = {"DNA": (None, "dna"), "AA": (None, "protein")}
        expected = [kinds.get(model, (model, None)) for model in models]
        assert [(s.model_text, s.datatype) for s in scheme.subsets] == expected


pieces = st.sampled_from(
    [",", ":", "=", ";", "\\", "-", "9", " ", "\n", "*", ".", "{", "}", "'", "[", "a", "s1"]
)


@many
@given(st.sampled_from([as_list, as_iqtree, as_mrbayes]), st.lists(st.tuples(st.integers(0, 300), pieces)))
def test_damaged_files_raise_only_phloem_errors(tmp_path, form, edits):
    text = form(["1-10", "11-20\\3", "12-20\\3 13-20\\3"], MODELS[:3])
    for position, piece in edits:
        position %= len(text)
        text = text[:position] + piece + text[position + 1 :]
    (tmp_path / "file").write_text(text)
    try:
        scheme = read_partitions(tmp_path / "file", 20)
    except PhloemError as error:
        assert str(error)
    else:
        assert sorted(np.concatenate([s.sites for s in scheme.subsets]).tolist()) == list(range(20))


def test_the_undamaged_seeds_are_valid(tmp_path):
    for form in (as_list, as_iqtree, as_mrbayes):
        (tmp_path / "file").write_text(form(["1-10", "11-20\\3", "12-20\\3 13-20\\3"], MODELS[:3]))
        assert len(read_partitions(tmp_path / "file", 20).subsets) == 3

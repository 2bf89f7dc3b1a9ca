import numpy as np
import pytest

from phloem.data import patterns
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet

ROWS = {"a": "AACAGA", "b": "CCTCTC"}


def check(alignment, found):
    assert np.array_equal(found.codes[:, found.site_pattern], alignment.codes)
    assert len({tuple(column) for column in found.codes.T}) == found.codes.shape[1]
    assert found.weights.sum() == alignment.n_sites
    assert np.array_equal(found.weights, np.bincount(found.site_pattern))
    first = [found.site_pattern.tolist().index(i) for i in range(len(found.weights))]
    assert first == sorted(first)


def test_small():
    alignment = alignment_from_sequences(ROWS, alphabet("dna"))
    found = patterns.site_patterns(alignment)
    check(alignment, found)
    assert found.weights.tolist() == [4, 1, 1]


@pytest.mark.parametrize("n_taxa, n_sites", [(1, 63), (2, 1), (5, 1000), (64, 257)])
def test_random(n_taxa, n_sites):
    random = np.random.default_rng(n_taxa)
    rows = {f"t{i}": "".join(random.choice(list("ACGTR-"), n_sites)) for i in range(n_taxa)}
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    check(alignment, patterns.site_patterns(alignment))


@pytest.mark.parametrize(
    "weak", [lambda codes: codes[0].astype(np.uint64), lambda codes: np.zeros(codes.shape[1])]
)
def test_columns_that_share_a_hash_stay_apart(monkeypatch, weak):
    alignment = alignment_from_sequences({"a": "AAAC", "b": "CGCC"}, alphabet("dna"))
    expected = patterns.site_patterns(alignment)
    monkeypatch.setattr(patterns, "_column_hashes", weak)
    found = patterns.site_patterns(alignment)
    check(alignment, found)
    assert np.array_equal(found.codes, expected.codes)

"""Arrays that hold no distances, and settings that name nothing, are refused before a tree is made."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.arrays import require_symmetry
from phloem.clustering.distances import pairwise_distances
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.settings import DistanceSettings, check_settings
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle
from phloem.errors import InputError
from phloem.model.grammar import parse_model

MAKERS = [linkage, lambda d: neighbour_joining(d, "nj"), lambda d: neighbour_joining(d, "bionj")]


def distances(n: int) -> np.ndarray:
    points = np.random.default_rng(n).random((n, 3))
    return np.linalg.norm(points[:, None] - points, axis=2)


D = distances(5)
HKY = parse_model("HKY{2}+FQ", datatype="dna").evaluate()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n", [5, 300])
def test_half_a_matrix_is_refused(make, n):
    for half in (np.tril(distances(n)), np.triu(distances(n)), np.random.default_rng(1).random((n, n))):
        with pytest.raises(InputError, match="not symmetric"):
            make(half)
    make(distances(n))  # the whole one is not


def test_rounding_is_no_asymmetry():
    d = distances(300)
    require_symmetry(d * (1 + 1e-6 * np.random.default_rng(2).random(d.shape)))
    require_symmetry(np.zeros((0, 0)))
    small = d * 1e-9
    small[4, 9] = small[9, 4] = 0.0
    small[4, 9] = 1e-18
    require_symmetry(small)
    with pytest.raises(InputError, match="not symmetric"):
        require_symmetry(np.tril(small))
    d[3, 7] = d[7, 3] = np.nan  # found later, as a NumericalError
    require_symmetry(d)


@pytest.mark.parametrize(
    "array",
    [D.tolist(), (10 * D).astype(int), D[:4], D.astype(np.float16)],
    ids=["list", "integers", "rows missing", "half precision"],
)
@pytest.mark.parametrize("make", MAKERS)
def test_other_arrays_are_refused(make, array):
    with pytest.raises(InputError, match=r"no square of distances|holds no distances"):
        make(array)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n", [2, 5, 300])
def test_what_would_be_read_as_other_distances_is_refused(make, n):
    """Neighbour joining sums whole rows: similarities, ones on the diagonal, gave a tree without a word."""
    d, one = distances(n), np.zeros((n, n))
    one[n // 2, n // 2] = np.nan
    for wrong in (np.exp(-d), d + one, 100 - d, np.where(np.eye(n) > 0, np.inf, d)):
        with pytest.raises(InputError, match="to itself is"):
            make(wrong)
    with pytest.raises(InputError, match="negative"):
        make(-d)
    with pytest.raises(InputError, match="masked array"):
        make(np.ma.masked_array(d, d > 0.5))
    make(d + 1e-16 * np.eye(n))  # rounding


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("n", [5, 300])
def test_arrays_of_other_classes_and_those_that_cannot_be_written(n):
    d = distances(n)
    fixed, other = d.copy(), d.copy()
    fixed.flags.writeable = False
    for make in (linkage, neighbour_joining):
        expected = make(d).tree([str(k) for k in range(n)])
        for given in (np.asmatrix(other), fixed):
            made = make(given, overwrite=given is fixed).tree([str(k) for k in range(n)])
            assert np.array_equal(made.lengths, expected.lengths)
    assert np.array_equal(fixed, d)


def test_scipys_names_of_methods_and_files_in_place_of_alignments():
    with pytest.raises(InputError, match="called 'upgma'"):
        linkage(np.zeros((2, 2)), "average")
    with pytest.raises(InputError, match="is of type str"):
        pairwise_distances("primates.nex")


def test_methods_that_there_are_not():
    with pytest.raises(InputError, match="unknown method of linkage 'ward'"):
        linkage(D, "ward")
    with pytest.raises(InputError, match="unknown method of joining 'upgma'"):
        neighbour_joining(D, "upgma")
    triangle = DistanceTriangle(("a", "b"), np.ones(1))
    with pytest.raises(InputError, match="threads"):
        linkage(triangle, threads=1.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "half"}, "unknown value of 'precision'"),
        ({"ambiguity": "share"}, "unknown value of 'ambiguity'"),
        ({"deletion": "some"}, "unknown value of 'deletion'"),
        ({"saturated": "drop"}, "unknown value of 'saturated'"),
        ({"threads": 0}, "threads"),
        ({"method": "tn93", "frequencies": (0.5, 0.5)}, "must be 4 values"),
        ({"method": "tn93", "frequencies": (1, 1, 1, 1)}, "sum to 1"),
        ({"method": "f84", "frequencies": (0.3, 0.3, 0.4, float("nan"))}, "four positive numbers"),
        ({"method": "jc69", "frequencies": (0.3, 0.2, 0.27, 0.23)}, "jc69 .* no use for 'frequencies'"),
        ({"method": "k80", "model": HKY}, "k80 distance has no use for 'model'"),
    ],
)
def test_settings_that_mean_nothing(settings, message):
    with pytest.raises(InputError, match=message):
        check_settings(DistanceSettings(**settings), "dna")
    check_settings(DistanceSettings("tn93", frequencies=(0.3, 0.2, 0.27, 0.23)), "dna")


@pytest.mark.parametrize("make", MAKERS)
def test_a_matrix_is_the_array_that_it_holds(make):
    matrix = DistanceMatrix(tuple("abcde"), D)
    made = make(matrix).tree(matrix.taxa)
    assert np.array_equal(made.lengths, make(D).tree(matrix.taxa).lengths)
    others = (tuple("aabcd"), "'a' occurs twice"), (range(5), "0 is no name")
    for wrong, message in ((matrix.taxa[:-1], "names for"), ("abcd", "one text for"), *others):
        with pytest.raises(InputError, match=message):
            make(matrix).tree(wrong)

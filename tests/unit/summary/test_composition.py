"""Composition of sequences and symmetry of pairs, against tables by hand, SciPy and IQ-TREE's printed p."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet as alphabet_of
from phloem.io.alignment import read_alignment
from phloem.summary.composition import _tables, composition_test, symmetry_test

DNA, PROTEIN = alphabet_of("dna"), alphabet_of("protein")
EXAMPLE = Path(__file__).parents[3] / "examples" / "primates.nex"
# IQ-TREE 2.0.7's "Composition p-value" of the same characters, in percent, in the order of the file.
IQTREE = {
    "Tarsius_syrichta": 1.11, "Lemur_catta": 10.98, "Homo_sapiens": 30.81, "Pan": 56.54,
    "Gorilla": 53.46, "Pongo": 4.15, "Hylobates": 47.17, "Macaca_fuscata": 98.12,
    "M_mulatta": 99.35, "M_fascicularis": 99.16, "M_sylvanus": 73.86, "Saimiri_sciureus": 8.73,
}  # fmt: skip


def of(alphabet=DNA, **rows):
    return alignment_from_sequences(rows, alphabet)


def test_composition_is_iqtrees_on_the_primates():
    found = composition_test(read_alignment(EXAMPLE))
    taxa = read_alignment(EXAMPLE).taxa
    percent = {taxon: round(100 * p, 2) for taxon, p in zip(taxa, found.p.tolist())}
    assert percent == pytest.approx(IQTREE, abs=0.011)
    assert found.degrees_of_freedom == 3


def test_composition_is_scipys_and_leaves_gaps_and_ambiguity_out():
    data = of(a="AACCGGTTAA", b="AAAAAAAC--", c="ACGTACGTRN", d="CCCCGGTT??")
    found = composition_test(data)
    total = np.array([2 + 2 + 7 + 2, 2 + 1 + 2 + 4, 2 + 2 + 2, 2 + 2 + 2])
    counts = [[4, 2, 2, 2], [7, 1, 0, 0], [2, 2, 2, 2], [0, 4, 2, 2]]
    assert found.counts.tolist() == counts and found.expected == pytest.approx(total / 34)
    for k, own in enumerate(counts):
        want = chisquare(own, np.sum(own) * total / 34)
        assert (found.chi_square[k], found.p[k]) == pytest.approx(tuple(want), rel=1e-12)


def test_a_state_that_nobody_has_is_no_degree_of_freedom_and_an_empty_sequence_is_not_tested():
    found = composition_test(of(a="AACC", b="ACCC", c="----"))
    assert found.degrees_of_freedom == 1 and np.isnan(found.p[2])
    assert found.p[0] == pytest.approx(chi2.sf(found.chi_square[0], 1), rel=1e-12)
    assert np.isnan(composition_test(of(a="AAAA", b="AA-A")).p).all()


def test_bowker_of_a_table_by_hand():
    # n_AC 6, n_CA 1; n_AG 2, n_GA 2; n_GT 3, n_TG 0: 25/7 + 0 + 3 with three degrees of freedom
    pairs = "AC" * 6 + "CA" + "AG" * 2 + "GA" * 2 + "GT" * 3 + "AA" * 9 + "TT" * 4 + "A-N?RCA?"
    found = symmetry_test(of(a=pairs[::2], b=pairs[1::2]))
    assert found.pairs.tolist() == [[0, 1]] and found.degrees_of_freedom.tolist() == [3]
    assert found.chi_square[0] == pytest.approx(25 / 7 + 3, rel=1e-12)
    assert found.p[0] == pytest.approx(chi2.sf(25 / 7 + 3, 3), rel=1e-12)


def by_hand(data):
    n, rows = data.alphabet.n_states, data.codes.astype(int)
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            table = np.zeros((n, n))
            for s, t in zip(rows[i], rows[j]):
                if s < n and t < n:
                    table[s, t] += 1
            square, freedom = 0.0, 0
            for s in range(n):
                for t in range(s):
                    if table[s, t] + table[t, s]:
                        square += (table[s, t] - table[t, s]) ** 2 / (table[s, t] + table[t, s])
                        freedom += 1
            yield [i, j], square, freedom


@pytest.mark.parametrize(("alphabet", "letters"), [(DNA, "ACGTRN-"), (PROTEIN, "ACDEFGHIKLMNPQRSTVWYXB-")])
def test_bowker_of_all_pairs_is_that_of_each(alphabet, letters, monkeypatch):
    monkeypatch.setattr("phloem.summary.composition._CELLS", 500)  # several pieces
    rng = np.random.default_rng(3)
    first = rng.choice(list(letters), 60)
    rows = {
        f"t{k}": "".join(np.where(rng.random(60) < 0.4, rng.choice(list(letters), 60), first))
        for k in range(9)
    }
    rows["equal"] = rows["t0"]
    data = of(alphabet, **rows)
    found = symmetry_test(data)
    want = list(by_hand(data))
    assert found.pairs.tolist() == [pair for pair, _, _ in want]
    assert found.degrees_of_freedom.tolist() == [freedom for _, _, freedom in want]
    for k, (pair, square, freedom) in enumerate(want):
        if pair == [0, 9]:
            assert freedom == 0 and np.isnan(found.p[k]) and np.isnan(found.chi_square[k])
        else:
            assert found.chi_square[k] == pytest.approx(square, rel=1e-12)
            assert found.p[k] == pytest.approx(chi2.sf(square, freedom), rel=1e-10)


def simulated(rng, shift):
    """Two descendants of one sequence; shift: of sites that one has turned to A."""
    ancestor = rng.choice(4, 400)
    one, other = (np.where(rng.random(400) < 0.3, rng.choice(4, 400), ancestor) for _ in range(2))
    one = np.where(rng.random(400) < shift, 0, one)
    rows = {"one": one, "other": other}
    return of(**{name: "".join("ACGT"[k] for k in row) for name, row in rows.items()})


def test_p_values_are_uniform_where_the_model_holds_and_small_where_one_lineage_drifted():
    rng = np.random.default_rng(1)
    null = np.array([symmetry_test(simulated(rng, 0.0)).p[0] for _ in range(400)])
    assert 0.02 < (null < 0.05).mean() < 0.085 and 0.44 < (null < 0.5).mean() < 0.56
    drifted = np.array([symmetry_test(simulated(rng, 0.3)).p[0] for _ in range(30)])
    assert (drifted < 1e-3).mean() > 0.9


def test_the_comparisons_see_a_planted_error(monkeypatch):
    """A degree of freedom too many, gaps counted as a state, tables read one way round only."""
    data, module = read_alignment(EXAMPLE), "phloem.summary.composition"
    right = composition_test(data), symmetry_test(data)
    percent = np.array(list(IQTREE.values()))
    assert abs(100 * right[0].p - percent).max() < 0.011
    with monkeypatch.context() as planted:
        planted.setattr(f"{module}.chdtrc", lambda k, x: chi2.sf(x, np.asarray(k) + 1))
        assert abs(100 * composition_test(data).p - percent).max() > 1
        assert abs(symmetry_test(data).p - right[1].p).max() > 0.01
    gaps = replace(data, codes=np.minimum(data.codes, 3))  # as if they were T
    assert abs(100 * composition_test(gaps).p - percent).max() > 0.011
    with monkeypatch.context() as planted:
        planted.setattr(f"{module}._tables", lambda *given: (np.triu(table) for table in _tables(*given)))
        assert abs(symmetry_test(data).p - right[1].p).max() > 0.01

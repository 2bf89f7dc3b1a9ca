from itertools import product
from pathlib import Path

import numpy as np
import pytest
from Bio.Data.IUPACData import ambiguous_dna_values

from phloem.data.alignment import alignment_from_matrix, alignment_from_sequences, alignment_from_states
from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import genetic_code
from phloem.errors import InputError
from phloem.io.alignment import read_alignment

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DNA, CODON = alphabet("dna"), alphabet("codon")


def allowed(alignment, row, site):
    code = alignment.codes[row, site]
    return {alignment.alphabet.states[i] for i in np.flatnonzero(alignment.state_sets[code])}


def test_nucleotides():
    alignment = alignment_from_sequences({"a": "ACGTU", "b": "acgtu", "c": "RN-?X"}, DNA)
    assert alignment.codes[:2].tolist() == [[0, 1, 2, 3, 3]] * 2
    assert alignment.codes[2].tolist() == [5, 4, 4, 4, 4]
    assert allowed(alignment, 2, 0) == {"A", "G"}
    assert (
        alignment.state_sets[:4].tolist() == np.eye(4, dtype=bool).tolist() and alignment.state_sets[4].all()
    )
    assert alignment.settings["ambiguity"] == "partial" and alignment.settings["n_ambiguous"] == 1


def test_ambiguity_missing():
    alignment = alignment_from_sequences({"a": "ARYN"}, DNA, ambiguity="missing")
    assert alignment.codes.tolist() == [[0, 4, 4, 4]]
    assert alignment.settings["ambiguity"] == "missing" and alignment.settings["n_ambiguous"] == 2


@pytest.mark.parametrize("number", [1, 2, 6, 31])
def test_every_ambiguous_codon_against_enumeration(number):
    code, states = genetic_code(number), alphabet("codon", number)
    letters = sorted(ambiguous_dna_values)
    triplets = ["".join(triplet) for triplet in product(letters, repeat=3)]
    expected = [
        {"".join(c) for c in product(*(ambiguous_dna_values[x] for x in triplet))} & set(code.sense_codons)
        for triplet in triplets
    ]
    kept = [i for i, codons in enumerate(expected) if codons]
    alignment = alignment_from_sequences({"a": "".join(triplets[i] for i in kept)}, states)
    for site, i in enumerate(kept):
        assert allowed(alignment, 0, site) == expected[i], triplets[i]
    missing = alignment_from_sequences({"a": "".join(triplets[i] for i in kept)}, states, ambiguity="missing")
    for site, i in enumerate(kept):
        certain = set(triplets[i]) <= set("ACGT")
        assert (missing.codes[0, site] < states.n_states) == certain, triplets[i]
    for i in set(range(len(triplets))) - set(kept):
        with pytest.raises(InputError, match="stop codon"):
            alignment_from_sequences({"a": triplets[i]}, states)


def test_stop_codons():
    rows = {"human": "ATGTAAGCC", "mouse": "ATGGGGTAR"}
    with pytest.raises(InputError) as error:
        alignment_from_sequences(rows, CODON)
    assert error.value.taxon == "human" and error.value.site == 4
    assert "TAA" in str(error.value) and "codon 2" in str(error.value) and "mask" in error.value.hint
    assert "--sites" not in error.value.hint  # some are ahead of the last codon
    ended = {"human": "ATGAAATAA", "mouse": "ATGGGGTAR"}
    with pytest.raises(InputError) as error:
        alignment_from_sequences(ended, CODON)
    assert "All stops are in the last codon" in error.value.hint and "--sites 1-6," in error.value.hint
    with pytest.raises(InputError) as error:
        alignment_from_sequences({"human": "TAA", "mouse": "TAG"}, CODON)
    assert "--sites" not in error.value.hint  # nothing would be left
    masked = alignment_from_sequences(rows, CODON, stop_codons="mask")
    assert masked.codes[0, 1] == masked.codes[1, 2] == 61
    assert masked.settings["n_stop_codons_masked"] == 2
    assert alignment_from_sequences({"a": "TGA"}, alphabet("codon", 2)).codes[0, 0] < 60


def test_stop_codon_names_the_column_of_the_file():
    with pytest.raises(InputError) as error:
        alignment_from_sequences({"a": "CCATGTAA"}, CODON, sites="3-8")
    assert error.value.site == 6 and "columns 6 to 8" in str(error.value)


def test_no_multiple_of_three():
    with pytest.raises(InputError, match="multiple of three") as error:
        alignment_from_sequences({"a": "ATGA"}, CODON)
    assert error.value.taxon == "a" and error.value.site == 4
    assert "taxon 'a'" in str(error.value)


def test_protein_stop():
    rows = {"a": "MK*", "b": "MKV"}
    with pytest.raises(InputError) as error:
        alignment_from_sequences(rows, alphabet("protein"))
    assert error.value.taxon == "a" and error.value.site == 3
    masked = alignment_from_sequences(rows, alphabet("protein"), stop_codons="mask")
    assert masked.codes[0, 2] == 20 and masked.settings["n_stop_codons_masked"] == 1


def test_sites():
    rows = {"a": "ACGTAC"}
    assert alignment_from_sequences(rows, DNA, sites="2-6\\2").codes.tolist() == [[1, 3, 1]]
    assert alignment_from_sequences(rows, DNA, sites="5-6, 1").codes.tolist() == [[0, 0, 1]]


def test_sets_of_characters():
    matrix = np.array([[256, ord("A"), 257]], np.uint16)
    alignment = alignment_from_matrix(["x"], matrix, DNA, sets={256: "AC", 257: "G"})
    assert allowed(alignment, 0, 0) == {"A", "C"} and allowed(alignment, 0, 2) == {"G"}
    codon = alignment_from_matrix(["x"], matrix, CODON, sets={256: "AC", 257: "G"})
    assert allowed(codon, 0, 0) == {"AAG", "CAG"}


def test_256_states():
    states = alphabet("custom", symbols=[f"p{i}" for i in range(256)])
    alignment = alignment_from_states({"a": ["p0", "p255"], "b": ["?", "-"]}, states)
    assert alignment.codes.dtype == np.uint16 and alignment.codes.tolist() == [[0, 255], [256, 256]]
    with pytest.raises(InputError) as error:
        alignment_from_states({"a": ["q"]}, states)
    assert error.value.taxon == "a" and error.value.site == 1


@pytest.mark.parametrize(
    "rows, taxon",
    [
        ({"a": "ACGT", "b": "AC"}, "b"),
        ({"a": "ACJT"}, "a"),
        ({"a": "AC–T"}, "a"),
        ({}, None),
        ({"a": ""}, None),
    ],
)
def test_bad_sequences(rows, taxon):
    with pytest.raises(InputError) as error:
        alignment_from_sequences(rows, DNA)
    assert error.value.taxon == taxon and error.value.hint


@pytest.mark.parametrize("choice", [{"ambiguity": "maybe"}, {"stop_codons": "ignore"}])
def test_bad_choices(choice):
    with pytest.raises(InputError):
        alignment_from_sequences({"a": "ACG"}, CODON, **choice)


@pytest.mark.parametrize("name, end, patterns", [("carnivores", 10869, 3601), ("west_nile", 11028, 1115)])
def test_codon_patterns_of_the_benchmark_data(name, end, patterns):
    from phloem.data.patterns import site_patterns

    alignment = read_alignment(
        EXAMPLES / f"{name}.fasta.gz", "codon", stop_codons="mask", ambiguity="missing", sites=f"1-{end}"
    )
    assert site_patterns(alignment).codes.shape == (alignment.n_taxa, patterns)

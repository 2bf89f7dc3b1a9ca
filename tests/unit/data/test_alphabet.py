import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Data.IUPACData import ambiguous_dna_values

from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import CODONS, genetic_code, genetic_code_numbers
from phloem.errors import InputError


def test_state_orders():
    assert alphabet("dna").states == tuple("ACGT")
    assert alphabet("RNA").states == tuple("ACGU")
    assert alphabet("aa").states == tuple("ARNDCQEGHILKMFPSTWYV")
    assert alphabet("binary").states == ("0", "1")
    assert alphabet("standard").states[:11] == tuple("0123456789A")
    codons = alphabet("codon").states
    assert codons == tuple(sorted(codons)) and len(codons) == 61 and "TAA" not in codons


def test_nucleotide_ambiguity_is_iupac():
    states = alphabet("dna")
    for letter, members in ambiguous_dna_values.items():
        assert states.characters[letter] == tuple(sorted("ACGT".index(base) for base in members))
    assert states.characters["U"] == states.characters["T"]


def test_protein_ambiguity():
    states = alphabet("protein")
    meaning = {letter: {states.states[i] for i in states.characters[letter]} for letter in "BZJ"}
    assert meaning == {"B": {"N", "D"}, "Z": {"Q", "E"}, "J": {"I", "L"}}
    assert all(len(states.characters[letter]) == 20 for letter in "XUO-?")
    assert "*" not in states.characters


@pytest.mark.parametrize("number", sorted(unambiguous_dna_by_id))
def test_genetic_codes_are_ncbis(number):
    table, code = unambiguous_dna_by_id[number], genetic_code(number)
    for codon in CODONS:
        expected = table.forward_table.get(codon, "*")
        assert code.translate(codon) == expected
    assert len(alphabet("codon", number).states) == len(code.sense_codons) == 64 - len(code.stop_codons)


def test_all_codes_are_there():
    assert set(genetic_code_numbers()) == set(unambiguous_dna_by_id)


def test_custom_states():
    assert alphabet("custom", symbols=[f"place{i}" for i in range(256)]).n_states == 256
    assert alphabet("custom", symbols="aA").case_sensitive
    assert not alphabet("custom", symbols="ab").case_sensitive


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "morse"},
        {"kind": "codon", "genetic_code": 7},
        {"kind": "custom"},
        {"kind": "custom", "symbols": ""},
        {"kind": "custom", "symbols": "aba"},
        {"kind": "custom", "symbols": "a-"},
        {"kind": "custom", "symbols": [str(i) for i in range(257)]},
        {"kind": "dna", "symbols": "ACGT"},
    ],
)
def test_bad_alphabets(arguments):
    with pytest.raises(InputError) as error:
        alphabet(**arguments)
    assert error.value.hint

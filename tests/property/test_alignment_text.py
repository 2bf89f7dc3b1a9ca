"""Whatever a file holds, reading it gives an alignment or phloem's own error; writing gives it back."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.sites import parse_sites
from phloem.errors import PhloemError
from phloem.io.alignment import (
    part_alignment,
    read_alignment,
    read_characters,
    read_scheme,
    write_fasta,
    write_nexus,
    write_phylip,
)
from phloem.io.date_table import dates_from_table
from phloem.io.dates import dates_from_names
from phloem.io.nexus import read_blocks

FASTA = b">a desc\nACGTRYN-\n>b\nacgtuu\n??\n>c\nAC-TACGT\n"
PHYLIP = b"3 8\nalpha     ACGT\nbeta      AC-T\ngamma     ACGN\n\nACGT\nAC?T\nACGT\n"
NEXUS = b"""#NEXUS [c [nested] c]
begin taxa; dimensions ntax=3; taxlabels a 'b b' "c"; end;
begin data;
 dimensions ntax=3 nchar=8;
 format datatype=mixed(standard:1-4,dna:5-8) interleave=yes missing=? gap=- matchchar=. equate="x=0 R={AG}";
 matrix
 a      01{01}(0 1)  [comment; 'quote]
 'b b'  0.?-
 "c"    0000
 a      ACGT
 'b b'  RC.-
 "c"    {AC}CGT ;
end;
begin sets; charset one = 1-4\\2 7; charset 'two' = one 5-.; taxset t = 1-2; end;
begin mrbayes; lset nst=6 rates=gamma; charset x = 1 - 3; end;
"""
STANDARD = b"""#NEXUS
begin data; dimensions ntax=2 nchar=4; format datatype=standard symbols="0~3 A" gap=- respectcase;
matrix a 0123
b {01}(2,3)
A-; end;"""
SEEDS = [FASTA, PHYLIP, NEXUS, STANDARD]
PIECES = [bytes([byte]) for byte in b"[]{}()'\";=\n\r \t\0\xff>*-?.0~\\,:"] + [
    b"9" * 30, b"nchar=0", b"ntax=1000000000000", b"format", b"end;", b"begin x;", b"matrix", b"mixed(",
    b"symbols=", b"equate=", b"interleave", b"1-2\\3", b"\xe2\x80\x93", b"\xc4\xb0",
]  # fmt: skip

edits = st.lists(
    st.tuples(
        st.integers(0, 900), st.integers(0, 12), st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))
    ),
    min_size=1,
    max_size=4,
)
many = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
options = st.fixed_dictionaries(
    {},
    optional={
        "datatype": st.sampled_from(
            ["dna", "rna", "protein", "codon", "binary", "standard", "custom", "nonsense"]
        ),
        "stop_codons": st.sampled_from(["error", "mask"]),
        "ambiguity": st.sampled_from(["partial", "missing"]),
        "sites": st.sampled_from(["1-4", "5-8", "1-6\\2", "one", "two", "9-", "x", ".", "all", "1-.\\3"]),
        "genetic_code": st.sampled_from([1, 2, 7, 31]),
    },
)


def mutated(seed, changes):
    for position, length, piece in changes:
        position %= len(seed) + 1
        seed = seed[:position] + piece + seed[position + length :]
    return seed


def read_parts(path, own_sets=False):
    """The parts that the file declares, or those of its own CHARSETs and partitions."""
    characters = read_characters(path)
    scheme = read_scheme(characters, path if own_sets else None, unassigned="drop")
    return [part_alignment(characters, subset) for subset in scheme.subsets]


def check(path, data, arguments):
    path.write_bytes(data)
    try:
        alignment = read_alignment(path, **arguments)
        assert alignment.codes.max() < len(alignment.state_sets)
        assert alignment.state_sets.any(axis=1).all()
        assert len(set(alignment.taxa)) == alignment.n_taxa == len(alignment.codes)
        assert isinstance(str(alignment.settings), str)
    except PhloemError as error:
        assert str(error)
    for own in (False, True):
        try:
            read_parts(path, own)
        except PhloemError as error:
            assert str(error)


@many
@given(st.sampled_from(SEEDS), edits, options)
def test_mutated_files_raise_only_phloem_errors(tmp_path, seed, changes, arguments):
    check(tmp_path / "file", mutated(seed, changes), arguments)


@many
@given(
    st.one_of(st.binary(max_size=80), st.text(max_size=80).map(lambda t: t.encode("utf-8", "replace"))),
    options,
)
def test_any_bytes_raise_only_phloem_errors(tmp_path, data, arguments):
    check(tmp_path / "file", data, arguments)
    check(tmp_path / "file", b"#NEXUS\nbegin data;" + data, arguments)
    check(tmp_path / "file", b"2 4\n" + data, arguments)
    check(tmp_path / "file", b">" + data, arguments)


@many
@given(edits)
def test_damaged_gzip_raises_only_phloem_errors(tmp_path, changes):
    check(tmp_path / "file.gz", mutated(gzip.compress(FASTA), changes), {})


@many
@given(st.text(max_size=60))
def test_small_grammars_raise_only_phloem_errors(text):
    for action in (
        lambda: parse_sites(text, 20, {"a": "b 1", "b": "a"}),
        lambda: read_blocks("#NEXUS " + text),
        lambda: dates_from_names([text]),
        lambda: dates_from_names(["a_2001"], text),
        lambda: dates_from_table(text),
        lambda: alphabet("custom", symbols=text),
        lambda: alignment_from_sequences({"a": text}, alphabet("protein")),
    ):
        try:
            action()
        except PhloemError as error:
            assert str(error)


@many
@given(st.sampled_from(SEEDS), st.integers(0, 900))
def test_every_truncated_file_is_read_or_refused(tmp_path, seed, length):
    check(tmp_path / "file", seed[:length], {})


def test_the_seeds_themselves_are_valid(tmp_path):
    """Without this, the mutations above could all stop at the same early error."""
    for seed in SEEDS:
        (tmp_path / "file").write_bytes(seed)
        assert read_parts(tmp_path / "file")


ROUND_TRIPS = {
    "dna": ("dna", "ACGTRYSWKMBDHV-"),
    "rna": ("rna", "ACGURYSWKMBDHV-"),
    "protein": ("protein", "ARNDCQEGHILKMFPSTWYVBZJ-"),
    "binary": ("binary", "01-"),
    "standard": ("standard", "0123456789AZ-"),
}


@pytest.mark.parametrize("kind", ROUND_TRIPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_round_trips(tmp_path, kind, data):
    states, characters = alphabet(ROUND_TRIPS[kind][0]), ROUND_TRIPS[kind][1]
    width = data.draw(st.integers(1, 30))
    sequence = st.text(characters, min_size=width, max_size=width)
    name = st.text("abcXYZ01_.'-", min_size=1, max_size=12)
    alignment = alignment_from_sequences(
        data.draw(st.dictionaries(name, sequence, min_size=1, max_size=5)), states
    )
    for write in (write_fasta, write_phylip, write_nexus):
        write(alignment, tmp_path / "file")
        again = read_alignment(tmp_path / "file", datatype=states)
        assert again.taxa == alignment.taxa, write
        assert np.array_equal(again.codes, alignment.codes), write
        assert np.array_equal(again.state_sets, alignment.state_sets), write


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text("ACGTRYN-", min_size=12, max_size=12), min_size=1, max_size=4),
    st.sampled_from([1, 2, 31]),
)
def test_codon_round_trips(tmp_path, rows, code):
    named = {f"t{i}": row for i, row in enumerate(rows)}
    alignment = alignment_from_sequences(named, alphabet("codon", code), stop_codons="mask")
    for write in (write_fasta, write_phylip, write_nexus):
        write(alignment, tmp_path / "file")
        again = read_alignment(tmp_path / "file", datatype="codon", genetic_code=code)
        assert np.array_equal(again.codes, alignment.codes)
        assert np.array_equal(again.state_sets, alignment.state_sets)

"""Genomes read as differences: streamed or from memory, the same; errors with their place."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.genomes import genomes_of, read_genomes

TEXT = ">a first\nACGTNN\nACRT\n>b\nACGTNNACRT\n>c\r\nNNGTACGC-T\n>d\nacguacgcat\n"


@pytest.mark.parametrize("ambiguity", ["partial", "missing"])
def test_a_stream_gives_what_the_alignment_gives(tmp_path, ambiguity):
    path = tmp_path / "x.fa.gz"
    path.write_bytes((gzip if ambiguity == "partial" else lzma).compress(TEXT.encode()))
    streamed = read_genomes(path, ambiguity)
    held = genomes_of(read_alignment(path, datatype="dna", ambiguity=ambiguity))
    assert streamed.taxa == held.taxa == ("a", "b", "c", "d")
    for name in ("reference", "group", "offsets", "span", "states", "counts"):
        assert np.array_equal(getattr(streamed, name), getattr(held, name)), name
    assert streamed.group.tolist() == [0, 0, 1, 2]
    assert "".join("ACGT"[s] for s in streamed.reference) == "ACGTACACAT"[:6] + "".join(
        "ACGT"[s] for s in streamed.reference[6:]
    )


def test_differences_are_runs_and_sets(tmp_path):
    path = tmp_path / "x.fa"
    path.write_text(">a\nAAAAAAAA\n>b\nAANNNARA\n>c\nAAAAAAAC\n")
    genomes = read_genomes(path)
    assert genomes.offsets.tolist() == [0, 0, 2, 3]
    assert genomes.span.tolist() == [[2, 5], [6, 7], [7, 8]]
    assert genomes.states.tolist() == [15, 5, 2]
    assert genomes.missing.tolist() == [0, 3, 0]
    assert genomes.substitutions.tolist() == [0, 1, 1]
    assert genomes.counts[[1, 2, 5, 15]].tolist() == [19, 1, 1, 3]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (">a\nACGT\n>b\nACG\n", "'b' has 3 characters, 'a' has 4", 3),
        (">a\nACGT\n>b\nACQT\n", "unknown character 'Q'", 3),
        (">a\nACGT\n>a\nACGT\n", "'a' is there twice", None),
        ("ACGT\n>a\nACGT\n", "characters before the first name", 1),
        (">a\nACGT\n>\nACGT\n", "the header has no name", 3),
        (">a\n>b\n", "no characters", 1),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, message, line):
    path = tmp_path / "x.fa"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_genomes(path)
    assert caught.value.line == line
    assert caught.value.file == str(path)

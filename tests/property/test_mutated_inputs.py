"""Damaged inputs of every kind, thrown at every reader: what is refused is refused by phloem's own errors.

A few thousand in the usual suite, a million in the slow one. What the inputs are follows from SEED and the
number of the share, so that a failure can be repeated.
"""

from __future__ import annotations

import gzip
import io
import random
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from phloem.analysis.mcmc_options import command_line, mcmc_settings
from phloem.analysis.mrbayes import block_analysis
from phloem.errors import InputWarning, PhloemError
from phloem.io.alignment import part_alignment, read_alignment, read_characters, read_scheme
from phloem.io.date_table import read_dates
from phloem.io.distance_matrix import is_distance_matrix, read_distance_matrix, taxa_of_matrix
from phloem.io.partitions import read_partitions
from phloem.io.trees import read_tree_sample, read_trees

SEED = 20_261_122
SHARES, INPUTS_OF_A_SHARE = 20, 50_000
LONGEST_SECONDS = 30.0  # for an input of a few kilobytes, on a busy machine
LONGEST_MESSAGE = 1000  # characters


def parts_of(path):
    characters = read_characters(path)
    for subset in read_scheme(characters).subsets:
        part_alignment(characters, subset)


def distances(path):
    is_distance_matrix(path)
    taxa_of_matrix(str(path))
    values = read_distance_matrix(path).values
    assert np.array_equal(values, values.T) and np.all(values >= 0) and np.all(np.isfinite(values))
    assert np.all(np.diag(values) == 0)


def analysis_of_block(path):
    found = block_analysis(path)
    if found is not None:
        command_line(mcmc_settings(found.options))


def names_of_an_array(path):
    array = Path(path).with_name("good.npy")
    if not array.exists():
        np.save(array, np.zeros((3, 3)))
    read_distance_matrix(array, names=path)


NEXUS = """#NEXUS
[a comment [nested]]
begin taxa; dimensions ntax=4; taxlabels a 'Homo sapiens' c_3 'd|2001.5'; end;
begin data; title one; dimensions ntax=4 nchar=12;
 format datatype=dna interleave gap=- missing=? matchchar=. equate="x=(AC) y={GT}" symbols="01";
 matrix a ACGTNx 'Homo sapiens' ...T-? c_3 ACy{AC}RT 'd|2001.5' ACGTAC
 a ACGTAA 'Homo sapiens' ...... c_3 ACGTAC 'd|2001.5' ACGT(AG)C ; end;
begin sets; charset one = 1-6; charset two = 7-.\\2 8; charpartition p = GTR+G4:one, JC:two; end;
begin trees; translate 1 a, 2 'Homo sapiens', 3 c_3, 4 'd|2001.5';
 tree * t [&lnP=-1] = [&R] ((1[&rate={1,2}]:0.1,2:1e-3)0.9:.2,(3:0.2,4:3)x:0); utree u = (1,2,(3,4)); end;
begin mrbayes; charset q = 1-4; partition g = 2: one, two; set partition = g; lset nst=6; end;
"""
MIXED = """#NEXUS
begin data; dimensions ntax=2 nchar=8; format datatype=mixed(DNA:1-4,Standard:5-8) gap=- missing=?;
matrix a ACGT0123 b AC-T01?0; end;
"""
DATA = (
    NEXUS,
    MIXED,
    ">a one\nACGT-NRYACGT\n>b\nACGTACGTACGT\n>c\nacgtacgtacgt\n",
    ">a\nMKLVWX-?*\n>b\nMKLV-AC.D\n",
    "3 12\na  ACGTACGTACGT\nb  ACGTACGTACGA\nc  ACGTACGT\nACGG\n",
    "2 8\nHomo sapieACGTACGT\nPan       ACGTACGA\n",
    "2 8\na ACGT\nb ACGA\n\nACGC\nACGT\n",
)
TREES = (
    NEXUS,
    "((a[&r={1,{2}}]:1e-3,'b c''d':2)0.9[&&NHX:a=b]:3,(c:1,\"d e\":2)x,O_B:.5)[&k]:0;\n[&U](a,b,c);",
    "(a:1,b:2,(c:1,d:2):3);\n(b:1,a:2,(d:1,c:2):3);\n((a:1,c:2):1,b:1,d:1);\n" * 3,
)
MATRICES = (
    "3\na 0 1 2\nb 1 0 3\nc 2 3 0\n",
    "4\na\nb 1\nc 2 3.5e-1\nd 1 2 3\n",
    "3\nHomo sapie0 1.5 2\nb         1.5 0 3\nc 1       2 3 0\n",
    ",a,b\na,0,1\nb,1,0\n",
    '\ta\t"b c"\na\t0\t"1"\n"b c"\t1\t0\n',
    ";a;b;c\na;0;1,5;2\nb;1,5;0;3\nc;2;3;0\n",
)
LISTS = ("GTR+G4{0.5}, gene1 = 1-6\\3, 8\nDNA, gene2 = 2-6\\3 3-6\\3\nCODON1, x = 7-12\n", NEXUS)
BLOCK = """#NEXUS
begin data; dimensions ntax=4 nchar=16; format datatype=mixed(dna:1-12,standard:13-16) gap=-;
matrix a ACGTACGTACGT0110 b ACGTACGAACGA0012 c ACTTACGTAGGT1021 d ACGTAGGTACCT1110; end;
begin mrbayes; log start; outgroup 2; taxset t = 1-2 d; constraint k = t; ctype ordered: 15-.;
 charset one = 1-12\\3; charset two = 2-12\\3 3-12\\3; partition p = 3: one, two, 13-.;
 set partition=p seed=3;
 lset applyto=(1,2) nst=6 rates=invgamma ngammacat=5; lset applyto=(3) rates=gamma coding=all; exclude 16;
 prset applyto=(all) ratepr=dirichlet(1,2,3) brlenspr=unconstrained:exp(10) topologypr=constraints(k);
 prset applyto=(1) shapepr=uniform(0.1,50) statefreqpr=fixed(empirical) revmatpr=fixed(1,2,3,4,5,6);
 unlink shape=(all) revmat=(1-2); link shape=(1,2); delete c; restore 3; report tratio=ratio;
 mcmcp ngen=2000 samplefreq=10 nruns=2 temp=.2 relburnin=no burnin=20 stoprule=yes; mcmc; sumt; quit; end;
"""
DATES = ("name\tdate\na\t2005.59\nb\t2020-03-01\nc\t2020-03\n# no\nd,1999/1/31\n",)


WORDS = tuple(
    word if isinstance(word, bytes) else word.encode()
    for word in (
        "9" * 5000,
        "1e" + "9" * 400,
        "0." + "3" * 10_000,
        "-1",
        "0",
        "nan",
        "inf",
        "²",
        "٣",
        "\u00a0",
        "\u2028",
        "\u0085",
        "\ufeff",
        "\r",
        "\r\n",
        "\n\n",
        "\t",
        ";",
        ",",
        "=",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        '"',
        "\\",
        "\\3",
        "-",
        ".",
        "*",
        "#NEXUS\n",
        "begin data;",
        "end;",
        "matrix",
        "format",
        "datatype=codon",
        "ntax=0",
        "nchar=99999999999",
        "interleave",
        "transpose",
        "tokens",
        "link taxa=one;",
        "(" * 3000,
        "[" * 3000,
        "{" * 300,
        "1_0",
        "1" * 19,
        "18446744073709551616",
        b"\x00",
        b"\xff",
        b"\xff\xfe",
        b"\x93NUMPY",
        b"\x1f\x8b",
        b"\xc3",
        b"\xed\xa0\x80",
        "𝔸",
        "e\u0301",
        "-0",
        "1e-999",
        "0x10",
        "1-12",
        "all",
        "2-1",
        "1-.\\0",
    )
)


@cache
def arrays() -> tuple[bytes, ...]:
    """.npy files of several versions, types and orders."""
    square, found = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]], np.float64), []
    for array, version in (
        (square, (1, 0)), (np.asfortranarray(square), (1, 0)), (square.astype(">f4"), (2, 0)),
        (square.astype(np.int16), (1, 0)), (np.zeros(()), (1, 0)), (np.zeros((2, 3), np.complex64), (1, 0)),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), (2, 0)), (np.zeros(2, [("é", "f4")]), (3, 0)),
    ):  # fmt: skip
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, version)
        found.append(stream.getvalue())
    return tuple(found)


class Reader(NamedTuple):
    """What reads, and good inputs of its kind."""

    read: Callable[[Any], object]
    good: tuple[bytes, ...]


def reader(read: Callable[[Any], object], *good: str) -> Reader:
    return Reader(read, tuple(text.encode() for text in good))


READERS = {
    "alignment": reader(read_alignment, *DATA),
    "codons": reader(lambda path: read_alignment(path, "codon", stop_codons="mask"), *DATA),
    "parts": reader(parts_of, *DATA),
    "partitions": reader(
        lambda path: read_partitions(path, 12, charsets={"all3": "1-12\\3"}, unassigned="drop"), *LISTS
    ),
    "trees": reader(read_trees, *TREES),
    "tree sample": reader(lambda path: read_tree_sample(path, 0.25), *TREES),
    "dates": reader(read_dates, *DATES),
    "distances": reader(distances, *MATRICES),
    "arrays": Reader(distances, arrays()),
    "MrBayes blocks": reader(analysis_of_block, BLOCK, NEXUS),
    "names": reader(names_of_an_array, "a\nHomo sapiens\nc\n"),
}
ALL = tuple(sorted({data for found in READERS.values() for data in found.good}))


class Damage(NamedTuple):
    """One input: its bytes, and what the file is called."""

    data: bytes
    ending: str


def damaged(rng: random.Random, good: tuple[bytes, ...]) -> Damage:
    """A good input with up to eight edits, perhaps compressed, and then perhaps damaged again."""
    data = bytearray(rng.choice(good if rng.random() < 0.9 else ALL))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        edit(data, rng)
    ending = rng.choice(("", ".txt", ".phy", ".csv", ".tsv", ".npy", ".nex", ".gz"))
    if rng.random() < 0.05:
        data = bytearray(gzip.compress(bytes(data), 1))
        if rng.random() < 0.7:
            edit(data, rng)
    return Damage(bytes(data), ending)


def edit(data: bytearray, rng: random.Random) -> None:
    """Change, remove, insert, repeat, exchange or cut something."""
    at, kind = rng.randrange(len(data) + 1), rng.randrange(9)
    if kind == 0:
        data[at : at + 1] = bytes([rng.randrange(256)])
    elif kind == 1:
        del data[at : at + rng.choice((1, 2, 10, 100))]
    elif kind in (2, 3):
        data[at : at + rng.choice((0, 1, 5))] = rng.choice(WORDS)
    elif kind == 4:
        data[at:at] = data[at : at + rng.choice((3, 30, 300))]
    elif kind == 5:
        other = rng.choice(ALL)
        start = rng.randrange(len(other))
        data[at : at + rng.choice((0, 20))] = other[start : start + rng.choice((5, 50, 500))]
    elif kind == 6:
        lines = bytes(data).splitlines(keepends=True)
        rng.shuffle(lines)
        data[:] = b"".join(lines)
    elif kind == 7:
        data[:] = bytes(data).replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b" ", b"")))
    else:
        del data[at:]


def thrown(readers: dict[str, Reader], folder: Path, seed: int, inputs: int) -> tuple[list[str], int]:
    """What was raised that is not phloem's own, with the input, and how many inputs were read."""
    rng, foreign, read = random.Random(seed), [], 0
    named = list(readers)
    real = sys.stdin
    for _ in range(inputs):
        name = rng.choice(named)
        data, ending = damaged(rng, readers[name].good)
        path: object = folder / f"input{ending}"
        if rng.random() < 0.1 and name != "names":
            path = "-"
            sys.stdin = io.TextIOWrapper(io.BytesIO(data))
        else:
            Path(str(path)).write_bytes(data)
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", InputWarning)
                readers[name].read(path)
            read += 1
        except PhloemError as error:
            if not str(error) or len(str(error)) > LONGEST_MESSAGE:
                foreign.append(f"{name}: an error of {len(str(error))} characters for {data!r}")
        except Exception as error:
            foreign.append(f"{name}: {type(error).__name__}: {str(error)[:200]} for {data!r} as {path}")
        finally:
            sys.stdin = real
        if time.process_time() - start > LONGEST_SECONDS:
            foreign.append(f"{name}: {time.process_time() - start:.0f} seconds for {data!r}")
    return foreign, read


def check(folder: Path, seed: int, inputs: int) -> None:
    foreign, read = thrown(READERS, folder, seed, inputs)
    assert not foreign, "\n".join([f"{len(foreign)} of {inputs}", *(text[:3000] for text in foreign[:10])])
    assert 0.02 * inputs < read < 0.5 * inputs  # neither all refused nor all harmless


@pytest.mark.parametrize("share", range(2))
def test_some_thousand_damaged_inputs(tmp_path, share):
    check(tmp_path, SEED - 1 - share, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_a_million_damaged_inputs(tmp_path, share):
    check(tmp_path, SEED + share, INPUTS_OF_A_SHARE)


def test_a_foreign_exception_is_seen(tmp_path):
    """A reader that takes 1 in 200 inputs for a number's text, as int() and isdigit() once did."""

    def careless(path):
        if path != "-" and len(Path(path).read_bytes()) % 200 == 7:
            raise ValueError("invalid literal")

    foreign, _ = thrown(READERS | {"dates": reader(careless, *DATES)}, tmp_path, SEED, 3_000)
    assert foreign and all("dates: ValueError: invalid literal" in text for text in foreign)

"""A hundred thousand reads leave no memory and no open file behind."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.date_table import read_dates
from phloem.io.distance_matrix import read_distance_matrix
from phloem.io.partitions import read_partitions
from phloem.io.trees import read_trees

READS, WARM_UP = 100_000, 5_000
MOST_LEFT = 60  # bytes a read; what allocators keep in reserve lies below, one forgotten record above
NEXUS = "begin data; dimensions ntax=2 nchar=4; format datatype=dna; matrix a ACGT b ACGA; end;"
INPUTS: tuple[tuple[Callable[[str], object], str], ...] = (
    (read_alignment, ">a\nACGT\n>b\nACGA\n"),
    (read_alignment, f"#NEXUS\n{NEXUS}\n"),
    (read_alignment, ">a\nACGT\n>b\nAC\n"),
    (read_trees, "((a:1,b:2):1,c:3);\n"),
    (read_trees, "((a:1,b:2:1,c:3);\n"),
    (lambda path: read_partitions(path, 4), "DNA, one = 1-4\n"),
    (read_dates, "a\t2001\nb\t2002-03-04\n"),
    (read_distance_matrix, "2\na 0 1\nb 1 0\n"),
    (read_distance_matrix, ";a;b\na;0;1,5\nb;1,5;0\n"),
    (read_distance_matrix, "2\na 0 1\nb 2 0\n"),
)  # fmt: skip


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def read_once(k: int, folder: Path) -> None:
    """One of the inputs, whole or not, from a file or from standard input."""
    read, text = INPUTS[k % len(INPUTS)]
    path = str(folder / f"input_{k % len(INPUTS)}")
    if k % 7 == 0:
        path = "-"
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    with suppress(InputError):
        read(path)


def left_by_a_read(read: Callable[[int], None], reads: int) -> tuple[float, int]:
    """Bytes of memory that a read leaves, and open files that all of them leave."""
    for k in range(WARM_UP):
        read(k)
    before, files = resident_bytes(), len(os.listdir("/proc/self/fd"))
    for k in range(reads):
        read(k)
    return (resident_bytes() - before) / reads, len(os.listdir("/proc/self/fd")) - files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for k, (_, text) in enumerate(INPUTS):
        (tmp_path / f"input_{k}").write_text(text)
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's counters")
def test_a_hundred_thousand_reads_leave_nothing(folder):
    left, files = left_by_a_read(lambda k: read_once(k, folder), READS)
    assert left < MOST_LEFT and files == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's counters")
def test_a_record_kept_of_every_read_is_seen(folder):
    kept = []

    def forgetful(k: int) -> None:
        read_once(k, folder)
        kept.append(np.zeros(8))

    left, _ = left_by_a_read(forgetful, READS // 5)
    assert left > MOST_LEFT

"""Inputs of every kind give the same bytes, as often as they are looked at; what cannot be is explained."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io import input_file
from phloem.io.alignment import read_alignment
from phloem.io.date_table import read_dates
from phloem.io.distance_matrix import is_distance_matrix, read_distance_matrix, taxa_of_matrix
from phloem.io.input_file import first_bytes, input_digest, input_size, map_input, read_input
from phloem.io.partitions import read_partitions
from phloem.io.trees import read_trees

TEXT = b"3\na 0 1 2\nb 1 0 3\nc 2 3 0\n"


def send(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("kind", ["file", "standard input", "descriptor"])
def test_every_look_sees_the_same_bytes(tmp_path, monkeypatch, kind, packed):
    """A pipe gives its bytes once; the checksum of an empty rest went into records of provenance."""
    stored = packed(TEXT)
    path, (read, write) = "-", os.pipe()
    if kind == "file":
        path = tmp_path / "m"
        path.write_bytes(stored)
    elif kind == "descriptor":
        path = f"/dev/fd/{read}"
        os.write(write, stored)
    else:
        send(monkeypatch, stored)
    os.close(write)
    for _ in range(2):
        assert first_bytes(path, 6) == TEXT[:6]
        assert bytes(map_input(path)) == bytes(read_input(path)) == TEXT
        assert input_size(path) == len(stored)
        assert input_digest(path) == hashlib.sha256(stored).hexdigest()
    assert is_distance_matrix(path) and taxa_of_matrix(str(path)) == 3
    assert read_distance_matrix(path).taxa == ("a", "b", "c")
    os.close(read)


def test_another_standard_input_is_read_anew(monkeypatch):
    open_files = set()
    for text in (b"one", b"two", b"three"):
        send(monkeypatch, text)
        assert read_input("-") == text
        open_files.add(len(os.listdir("/dev/fd")))
    assert len(open_files) == 1  # the copy of what came before is given up


def test_a_named_pipe_is_read_anew_and_its_checksum_is_what_was_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for text in (b">a\nACGT\n", b">a\nTTTT\n"):
        writer = threading.Thread(target=pipe.write_bytes, args=(text,))
        writer.start()
        assert read_input(pipe) == text and input_digest(pipe) == hashlib.sha256(text).hexdigest()
        writer.join()
    with pytest.raises(InputError, match="standard input, as in: phloem"):
        first_bytes(pipe, 10)


@pytest.mark.parametrize(
    "read, text",
    [
        (lambda: read_alignment("-").taxa, ">a\nACGT\n>b\nACGT\n"),
        (lambda: read_trees("-")[0].taxa, "(a:1,b:2);"),
        (lambda: read_dates("-").names, "a\t2001\nb\t2002\n"),
        (lambda: tuple(s.name for s in read_partitions("-", 4).subsets), "DNA, a = 1-2\nDNA, b = 3-4\n"),
        (lambda: read_distance_matrix("-").taxa, ",a,b\na,0,1\nb,1,0\n"),
    ],
)
def test_every_reader_takes_standard_input(monkeypatch, read, text):
    send(monkeypatch, text.encode())
    assert read() == ("a", "b") == read()
    send(monkeypatch, gzip.compress(text.encode()))
    assert read() == ("a", "b")
    send(monkeypatch, b"\x01\x02")
    with pytest.raises(InputError, match=r"^standard input:1:1: the file is binary(.|\n)*hint"):
        read()


def test_arrays_and_their_names_come_through_gzip_and_standard_input(tmp_path, monkeypatch):
    values, stream = np.array([[0, 1.5], [1.5, 0]]), io.BytesIO()
    np.save(stream, values)
    (tmp_path / "m.npy.gz").write_bytes(gzip.compress(stream.getvalue()))
    (tmp_path / "m.names").write_bytes("Åsa\rÖrn".encode("latin-1"))
    found = read_distance_matrix(tmp_path / "m.npy.gz")
    assert found.taxa == ("Åsa", "Örn") and np.array_equal(found.values, values)
    send(monkeypatch, stream.getvalue())
    assert taxa_of_matrix("-") == 2
    assert read_distance_matrix("-").settings["names"] == "taxon_1 … taxon_2"
    (tmp_path / "names.gz").write_bytes(gzip.compress(b"x\ny\n"))
    assert read_distance_matrix("-", names=tmp_path / "names.gz").taxa == ("x", "y")


def test_what_cannot_be_read_is_explained(tmp_path, monkeypatch):
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(TEXT * 100)[:-20])
    (tmp_path / "damaged.xz").write_bytes(lzma.compress(TEXT * 100)[:-20])
    (tmp_path / "damaged.bz2").write_bytes(bz2.compress(TEXT * 100)[:40] + bytes(40))
    for path, message in (
        (tmp_path / "absent", "no such file"),
        (tmp_path, "folder"),
        ("a\0b", "cannot be read"),
        (tmp_path / "damaged.gz", "gzip data are damaged"),
        (tmp_path / "damaged.xz", "xz data are damaged"),
        (tmp_path / "damaged.bz2", "bzip2 data are damaged"),
    ):
        for look in (read_input, map_input, lambda path: first_bytes(path, 10_000)):
            with pytest.raises(InputError, match=message) as caught:
                look(path)
            assert caught.value.hint and caught.value.file == os.fspath(path)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input: it is closed"):
        read_input("-")


def test_what_does_not_fit_into_memory_is_refused_while_it_is_unpacked(tmp_path, monkeypatch):
    """A gzip file of 100 kB may hold 100 MB of zeros."""
    monkeypatch.setattr(input_file, "available_bytes", lambda: 60_000_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(100_000_000)))
    unpacked, real = [], gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda *a: unpacked.append(len(p := real(*a))) or p)
    with pytest.raises(InputError, match=r"more than 0.1 GB, and 0.1 GB of memory"):
        read_input(tmp_path / "bomb.gz")
    assert sum(unpacked) < 80_000_000
    monkeypatch.setattr(input_file, "available_bytes", lambda: None)
    assert len(read_input(tmp_path / "bomb.gz")) == 100_000_000


def test_a_stream_leaves_no_file_behind(tmp_path):
    code = "import sys; from phloem.io.input_file import map_input; print(map_input('-').sum())"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=bytes([1]) * 1000,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"1000\n" and not list(tmp_path.iterdir())

"""Files are whole or as they were, and an error says which, why, and what is left."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys

import pytest

from phloem.errors import InputError
from phloem.io import output_file
from phloem.io.output_file import (
    OutputError,
    locked,
    remove_partial,
    replaced_file,
    replaced_text,
    write_file,
)

FORMER = "what was there"


class Failing:
    """A stream that takes nothing more."""

    def __init__(self, stream, number: int) -> None:
        self.stream, self.number = stream, number

    def write(self, data) -> int:
        self.stream.write(data[: len(data) // 2])
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "the disk reports an error"),
        (errno.EACCES, "not permitted"),
    ],
)
@pytest.mark.parametrize("former", [True, False])
@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_whatever_fails_leaves_the_former_file(number, words, former, step, tmp_path, monkeypatch):
    target = tmp_path / "x.nwk"
    if former:
        target.write_text(FORMER)

    def fail(*_):
        raise OSError(number, os.strerror(number))

    if step == "open":
        monkeypatch.setattr(output_file, "open", fail, raising=False)
    elif step != "write":
        monkeypatch.setattr(output_file.os, step, fail)
    with pytest.raises(OutputError) as told, replaced_file(target) as stream:
        (Failing(stream, number) if step == "write" else stream).write(b"something new")
    assert words in str(told.value) and str(told.value).startswith(f"{target}: ")
    assert ("the former file is kept" in str(told.value)) == former
    assert {file.name for file in tmp_path.iterdir()} == ({"x.nwk"} if former else set())
    assert not former or target.read_text() == FORMER


@pytest.mark.parametrize("name", ["no such folder/x", "a file/x", "folder", "n" * 300])
def test_places_where_nothing_can_be_written(name, tmp_path):
    (tmp_path / "a file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError) as told:
        write_file(tmp_path / name, "text")
    assert told.value.file == str(tmp_path / name) and told.value.hint


def test_a_real_limit_of_the_system(tmp_path):
    """More than the process may write (ulimit -f), as on a disk that fills while it is written."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from phloem.io.output_file import write_file\n"
        "try: write_file('x', 'a' * 9999)\n"
        "except Exception as error: print(error)"
    )
    (tmp_path / "x").write_text(FORMER)
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.startswith("x: the file cannot be written: the file would be larger"), told
    assert (tmp_path / "x").read_text() == FORMER and len(list(tmp_path.iterdir())) == 1


def test_other_errors_leave_the_former_file_too(tmp_path):
    (tmp_path / "x").write_text(FORMER)
    with pytest.raises(InputError, match="mine"), replaced_text(tmp_path / "x") as out:
        out.write("half")
        raise InputError("mine")
    with pytest.raises(KeyboardInterrupt), replaced_file(tmp_path / "x") as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "x").read_text() == FORMER and len(list(tmp_path.iterdir())) == 1


def test_links_are_followed_and_permissions_kept(tmp_path):
    (tmp_path / "x").write_text(FORMER)
    (tmp_path / "x").chmod(0o640)
    (tmp_path / "link").symlink_to("x")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "x").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
    plain = tmp_path / "plain"
    plain.write_text("")
    write_file(tmp_path / "other", "new")
    assert (tmp_path / "other").stat().st_mode == plain.stat().st_mode


def test_devices_and_pipes_are_not_replaced(tmp_path):
    write_file(os.devnull, "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        write_file(tmp_path / "pipe", "through")
        assert reader.communicate()[0] == b"through"
    with pytest.raises(OutputError, match=r"/dev/full: .*the disk is full"):
        write_file("/dev/full", "text")


def test_text_is_utf8_and_may_be_compressed(tmp_path):
    for packed in (False, True):
        with replaced_text(tmp_path / "x", packed) as out:
            out.write("Žluťásek\n")
        data = (tmp_path / "x").read_bytes()
        assert (gzip.decompress(data) if packed else data).decode() == "Žluťásek\n"
    write_file(tmp_path / "x", '"caf\udce9"')  # a file name that is no UTF-8, as JSON writes it
    assert (tmp_path / "x").read_bytes() == b'"caf\\udce9"'


def test_what_a_kill_left_is_removed(tmp_path):
    for name in ("x.json.0123abcd.part", "x.json", "y.json.0123abcd.part"):
        (tmp_path / name).write_text("")
    remove_partial([tmp_path / "x.json", tmp_path / "x.con.tre"])
    assert {file.name for file in tmp_path.iterdir()} == {"x.json", "y.json.0123abcd.part"}


HOLD = (
    "import sys; from phloem.io.output_file import locked\n"
    "with locked('x.lock', 'x'): print('held', flush=True); sys.stdin.read()"
)


def test_a_lock_keeps_a_second_process_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"x is in use by process {other.pid} on"), locked("x.lock", "x"):
            pass
        other.kill()
    assert (tmp_path / "x.lock").exists(), "what a kill leaves locks nobody out"
    with locked("x.lock", "x"):
        with pytest.raises(InputError, match=f"process {os.getpid()}"), locked("x.lock", "x"):
            pass
        assert (tmp_path / "x.lock").exists()
    assert not list(tmp_path.iterdir())


def test_where_a_disk_knows_no_locks(tmp_path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="no locks here"), locked(tmp_path / "x.lock", "x"):
        pass


def test_a_lock_that_its_holder_removes_meanwhile_is_not_taken_for_one(tmp_path, monkeypatch):
    """Locked between the other's removal and its end: the file is another by then, and is asked for again."""
    import fcntl

    real, seen = fcntl.flock, []

    def late(stream, how):
        if not seen:
            os.unlink(tmp_path / "x.lock")
        seen.append(how)
        real(stream, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path / "x.lock", "x"):
        assert len(seen) == 2 and (tmp_path / "x.lock").exists()

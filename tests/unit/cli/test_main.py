from __future__ import annotations

import os

import pytest

import phloem.cli


def called(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["phloem", *arguments])
    with pytest.raises(SystemExit) as left:
        phloem.cli.main()
    return left.value.code


def test_blas_has_one_thread_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert called(monkeypatch, "--version") == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1" and os.environ["MKL_NUM_THREADS"] == "2"


def test_what_the_user_can_mend_is_printed_without_a_traceback(monkeypatch, capsys):
    assert called(monkeypatch, "likelihood", "no-such.fa", "--tree", "no-such.nwk", "--model", "JC") == 2
    assert "no-such" in capsys.readouterr().err

    def full_disk():
        raise OSError(28, "No space left on device", "out.json")

    monkeypatch.setattr("phloem.cli.build_app", full_disk)
    assert called(monkeypatch) == 2
    assert capsys.readouterr().err == "error: out.json: No space left on device\n"

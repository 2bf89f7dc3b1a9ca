from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

import phloem.cli


def called(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["phloem", *arguments])
    return phloem.cli.run()


def test_blas_has_one_thread_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert called(monkeypatch, "--version") == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1" and os.environ["MKL_NUM_THREADS"] == "2"


def test_what_the_user_can_mend_is_printed_without_a_traceback(monkeypatch, capsys):
    assert called(monkeypatch, "likelihood", "no-such.fa", "--tree", "no-such.nwk", "--model", "JC") == 2
    assert "no such file" in capsys.readouterr().err

    def full_disk():
        raise OSError(28, "No space left on device", "out.json")

    monkeypatch.setattr("phloem.cli.build_app", full_disk)
    assert called(monkeypatch) == 2
    assert capsys.readouterr().err == "error: out.json: No space left on device\n"


def test_the_process_ends_with_the_status_and_all_output():
    command = [sys.executable, "-m", "phloem"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("phloem ")
    wrong = subprocess.run([*command, "likelihood", "no-such.fa", "-t", "x", "-m", "JC"], capture_output=True)
    assert wrong.returncode == 2 and b"no such file" in wrong.stderr


def test_a_warning_comes_without_phloems_own_line(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "t.nwk").write_text("(\U00012000:1,b:1);", encoding="utf-8")
    command = [sys.executable, "-m", "phloem", "draw", "t.nwk", "-o", "t.png"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stderr
    assert shown.startswith("warning: 1 letters of the names") and "pictures.py" not in shown


def test_an_interrupt_is_said(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("phloem.analysis.doctor.diagnose", interrupted)
    assert called(monkeypatch, "doctor") == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["ml", "mcmc", "time"])
def test_a_request_to_end_is_obeyed_and_told(monkeypatch, capsys, command, asked):
    """By the exit status that it has in a shell, after what is locked was let go."""
    ended = []

    def asked_for(*_, **__):
        try:
            os.kill(os.getpid(), asked)
            threading.Event().wait(10)
        finally:
            ended.append(signal.getsignal(asked))

    before = signal.signal(asked, signal.SIG_DFL)  # whoever runs the tests may ignore it
    try:
        monkeypatch.setattr("phloem.cli.build_app", lambda: asked_for)
        assert called(monkeypatch, command, "a.fa") == 128 + asked
        assert capsys.readouterr().err == f"ended by {asked.name}\n"
        assert ended == [signal.SIG_DFL], "a second one ends the process at once"
        assert signal.getsignal(asked) == signal.SIG_DFL
        signal.signal(asked, signal.SIG_IGN)  # nohup
        monkeypatch.setattr("phloem.cli.build_app", lambda: lambda: os.kill(os.getpid(), asked))
        assert called(monkeypatch, command, "a.fa") == 0
    finally:
        signal.signal(asked, before)


@pytest.mark.parametrize("kept", [True, False])
def test_an_interrupted_search_says_that_it_goes_on(monkeypatch, capsys, tmp_path, kept):
    def interrupted(settings, *_):
        if kept:
            (tmp_path / "x.checkpoint").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("phloem.analysis.ml.run_ml", interrupted)
    assert called(monkeypatch, "ml", "a.fa", "--prefix", str(tmp_path / "x")) == 130
    assert ("The same command goes on" in capsys.readouterr().err) == kept

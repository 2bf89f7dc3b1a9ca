"""Work shared by processes: all answers, errors as they were raised, and no process left behind."""

from __future__ import annotations

import math
import operator
import os
import subprocess
import sys
import time
from functools import partial

import pytest

from phloem.errors import InputError
from phloem.hardware.workers import answers_of
from phloem.io.alignment import read_alignment


def test_every_item_is_answered_once():
    items = list(range(25))
    assert dict(answers_of(math.factorial, items, 3)) == {n: math.factorial(n) for n in items}
    assert list(answers_of(math.factorial, [], 3)) == []


def test_errors_are_those_of_the_function(tmp_path):
    with pytest.raises(InputError) as caught:
        list(answers_of(read_alignment, [str(tmp_path / "none.fasta")], 1))
    with pytest.raises(InputError) as here:
        read_alignment(str(tmp_path / "none.fasta"))
    assert str(caught.value) == str(here.value) and caught.value.hint == here.value.hint
    with pytest.raises(ZeroDivisionError):
        list(answers_of(partial(operator.truediv, 1), [0], 1))


def test_a_process_that_is_gone_is_told():
    with pytest.raises(InputError, match="is gone") as caught:
        list(answers_of(os._exit, [3], 1))
    assert "--threads" in (caught.value.hint or "")


def test_who_stops_listening_leaves_no_process():
    answers = answers_of(time.sleep, [0.0, 60.0, 60.0], 2)
    assert next(answers) == (0.0, None)
    answers.close()  # kills them, and waits


def test_processes_end_with_their_parent():
    code = (
        "import os, sys, time\n"
        "from phloem.hardware import workers\n"
        "answers = workers.answers_of(eval, ['os.getpid()', '1+1'], 1)\n"
        "worker = workers._started(); print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid = int(told.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().split()[2] == "Z":
                    return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.1)
    raise AssertionError("it waits for a parent that is gone")

"""The first compilation is announced, once, and only where something is compiled."""

from __future__ import annotations

import logging

import pytest

from phloem.hardware.notice import NOTICES, compilation_begins, on_first_compilation
from phloem.hardware.numba_compile import compiled


@pytest.fixture
def said():
    sentences: list[str] = []
    on_first_compilation(sentences.append)
    yield sentences
    on_first_compilation(logging.getLogger("phloem").info)


def a_kernel():
    @compiled(cache=False)
    def twice(x):
        return 2 * x

    return twice


def test_a_compilation_is_announced_once(said):
    kernel = a_kernel()
    kernel(1)
    kernel(1.5)
    assert said == [NOTICES["cpu"]]


def test_nothing_is_said_where_nothing_is_compiled(said):
    kernel = a_kernel()
    kernel(1)
    said.clear()
    on_first_compilation(said.append)
    kernel(2)
    assert said == []


def test_each_kind_of_kernel_has_its_sentence(said):
    for _ in range(2):
        compilation_begins("gpu")
        compilation_begins("cpu")
    assert said == [NOTICES["gpu"], NOTICES["cpu"]]


def test_the_last_callback_counts(said):
    later: list[str] = []
    on_first_compilation(later.append)
    compilation_begins("cpu")
    assert (said, later) == ([], [NOTICES["cpu"]])

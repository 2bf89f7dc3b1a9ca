"""Threads of BLAS where Python calls, not the command."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from phloem.hardware.blas import one_blas_thread


def threads() -> set[int]:
    np.dot(np.eye(3), np.eye(3))
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.mark.parametrize("given", ["1", None])
def test_one_thread_meanwhile(given, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)

    @one_blas_thread()
    def seen() -> set[int]:
        return threads()

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert before == {2}
        assert seen() == ({1} if given is None else before)  # as the command left them
        assert threads() == before

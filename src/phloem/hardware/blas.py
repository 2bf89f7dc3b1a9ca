"""One thread of BLAS at a time, as the command has it for a whole process (phloem.cli).

NumPy and SciPy bring an OpenBLAS each with a thread a core, for matrices of at most 61 states here.
Kernels and chains have threads of their own, each of which calls it, and then those threads wait for each
other: a fit took four times as long where other programs kept the cores busy, and 64 chains of codons on
two GPUs and 32 cores made 620 instead of 19,800 chain-generations a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context, or a decorator. BLAS has the threads it had when it ends."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        yield  # so it was when BLAS was loaded
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield

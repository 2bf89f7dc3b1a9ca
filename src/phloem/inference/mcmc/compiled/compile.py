"""Compilation for the sampler: the package's one decorator, with two differences that its records ask for.

compiled: no counting of array references. The sampler slices records of some thirty arrays all the time;
numba would count each slice up and down, atomically: two thirds of a generation's time, and contended between
threads. Its functions allocate nothing and the caller owns every array, so there is nothing to count (numba's
flag `_nrt`; a function that did allocate would fail to compile).

merged: for functions that take whole records and have one caller: merged into it before types are inferred. A
record is passed by value, hundreds of words; merging saves the copying at run time and most of the compile
time.
"""

from __future__ import annotations

from typing import Any

from phloem.hardware import numba_compile as package


def compiled(function=None, /, **options: Any):
    """As phloem.hardware.numba_compile.compiled, without reference counts."""
    return package.compiled(function, **{"_nrt": False, **options})


def merged(function):
    """Compiled as part of its caller."""
    return package.compiled(function, _nrt=False, inline="always")

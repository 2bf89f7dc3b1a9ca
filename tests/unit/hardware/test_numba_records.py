"""References to records: the same numbers as the records themselves, at one word an argument."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from phloem.hardware.numba_compile import ByAddress, compiled, uncounted
from phloem.hardware.numba_records import by_reference


class Inner(NamedTuple):
    flag: bool
    values: np.ndarray


class Outer(NamedTuple):
    count: int
    inner: Inner
    matrix: np.ndarray
    factor: float


def record(factor: float = 2.0) -> Outer:
    return Outer(3, Inner(True, np.arange(3.0)), np.arange(6.0).reshape(2, 3), factor)


@uncounted
def _total(r):
    total = 0.0
    for i in range(r.count):
        total += r.inner.values[i] * r.matrix[1, i]
    return total * r.factor if r.inner.flag else -1.0


@uncounted
def _write(r):
    r.inner.values[0] = r.factor


def test_fields_of_records_in_records_are_those_of_the_record():
    @compiled(cache=False)
    def both(r):
        return _total(r), _total(by_reference(r))

    by_value, there = both(record())
    assert by_value == there == 2.0 * (1 * 4 + 2 * 5)
    assert both(record()._replace(inner=Inner(False, np.zeros(3)))) == (-1.0, -1.0)


def test_arrays_are_written_through_a_reference():
    @compiled(cache=False)
    def write(r):
        _write(by_reference(r))

    own = record(7.0)
    write(own)
    assert own.inner.values[0] == 7.0


def test_every_turn_of_a_loop_has_its_own_record():
    """One place in memory holds one record after the other, and fields are said never to change: a compiler
    that did not see where a record is written would read the first one's again."""

    @compiled(cache=False)
    def each(inner, matrix, factors):
        total = 0.0
        for k in range(len(factors)):
            total += _total(by_reference(Outer(3, inner, matrix, factors[k])))
        return total

    own, factors = record(), np.array([1.0, 10.0, 100.0])
    assert each(own.inner, own.matrix, factors) == 111.0 * 14.0


def test_what_is_called_by_its_address_gets_the_record():
    def total(r, x):
        return r.factor * r.inner.values[2] + x[0]

    called = ByAddress(record(), np.zeros(1))
    call, address = called.call, called.address(total)

    @uncounted
    def through(r, address, x):
        return call(address, (r.inner_record, x))

    class Holder(NamedTuple):
        inner_record: Outer
        other: int

    @compiled(cache=False)
    def ask(r, address, x):
        return through(by_reference(r), address, x)

    assert ask(Holder(record(3.0), 1), address, np.ones(1)) == 3.0 * 2.0 + 1.0


def test_a_field_that_is_not_there_does_not_compile():
    @compiled(cache=False)
    def wrong(r):
        return by_reference(r).colour

    with pytest.raises(TypingError, match="colour"):
        wrong(record())

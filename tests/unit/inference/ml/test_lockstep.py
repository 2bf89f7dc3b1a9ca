"""Searches abreast: who is asked what, in which order things end, and what an error leaves behind."""

from __future__ import annotations

import threading

import pytest

from phloem.inference.ml.lockstep import Lockstep


def work(k, log):
    """Asks k + 1 times to double a number, every second time of another."""

    def run(seat, ask):
        found = []
        for i in range(k + 1):
            log.append((k, seat))
            found.append(ask(i % 2, "double", k + i))
        return found

    return run


def test_questions_of_one_kind_are_answered_together():
    log, asked, told = [], [], []

    def answered(whom, kind, questions):
        asked.append((whom, kind, len(questions)))
        return [2 * x for x in questions]

    threads = threading.active_count()
    found = Lockstep(3, answered).run([work(k, log) for k in range(5)], told.append)
    assert found == [[2 * (k + i) for i in range(k + 1)] for k in range(5)]
    assert asked[0] == (0, "double", 3) and max(n for *_, n in asked) == 3
    assert sum(n for *_, n in asked) == 15 and len(asked) < 15
    assert told == [1, 2, 3, 4, 5] and {seat for _, seat in log} == {0, 1, 2}
    assert all(len({seat for k, seat in log if k == own}) == 1 for own in range(5))  # none changes its seat
    assert threading.active_count() == threads


def test_answers_in_another_order_are_seen():
    """Planted: the answers to some questions change places."""
    found = Lockstep(3, lambda _, kind, questions: questions[::-1]).run(
        [work(0, []), work(1, []), work(2, [])]
    )
    assert found != [[0], [1, 2], [2, 3, 4]]


@pytest.mark.parametrize("where", ["work", "answer", "told"])
def test_an_error_ends_all(where):
    ended = []

    def waits(seat, ask):
        try:
            while True:
                ask(0, "double", 1)
        finally:
            ended.append(seat)

    def fails(seat, ask):
        ask(0, "double", 2)
        if where == "work":
            raise ValueError("work")
        return 1

    def answered(_, kind, questions):
        if where == "answer":
            raise ValueError("answer")
        return questions

    def told(k):
        raise ValueError("told")

    threads = threading.active_count()
    with pytest.raises(ValueError, match=where):
        Lockstep(4, answered).run([waits, fails, waits, waits], told)
    assert threading.active_count() == threads and len(ended) >= 2

"""The order in which every engine wants proposals: evaluate, propose, then accept or reject."""

from __future__ import annotations

from typing import TypeVar

State = TypeVar("State")


def refuse_to_propose(proposed: object | None, left: object | None, right: object | None) -> None:
    """RuntimeError while a proposal is pending; ValueError for half a topology."""
    if proposed is not None:
        raise RuntimeError("a proposal is pending: accept or reject it first")
    if (left is None) != (right is None):
        raise ValueError("a changed topology needs both left and right")


def evaluated(state: State | None) -> State:
    """The state; RuntimeError where there is none."""
    if state is None:
        raise RuntimeError("nothing was evaluated yet: call log_likelihood first")
    return state


def pending(proposed: State | None) -> State:
    """The proposed state; RuntimeError where there is none."""
    if proposed is None:
        raise RuntimeError("no proposal is pending")
    return proposed

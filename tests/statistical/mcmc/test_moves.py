"""Every registered move leaves its distribution as it is, and errors planted in each are seen.

A new move is tested by existing; without a case in move_cases.py it fails.
"""

from __future__ import annotations

import pytest

from phloem.inference.mcmc import move_table
from phloem.inference.mcmc.move_table import LENGTHS, Move, registered
from statistical.mcmc.move_cases import CASES, flux

ACCEPT, REJECT = 4.5, 7.0  # largest z over some fifteen features of a right move, smallest of a wrong one
# Whatever is planted in these has a z of 10 and more with half as many draws as the others need.
PLAIN = (
    "choice_jump",
    "learnt_nni",
    "learnt_tbr",
    "parsimony_spr",
    "simplex_dirichlet",
    "slider",
    "tbr",
    "tied_dirichlet",
    "tied_split_merge",
    "tree_multiplier",
)


def draws(name: str) -> int:
    return 4_000 if name in PLAIN else 8_000


@pytest.mark.parametrize(
    ("name", "on"), [(name, on) for name, move in registered().items() for on in move.on]
)
def test_no_net_flow_in_equilibrium(name, on):
    assert name in CASES, f"{name} has no case in move_cases.py"
    assert flux(registered()[name], CASES[name], on, draws(name)) < ACCEPT


def errors() -> list:
    """Of every move; all but one of each are of the slow suite."""
    found = [(name, error, i > 0) for name in CASES for i, error in enumerate(CASES[name].wrong)]
    return [pytest.param(n, error, marks=[pytest.mark.slow] * later) for n, error, later in found]


@pytest.mark.parametrize(("name", "error"), errors())
def test_planted_errors_are_seen(name, error):
    assert flux(CASES[name].wrong[error](registered()[name]), CASES[name], n=draws(name)) > REJECT


@pytest.mark.parametrize("name", CASES)
def test_every_move_has_planted_errors(name):
    assert CASES[name].wrong


def test_a_move_in_a_file_of_its_own_joins_and_needs_a_case(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(
        "from phloem.inference.mcmc.move_table import LENGTHS, Move\n"
        "def planted(p):\n    return 0.0\n"
        "MOVE = Move('planted', LENGTHS, planted, 1)\n"
    )
    monkeypatch.setattr(move_table.moves, "__path__", [*move_table.moves.__path__, str(tmp_path)])
    found = registered.__wrapped__()
    assert set(found) == {*registered(), "planted"} and "planted" not in CASES
    assert isinstance(found["planted"], Move) and found["planted"].on == LENGTHS

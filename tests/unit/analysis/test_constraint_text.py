"""Constraints as they are written."""

from __future__ import annotations

import pytest

from phloem.analysis.constraint_text import HARD, NEGATIVE, PARTIAL, NamedConstraint, parse_constraint
from phloem.errors import InputError

TAXA = ("Homo_sapiens", "Pan", "A/1|68", "Mus")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("apes: homo sapiens, Pan, Pan", ("apes", HARD, (("Homo_sapiens", "Pan"),))),
        ("hard: Pan, Mus", ("hard", HARD, (("Pan", "Mus"),))),
        ("x hard: Pan, Mus", ("x", HARD, (("Pan", "Mus"),))),
        ("x negative: A/1|68, Mus", ("x", NEGATIVE, (("A/1|68", "Mus"),))),
        ("x PARTIAL: Pan|Mus", ("x", PARTIAL, (("Pan",), ("Mus",)))),
        ("x partial: Pan, A/1|68 | Mus", ("x", PARTIAL, (("Pan", "A/1|68"), ("Mus",)))),
    ],
)
def test_constraints_are_read(text, found):
    assert parse_constraint(text, TAXA) == NamedConstraint(*found)


@pytest.mark.parametrize("text", ["apes", "x: Pan,", "x partial: Pan, Mus", "x partial: Pan | Mus | Pan"])
def test_others_are_errors(text):
    with pytest.raises(InputError, match="is no constraint"):
        parse_constraint(text, TAXA)


def test_unknown_taxa_are_named():
    with pytest.raises(InputError, match="no taxon 'Mous'") as error:
        parse_constraint("x: Pan, Mous", TAXA)
    assert "'Mus'" in str(error.value.hint)

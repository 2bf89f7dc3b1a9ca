"""How long `phloem ml` searches: --fast, --thorough, or --starts and --patience."""

from __future__ import annotations

from typing import Literal, NamedTuple

from phloem.errors import InputError


class Effort(NamedTuple):
    """starts: searches, each from a tree of its own. patience: tries in a row without a better tree that end
    a search. Both as inference/ml/search_result.SearchSettings has them."""

    name: Literal["usual", "fast", "thorough", "own"]
    starts: int
    patience: int


USUAL = Effort("usual", 1, 10)
FAST = Effort("fast", 1, 0)
THOROUGH = Effort("thorough", 5, 20)


def effort_of(fast: bool, thorough: bool, starts: int | None, patience: int | None) -> Effort:
    """What is meant by the four; None is not given. InputError for both words, and for a word beside a
    number that it sets."""
    if fast and thorough:
        raise InputError("--fast and --thorough are opposites", hint="Leave one of them out.")
    if not (fast or thorough):
        given = (
            (USUAL.starts if starts is None else starts),
            (USUAL.patience if patience is None else patience),
        )
        return USUAL if given == USUAL[1:] else Effort("own", *given)
    word = FAST if fast else THOROUGH
    for name, number in (("starts", starts), ("patience", patience)):
        if number is not None:
            raise InputError(
                f"--{word.name} sets --{name} {getattr(word, name)}, and --{name} {number} is given too",
                hint=f"Leave out one of the two; without --{word.name}, --starts {word.starts} --patience "
                f"{word.patience} are the same, to be changed.",
            )
    return word


def effort_line(effort: Effort) -> str:
    """For people."""
    word = "" if effort.name == "own" else f"{effort.name}: "
    starts = f"{effort.starts} start" + "s" * (effort.starts != 1)
    if effort.patience == 0:
        return f"effort: {word}{starts}, climbed once, no tries from elsewhere"
    tries = f"{effort.patience} vain tr" + ("ies" if effort.patience != 1 else "y")
    return f"effort: {word}{starts}, each until {tries}; more on hard data"

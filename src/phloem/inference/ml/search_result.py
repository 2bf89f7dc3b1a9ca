"""What a search for the likeliest tree is told, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.errors import InputError
from phloem.hardware.ranks import ranks
from phloem.inference.ml.search_state import Better, Ended
from phloem.inference.ml.searched import Fit, Likelihood
from phloem.inference.ml.tree_starts import Difficulty
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.pruning.select import Selection

_LARGE = 100_000  # characters at the tips


@dataclass(frozen=True)
class SearchSettings:
    """radius: nodes that a subtree moves at most. patience: tries in a row without a better tree that end a
    search. starts: searches, each from a tree of its own; where the data look hard, further ones follow until
    one brings nothing (tree_search). seed: of all random choices. threads: None lets phloem choose; they
    change no number."""

    radius: int = 5
    patience: int = 10
    starts: int = 1
    seed: int = 1
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("radius", 1), ("patience", 0), ("starts", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}", hint=f"Give {least} or more.")


@dataclass(frozen=True, eq=False)
class SearchResult:
    """optimum: the best tree found, every length and parameter fitted; likelihood: stands there. starts: the
    searches, the first of the tree given. tries: climbs from elsewhere; found: those that led to a better
    tree of their search. difficulty: None of too few climbs. supports: branch_tests.branch_supports. Of
    a tree that is held (held.fit_held) there are no starts, and no tries."""

    optimum: Fit
    likelihood: Likelihood
    starts: tuple[Ended, ...]
    tries: int
    found: tuple[Better, ...]
    difficulty: Difficulty | None
    supports: dict[str, dict[bytes, float]]

    @property
    def origin(self) -> str:
        """Of the tree that the first climb began from."""
        return self.starts[0].origin

    @property
    def first(self) -> float:
        """What the first climb reached."""
        return self.starts[0].first

    @property
    def selection(self) -> Selection:
        if isinstance(self.likelihood, PartitionedLikelihood):
            return next(iter(self.likelihood.selections.values()))
        return self.likelihood.selection


def usual_threads(entries: int) -> int:
    """More than one where rounds of moves take longer than threads take to begin."""
    return ranks().cores if entries > _LARGE else 1

"""Shares of which some are equal, all ways to be so being as likely: the prior of MrBayes' nst=mixed.

A block of k shares and, behind them, a number that says which are equal: its digits from the left are the
groups of the shares, numbered as they appear (122 of three: the second and third are equal). There are as
many ways as partitions of a set, 203 of six (Huelsenbeck, Larget and Alfaro 2004, Mol. Biol. Evol. 21:1123).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from phloem.density.terms.term import Domain, positive_numbers

MOST_SHARES = 9  # a group is a digit


def in_order_of_appearance(groups: Sequence[int]) -> tuple[int, ...]:
    """The same groups, numbered 1, 2, … as they appear."""
    number = {group: i for i, group in enumerate(dict.fromkeys(groups), 1)}
    return tuple(number[group] for group in groups)


@cache
def all_groupings(k: int) -> tuple[tuple[int, ...], ...]:
    """Every way to put k shares in groups, in the order of MrBayes' gtrsubmodel: 11…1 first, 12…k last."""

    def grown(begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(begun) == k:
            yield begun
            return
        for group in range(1, max(begun, default=0) + 2):
            yield from grown((*begun, group))

    return tuple(grown(()))


def code_of(groups: Sequence[int]) -> float:
    """The number that stands behind the shares."""
    return float("".join(map(str, in_order_of_appearance(groups))))


def groups_of(code: float, k: int) -> tuple[int, ...]:
    """The groups of k shares."""
    return tuple(map(int, f"{int(code + 0.5):0{k}d}"))


@dataclass(frozen=True)
class TiedDirichlet:
    """One of the groupings, each with the same probability; given it, the sums of the groups are
    Dirichlet(a n_1, a n_2, …), n_g the shares of group g, which are equal parts of its sum. The density is by
    all sums but one, and 1 where all shares are equal.

    concentration: a, of a single share.
    """

    concentration: float = 1.0
    domain: ClassVar[Domain] = "tied"

    def __post_init__(self) -> None:
        positive_numbers("dirichlet", self.concentration)

    def __str__(self) -> str:
        return f"dirichlet({self.concentration:g}), any of them equal"

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        numbers = self.numbers(x.shape[-1])
        rows = [scalar(row, numbers) for row in x.reshape(-1, x.shape[-1])]
        return np.array(rows).reshape(x.shape[:-1])

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        """By the first share of each group, which stands for all of it; 0 by the others and by the code."""
        rows, k = x.reshape(-1, x.shape[-1]), x.shape[-1] - 1
        found = np.zeros_like(rows)
        for row, slope in zip(rows, found):
            groups = groups_of(row[-1], k)
            for group in set(groups):
                first = groups.index(group)
                slope[first] = (self.concentration * groups.count(group) - 1.0) / row[first]
        return found.reshape(x.shape)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """log Γ(k a) - log of the number of groupings, a, then -log Γ(a n) of n = 1, …, k."""
        k, a = size - 1, self.concentration
        ways = len(all_groupings(k))
        return np.array([gammaln(k * a) - math.log(ways), a, *-gammaln(a * np.arange(1, k + 1))])


def scalar(x, numbers):
    """The compiled form."""
    k = x.shape[0] - 1
    code, total = int(x[k] + 0.5), numbers[0]
    for i in range(k):
        first, n, own, of_i = True, 0, code, code // 10 ** (k - 1 - i) % 10
        for j in range(k - 1, -1, -1):
            if own % 10 == of_i:
                n += 1
                first = first and j >= i
            own //= 10
        if first:
            power = numbers[1] * n - 1.0
            total += numbers[1 + n]
            if power != 0.0:
                total += power * math.log(n * x[i])
    return total

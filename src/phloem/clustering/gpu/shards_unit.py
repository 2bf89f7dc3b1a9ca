"""reference.linkage.counting_unit of a matrix in bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

PART = 2**24  # entries looked at together


def counting_unit(bands: Sequence[torch.Tensor]) -> float:
    """The unit of which every distance is a whole number, or 0 (float64 only); diagonals are zero."""
    n = sum(len(band) for band in bands)
    if bands[0].dtype != torch.float64 or n < 2:
        return 0.0
    smallest, largest = torch.inf, 0.0
    for part in _parts(bands, n):
        smallest = min(smallest, float(torch.where(part > 0, part, torch.inf).min()))
        largest = max(largest, float(part.max()))
    for unit in (1.0, smallest if torch.any(bands[0][0, :n] > 0) else 0.0):
        if unit > 0 and largest / unit * (n * n / 4) < 2.0**52:
            if all(_whole(part / unit) for part in _parts(bands, n)):
                return unit
    return 0.0


def _parts(bands: Sequence[torch.Tensor], n: int) -> Iterator[torch.Tensor]:
    for band in bands:
        yield from band[:, :n].split(max(1, PART // n))


def _whole(count: torch.Tensor) -> bool:
    return bool(torch.all((count - count.round()).abs() <= 4 * torch.finfo(torch.float64).eps * count))

"""Which devices a distance matrix is spread over, and its bands of rows on them, however they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch

from phloem.clustering.formula import Formula
from phloem.clustering.gpu.alignment import PADDING, EncodedSequences, SequenceCodes
from phloem.clustering.gpu.device import free_bytes, visible_devices
from phloem.clustering.gpu.shards_device import ShardTiling
from phloem.errors import InputError

OTHER = 2**29  # bytes a device needs beside its rows and what it sends and receives
ROWS = 1024  # of the lower triangle that are turned into columns at a time

# lower(out, first, last, columns): entries of rows first … last-1 left of the diagonal, in columns
# columns[0] … columns[1]-1 at least, to out (rows, ≥ columns[1] rounded up to a multiple of 64).
LowerRows = Callable[[torch.Tensor, int, int, tuple[int, int]], None]


def devices_for(
    n: int,
    itemsize: int,
    beside: int = 0,
    devices: Sequence[torch.device] | None = None,
    free: Callable[[torch.device], int] = free_bytes,
) -> tuple[list[torch.device], str]:
    """The first device if an n × n matrix fits it, else all; and why. InputError where they do not suffice.

    beside: bytes that every device needs for what the matrix is made from. devices: None for all visible.
    free: bytes a device has left.
    """
    devices = list(devices or visible_devices())
    matrix, room = n * _width(n) * itemsize, [free(device) - beside for device in devices]
    if matrix + OTHER <= room[0]:
        return devices[:1], "one GPU"
    edges = row_edges(n, len(devices))
    tiling, share = ShardTiling(), max(b - a for a, b in pairwise(edges)) * _width(n) * itemsize
    last = min(tiling.finish, n) ** 2 * itemsize
    if len(devices) == 1 or share + last + 2 * tiling.buffer + OTHER > min(room):
        gigabytes = ", ".join(f"{bytes_ / 1e9:.1f}" for bytes_ in room)
        raise InputError(
            f"{n:,} taxa need {matrix / 1e9:.1f} GB for distances of {8 * itemsize} bits; "
            f"free on {len(devices)} GPU{'s' * (len(devices) > 1)}: {gigabytes} GB",
            hint="Use more GPUs, --precision float32, the CPU (--device cpu), or fewer sequences.",
        )
    reason = f"{matrix / 1e9:.1f} GB do not fit the {room[0] / 1e9:.1f} GB of one"
    return devices[: len(edges) - 1], f"{len(edges) - 1} GPUs by rows, since {reason}"


def row_edges(n: int, count: int) -> list[int]:
    """Where at most `count` bands of rows begin, and n: about as many rows each, in whole tiles."""
    edges = [round(n * k / count / PADDING) * PADDING for k in range(count)]
    return sorted({0, *(edge for edge in edges if edge < n), n})


def bands_of_rows(
    n: int,
    devices: Sequence[torch.device],
    dtype: torch.dtype,
    fill: Callable[[torch.Tensor, int], None],
) -> list[torch.Tensor]:
    """Bands as linkage_merges_sharded takes them. fill(band, first): write rows first … of it (rows, n).

    A device may be named more than once. Raises InputError where a device has too little memory.
    """
    bands = []
    for device, (first, last) in zip(devices, pairwise(row_edges(n, len(devices)))):
        try:
            band = torch.empty((last - first, _width(n)), dtype=dtype, device=device)[:, :n]
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"{last - first:,} rows of {n:,} distances need "
                f"{(last - first) * _width(n) * dtype.itemsize / 1e9:.1f} GB on {device}; "
                f"{free_bytes(device) / 1e9:.1f} GB are free",
                hint="Use more GPUs, float32, or the CPU.",
            ) from error
        fill(band, first)
        bands.append(band)
    return bands


def rows_of_square(distances: np.ndarray) -> Callable[[torch.Tensor, int], None]:
    """`fill` of bands_of_rows from a matrix in host memory."""

    def fill(band: torch.Tensor, first: int) -> None:
        band.copy_(torch.from_numpy(distances[first : first + len(band)]))

    return fill


def rows_of_triangle(entries: np.ndarray, n: int) -> Callable[[torch.Tensor, int], None]:
    """`fill` of bands_of_rows from a triangle in host memory: d(i, j < i) is entries[i (i-1) / 2 + j]."""

    def lower(out: torch.Tensor, first: int, last: int, columns: tuple[int, int]) -> None:
        left, right = columns
        for start in range(first, last, ROWS):
            stop = min(start + ROWS, last)
            block = np.zeros((stop - start, right - left), entries.dtype)
            for i in range(start, stop):
                row = entries[i * (i - 1) // 2 + left : i * (i - 1) // 2 + min(i, right)]
                block[i - start, : len(row)] = row
            out[start - first : stop - first, left:right].copy_(torch.from_numpy(block))

    return lambda band, first: fill_from_lower(band, first, n, lower)


def alignment_bands(
    codes: np.ndarray,
    weights: np.ndarray,
    nucleotides: bool,
    formula: Formula,
    devices: Sequence[torch.device],
    dtype: torch.dtype,
) -> tuple[list[torch.Tensor], np.ndarray]:
    """(bands, status of EncodedSequences.fill): every device measures its own rows; nobody has them all.

    codes, weights, nucleotides: see SequenceCodes. A distance between bands is computed on both devices.
    """
    n, statuses = len(codes), []

    def fill(band: torch.Tensor, first: int) -> None:
        encoded = SequenceCodes(codes, weights, nucleotides, band.device).encoded(formula)
        statuses.append(_fill_by(encoded, formula, band, first, n))

    bands = bands_of_rows(n, devices, dtype, fill)
    found = [status.cpu().numpy() for status in statuses]
    saturated, empty = sum(s[0] for s in found), sum(s[1] for s in found)
    return bands, np.array([saturated, empty, max(s[2] for s in found)])


def _fill_by(
    encoded: EncodedSequences, formula: Formula, band: torch.Tensor, first: int, n: int
) -> torch.Tensor:
    """Returns the status of the band's own part of the lower triangle."""
    statuses = []

    def lower(out: torch.Tensor, start: int, stop: int, columns: tuple[int, int]) -> None:
        statuses.append(encoded.fill(out, formula, start, stop, mirror=False, columns=columns))

    fill_from_lower(band, first, n, lower)
    return statuses[0]


def fill_from_lower(band: torch.Tensor, first: int, n: int, lower: LowerRows) -> None:
    """Fill rows first, first + 1, … of a symmetric matrix from rows of its lower triangle; zero diagonal.

    Calls lower once for the band's own rows, then for all later ones, of which only the band's columns count.
    """
    last = first + len(band)
    lower(band, first, last, (0, last))
    for start in range(first, last, ROWS):
        stop = min(start + ROWS, last)
        rows = band[start - first : stop - first]
        band[: start - first, start:stop] = rows[:, first:start].T
        corner = rows[:, start:stop].tril(-1)
        rows[:, start:stop] = corner + corner.T
    if last == n:
        return
    later = torch.empty((ROWS, -(-last // PADDING) * PADDING), dtype=band.dtype, device=band.device)
    for start in range(last, n, ROWS):
        stop = min(start + ROWS, n)
        lower(later[: stop - start], start, stop, (first, last))
        band[:, start:stop] = later[: stop - start, first:last].T


def _width(n: int) -> int:
    return -(-n // 16) * 16

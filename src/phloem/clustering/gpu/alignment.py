# "Pairwise distances of sequences on a GPU: encoded sequences, tile by tile, streamed where they do not
# fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from phloem.clustering.formula import Formula, ScoreTables
from phloem.clustering.gpu.device import free_bytes, on_device, visible_devices
from phloem.clustering.gpu.kernels.distance_counts import difference_tiles, encode_rows, nucleotide_tiles
from phloem.clustering.gpu.kernels.distance_likelihood import count_likelihood_tiles, site_likelihood_tiles
from phloem.hardware.gpu_device import find_device

# Pairwise distances of sequences on a GPU: encoded sequences, tile by tile.


class DeviceScores:
    """arguments of the kernels: tables as int64, [first node, step], last node, guesses, last guess."""

    def __init__(self, scores: ScoreTables, device: torch.device):
        pairs = np.ascontiguousarray(scores.tables, np.float32).view(np.int64)[..., 0]
        nodes = torch.tensor([scores.nodes[0], scores.nodes[1] - scores.nodes[0]], dtype=torch.float64)
        guesses = torch.from_numpy(scores.guesses.astype(np.int32))
        self.arguments = (
            torch.from_numpy(pairs).to(device),
            nodes.to(device),
            len(scores.nodes) - 1,
            guesses.to(device),
            len(scores.guesses) - 1,
        )


PADDING = 64  # sequences are padded to a multiple of this, and tiles divide it
ENCODED = 1024  # sites that one program encodes


@dataclass(frozen=True)
class DistanceTiling:
    """rows, columns: pairs of a tile; block: sites of a step; warps; stages: steps loaded ahead.
    group: tiles of rows that share columns while these are in the cache."""

    rows: int = 64
    columns: int = 32
    block: int = 128
    warps: int = 8
    stages: int = 3
    group: int = 16


NUCLEOTIDE_TILING = DistanceTiling()
STATE_TILING = DistanceTiling(rows=64, columns=64)
COUNTED_TILING = DistanceTiling(rows=32, columns=16, warps=4)
SITE_TILING = DistanceTiling(rows=4, columns=32, warps=2, group=64)


class SequenceCodes:
    """An alignment's codes on a device.

    codes: (n, L) integers. weights: (codes, states) whole numbers, what each code puts in each state: 0 and
    1, or shares of an ambiguous character times a number that makes them whole (at most 127). Codes beyond
    them are unobserved. nucleotides: all sixteen counts are wanted, else matching and compared sites only.
    """

    def __init__(
        self,
        codes: np.ndarray | torch.Tensor,
        weights: np.ndarray,
        nucleotides: bool,
        device: torch.device | None = None,
    ):
        here = codes.device if isinstance(codes, torch.Tensor) else find_device()
        self.device = device or here
        if isinstance(codes, np.ndarray) and codes.itemsize > 1:
            codes = codes.astype(np.int32)
        self.codes = torch.as_tensor(codes, device=self.device)
        self.n, self.sites = self.codes.shape
        self.states, self.nucleotides = weights.shape[1], nucleotides
        seen = weights.sum(axis=1, keepdims=True).max() * (weights.sum(axis=1, keepdims=True) > 0)
        table = np.hstack([weights, seen]).astype(np.int8)
        self.weights = torch.from_numpy(table).to(self.device)

    def encoded(
        self, formula: Formula, columns: np.ndarray | None = None, tiling: DistanceTiling | None = None
    ) -> EncodedSequences:
        """What the kernels of a formula read; columns: (L',) those to take instead of all (a bootstrap)."""
        drawn = None
        if columns is not None:
            drawn = torch.from_numpy(np.ascontiguousarray(columns, np.int32)).to(self.device)
        by_sites = formula.scores is not None and not self.nucleotides
        if tiling is None and formula.scores is not None:
            tiling = SITE_TILING if by_sites else COUNTED_TILING
        tiling = tiling or (NUCLEOTIDE_TILING if self.nucleotides else STATE_TILING)
        return EncodedSequences(self, drawn, by_sites, tiling)


class EncodedSequences:
    """Sequences as one-hot vectors (n', S, L'), or, by_sites, as codes (L, n') with S where unobserved."""

    def __init__(
        self, source: SequenceCodes, columns: torch.Tensor | None, by_sites: bool, tiling: DistanceTiling
    ):
        self.n, self.states, self.device = source.n, source.states, source.device
        self.nucleotides, self.by_sites, self.tiling = source.nucleotides, by_sites, tiling
        self.sites = source.sites if columns is None else len(columns)
        self.padded = -(-self.n // PADDING) * PADDING
        self._listed: tuple[tuple[int, ...], torch.Tensor] = ((), torch.empty(0))
        if by_sites:
            codes = source.codes if columns is None else source.codes.index_select(1, columns)
            self.data = torch.full(
                (self.sites, self.padded), self.states, dtype=torch.uint8, device=self.device
            )
            self.data[:, : self.n] = codes.clamp(max=self.states).T
            return
        self.width = -(-self.sites // tiling.block) * tiling.block
        shape = (self.padded, self.states, self.width)
        self.data = torch.empty(shape, dtype=torch.int8, device=self.device)
        self.data[self.n :].zero_()
        self.observed = torch.empty((0, self.width), dtype=torch.int8, device=self.device)
        if not self.nucleotides:
            self.observed = torch.zeros((self.padded, self.width), dtype=torch.int8, device=self.device)
        block = min(ENCODED, 1 << (self.width - 1).bit_length())
        with on_device(self.device):
            encode_rows[(self.n, -(-self.width // block))](
                source.codes, source.codes.stride(0), source.codes if columns is None else columns,
                self.sites, source.weights, len(source.weights), self.data, self.observed, self.width,
                STATES=self.states, BLOCK=block, DRAWN=columns is not None,
                OBSERVED=not self.nucleotides, num_warps=4,
            )  # fmt: skip

    def _tiles_of(self, first_row: int, last_row: int, columns: tuple[int, int]) -> torch.Tensor:
        """The list of tiles on the device; the last one is kept: making it takes longer than the kernel."""
        wanted = (first_row, last_row, *columns)
        if self._listed[0] != wanted:
            tiles = torch.from_numpy(_tiles(first_row, last_row, columns, self.tiling)).to(self.device)
            self._listed = (wanted, tiles)
        return self._listed[1]

    def fill(
        self,
        out: torch.Tensor,
        formula: Formula,
        first_row: int,
        last_row: int,
        mirror: bool,
        columns: tuple[int, int] | None = None,
    ) -> torch.Tensor:
        """Distances of rows first_row … last_row-1 to all earlier sequences, in `out` (rows, ≥ n).

        out may have one dimension: then these rows of a triangle (data.distance_triangle) fill its start.
        mirror: fill the upper triangle too (out is the whole matrix). columns: only to these, first and past
        the last, and perhaps some beside them. Returns status (3,) int64 on the
        device: saturated pairs, pairs without a common site, and one of these as i × 2³² + j.
        """
        device, t = self.device, self.tiling
        tiles = self._tiles_of(first_row, last_row, columns or (0, self.n))
        status = torch.tensor([0, 0, -1], dtype=torch.int64, device=device)
        shape, longest, quadratic = (
            torch.tensor([x], dtype=torch.float64, device=device)
            for x in (formula.shape, formula.longest, formula.quadratic)
        )
        end = (first_row, status, out, out.stride(0) if out.ndim == 2 else 0)
        sizes = {"ROWS": t.rows, "COLUMNS": t.columns, "MIRROR": mirror, "num_warps": t.warps}
        counted = sizes | {"BLOCK": t.block, "num_stages": t.stages}
        grid = (len(tiles),)
        with on_device(device):
            if formula.scores is not None:
                scores = DeviceScores(formula.scores, device).arguments
                if self.by_sites:
                    site_likelihood_tiles[grid](
                        self.data, self.data.stride(0), self.sites, self.states, self.n, tiles,
                        scores[0], (self.states + 1) ** 2, *scores[1:], longest, *end, **sizes,
                    )  # fmt: skip
                else:
                    count_likelihood_tiles[grid](
                        self.data, self.width, self.n, tiles, *scores, longest, *end, **counted
                    )
            elif self.nucleotides:
                terms = np.empty((0, 4)) if formula.terms is None else np.ascontiguousarray(formula.terms)
                nucleotide_tiles[grid](
                    self.data, self.width, self.n, tiles, torch.from_numpy(terms).to(device), shape,
                    longest, *end, TERMS=len(terms), LOGDET=formula.logdet, **counted,
                )  # fmt: skip
            else:
                difference_tiles[grid](
                    self.data, self.observed, self.data.stride(0), self.width, self.n, tiles, quadratic,
                    shape, longest, *end, CORRECTED=formula.corrected, **counted,
                )  # fmt: skip
        return status


def _tiles(first_row: int, last_row: int, columns: tuple[int, int], tiling: DistanceTiling) -> np.ndarray:
    """(m, 2) int32 tiles with a pair below the diagonal, a few rows of tiles at a time, column by column."""
    left, right = columns[0] // tiling.columns, -(-columns[1] // tiling.columns)
    found = []
    first, last = first_row // tiling.rows, -(-last_row // tiling.rows)
    for start in range(first, last, tiling.group):
        rows = np.arange(start, min(start + tiling.group, last))
        beside = np.arange(left, min(right, -(-(int(rows[-1]) + 1) * tiling.rows // tiling.columns)))
        grid = np.stack(np.meshgrid(beside, rows, indexing="ij"), axis=-1).reshape(-1, 2)[:, ::-1]
        below = grid[:, 1] * tiling.columns < (grid[:, 0] + 1) * tiling.rows - 1
        found.append(grid[below])
    return np.ascontiguousarray(np.concatenate(found), np.int32)


def distance_matrix(
    sequences: EncodedSequences, formula: Formula, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """((n, n) matrix on the device, its rows a multiple of 16 entries apart; status of `fill`)."""
    n = sequences.n
    out = torch.empty((n, -(-n // 16) * 16), dtype=dtype, device=sequences.device)
    status = sequences.fill(out, formula, 0, n, mirror=True)
    out.diagonal().zero_()
    return out[:, :n], status


# Distances of more sequences than fit a device: blocks of rows, dealt to all devices, to host memory.


ROWS = 4096  # of a block, at most


def _fill_from(
    sequences: Sequence[EncodedSequences],
    formula: Formula,
    entries: np.ndarray,
    memory: int | None,
    progress: Callable[[int, int], None] | None,
) -> np.ndarray:
    """Fill a triangle (data.distance_triangle) in host memory that need not fit a device.

    sequences: the same, encoded on each device; every block of rows is the work of one of them, so that the
    result does not depend on how many there are. memory: bytes for a block on a device; None takes half
    of what is free. Returns the status of `fill`.
    """
    n, total = sequences[0].n, np.array([0, 0, -1], np.int64)
    dtype = torch.float64 if entries.dtype == np.float64 else torch.float32
    if memory is None:
        memory = min(free_bytes(s.device) for s in sequences) // 2
    share = -(-n // (len(sequences) * PADDING)) * PADDING
    rows = min(ROWS, share, max(1, memory // (n * entries.itemsize) // PADDING) * PADDING)
    blocks = [torch.empty(min(rows, n) * n, dtype=dtype, device=s.device) for s in sequences]
    for start in range(0, n, rows * len(sequences)):
        firsts = range(start, min(start + rows * len(sequences), n), rows)
        launched = [
            each.fill(block, formula, first, min(first + rows, n), mirror=False)
            for each, block, first in zip(sequences, blocks, firsts)
        ]
        for block, first, on_its_way in zip(blocks, firsts, launched):
            last, status = min(first + rows, n), on_its_way.cpu().numpy()
            total = np.array([total[0] + status[0], total[1] + status[1], max(total[2], status[2])])
            part = torch.from_numpy(entries[first * (first - 1) // 2 : last * (last - 1) // 2])
            part.copy_(block[: len(part)])
            if progress is not None:
                progress(last, n)
    return total


def fill_triangle(
    codes: np.ndarray,
    weights: np.ndarray,
    nucleotides: bool,
    formula: Formula,
    entries: np.ndarray,
    devices: Sequence[torch.device] | None = None,
    memory: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Fill a triangle (data.distance_triangle) from codes and weights as SequenceCodes takes them.

    On all visible devices; memory: bytes for a block of rows on each, None takes half of what is free.
    progress(rows done, rows) after each block.
    """
    encoded = [
        SequenceCodes(codes, weights, nucleotides, device).encoded(formula)
        for device in devices or visible_devices()
    ]
    return _fill_from(encoded, formula, entries, memory, progress)

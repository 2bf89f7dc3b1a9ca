"""Pairwise distances of sequences on a GPU: one-hot integer products, tile by tile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from phloem.engine.gpu_device import find_device
from phloem.kernels.triton.distance_counts import difference_tiles, nucleotide_tiles


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
STATE_TILING = DistanceTiling(rows=64, columns=64, block=128)


@dataclass(frozen=True)
class Formula:
    """How counts become a distance.

    terms: (K, 4) of reference.distance.nucleotide_terms, or None; logdet; else φ(1 - p - quadratic p²) if
    corrected, else p. shape: gamma shape, 0 for equal rates. longest: what saturated pairs get.
    """

    terms: np.ndarray | None = None
    logdet: bool = False
    corrected: bool = False
    quadratic: float = 0.0
    shape: float = 0.0
    longest: float = 5.0


class EncodedSequences:
    """Sequences as one-hot vectors on the device.

    codes: (n, L) integers, s < states a plain state, anything else unobserved. four: all sixteen counts are
    wanted, else matching and compared sites only.
    """

    def __init__(self, codes: np.ndarray | torch.Tensor, states: int, four: bool, tiling: DistanceTiling):
        device = codes.device if isinstance(codes, torch.Tensor) else find_device()
        values = torch.as_tensor(codes, device=device)
        self.n, self.sites = values.shape
        self.tiling, self.four = tiling, four
        padded = -(-self.n // 64) * 64
        self.width = -(-self.sites // tiling.block) * tiling.block
        self.one_hot = torch.zeros((padded, states, self.width), dtype=torch.int8, device=device)
        for s in range(states):
            self.one_hot[: self.n, s, : self.sites] = values == s
        self._listed: tuple[tuple[int, int], torch.Tensor] = ((-1, -1), torch.empty(0))
        self.observed = None
        if not four:
            self.observed = torch.zeros((padded, self.width), dtype=torch.int8, device=device)
            self.observed[:, : self.sites] = self.one_hot[:, :, : self.sites].sum(dim=1, dtype=torch.int8)

    def _tiles_of(self, first_row: int, last_row: int) -> torch.Tensor:
        """The list of tiles on the device; the last one is kept: making it takes longer than the kernel."""
        if self._listed[0] != (first_row, last_row):
            tiles = torch.from_numpy(_tiles(first_row, last_row, self.tiling)).to(self.one_hot.device)
            self._listed = ((first_row, last_row), tiles)
        return self._listed[1]

    def fill(
        self, out: torch.Tensor, formula: Formula, first_row: int, last_row: int, mirror: bool
    ) -> torch.Tensor:
        """Distances of rows first_row … last_row-1 to all earlier sequences, in `out` (rows, ≥ n).

        mirror: fill the upper triangle too (out is the whole matrix). Returns status (3,) int64 on the
        device: saturated pairs, pairs without a common site, and one of these as i × 2³² + j.
        """
        device, t = self.one_hot.device, self.tiling
        tiles = self._tiles_of(first_row, last_row)
        status = torch.tensor([0, 0, -1], dtype=torch.int64, device=device)
        number = {
            name: torch.tensor([getattr(formula, name)], dtype=torch.float64, device=device)
            for name in ("shape", "longest", "quadratic")
        }
        sizes = {"ROWS": t.rows, "COLUMNS": t.columns, "BLOCK": t.block, "MIRROR": mirror}
        options = {"num_warps": t.warps, "num_stages": t.stages}
        if self.four:
            terms = np.empty((0, 4)) if formula.terms is None else formula.terms
            nucleotide_tiles[(len(tiles),)](
                self.one_hot, self.width, self.n, tiles,
                torch.from_numpy(np.ascontiguousarray(terms, np.float64)).to(device), number["shape"],
                number["longest"], first_row, status, out, out.stride(0),
                TERMS=len(terms), LOGDET=formula.logdet, **sizes, **options,
            )  # fmt: skip
        else:
            difference_tiles[(len(tiles),)](
                self.one_hot, self.observed, self.one_hot.stride(0), self.width, self.n, tiles,
                number["quadratic"], number["shape"], number["longest"], first_row, status, out,
                out.stride(0), CORRECTED=formula.corrected, **sizes, **options,
            )  # fmt: skip
        return status


def _tiles(first_row: int, last_row: int, tiling: DistanceTiling) -> np.ndarray:
    """(m, 2) int32 tiles with a pair below the diagonal, a few rows of tiles at a time, column by column."""
    found = []
    first, last = first_row // tiling.rows, -(-last_row // tiling.rows)
    for start in range(first, last, tiling.group):
        rows = np.arange(start, min(start + tiling.group, last))
        columns = np.arange(-(-(int(rows[-1]) + 1) * tiling.rows // tiling.columns))
        grid = np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)[:, ::-1]
        below = grid[:, 1] * tiling.columns < (grid[:, 0] + 1) * tiling.rows - 1
        found.append(grid[below])
    return np.ascontiguousarray(np.concatenate(found), np.int32)


def distance_matrix(
    sequences: EncodedSequences, formula: Formula, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """((n, n) matrix on the device, its rows a multiple of 16 entries apart; status of `fill`)."""
    n = sequences.n
    out = torch.empty((n, -(-n // 16) * 16), dtype=dtype, device=sequences.one_hot.device)
    status = sequences.fill(out, formula, 0, n, mirror=True)
    out.diagonal().zero_()
    return out[:, :n], status


def fill_host_triangle(
    sequences: EncodedSequences, formula: Formula, values: np.ndarray, rows: int = 4096
) -> np.ndarray:
    """Fill the lower triangle of a host matrix that need not fit the device; what is above it is undefined.

    Returns the status of `fill`.
    """
    rows = max(1, rows // sequences.tiling.rows) * sequences.tiling.rows
    total = np.array([0, 0, -1], np.int64)
    device = sequences.one_hot.device
    dtype = torch.float64 if values.dtype == np.float64 else torch.float32
    block = torch.zeros((min(rows, sequences.n), sequences.n), dtype=dtype, device=device)
    for first in range(0, sequences.n, rows):
        last = min(first + rows, sequences.n)
        status = sequences.fill(block, formula, first, last, mirror=False).cpu().numpy()
        total = np.array([total[0] + status[0], total[1] + status[1], max(total[2], status[2])])
        torch.from_numpy(values[first:last, :last]).copy_(block[: last - first, :last])
    return total


def fill_lower_triangle(
    codes: np.ndarray, states: int, four: bool, formula: Formula, values: np.ndarray
) -> np.ndarray:
    """`fill_host_triangle` from state codes (n, L); four: nucleotides, else any states by matches."""
    sequences = EncodedSequences(codes, states, four, NUCLEOTIDE_TILING if four else STATE_TILING)
    return fill_host_triangle(sequences, formula, values)

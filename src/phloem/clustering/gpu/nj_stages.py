"""The launches of exact neighbour joining; between them dead columns are dropped.

How many clusters a launch leaves is known beforehand, so that nothing is waited for on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton.language as tl

from phloem.clustering.gpu.device import launch_options, programs
from phloem.clustering.gpu.kernels.nj_compaction import count_places, drop_columns
from phloem.clustering.gpu.kernels.nj_exact import ARRIVED, COUNTERS, nj_exact
from phloem.clustering.gpu.kernels.nj_records import RING, UNTOLD, WORDS
from phloem.clustering.gpu.kernels.nj_start import first_partners, row_sums
from phloem.clustering.gpu.kernels.nj_steps import BEGIN, FIELDS, NAME, REALS, RUN, SIZE, SLOT, SUMS
from phloem.clustering.settings import JoiningMethod

METHODS = {"nj": 0, "bionj": 1, "unj": 2}
COLUMNS = 1024  # in flight where each program has one row


@dataclass(frozen=True)
class JoiningTiling:
    """programs: at most so many, one a multiprocessor. lanes: rows of a program at least, since every number
    of lanes is compiled by itself. blocks: entries of a row in flight, of launches up to so many clusters.
    small: never drop columns of fewer clusters. ahead: rows that so many joins would make due are scanned
    early."""

    programs: int = 128
    lanes: int = 128
    blocks: tuple[tuple[int, int], ...] = ((4_000, 512), (16_384, 1024), (1 << 31, 2048))
    small: int = 512
    ahead: float = 4.0


USUAL = JoiningTiling()  # measured on an H100


def stages(n: int, small: int) -> list[tuple[int, int]]:
    """Clusters before and after each launch; all but the last end when a quarter of the columns is dead."""
    counts = [n]
    while counts[-1] > max(small, 6):  # the last launch has something to do
        counts.append(-(-3 * counts[-1] // 4) - 1)
    return list(zip(counts, [*counts[1:], 4]))


class JoiningStages:
    """A matrix, what is known of its clusters (nj_steps; sums of rows at first), and all joins in the end."""

    def __init__(self, work: torch.Tensor, n: int, method: JoiningMethod, tiling: JoiningTiling):
        self.work, self.n, self.method, self.tiling = work, n, METHODS[method], tiling
        self.variances = work.clone() if method == "bionj" else work
        device, self.width = work.device, -(-(n + 16) // 16) * 16
        self.state = torch.zeros((FIELDS, self.width), dtype=torch.int32, device=device)
        for field in (SLOT, NAME):
            self.state[field.value, :n] = torch.arange(n, dtype=torch.int32, device=device)
        place = torch.arange(n, dtype=torch.int32, device=device)
        round_end = n - (n - 1) // 2  # of two clusters just opposite each other, the later answers
        self.state[BEGIN.value, :n] = torch.where(place < n // 2, place + round_end, place - n // 2)
        self.reals = torch.full((REALS, self.width), -torch.inf, dtype=torch.float64, device=device)
        self.reals[SIZE.value] = 1.0
        self.order = torch.zeros((2, self.width), dtype=torch.int32, device=device)
        self.names = torch.zeros((2, self.width), dtype=torch.int32, device=device)
        self.lengths = torch.zeros((2, self.width), dtype=torch.float64, device=device)
        self.counters = torch.zeros(COUNTERS, dtype=torch.int32, device=device)
        self._cooperative = launch_options(device, registers=0)
        self._alone = {key: x for key, x in self._cooperative.items() if key == "enable_fp_fusion"}
        self._dtype = tl.float64 if work.dtype == torch.float64 else tl.float32
        row_sums[(n,)](work, work.stride(0), self.reals, self.width, n, BLOCK=COLUMNS, **self._alone)

    def join(self) -> int:
        """Join until four clusters are left; they live in as many columns as are returned."""
        first_partners[(self.n,)](
            self.work, self.work.stride(0), self.state, self.reals, self.width, self.n,
            DTYPE=self._dtype, BLOCK=COLUMNS, **self._alone,
        )  # fmt: skip
        steps = stages(self.n, self.tiling.small)
        for clusters, left in steps:
            self._launch(clusters, left)
            if left > 4:
                self._drop_dead(clusters, left)
        return steps[-1][0]

    def _launch(self, clusters: int, left: int) -> None:
        tiling, device = self.tiling, self.work.device
        count = min(tiling.programs, programs(device, per_processor=1))
        rows = -(-clusters // (RUN.value * count)) * RUN.value
        lanes = max(1 << (max(rows, count) - 1).bit_length(), tiling.lanes)
        block = next(block for most, block in tiling.blocks if clusters <= most)
        records = torch.full((RING.value, count, WORDS.value), UNTOLD.value, dtype=torch.int64, device=device)
        self.counters[ARRIVED.value] = 0
        nj_exact[(count,)](
            self.work, self.variances, self.work.stride(0), self.state, self.reals, records, self.names,
            self.lengths, self.width, clusters, left, self.n - clusters, self.counters, tiling.ahead,
            BLOCK=block, WIDTH=lanes, METHOD=self.method, DTYPE=self._dtype,
            NATIVE=device.type == "cuda" and torch.version.hip is None,
            num_warps=min(max(lanes // 32, 4), 16),  # a lane a thread
            **self._cooperative,
        )  # fmt: skip

    def _drop_dead(self, clusters: int, left: int) -> None:
        """Of `clusters` columns the `left` living ones move together."""
        sums = self.reals[SUMS.value + (self.n - left) % 2]
        count_places[(clusters // COLUMNS + 1,)](self.order, sums, self.width, clusters, BLOCK=COLUMNS)
        state, reals = torch.empty_like(self.state), torch.empty_like(self.reals)
        for matrix in (self.work, self.variances)[: 1 + (self.variances is not self.work)]:
            drop_columns[(left,)](
                matrix, matrix.stride(0), self.order, self.state, self.reals, state, reals, self.width, left,
                MOVES_STATE=matrix is self.work, FIELDS=FIELDS, REALS=REALS, BLOCK=COLUMNS,
            )  # fmt: skip
        self.state, self.reals = state, reals

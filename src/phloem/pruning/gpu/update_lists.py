"""The lists of an update on the GPU: written on the host, uploaded in one copy."""

from __future__ import annotations

import numpy as np
import torch

from phloem.pruning.cpu.step_lists import count_steps, list_root, list_steps
from phloem.pruning.gpu.step_schedule import ROW

_HEAD = 16  # int64 before the lists: the kernels' sizes, and room that keeps lists aligned


class UpdateLists:
    """Sizes, the root's steps, matrix jobs and post-order steps of one update of one tree.

    They lie one after the other in a buffer whose places stay where they are, so that captured launches find
    them. Room for jobs comes in powers of four; what is not used of it makes a matrix that nobody reads
    (trash: its number). Steps beyond those listed are not looked at.
    """

    def __init__(self, n_root_tiles: int, n_branches: int, n_steps: int, trash: int, device: torch.device):
        self._n_root_tiles, self._trash, self._device = n_root_tiles, trash, device
        self._n_branches, self._n_steps = n_branches, n_steps
        self._first_job = _HEAD + n_root_tiles * ROW
        size = self._first_job + 4 * room_for(n_branches) + n_steps * ROW
        self._host = torch.empty(size, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._on_device = torch.empty(size, dtype=torch.int64, device=device)
        self._rows, self.room, self._used = self._host.numpy(), 1, 0
        self._views: dict[int, dict[str, torch.Tensor]] = {}
        self.jobs = np.zeros((0, 4), np.int64)

    def holds(self, dirty: np.ndarray, size: np.ndarray, tile: int) -> bool:
        return count_steps(dirty, size, tile) <= self._n_steps

    def write(
        self, children, parent, dirty, message, classes, size, matrix, branches, n_columns, parts, tiles
    ) -> None:
        """The lists for dirty nodes (pruning/cpu/step_lists.py) and for branches with other matrices.

        parts: programs a step; tiles: (columns of a post-order step, of a root step).
        """
        self.room = room_for(len(branches))
        jobs = self._rows[self._first_job : self._first_job + 4 * self.room].reshape(-1, 4)
        jobs[:, 0], jobs[:, 1], jobs[:, 2:] = 0, self._trash, 0
        self.jobs = jobs[: len(branches)]
        self.jobs[:, 0], self.jobs[:, 1] = branches, matrix[branches]
        first = self._first_job + 4 * self.room
        steps = self._rows[first : first + self._n_steps * ROW].reshape(-1, ROW)
        n_steps = list_steps(
            *children, parent, dirty, message, classes, size, matrix, 0, 2, tiles[0], parts, steps
        )
        self._used = first + n_steps * ROW
        root = self._rows[_HEAD : self._first_job].reshape(-1, ROW)
        list_root(*children, message, classes, size, 0, 0, 0, tiles[1], root)
        self._rows[:4] = n_columns, n_steps, 0, 0

    def upload(self) -> dict[str, torch.Tensor]:
        """Start the copy; the lists as Launcher.run takes them."""
        self._on_device[: self._used].copy_(self._host[: self._used], non_blocking=True)
        if self.room not in self._views:
            first = self._first_job + 4 * self.room
            self._views[self.room] = {
                "sizes": self._on_device[:_HEAD],
                "root": self._on_device[_HEAD : self._first_job].view(-1, ROW),
                "jobs": self._on_device[self._first_job : first].view(-1, 4),
                "post": self._on_device[first : first + self._n_steps * ROW].view(-1, ROW),
            }
        return self._views[self.room]


def room_for(n_jobs: int) -> int:
    """The least power of four that is not less."""
    room = 1
    while room < n_jobs:
        room *= 4
    return room

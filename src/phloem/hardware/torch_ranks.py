"""Processes of one host that PyTorch's launcher started, talking by gloo; and how they are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist

WAIT = timedelta(days=365)  # a block of generations takes as long as it takes; a dead process is noticed


class TorchTalk:
    """Talk of ranks.py, for every process that `torch.distributed.run` started; or of a group of them, which
    has only what is shared and scattered."""

    def __init__(self, group: Any = None) -> None:
        self._group = group
        if group is None:
            dist.init_process_group("gloo", timeout=WAIT)

    def meet(self) -> None:
        """Messages are waited for in the system, which takes no core."""

    def broadcast(self, what: Any) -> Any:
        box = [what]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, what: Any) -> list[Any] | None:
        boxes = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(what, boxes, dst=0)
        return boxes

    def scatter(self, parts: Sequence[Any] | None) -> Any:
        box: list[Any] = [None]
        first = 0 if self._group is None else dist.get_global_rank(self._group, 0)
        given = None if parts is None else list(parts)
        dist.scatter_object_list(box, given, src=first, group=self._group)
        return box[0]

    def exchange(self, message: np.ndarray, partner: int) -> np.ndarray:
        found = torch.empty(len(message), dtype=torch.float64)
        work = [dist.isend(torch.from_numpy(message), partner), dist.irecv(found, partner)]
        for one in work:
            assert one is not None  # as it is outside the group
            one.wait()
        return found.numpy()

    def shared(self, message: np.ndarray) -> np.ndarray:
        own = torch.from_numpy(message)
        found = [torch.empty_like(own) for _ in range(dist.get_world_size(self._group))]
        dist.all_gather(found, own, group=self._group)
        return torch.stack(found).numpy()

    def group(self, groups: Sequence[Sequence[int]]) -> TorchTalk:
        made = [dist.new_group(list(one), timeout=WAIT) for one in groups]  # each process makes all
        here = dist.get_rank()
        return TorchTalk(next(group for group, one in zip(made, groups) if here in one))

    def finish(self) -> None:
        dist.destroy_process_group()

    def abort(self, status: int) -> None:
        os._exit(status)  # the launcher ends the others


def become_launcher(n_processes: int, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by PyTorch's launcher, of so many processes of phloem on this host."""
    # After "--" none of phloem's options is read as one of the launcher's (`--start`).
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes),
        "--no-python", "--", sys.executable, "-m", "phloem", *arguments,
    ]  # fmt: skip
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, {"OMP_NUM_THREADS": "1", **os.environ})  # else the launcher warns

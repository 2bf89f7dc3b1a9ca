"""The processes of one command: one, or those that a launcher started, which talk to each other.

`mpiexec` and `srun` start processes that talk by MPI (mpi4py), on any number of hosts. phloem itself starts
one a GPU of this host with PyTorch's launcher (`--devices`); they talk by its gloo, which needs no MPI.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from phloem.errors import InputError
from phloem.hardware.machine import detect_hardware, usable_cores

if TYPE_CHECKING:  # every command asks how many processes it is; NumPy would be a third of the time of --help
    import numpy as np

# What launchers tell each process: how many there are, and which it is. Of several the first one counts:
# Open MPI starts its own on other hosts with Slurm, whose numbers are then others.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
_TORCH = ("WORLD_SIZE", "RANK")
_BY_TORCH = "TORCHELASTIC_RUN_ID"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SOON, _PATIENCE = 2e-3, 1e-3  # seconds in which others may come at once; between two looks after that


class Talk(Protocol):
    """How processes talk. Failures of the connection are errors of the library below. meet: until all have
    come, which may take hours, at no cost."""

    def meet(self) -> None: ...

    def broadcast(self, what: Any) -> Any: ...

    def gather(self, what: Any) -> list[Any] | None: ...

    def scatter(self, parts: Sequence[Any] | None) -> Any: ...

    def exchange(self, message: np.ndarray, partner: int) -> np.ndarray: ...

    def shared(self, message: np.ndarray) -> np.ndarray: ...

    def group(self, groups: Sequence[Sequence[int]]) -> Talk: ...

    def finish(self) -> None: ...

    def abort(self, status: int) -> None: ...


@dataclass(frozen=True)
class Ranks:
    """number: of this process, 0 … size - 1; rank 0 reads checkpoints, writes and prints. local: (its number
    among the processes of this host, how many they are). talk: None where there is one process. how: they
    were started, and talk."""

    number: int = 0
    size: int = 1
    local: tuple[int, int] = (0, 1)
    talk: Talk | None = None
    how: str = ""

    def broadcast(self, what: Any) -> Any:
        """What rank 0 says, on every rank."""
        return what if self.talk is None else self.talk.broadcast(what)

    def gather(self, what: Any) -> list[Any] | None:
        """What every rank says, in their order, on rank 0; None on others."""
        return [what] if self.talk is None else self.talk.gather(what)

    def scatter(self, parts: Sequence[Any] | None) -> Any:
        """On every rank its own of the parts that rank 0 gives."""
        if self.talk is not None:
            return self.talk.scatter(parts)
        assert parts is not None
        return parts[0]

    def exchanged(self, message: np.ndarray, partner: int) -> np.ndarray:
        """The message, float64 and as long, that a partner sends while this one is sent there."""
        assert self.talk is not None
        return self.talk.exchange(message, partner)

    def shared(self, message: np.ndarray) -> np.ndarray:
        """(size, n) what every rank says, n numbers, on all of them."""
        return message[None] if self.talk is None else self.talk.shared(message)

    def groups_of(self, size: int) -> Ranks:
        """Of all ranks: those in the same group of so many neighbours, as ranks of their own."""
        if self.talk is None or size == 1:
            return Ranks()
        groups = [range(self.size)[k : k + size] for k in range(0, self.size, size)]
        own = groups[self.number // size]
        return replace(self, number=own.index(self.number), size=len(own), talk=self.talk.group(groups))

    def together(self, work: Callable[..., Any], *arguments: Any, **own: Any) -> Any:
        """What work(self, *arguments, **own) returns on rank 0, which calls this, while all others, which
        assist, do work(self, *arguments). work: a function of a module."""
        if self.talk is not None:
            self.talk.meet()
            self.talk.broadcast((work, arguments))
        return work(self, *arguments, **own)

    def assist(self) -> None:
        """Of all ranks but the first: take part in whatever that asks for, until it dismisses them."""
        assert self.talk is not None
        while True:
            self.talk.meet()
            told = self.talk.broadcast(None)
            if told is None:
                return
            work, arguments = told
            work(self, *arguments)

    def dismiss(self) -> None:
        """Of rank 0: nobody is needed any more."""
        if self.talk is not None:
            self.talk.meet()
            self.talk.broadcast(None)

    @property
    def cores(self) -> int:
        """That this process may use; what no launcher has divided, the processes of this host share."""
        cores = usable_cores()[0]
        return cores if cores < (os.cpu_count() or 1) else max(1, cores // self.local[1])

    def finish(self) -> None:
        """Take leave, as every process has to that ends well."""
        if self.talk is not None:
            self.talk.finish()

    def abandon(self, status: int) -> NoReturn:
        """End all processes: this one cannot go on, and others would wait for it."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.talk is not None:
            self.talk.abort(status)
        os._exit(status)


def by_torch() -> bool:
    """Whether PyTorch's launcher started this process."""
    return _BY_TORCH in os.environ


def launched() -> tuple[int, int]:
    """(how many processes a launcher says that it started, which this one is); (1, 0) where none did."""
    names = [_TORCH] if by_torch() else _LAUNCHERS
    for name in names:
        size, number = (os.environ.get(variable, "") for variable in name)
        if size.isdigit() and number.isdigit():
            return max(1, int(size)), int(number)
    return 1, 0


@cache
def ranks() -> Ranks:
    """The processes that this one belongs to. InputError where a launcher started several that cannot talk:
    each would believe that it is alone."""
    size, _ = launched()
    if size == 1:
        return Ranks()
    found = _by_torch() if by_torch() else _by_mpi(size)
    _claim_gpu(found.local)
    return found


def _claim_gpu(local: tuple[int, int]) -> None:
    """Let this process see one of the host's GPUs only: its processes take them in turn. Before CUDA starts,
    which looks at the variable once."""
    visible = visible_gpus()
    if local[1] > 1 and len(visible) > 1:
        os.environ[_VISIBLE] = visible[local[0] % len(visible)]


def visible_gpus() -> list[str]:
    """Names, as CUDA_VISIBLE_DEVICES has them, of the NVIDIA GPUs that this process may use."""
    told = os.environ.get(_VISIBLE)
    if told is not None:
        return [name.strip() for name in told.split(",") if name.strip()]
    return [str(i) for i in range(len(detect_hardware().accelerators))]


def show_gpus(names: Sequence[str]) -> None:
    """Let this process, and those it starts, see these GPUs only."""
    os.environ[_VISIBLE] = ",".join(names)


def where_text() -> str:
    """Which process this is, for people."""
    size, number = launched()
    return f"rank {number} of {size}, {socket.gethostname()}"


def _by_torch() -> Ranks:
    from phloem.hardware.torch_ranks import TorchTalk

    talk = TorchTalk()
    size, number = launched()
    local = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    return Ranks(number, size, local, talk, "started by PyTorch's launcher, talking by gloo")


def _by_mpi(size: int) -> Ranks:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"{size} processes were started to work together, and mpi4py cannot be loaded: {error}",
            hint="pip install 'phloem[mpi]', with the MPI library that your mpiexec or srun belongs to.",
        ) from None
    comm = MPI.COMM_WORLD
    if comm.Get_size() != size:
        raise InputError(
            f"{size} processes were started together, and the MPI library here knows of {comm.Get_size()}",
            hint="Load the MPI library that your mpiexec or srun belongs to (as by `module load`), and "
            "reinstall mpi4py with it; of srun, try --mpi=pmix.",
        )
    beside = comm.Split_type(MPI.COMM_TYPE_SHARED)
    local = beside.Get_rank(), beside.Get_size()
    version = MPI.Get_library_version().split(",")[0].split("\n")[0]
    return Ranks(comm.Get_rank(), size, local, _MpiTalk(comm), f"talking by MPI ({version})")


@dataclass(frozen=True)
class _MpiTalk:
    comm: Any

    def meet(self) -> None:
        asked, begin = self.comm.Ibarrier(), time.monotonic()
        while not asked.Test():  # whoever waits in MPI itself takes a whole core for as long as it takes
            time.sleep(0.0 if time.monotonic() - begin < _SOON else _PATIENCE)

    def broadcast(self, what: Any) -> Any:
        return self.comm.bcast(what, root=0)

    def gather(self, what: Any) -> list[Any] | None:
        return self.comm.gather(what, root=0)

    def scatter(self, parts: Sequence[Any] | None) -> Any:
        return self.comm.scatter(parts, root=0)

    def exchange(self, message: np.ndarray, partner: int) -> np.ndarray:
        found = message.copy()
        self.comm.Sendrecv(message, partner, recvbuf=found, source=partner)
        return found

    def shared(self, message: np.ndarray) -> np.ndarray:
        found = message[None].repeat(self.comm.Get_size(), axis=0)
        self.comm.Allgather(message, found)
        return found

    def group(self, groups: Sequence[Sequence[int]]) -> Talk:
        here = self.comm.Get_rank()
        return _MpiTalk(self.comm.Split(next(k for k, one in enumerate(groups) if here in one), here))

    def finish(self) -> None:
        from mpi4py import MPI

        MPI.Finalize()

    def abort(self, status: int) -> None:
        self.comm.Abort(status)

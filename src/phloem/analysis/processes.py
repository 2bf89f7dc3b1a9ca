"""Several processes of one command (mpiexec, srun, --devices), several GPUs of one process: which may, who
speaks, how all end."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from phloem.errors import InputError
from phloem.hardware.machine import require_torch
from phloem.hardware.ranks import Ranks, by_torch, launched, ranks, show_gpus, visible_gpus, where_text

Device = TypeVar("Device", bound=str)  # what an option names: auto, cpu, gpu, or a command's own
MANY = 1 << 30  # processes, where nothing says that fewer are of use
ALL, CPU = "all", "cpu"
DIVIDED = ("mcmc", "time", "ml", "likelihood")  # commands whose work several processes divide
_FIRST_SPEAKS = 2.0  # seconds, in which the first process says what others would say too


def is_first() -> bool:
    """Whether this process is the only one, or the one that speaks."""
    return launched()[1] == 0


def is_alone() -> bool:
    """Whether no launcher started several processes."""
    return launched()[0] == 1


def refuse_several(command: str) -> None:
    """InputError where several processes were started for a command that one does alone."""
    size, _ = launched()
    if size > 1 and command and command not in DIVIDED:
        raise InputError(
            f"{size} processes were started for `phloem {command}`, which one process does alone",
            hint=f"Start it without mpiexec or srun. Divided among processes are: {', '.join(DIVIDED)}.",
        )


def device_of(
    devices: str | None, device: Device, n_useful: int, option: str = "--device",
    more: Callable[[], int] | None = None,
) -> Device | Literal["cpu", "gpu"]:  # fmt: skip
    """What `--devices` and another option ask for together, in as many processes: where there are several
    GPUs, and no launcher started this process, it is replaced by one that starts a process a GPU, n_useful at
    most. more: how many are of use, asked where that is fewer than there are GPUs, as data must be read for
    it. InputError for a GPU that is not there."""
    found, n_gpus = devices_here(devices, device, n_useful, option, more)
    if n_gpus > 1:
        from phloem.hardware.torch_ranks import become_launcher

        become_launcher(n_gpus, sys.argv[1:])
    return found


def devices_here(
    devices: str | None, device: Device, n_useful: int, option: str = "--device",
    more: Callable[[], int] | None = None,
) -> tuple[Device | Literal["cpu", "gpu"], int]:  # fmt: skip
    """device_of for a command that one process carries out on several GPUs, and how many: those that it sees
    from now on. Where a launcher started this process it has one."""
    if devices is None:
        return device, 1
    gpus = _gpus_of(devices)
    found: Literal["cpu", "gpu"] = "cpu" if gpus is None else "gpu"
    if device not in ("auto", found):
        raise InputError(f"--devices {devices} and {option} {device}", hint="Leave one out.")
    if gpus is None or launched()[0] > 1:
        return found, 1
    if more is not None and len(gpus) > n_useful:
        n_useful = more()
    show_gpus(gpus[:n_useful])
    return found, len(gpus[:n_useful])


def _gpus_of(text: str) -> list[str] | None:
    """The GPUs that `--devices` asks for: cpu, which is None, all, or numbers of those of this host as in
    0,1."""
    if text == CPU:
        return None
    require_torch()
    if by_torch():
        return []  # the process before this one chose
    there, wanted = visible_gpus(), text.split(",")
    if text == ALL:
        wanted = [str(i) for i in range(len(there))]
    if not there:
        raise InputError("--devices asks for GPUs, and there is none here", hint="Use --devices cpu.")
    if not all(name.strip().isdigit() and int(name) < len(there) for name in wanted) or len(
        set(map(int, wanted))
    ) < len(wanted):
        raise InputError(
            f"--devices {text}: the GPUs here are {', '.join(map(str, range(len(there))))}, each named once",
            hint="Write their numbers as in 0,1, or all, or cpu.",
        )
    return [there[int(name)] for name in wanted]


def assists() -> bool:
    """Whether this process is one of several, and not the first: it has then done what the first asked for,
    which begins after this and dismisses it."""
    here = ranks()
    if here.number == 0:
        return False
    here.assist()
    return True


def dismiss() -> None:
    """Of the first process: the others, which assist, are not needed any more."""
    ranks().dismiss()


def shared_line(what: str) -> str | None:
    """Who shared what, for people; None where one process did it."""
    here = ranks()
    return f"{here.size} processes shared the {what}, {here.how}" if here.size > 1 else None


def be_quiet() -> io.StringIO | None:
    """On all processes but the first: keep what would be printed, and return it."""
    if is_first():
        return None
    kept = io.StringIO()
    sys.stdout = sys.stderr = kept
    return kept


def take_leave(status: int, kept: io.StringIO | None) -> None:
    """Of all processes at the end of the command. After an error in one of them none can go on: this returns
    for a status of 0 only. kept: what this one would have said; it is said where the first one does not end
    all meanwhile."""
    if launched()[0] == 1:
        return
    if status == 0:
        ranks().finish()
        return
    try:
        here = ranks()  # before the pause: each waits here for the others
    except InputError:  # which was said; none of them can talk
        here = Ranks()
    if kept is not None:
        time.sleep(_FIRST_SPEAKS)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        said = kept.getvalue()
        print(said[max(said.rfind("error:"), 0) :].rstrip(), file=sys.stderr)
        print(f"  on {where_text()}; all processes end", file=sys.stderr)
    here.abandon(status)

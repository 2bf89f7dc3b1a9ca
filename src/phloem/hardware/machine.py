"""What this machine offers: cores this process may use, memory, accelerators."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from phloem.errors import DeviceError

# What this machine offers: cores this process may use, memory, accelerators. Decides nothing.


@dataclass(frozen=True)
class Accelerator:
    """One GPU as its driver's tool names it; memory in bytes."""

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Hardware:
    """cpu: processor name. cores: cores this process may use, and cores_reason what set that number.
    memory_bytes: physical memory; available_bytes: what is free or reclaimable now, here and within the
    container's limit (None if unknown)."""

    cpu: str
    cores: int
    cores_reason: str
    memory_bytes: int | None
    available_bytes: int | None
    accelerators: tuple[Accelerator, ...]
    torch_installed: bool


def detect_hardware() -> Hardware:
    """Look at the machine; starts no framework (importing torch takes seconds)."""
    cores, reason = usable_cores()
    return Hardware(
        cpu=_cpu_name(),
        cores=cores,
        cores_reason=reason,
        memory_bytes=_meminfo().get("MemTotal"),
        available_bytes=available_bytes(),
        accelerators=_nvidia_gpus() or _amd_gpus(),
        torch_installed=find_spec("torch") is not None,
    )


def available_bytes() -> int | None:
    """Memory that is free or reclaimable now, here and within the container's limit; None if unknown."""
    limits = (_meminfo().get("MemAvailable"), _container_memory())
    return min((limit for limit in limits if limit is not None), default=None)


def usable_cores() -> tuple[int, str]:
    """Cores this process may use, and why: affinity, a scheduler's allotment or a container's quota."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    limits = [(affinity, "cores this process may run on")]
    for variable in ("SLURM_CPUS_PER_TASK", "PBS_NUM_PPN", "NSLOTS"):
        if os.environ.get(variable, "").isdigit():
            limits.append((int(os.environ[variable]), f"{variable} of the job scheduler"))
    quota = _container_quota()
    if quota is not None:
        limits.append((quota, "the container's CPU quota"))
    cores, reason = min(limits)
    return max(cores, 1), reason


def _container_quota() -> int | None:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None


def _container_memory(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """What the control groups (version 2) around this process leave of their memory limits."""
    try:
        paths = [line[3:] for line in own.read_text().splitlines() if line.startswith("0::")]
    except OSError:
        return None
    group, left = root / (paths[0] if paths else "/").lstrip("/"), []
    for folder in (group, *group.parents):
        if folder != root and root not in folder.parents:
            break
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
            cached = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.MULTILINE)
        except (OSError, ValueError):
            continue
        if limit != "max":
            left.append(max(0, int(limit) - used + int(cached[1] if cached else 0)))
    return min(left, default=None)


def _meminfo() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":") for line in lines if ":" in line)
    return {key: int(value.split()[0]) * 1024 for key, value in pairs if value.split()[0].isdigit()}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _nvidia_gpus() -> tuple[Accelerator, ...]:
    rows = _ask("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    pairs = [row.rsplit(",", 1) for row in rows if "," in row]
    return tuple(Accelerator(name.strip(), int(mib) << 20) for name, mib in pairs if mib.strip().isdigit())


def _amd_gpus() -> tuple[Accelerator, ...]:
    rows = _ask("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv")
    if len(rows) < 2:
        return ()
    header = rows[0].split(",")
    name, memory = (next((i for i, h in enumerate(header) if key in h), None) for key in ("Card", "Total"))
    if name is None or memory is None:
        return ()
    cells = [row.split(",") for row in rows[1:] if row.count(",") >= max(name, memory)]
    return tuple(Accelerator(cell[name], int(cell[memory])) for cell in cells if cell[memory].isdigit())


def _ask(program: str, *arguments: str) -> list[str]:
    """Lines a driver's tool prints, or none where it is missing, fails or hangs."""
    if shutil.which(program) is None:
        return []
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


# Whether this machine has a GPU that PyTorch may drive. Loads no framework.


def why_not_gpu() -> str:
    """The reason, as a clause."""
    if not _driver_is_here():
        return "no GPU here"
    if find_spec("torch") is None:
        return "the GPU needs PyTorch, which is not installed (pip install 'phloem[gpu]')"
    return "threads were asked for"


def gpu_is_here() -> bool:
    """A driver and PyTorch; whether they fit each other shows when the engine is built."""
    return _driver_is_here() and find_spec("torch") is not None


def _driver_is_here() -> bool:
    """NVIDIA's or AMD's."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")


def require_torch() -> None:
    """DeviceError where PyTorch is missing."""
    if find_spec("torch") is None:
        raise DeviceError("the GPU needs PyTorch, which is not installed: pip install 'phloem[gpu]'")

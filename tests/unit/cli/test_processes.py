"""`phloem mcmc` under mpiexec and PyTorch's launcher: the same files, one voice, all end together."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
PRIMATES, CARNIVORES = ROOT / "examples/primates.nex", ROOT / "examples/carnivores.fasta.gz"
SHORT = ("--generations", "2000", "--sample-every", "50", "--check-every", "500", "--device", "cpu")
COMMAND = ("mcmc", str(PRIMATES), "--model", "GTR+I+G4", *SHORT)

needs_mpi = pytest.mark.skipif(
    shutil.which("mpiexec") is None or find_spec("mpi4py") is None, reason="needs mpiexec and mpi4py"
)
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch's launcher")


def environment() -> dict[str, str]:
    more = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    }
    return os.environ | more


def mpi(size: int, *arguments: str) -> list[str]:
    return ["mpiexec", "-n", str(size), sys.executable, "-m", "phloem", *arguments]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    done = run([sys.executable, "-m", "phloem", *COMMAND, "--prefix", "x"], folder)
    assert done.returncode == 0, done.stderr
    return folder


def check_same(folder: Path, alone: Path) -> None:
    for name in ("x.run1.p", "x.run2.p", "x.run1.t", "x.run2.t", "x.con.tre"):
        assert (folder / name).read_bytes() == (alone / name).read_bytes(), name


@needs_torch
def test_processes_of_pytorch_write_what_one_does(alone, tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = ["--no-python", sys.executable, "-m", "phloem", *COMMAND, "--prefix", "x"]
    done = run([*launcher, *program], tmp_path)
    assert done.returncode == 0, done.stderr
    check_same(tmp_path, alone)
    assert re.search(r"by\s+gloo", done.stdout)


@needs_torch
def test_options_are_none_of_the_launcher(monkeypatch):
    """`--start` is the beginning of two of its options."""
    from torch.distributed.run import parse_args

    from phloem.hardware.torch_ranks import become_launcher

    found: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda path, command, environment: found.append(command))
    own = ["time", "x.fasta", "--start", "random", "--devices", "0,1"]
    become_launcher(2, own)
    read = parse_args(found[0][3:])
    assert read.nproc_per_node == "2" and read.training_script == sys.executable
    assert read.training_script_args == ["-m", "phloem", *own]


@needs_mpi
def test_a_killed_process_ends_all_and_another_number_goes_on(alone, tmp_path):
    longer = [*COMMAND, "--burn-in", "0", "--prefix", "x", "--generations", "200000"]  # no tuning
    begun = subprocess.Popen(
        mpi(4, *longer),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    trace = tmp_path / "x.run1.p"
    while begun.poll() is None and not (trace.exists() and len(trace.read_text().splitlines()) > 13):
        time.sleep(0.05)
    found = subprocess.run(
        ["pgrep", "-P", str(begun.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(found[-1]), signal.SIGKILL)
    said, _ = begun.communicate(timeout=300)
    assert begun.returncode != 0 and re.search(r"rank 3 .*signal 9", said)
    assert 13 < len(trace.read_text().splitlines()) < 4_000  # the others did not go on to the end
    done = run(mpi(2, *longer[:-1], "6000"), tmp_path)
    assert done.returncode == 0 and "resumed at generation" in done.stdout, done.stderr
    assert done.stdout.count("model:") == 1 and re.search(r"2\s+processes", done.stdout)
    again = run([sys.executable, "-m", "phloem", *longer[:-3], "y", *longer[-2:-1], "6000"], tmp_path)
    assert again.returncode == 0, again.stderr
    for name in ("run1.p", "run2.t"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes()


@pytest.mark.slow
@needs_mpi
def test_bootstrap_replicates_and_searches_are_shared(tmp_path):
    search = ("ml", str(PRIMATES), "--model", "JC", "--patience", "0", "--prefix")
    done = run([sys.executable, "-m", "phloem", *search, "one", "--bootstrap", "5"], tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(mpi(2, *search, "two", "--bootstrap", "5"), tmp_path)
    assert done.returncode == 0 and "2 processes shared the bootstrap replicates" in done.stdout, done.stderr
    for name in ("tree", "bootstrap.nwk"):
        assert (tmp_path / f"one.{name}").read_bytes() == (tmp_path / f"two.{name}").read_bytes(), name
    done = run([sys.executable, "-m", "phloem", *search, "one", "--starts", "3", "--redo"], tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(mpi(2, *search, "two", "--starts", "3", "--redo"), tmp_path)
    assert done.returncode == 0 and "2 processes shared the searches" in done.stdout, done.stderr
    for name in ("tree", "model"):
        assert (tmp_path / f"one.{name}").read_bytes() == (tmp_path / f"two.{name}").read_bytes(), name
    done = run(mpi(2, *search, "two"), tmp_path)
    assert done.returncode != 0 and done.stderr.count("nothing here that they could share") == 1


def write_random(path: Path, n_columns: int, letters: bytes = b"ACGT") -> None:
    """Sixteen sequences t0 … t15."""
    rows = np.random.default_rng(1).choice(list(letters), (16, n_columns)).astype(np.uint8)
    path.write_bytes(b"".join(b">t%d\n%s\n" % (i, row.tobytes()) for i, row in enumerate(rows)))


@pytest.mark.slow
@needs_mpi
def test_columns_of_a_chain_are_shared(tmp_path):
    write_random(tmp_path / "x.fasta", 10_000, b"ARNDCQEGHILKMFPSTWYV")
    told = (
        "mcmc",
        "x.fasta",
        "--model",
        "LG+G4",
        "--sample-every",
        "5",
        "--check-every",
        "50",
        "--runs",
        "1",
    )
    told = (*told, "--chains", "1", "--threads", "1", "--burn-in", "0", "--device", "cpu", "--prefix")
    names = ("run1.p", "run1.t", "con.tre")
    for command in (
        [sys.executable, "-m", "phloem", *told, "1", "--generations", "150"],
        mpi(3, *told, "3", "--generations", "150"),
        mpi(2, *told, "2", "--generations", "100"),
        mpi(3, *told, "2", "--generations", "150"),
    ):
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stderr
        if command[0] == "mpiexec":
            # a message may take longer than a second where other programs have the cores
            assert re.search("some columns of a chain|asking each other", " ".join(done.stdout.split()))
    assert "resumed at generation 100" in done.stdout
    for name in names:
        assert (tmp_path / f"1.{name}").read_bytes() == (tmp_path / f"3.{name}").read_bytes(), name
    for name in names[:2]:
        assert (tmp_path / f"1.{name}").read_bytes() == (tmp_path / f"2.{name}").read_bytes(), name
    few = run(mpi(2, *COMMAND, "--runs", "1", "--chains", "1", "--prefix", "few"), tmp_path)
    assert few.returncode == 0 and "1 idle: there is too little to divide" in " ".join(few.stdout.split())


@pytest.mark.slow
@needs_mpi
def test_columns_are_shared(tmp_path):
    write_random(tmp_path / "x.fasta", 120_000)
    tree = "(t0:0.3,t1:0.3)"
    for k in range(2, 15):
        tree = f"({tree}:0.1,t{k}:0.3)"
    (tmp_path / "x.nwk").write_text(f"({tree[1:-1]},t15:0.3);\n")
    told = ("likelihood", "x.fasta", "--tree", "x.nwk", "--model", "JC+G4{0.5}", "--gradient", "--json")
    records = []
    for command in ([sys.executable, "-m", "phloem", *told, "1.json"], mpi(2, *told, "2.json")):
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stderr
        records.append(json.loads((tmp_path / command[-1]).read_text()))
    one, two = records
    assert one["log_likelihood"] == two["log_likelihood"] and one["gradient"] == two["gradient"]
    assert "2 processes" in two["provenance"]["engine"]["reason"]
    small = run(mpi(2, "likelihood", str(PRIMATES), "--model", "JC"), tmp_path)
    assert small.returncode == 0 and "too little to divide" in " ".join(small.stdout.split()), small.stderr
    told = ("likelihood", str(PRIMATES), "--partitions", str(PRIMATES.with_suffix(".partitions")))
    told = (*told, "--optimize", "--gradient", "--json", "p.json")
    records = []
    for command in ([sys.executable, "-m", "phloem", *told], mpi(2, *told)):
        done = run([*command, "--redo"], tmp_path)
        assert done.returncode == 0, done.stderr
        records.append(json.loads((tmp_path / "p.json").read_text()))
    one, two = records
    assert one["log_likelihood"] == two["log_likelihood"] and one["gradient"] == two["gradient"]
    assert "2 processes" in json.dumps(two["provenance"])


@needs_mpi
def test_an_error_is_said_once_and_ends_all(tmp_path):
    done = run(mpi(2, *COMMAND, "--model", "GTRX"), tmp_path)
    assert done.returncode != 0 and done.stderr.count("error: model string") == 1
    done = run(mpi(2, "nj", str(PRIMATES)), tmp_path)
    assert done.returncode != 0 and done.stderr.count("which one process does alone") == 1
    assert "Start it without mpiexec" in done.stderr


def test_processes_that_cannot_talk_are_told(tmp_path):
    """A launcher's numbers, without its library: nobody works alone on what others work on, too."""
    pretended = environment() | {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "phloem", *COMMAND],
        cwd=tmp_path,
        env=pretended,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2 and "4 processes were started" in done.stderr
    assert list(tmp_path.iterdir()) == []


WORK = {
    "likelihood": (str(CARNIVORES), *["--datatype", "codon", "--genetic-code", "2", "--stop-codons", "mask"],
                   "--model", "GY94+FO+R4", "--optimize"),
    "ml": (str(PRIMATES), "--model", "GTR+G4", "--bootstrap", "5000", "--prefix", "x"),
    "time": (str(PRIMATES), "--model", "GTR+G4", "--clock", "strict", "--tree-prior", "yule", "--prior",
             "clock_rate=1", "--generations", "3000000", "--prefix", "x"),
}  # fmt: skip


def children_of(process: subprocess.Popen) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def begun(size: int, arguments: tuple[str, ...], folder: Path) -> tuple[subprocess.Popen, list[int]]:
    """A command on so many processes, and these, once they are at work."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = subprocess.Popen(mpi(size, *arguments), cwd=folder, env=environment(), **pipes)
    while started.poll() is None and len(children_of(started)) < size:
        time.sleep(0.05)
    return started, children_of(started)


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize("command", WORK)
def test_a_killed_process_is_named_and_the_others_end(command, tmp_path):
    process, ranks = begun(3, (command, *WORK[command]), tmp_path)
    begun_at = time.monotonic()
    while seconds_of(ranks[-1]) < 2.0 and time.monotonic() - begun_at < 8:
        time.sleep(0.05)  # until they have read the data, and are at work or wait for some
    assert process.poll() is None, process.communicate()
    os.kill(ranks[-1], signal.SIGKILL)
    killed = time.monotonic()
    said, _ = process.communicate(timeout=60)
    assert process.returncode != 0 and re.search(r"rank 2 .*signal 9", said), said
    while any(map(is_alive, ranks)) and time.monotonic() - killed < 20:
        time.sleep(0.1)
    assert not [rank for rank in ranks if is_alive(rank)]


def seconds_of(process: int) -> float:
    """Of a core that it has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_alive(process: int) -> bool:
    """Whether it runs; one that has ended stays in the list until somebody asks how."""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.slow
@needs_mpi
def test_a_process_that_stands_still_for_a_while_changes_nothing(alone, tmp_path):
    process, ranks = begun(2, (*COMMAND, "--prefix", "x"), tmp_path)
    for _ in range(3):
        time.sleep(1.5)
        if process.poll() is None:
            os.kill(ranks[-1], signal.SIGSTOP)
            time.sleep(1)
            os.kill(ranks[-1], signal.SIGCONT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    check_same(tmp_path, alone)

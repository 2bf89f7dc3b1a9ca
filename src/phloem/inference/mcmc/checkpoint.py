"""A checkpoint: the state of every run, replaced in one step, and samples, to which drawn ones are appended.

PREFIX.ckp.npz says how many rows of PREFIX.ckp.run1.samples … are valid, and their checksum; rows after them
are of a save that was cut short, and are overwritten. So a kill at any moment leaves the former checkpoint or
the new one, and a save costs what the new samples cost.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.samples import Samples
from phloem.io.output_file import explained, write_file

# 1: all samples in the archive; 3: one set of branch lengths; from 4 on: newer moves, weights, clocks
FORMAT = 19
KEPT = "the last checkpoint is kept, and the same command goes on from it"


class Stored(Protocol):
    """A run, as a checkpoint sees it. state: a NamedTuple of arrays."""

    @property
    def number(self) -> int: ...

    @property
    def state(self) -> Any: ...

    @property
    def samples(self) -> Samples: ...


class Checkpoint:
    """The checkpoint of one analysis.

    identity: what must be equal for it to be resumed, plain numbers, strings, lists and dictionaries. state:
    the record that a run's state is.
    """

    def __init__(self, prefix: str, identity: dict, state: type[Any] = ChainState) -> None:
        self._prefix, self._state = prefix, state
        self._path = state_path(prefix)
        self._identity = json.loads(json.dumps({"format": FORMAT} | identity))
        self._valid: list[tuple[int, int]] = []  # of every run: rows, and the checksum of their bytes

    def save(self, runs: Sequence[Stored]) -> None:
        """Append what was drawn since the last save or load, then replace the state.

        The first save of an analysis puts the state there before any sample, so that whoever finds one file
        finds what explains it.
        """
        if not self._valid:
            self._valid = [(0, 0)] * len(runs)
            self._replace_state(runs)
        self._valid = [self._append(run, *valid) for run, valid in zip(runs, self._valid)]
        self._replace_state(runs)

    def load(self) -> list[tuple[Any, Samples]] | None:
        """State and samples of every run; None where there is no checkpoint, or none with a sample yet.

        Raises InputError if a file is damaged, of another format, or of another analysis, saying what
        differs.
        """
        if not self._path.exists():
            return None
        arrays = self._read_state()
        valid = arrays["valid"].tolist()
        if not all(n for n, _ in valid):
            return None
        row = _row(*arrays["row"].tolist())
        found = [
            (
                self._state(**{f: arrays[f"run{r}.state.{f}"] for f in self._state._fields}),
                _read_samples(samples_path(self._prefix, r), row, *of_run),
            )
            for r, of_run in enumerate(valid)
        ]
        self._valid = [(n, checksum) for n, checksum in valid]
        return found

    def _append(self, run: Stored, n: int, checksum: int) -> tuple[int, int]:
        rows = _rows(run.samples, n)
        path = samples_path(self._prefix, run.number)
        with explained(path, KEPT), open(path, "r+b" if path.exists() else "w+b") as stream:
            stream.seek(n * rows.itemsize)
            stream.truncate()
            stream.write(rows.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        return n + len(rows), zlib.crc32(rows.tobytes(), checksum)

    def _replace_state(self, runs: Sequence[Stored]) -> None:
        samples = runs[0].samples
        arrays: dict[str, np.ndarray] = {
            "identity": np.frombuffer(json.dumps(self._identity, sort_keys=True).encode(), np.uint8),
            "valid": np.array(self._valid, np.int64),
            "row": np.array([samples.numbers.shape[1], samples.parent.shape[1], samples.sets.shape[1]]),
        }
        for run in runs:
            for name, array in run.state._asdict().items():
                arrays[f"run{run.number}.state.{name}"] = array
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write_file(self._path, buffer.getvalue(), KEPT if self._path.exists() else None)

    def _read_state(self) -> dict[str, np.ndarray]:
        arrays, found = _archive(self._path)
        wanted = self._identity
        different = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
        if different:
            told = f"the analysis here was started with another {', '.join(different)}"
            if "kind" in different:
                told = "the analysis here is of another command: mcmc has undated trees, time dated ones"
            raise InputError(
                told,
                file=str(self._path),
                hint="Repeat its settings to resume it, choose another --prefix, or replace it with --redo.",
            )
        held = {name.removeprefix("run0.state.") for name in arrays if name.startswith("run0.state.")}
        if held != set(self._state._fields):  # of a version between formats
            raise _of_another_version(self._path, found)
        return arrays


def stored_samples(prefix: str) -> tuple[dict[str, Any], list[Samples]]:
    """What decides the numbers of an analysis that has a checkpoint, and the samples of its runs. InputError
    if a file is missing, damaged, or of another format."""
    arrays, identity = _archive(state_path(prefix))
    row = _row(*arrays["row"].tolist())
    valid = enumerate(arrays["valid"].tolist())
    return identity, [_read_samples(samples_path(prefix, r), row, *of_run) for r, of_run in valid]


def _archive(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a checkpoint, and what decides its numbers."""
    try:
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        found = json.loads(bytes(arrays.pop("identity")))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(
            f"this is not a readable checkpoint ({error})", file=str(path), hint="Start afresh with --redo."
        ) from None
    if found.get("format") != FORMAT:
        raise _of_another_version(path, found)
    return arrays, found


def _of_another_version(path: Path, found: dict[str, Any]) -> InputError:
    return InputError(
        f"this checkpoint has format {found.get('format')}, of another version of phloem; "
        f"this version resumes format {FORMAT}",
        file=str(path),
        hint="Finish it with the version that began it, choose another --prefix, or start afresh with "
        "--redo.",
    )


def state_path(prefix: str) -> Path:
    """The archive of states, which says that there is a checkpoint."""
    return Path(f"{prefix}.ckp.npz")


def stored_device(prefix: str) -> str | None:
    """Where the chains of the checkpoint were evaluated; None where there is none that can be read."""
    try:
        with np.load(state_path(prefix)) as archive:
            found = json.loads(bytes(archive["identity"])).get("device")
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return None
    return found if isinstance(found, str) else None


def samples_path(prefix: str, number: int) -> Path:
    """The samples of run `number` (from 0)."""
    return Path(f"{prefix}.ckp.run{number + 1}.samples")


def checkpoint_files(prefix: str, n_runs: int) -> dict[str, str]:
    """File name → what it holds."""
    files = {str(state_path(prefix)): "checkpoint, to resume from"}
    for r in range(n_runs):
        files[str(samples_path(prefix, r))] = f"samples of run {r + 1}, of the checkpoint"
    return files


def _row(n_columns: int, n_nodes: int, n_sets: int) -> np.dtype:
    """One sample on the disk, the fields of Samples one after the other."""
    return np.dtype(
        [
            ("generation", "<i8"),
            ("numbers", "<f8", (n_columns,)),
            ("parent", "<i4", (n_nodes,)),
            ("lengths", "<f8", (n_nodes,)),
            ("sets", "<f8", (n_sets, n_nodes)),
        ]
    )


def _rows(samples: Samples, first: int) -> np.ndarray:
    """The samples from number `first` on."""
    sizes = samples.numbers.shape[1], samples.parent.shape[1], samples.sets.shape[1]
    rows = np.empty(samples.n - first, _row(*sizes))
    for name in rows.dtype.names or ():
        rows[name] = getattr(samples, name)[first:]
    return rows


def _read_samples(path: Path, row: np.dtype, n: int, checksum: int) -> Samples:
    try:
        rows = np.fromfile(path, row, n)
    except OSError as error:
        rows, why = np.empty(0, row), f"cannot be read ({error.strerror})"
    else:
        why = f"has {len(rows):,} whole samples of {n:,}" if len(rows) < n else "is damaged"
    if len(rows) < n or zlib.crc32(rows.tobytes()) != checksum:
        raise InputError(
            f"this file of the checkpoint {why}",
            file=str(path),
            hint="Put the file back as it was, or start afresh with --redo.",
        )
    return Samples(*(np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()))

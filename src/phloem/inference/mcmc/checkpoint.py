"""A checkpoint is the records themselves: state and samples of every run, and what they were made from."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.run import Run
from phloem.inference.mcmc.samples import Samples

FORMAT = 1


def save(path: Path, identity: dict, runs: Sequence[Run]) -> None:
    """Write a checkpoint. A file that exists is replaced in one step, so a kill leaves the old one or the
    new one."""
    arrays: dict[str, np.ndarray] = {
        "identity": np.frombuffer(
            json.dumps({"format": FORMAT} | identity, sort_keys=True).encode(), np.uint8
        )
    }
    for run in runs:
        for name, array in run.state._asdict().items():
            arrays[f"run{run.number}.state.{name}"] = array
        for name in Samples.__dataclass_fields__:
            arrays[f"run{run.number}.samples.{name}"] = getattr(run.samples, name)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, flush to the disk, rename over it."""
    beside = path.with_name(path.name + ".part")
    with open(beside, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def load(path: Path, identity: dict) -> list[tuple[ChainState, Samples]]:
    """State and samples of every run.

    Raises InputError if the file is not a checkpoint, or one of another analysis, saying what differs.
    """
    try:
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        found = json.loads(bytes(arrays.pop("identity")))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(
            f"this is not a readable checkpoint ({error})", file=str(path), hint="Start afresh with --redo."
        ) from None
    wanted = json.loads(json.dumps({"format": FORMAT} | identity, sort_keys=True))
    different = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    if different:
        raise InputError(
            f"the unfinished analysis here was started with another {', '.join(different)}",
            file=str(path),
            hint="Repeat its settings to resume it, choose another --prefix, or replace it with --redo.",
        )
    n_runs = len({name.split(".")[0] for name in arrays})
    return [
        (
            ChainState(**{f: arrays[f"run{r}.state.{f}"] for f in ChainState._fields}),
            Samples(**{f: arrays[f"run{r}.samples.{f}"] for f in Samples.__dataclass_fields__}),
        )
        for r in range(n_runs)
    ]

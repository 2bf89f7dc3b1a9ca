"""What an earlier analysis by chains left under a prefix that a new one is given with --redo."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from phloem.inference.mcmc.checkpoint import samples_path
from phloem.inference.mcmc.guard import report_path
from phloem.inference.mcmc.trace_files import paths as unrooted_paths
from phloem.inference.time.sampler import paths as dated_paths


def former_files(prefix: str, files: Collection[str]) -> list[str]:
    """Files of the prefix that the new analysis does not write, and that whoever reads the prefix would take
    for its own: of runs beyond its own, of the other sampler, and all that the former record lists.

    files: those that the new one writes. The report of a stopped run is among those found even where there is
    none, so that it is known to be writable.
    """
    found, number = [str(report_path(prefix))], 0
    while there := [p for p in map(str, _of_run(prefix, number)) if p in files or Path(p).exists()]:
        found += there
        number += 1
    found += _recorded(prefix)
    return [file for file in dict.fromkeys(found) if file not in files]


def _of_run(prefix: str, number: int) -> tuple[Path, ...]:
    return (*unrooted_paths(prefix, number), *dated_paths(prefix, number), samples_path(prefix, number))


def _recorded(prefix: str) -> list[str]:
    """Files beside the record of a finished analysis by chains that it says are its own; none where the
    record is of another command."""
    own = Path(prefix)
    try:
        record = json.loads(Path(f"{prefix}.json").read_text(encoding="utf-8"))
        _ = record["settings"]["chains"]
        names = [Path(str(name)).name for name in record["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    beside = [f"{prefix}{name.removeprefix(own.name)}" for name in names if name.startswith(f"{own.name}.")]
    return [file for file in beside if Path(file).is_file()]

"""Results as JSON: plain numbers, strings, lists and dictionaries, and no other numbers than JSON has."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from phloem.errors import InputError

T = TypeVar("T")


def plain(value: Any) -> Any:
    """The value, with all it contains, as JSON can have it: numpy's numbers are Python's, NaN and infinities
    None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(x) for name, x in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def of_finished(record: Path, read: Callable[[Any], T]) -> T:
    """What `read` takes from the record of a finished analysis. InputError where it is none."""
    try:
        return read(json.loads(record.read_text()))
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "this file is no record of an analysis by the same command",
            file=str(record),
            hint="Choose another --prefix, or replace it with --redo.",
        ) from None


def generations_of(record: Any) -> int:
    """That a finished analysis drew: those asked for, or those at which it had converged."""
    chains = record["settings"]["chains"]
    return int(record["convergence"]["generation"] if chains["until_converged"] else chains["generations"])


def json_text(record: Mapping[str, Any]) -> str:
    """The text of a file that holds the record."""
    return json.dumps(plain(record), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

"""Results as JSON: plain numbers, strings, lists and dictionaries, and no other numbers than JSON has."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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


def json_text(record: Mapping[str, Any]) -> str:
    """The text of a file that holds the record."""
    return json.dumps(plain(record), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

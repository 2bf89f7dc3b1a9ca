"""How much memory distances and a tree take, asked before any of it is taken."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.hardware.machine import detect_hardware

ONE_CALL = 2048  # so few taxa are clustered in one compiled call, in a square of their own
LINKAGE = ("upgma", "wpgma", "single", "complete")
BATCH_ROWS = 256  # rows of a text that are parsed before they are folded into the triangle


def forecast_bytes(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    *,
    cophenetic: bool = False,
) -> int:
    """Bytes that n taxa take beyond the program itself, from reading or measuring to the tree.

    method: a linkage method works inside the triangle below the diagonal, of up to ONE_CALL taxa in a square
    of its own; nj and unj inside the square, bionj has a second one for variances; None is the square of
    distances alone. cophenetic: the distances are kept beside what the tree is made in.
    """
    size = np.dtype(precision).itemsize
    entries = n * (n - 1) // 2 if method in LINKAGE else n * n
    copies = 1 + (method == "bionj") + (method is not None and cophenetic)
    if method in LINKAGE and method != "single" and n <= ONE_CALL:
        entries += n * n
    return copies * entries * size + min(n, BATCH_ROWS) * n * size


def require_memory(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    source: str | None,
    *,
    cophenetic: bool = False,
) -> None:
    """Raise InputError, with numbers and a remedy, if the forecast exceeds what is available here."""
    need, free = (
        forecast_bytes(n, method, precision, cophenetic=cophenetic),
        detect_hardware().available_bytes,
    )
    if free is None or need <= free:
        return
    remedies = ["fewer taxa", "a machine with more memory"]
    if precision == "float64":
        remedies.insert(0, "--precision float32 (half of it)")
    if cophenetic:
        remedies.insert(0, "no cophenetic correlation")
    raise InputError(
        f"{n:,} taxa need {need / 1e9:,.1f} GB for distances in {precision}, {free / 1e9:,.1f} GB are there",
        file=source,
        hint=f"Use {', '.join(remedies[:-1])} or {remedies[-1]}.",
    )

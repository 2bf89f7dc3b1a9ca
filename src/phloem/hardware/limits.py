"""What is asked for against what there is: memory and time that are forecast, refused before they are taken.

Forecasts here are lower bounds: what is refused could not have come to an end. What is let through may still
be too much (`phloem plan`).
"""

from __future__ import annotations

from numbers import Integral

from phloem.errors import InputError
from phloem.hardware.machine import available_bytes, usable_cores

LONGEST_SECONDS = 366 * 86400.0  # nobody waits longer
MOST_THREADS = 1024


def require_memory(what: str, need: float, hint: str, file: str | None = None) -> None:
    """InputError where `what` needs more bytes than are free here and now; none where that is not known."""
    free = available_bytes()
    if free is not None and need > free:
        raise InputError(
            f"{what} need {readable_bytes(need)} at least, and {readable_bytes(free)} are free",
            file=file,
            hint=hint,
        )


def require_time(what: str, seconds: float, hint: str, file: str | None = None) -> None:
    """InputError where `what` takes longer than anybody waits."""
    if seconds > LONGEST_SECONDS:
        years = seconds / LONGEST_SECONDS
        raise InputError(f"{what} take {years:,.3g} years at least", file=file, hint=hint)


def require_threads(threads: int | None) -> None:
    """InputError for a number of threads that no machine has; None is any."""
    if threads is not None and not (isinstance(threads, Integral) and 1 <= threads <= MOST_THREADS):
        raise InputError(
            f"--threads is {threads:,}, and {usable_cores()[0]} cores may be used here",
            hint=f"It must be a whole number from 1 to {MOST_THREADS:,}.",
        )


def readable_bytes(n: float) -> str:
    """12.3 GB, decimal."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:,.3g} PB"

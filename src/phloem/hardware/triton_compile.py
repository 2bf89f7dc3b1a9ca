"""Noticing that Triton is about to compile."""

from __future__ import annotations

from triton import knobs
from triton.runtime.cache import FileCacheManager

from phloem.hardware.notice import compilation_begins


def announce_cache_misses() -> None:
    """Say so whenever a kernel is not in Triton's cache on disk; the cache itself stays the one there was.

    Triton's hook before a compilation is called for kernels that the cache holds, too. It asks the cache for
    the group of files of every kernel first, and compiles it where there is none. Its interpreter never asks.
    """

    class AnnouncedCache(knobs.cache.manager_class or FileCacheManager):  # type: ignore[misc]
        def get_group(self, filename: str) -> dict[str, str] | None:
            group = super().get_group(filename)
            if filename not in (group or {}):
                compilation_begins("gpu")
            return group

    knobs.cache.manager_class = AnnouncedCache

"""The data options that several commands share, and the alignment they describe."""

from __future__ import annotations

from typing import Literal, Protocol

from phloem.data.alignment import Alignment
from phloem.io.alignment import read_alignment


class DataSettings(Protocol):
    """Settings that say how an alignment file is to be read; see read_alignment."""

    @property
    def alignment(self) -> str: ...
    @property
    def datatype(self) -> str | None: ...
    @property
    def genetic_code(self) -> int: ...
    @property
    def stop_codons(self) -> Literal["error", "mask"]: ...
    @property
    def ambiguity(self) -> Literal["partial", "missing"]: ...
    @property
    def sites(self) -> str | None: ...


def alignment_of(settings: DataSettings) -> Alignment:
    """Read the alignment that the settings name."""
    return read_alignment(
        settings.alignment,
        datatype=settings.datatype,
        genetic_code=settings.genetic_code,
        stop_codons=settings.stop_codons,
        ambiguity=settings.ambiguity,
        sites=settings.sites,
    )

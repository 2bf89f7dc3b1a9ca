"""Telling the user that the first run compiles, on any engine."""

from phloem.kernels.compilation import on_first_compilation

__all__ = ["on_first_compilation"]

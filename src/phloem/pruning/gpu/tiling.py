"""Sizes the GPU kernels are compiled for: they depend on states and precision only, never on the data's
size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tiling:
    """width: states in memory (a multiple of 4). block: states of one matrix tile (matrix_block where
    matrices are made). chunks: blocks that cover width. post_tile, pre_tile: columns of a step. longest:
    columns summed into one pre-order column. warps: of post-order and pre-order programs; programs: of each
    a multiprocessor runs. registers: limit for a thread, 0 none; fewer registers let more programs run at a
    time."""

    width: int
    block: int
    chunks: int
    post_tile: int
    pre_tile: int
    root_tile: int
    longest: int
    post_warps: int
    pre_warps: int
    post_programs: int
    pre_programs: int
    post_registers: int
    pre_registers: int
    matrix_warps: int
    matrix_block: int


def tiling(n_states: int, precision: str) -> Tiling:
    """The tiling measured fastest on an H100 for this number of states (docs/gpu.md has the figures)."""
    width = -(-n_states // 4) * 4
    if width == 4:
        return Tiling(4, 4, 1, 128, 256, 64, 3, 4, 4, 4, 4, 0, 128, 4, 16)
    block = 16
    while block < min(n_states, 64):
        block *= 2
    chunks = -(-n_states // block)
    wide = 64 if precision == "float32" and chunks == 1 else 32  # twice the columns take the same registers
    if block < 64:
        return Tiling(width, block, chunks, 64, wide, 16, 9, 4, 4, 4, 4, 0, 128, 4, block)
    if wide == 64:
        return Tiling(width, block, chunks, 32, wide, 16, 5, 4, 4, 4, 2, 0, 0, 4, 64)
    return Tiling(width, block, chunks, 32, wide, 16, 5, 4, 8, 4, 2, 0, 128, 4, 64)

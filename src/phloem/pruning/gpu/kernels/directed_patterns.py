"""What kernels of directed messages do with a tile of patterns and one category: columns of all patterns that
a program works in, products with a model's matrices, θ, the likelihood.

Seats (directed_engine.py) are trees with data of their own. Half-edges are numbered over all seats, tips too
(a column -1 - i is that of tip i); branches within a seat, models over all seats. A seat's patterns lie part
after part, each part from a multiple of UNIT on, so that a tile has one model: `models`, int32, is a seat's
row of them, one for every UNIT patterns. Where seats have one part each, it is the model's number instead,
and nothing is to be waited for before the numbers of a model are fetched.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import fetch, power_of_two, times

UNIT = tl.constexpr(32)


@triton.jit
def models_of(models, seat, n_patterns):
    """Of a seat, from those of all seats; None: seats have one part each."""
    if models is None:
        return seat
    else:
        return models + seat * ((n_patterns + UNIT - 1) // UNIT)


@triton.jit
def model_of(models, first):
    """The model of the tile that begins with this pattern."""
    if models.dtype.is_ptr():
        return tl.load(models + first // UNIT).to(tl.int64)
    else:
        return models


@triton.jit
def last_model(models, n_patterns):
    """That of a seat's last part."""
    return model_of(models, n_patterns - 1)


@triton.jit
def operand_of(matrices, m, c, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Of products with the matrix of category c of matrices (m, C, WIDTH, WIDTH)."""
    square = tl.cast(m, tl.int64) * C + c
    return fetch(matrices + square * WIDTH * WIDTH, False, WIDTH, BLOCK, tl.float64)


@triton.jit
def product(x, operand, WIDTH: tl.constexpr, TILE: tl.constexpr):
    return times(x, operand, False, WIDTH, TILE, tl.float64, "ieee")


@triton.jit
def through(
    x, matrices, m, c, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """x times a matrix, in which the state that x is of comes first."""
    return product(x, operand_of(matrices, m, c, C, WIDTH, BLOCK), WIDTH, TILE)


@triton.jit
def numbers_of(numbers, m, c, state, C, WIDTH: tl.constexpr):
    """The row of category c of numbers (m, C, WIDTH)."""
    return tl.load(numbers + (m * C + c) * WIDTH + state, mask=state < WIDTH, other=0.0)


@triton.jit
def column(columns, k, c, rows, live, state, n_patterns, C, WIDTH: tl.constexpr):
    """columns[k, c] at rows, of (k, C, P, WIDTH)."""
    return block(columns + (k * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)


@triton.jit
def put_column(y, columns, k, c, rows, live, state, n_patterns, C, WIDTH: tl.constexpr):
    """columns[k, c] = y at rows."""
    columns += (k * C + c) * n_patterns * WIDTH
    place = rows[:, None] * WIDTH + state[None, :]
    tl.store(columns + place, y, mask=live[:, None] & (state < WIDTH)[None, :])


@triton.jit
def beside_invariant(exponents, invariant):
    """What 2**exponent is written as beside the share of invariable sites: 1 where there is none."""
    moved = tl.where(invariant == 0.0, 0, tl.maximum(exponents, -1000))
    return power_of_two(moved, tl.float64)


@triton.jit
def factor_of(power, rows, live, invariant):
    """By which θ of patterns with these exponents is multiplied."""
    return beside_invariant(power, tl.load(invariant + rows, mask=live, other=0.0))[:, None]


@triton.jit
def put_theta(
    x, y, factor, into, theta, m, c, rows, live, state, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ of a branch: x, at one end, and y, at the other and in the eigenbasis."""
    z = through(x, into, m, c, C, WIDTH, BLOCK, TILE) * y * factor
    put_column(z, theta, 0, c, rows, live, state, n_patterns, C, WIDTH)


@triton.jit
def log_sites(total, exponents, rows, live, invariant):
    """Log-likelihoods of patterns from those of variable sites, total · 2**exponents."""
    still = tl.load(invariant + rows, mask=live, other=0.0)
    likelihood = total * beside_invariant(exponents, still) + still
    kept = tl.where(still == 0.0, exponents, 0).to(tl.float64)
    least = total * 0.0 + 1e-300
    return tl.log(tl.maximum(likelihood, least)) + kept * 0.6931471805599453


@triton.jit
def weighted(log, rows, live, weights):
    """What patterns add to the log-likelihood."""
    return log * tl.load(weights + rows, mask=live, other=0.0)

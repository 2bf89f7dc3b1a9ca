"""The model of a partition from a chain's numbers, compiled: gamma rates, eigensystems, matrices."""

from __future__ import annotations

import math

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.records import (
    ALPHA,
    CHOICE,
    FORM,
    FREQUENCIES,
    GAMMA_MEDIANS,
    INVARIABLE,
    LOG_NORMAL,
    MATRIX,
    MORE_SHARES,
    RATE,
    RHO,
    SHARES,
)
from phloem.pruning.cpu.cell_loops import correlate_cell
from phloem.pruning.cpu.cell_records import INVARIANT, NEIGHBOURS, SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.storage import float64_at, int64_at

# Discrete gamma rates (Yang 1994, J. Mol. Evol. 39:306) inside compiled code.


@uncounted
def regularised_gamma(a, x):
    """P(a, x) = γ(a, x) / Γ(a): the series below a + 1, Lentz's continued fraction above (Abramowitz and
    Stegun 6.5.29 and 6.5.31)."""
    if x <= 0.0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-17:
            n += 1.0
            term *= x / n
            total += term
        return total * front
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    h = d
    for i in range(1, 10000):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return 1.0 - front * h


@uncounted
def gamma_quantile(a, p):
    """x with P(a, x) = p, by Newton steps in log x kept inside a bracket; 0 where x underflows."""
    log_x = (math.log(p) + math.lgamma(a + 1.0)) / a
    if log_x < -700.0:
        return 0.0
    if (
        a > 0.5
    ):  # Wilson and Hilferty 1931, with a normal quantile good to 5e-4 (Abramowitz and Stegun 26.2.23)
        t = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
        poly = 2.515517 + t * (0.802853 + t * 0.010328)
        z = t - poly / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
        z = -z if p < 0.5 else z
        cube = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * math.sqrt(a))
        if cube > 0.1:
            log_x = math.log(a) + 3.0 * math.log(cube)
    low, high = -750.0, 20.0
    for _ in range(200):
        x = math.exp(log_x)
        error = regularised_gamma(a, x) - p
        if error > 0.0:
            high = log_x
        else:
            low = log_x
        slope = math.exp(a * log_x - x - math.lgamma(a))
        step = error / slope if slope > 0.0 else 1e300
        proposal = log_x - step
        if not (low < proposal < high):
            proposal = 0.5 * (low + high)
        if abs(proposal - log_x) < 1e-15 * max(1.0, abs(log_x)):
            return math.exp(proposal)
        log_x = proposal
    return math.exp(log_x)


@uncounted
def discrete_gamma(alpha, median, n, rates):
    """Rates of n equally likely categories with mean 1, into rates[:n]: category means, or medians scaled
    to mean 1."""
    if n == 1:
        rates[0] = 1.0
        return
    if median:
        total = 0.0
        for i in range(n):
            rates[i] = gamma_quantile(alpha, (i + 0.5) / n)
            total += rates[i]
        for i in range(n):
            rates[i] *= n / total
        return
    previous = 0.0
    for i in range(n):
        mass = 1.0 if i == n - 1 else regularised_gamma(alpha + 1.0, gamma_quantile(alpha, (i + 1.0) / n))
        rates[i] = (mass - previous) * n
        previous = mass


@uncounted
def category_rates(recipes, part, shape, n, rates):
    """Rates of a partition's n equally likely categories with mean 1, into rates[:n]."""
    form, total = recipes.rows[part, FORM], 0.0
    if form != LOG_NORMAL:
        discrete_gamma(shape, form == GAMMA_MEDIANS, n, rates)
        return
    for c in range(n):
        rates[c] = math.exp(math.sqrt(shape) * recipes.rates[part, c])
        total += rates[c]
    for c in range(n):
        rates[c] *= n / total


# The eigensystem of a reversible rate matrix from parameters: cyclic Jacobi rotations where states are few,
# LAPACK above.

FEW_STATES = 8


@uncounted
def _matrix(row, values):
    """The row of a partition's fixed exchangeabilities and frequencies: that of its number of a matrix."""
    return row[MATRIX] + (int(values[row[CHOICE]]) if row[CHOICE] >= 0 else 0)


@uncounted
def symmetric_rates(recipes, part, values, pi, a):
    """A = D^½ Q D^-½ of Q_ij = base_ij · shares_ij π_j / μ, D = diag(π), into a (S, S): symmetric where Q is
    reversible (Tavaré 1986). μ makes it one expected substitution per unit of branch length."""
    s, row, share_of = len(a), recipes.rows[part], recipes.share_of[part]
    base = recipes.base[_matrix(row, values)]
    for i in range(s):
        a[i, i] = 0.0
    mean = 0.0
    for i in range(s):
        for j in range(i):
            r = base[i, j]
            if r > 0.0 and row[SHARES] >= 0:
                r *= values[row[SHARES] + share_of[0, i, j]]
            if r > 0.0 and row[MORE_SHARES] >= 0:
                r *= values[row[MORE_SHARES] + share_of[1, i, j]]
            a[i, j] = r * math.sqrt(pi[i] * pi[j])
            a[j, i] = a[i, j]
            a[i, i] -= r * pi[j]
            a[j, j] -= r * pi[i]
            mean += 2.0 * r * pi[i] * pi[j]
    for i in range(s):
        for j in range(s):
            a[i, j] /= mean


@intrinsic
def symmetric_eigensystem(typing_context, a, values):
    """LAPACK's dsyevd: a (n, n) symmetric becomes its eigenvectors, one a row; values (n,): its eigenvalues,
    ascending. 0, or why not. By the name under which Numba has it, so that compiled code can be cached."""

    def generate(context, builder, signature, arguments):
        byte, word, pointer = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [byte, byte, byte, word, pointer, word, pointer])
        function = cgutils.get_or_insert_function(builder.module, kind, "numba_ez_xxxevd")
        arrays = [context.make_array(t)(context, builder, x) for t, x in zip(signature.args, arguments)]
        n = builder.extract_value(arrays[0].shape, 0)
        matrix, vector = (builder.bitcast(array.data, pointer) for array in arrays)
        letters = [ir.Constant(byte, ord(letter)) for letter in "dVL"]
        return builder.call(function, [*letters, n, matrix, n, vector])

    return types.int32(a, values), generate


@uncounted
def jacobi(a, v):
    """Diagonalise symmetric a in place; columns of v become its eigenvectors (Golub and Van Loan, §8.5).

    A fixed order of rotations: the result is a function of a alone, which an exact resume needs.
    """
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            v[i, j] = 1.0 if i == j else 0.0
    for _ in range(60):
        off = 0.0
        size = 0.0
        for i in range(n):
            size += a[i, i] * a[i, i]
            for j in range(i):
                off += a[i, j] * a[i, j]
        if off <= 1e-33 * size:
            return
        for p in range(n - 1):
            for q in range(p + 1, n):
                if a[p, q] != 0.0:
                    _rotate(a, v, p, q, n)


@uncounted
def _rotate(a, v, p, q, n):
    theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
    t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    app, aqq, apq = a[p, p], a[q, q], a[p, q]
    for k in range(n):
        x, y = a[p, k], a[q, k]
        a[p, k] = c * x - s * y
        a[q, k] = s * x + c * y
    for k in range(n):
        a[k, p] = a[p, k]
        a[k, q] = a[q, k]
        x, y = v[k, p], v[k, q]
        v[k, p] = c * x - s * y
        v[k, q] = s * x + c * y
    a[p, p] = app - t * apq
    a[q, q] = aqq + t * apq
    a[p, q] = 0.0
    a[q, p] = 0.0


# From the numbers of a chain to those a cell needs: eigensystem, category rates and weights.


@uncounted
def leads(part_of, cell):
    """Whether a cell is the first one of its part here: they share its model."""
    return cell == 0 or part_of[cell - 1] != part_of[cell]


@uncounted
def model_differs(recipes, part, a, b):
    """Whether a partition's model reads a number in which a and b differ."""
    differs = False
    for i in range(len(a)):
        differs = differs or (a[i] != b[i] and recipes.reads[part, i] != 0)
    return differs


@uncounted
def set_model(recipes, part, values, numbers, addresses, scratch):
    """Write the model of a partition whose recipe is COMPILED into the slot of its cell that is not in use.

    values: (n,) the chain's numbers; numbers, addresses: the cell's rows of the tables.
    """
    n = cell_numbers(numbers)
    row, used = recipes.rows[part], int64_at(addresses[SLOT], (2,))[0]
    old, new = cell_model(n, addresses, used), cell_model(n, addresses, 1 - used)
    if row[SHARES] >= 0 or row[FREQUENCIES] >= 0 or row[CHOICE] >= 0:
        _set_process(recipes, part, row, values, n, new, scratch)
    else:
        for m in range(n.processes):
            for i in range(n.states):
                new.values[m, i] = old.values[m, i]
                new.root_frequencies[m, i] = old.root_frequencies[m, i]
                for j in range(new.right.shape[2]):
                    new.right[m, i, j] = old.right[m, i, j]
                for j in range(new.left.shape[2]):
                    new.left[m, i, j] = old.left[m, i, j]
        for i in range(n.states):
            new.invariant_frequencies[i] = old.invariant_frequencies[i]
    proportion = _set_rates(recipes, part, row, values, n, new)
    float64_at(addresses[INVARIANT], (2,))[1 - used] = proportion
    if n.sites > 0:
        _set_neighbours(row[RHO], values, n, (numbers, addresses), used, scratch.cell.along)


@uncounted
def _set_neighbours(rho, values, n, cell, used, room):
    """Which rate class follows which along the sites: of the number rho, or, of none, as it was."""
    if rho >= 0:
        correlate_cell(cell[0], cell[1], values[rho], room)
        return
    matrices = float64_at(cell[1][NEIGHBOURS], (2, n.distances * n.categories * n.categories))
    for i in range(matrices.shape[1]):
        matrices[1 - used, i] = matrices[used, i]


@uncounted
def make_one_zero(values, s):
    """The largest eigenvalue of a rate matrix is 0 and no other is positive: the rounding of one, times a
    branch of 1e20, would be a matrix of infinite entries."""
    top = 0
    for k in range(s):
        top = k if values[k] > values[top] else top
        values[k] = 0.0 if values[k] > 0.0 else values[k]
    if values[top] == values[top]:
        values[top] = 0.0


@uncounted
def _set_process(recipes, part, row, values, n, model, scratch):
    s = n.states
    if row[FREQUENCIES] >= 0:
        pi = values[row[FREQUENCIES] : row[FREQUENCIES] + s]
    else:
        pi = recipes.frequencies[_matrix(row, values), :s]
    a, v = scratch.square[: s * s].reshape((s, s)), scratch.vectors[: s * s].reshape((s, s))
    symmetric_rates(recipes, part, values, pi, a)
    right, left = model.right[0], model.left[0]
    few = s <= FEW_STATES
    if few:
        jacobi(a, v)
        for k in range(s):
            model.values[0, k] = a[k, k]
    elif symmetric_eigensystem(a, model.values[0]) != 0:
        model.values[0, 0] = math.nan  # nobody takes such a likelihood for one
    make_one_zero(model.values[0], s)
    for k in range(s):
        model.root_frequencies[0, k] = pi[k]
        model.invariant_frequencies[k] = pi[k]
        for i in range(s):
            root, x = math.sqrt(pi[i]), v[i, k] if few else a[k, i]
            left[k, i] = x * root
            if n.states == 4:
                right[i, k] = x / root
            else:
                right[k, i] = x / root


@uncounted
def _set_rates(recipes, part, row, values, n, model):
    rates, weights = model.rates, model.weights
    proportion = values[row[INVARIABLE]] if row[INVARIABLE] >= 0 else recipes.invariable[part]
    factor = recipes.unit[part] / (1.0 - proportion)
    if row[RATE] >= 0:
        factor *= values[row[RATE]] / recipes.site_share[part]
    if row[ALPHA] >= 0:
        category_rates(recipes, part, values[row[ALPHA]], n.categories, rates)
    for c in range(n.categories):
        rates[c] = factor * (rates[c] if row[ALPHA] >= 0 else recipes.rates[part, c])
        weights[c] = recipes.weights[part, c] * (1.0 - proportion)
    return proportion

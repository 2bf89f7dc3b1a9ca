"""Numbers of a distance matrix from bytes of text, and its rows folded into a triangle."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

POWERS = 10.0 ** np.arange(23)
_SPLIT = 134217729.0
_HUGE_POWER = 1 << 40  # of ten; no text has so many digits that a larger one would not be this
_SPACE, _PLUS, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _SEMICOLON = 32, 43, 44, 45, 46, 48, 57, 59


@compiled
def _product_error(a, b, product):
    """a b - product exactly (Dekker 1971)."""
    c = _SPLIT * a
    a1 = c - (c - a)
    c = _SPLIT * b
    b1 = c - (c - b)
    a2, b2 = a - a1, b - b1
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@compiled
def _scaled(digits, exponent):
    """digits × 10^exponent.

    Correctly rounded for digits below 2^53 and |exponent| ≤ 22 (Clinger 1990); else with the remainder of one
    exact product, which leaves an error far below half a unit in the last place.
    """
    high = np.float64(digits)
    if -22 <= exponent <= 22 and digits <= np.uint64(1 << 53):
        return high * POWERS[exponent] if exponent >= 0 else high / POWERS[-exponent]
    if exponent < -330 or exponent > 300:
        return 0.0 if exponent < 0 or digits == 0 else np.inf
    low = np.float64(np.int64(digits - np.uint64(high)))
    while exponent < 0:
        power = POWERS[min(-exponent, 22)]
        quotient = high / power
        product = quotient * power
        low = ((high - product) - _product_error(quotient, power, product) + low) / power
        high = quotient
        exponent += min(-exponent, 22)
    while exponent > 0:
        power = POWERS[min(exponent, 22)]
        product = high * power
        low = _product_error(high, power, product) + low * power
        high = product
        exponent -= min(exponent, 22)
    return high + low


@compiled
def _digits(text, k, stop, value):
    """(value with the digits from text[k] on appended, position after them)."""
    while k < stop:
        digit = np.uint64(text[k]) - np.uint64(_ZERO)
        if digit > np.uint64(9):
            break
        value = value * np.uint64(10) + digit
        k += 1
    return value, k


@compiled
def _many_digits(text, k, stop):
    """(first 18 or 19 significant digits of a long number, power of ten that they lack)."""
    value, exponent, fraction = np.uint64(0), 0, False
    while k < stop and (text[k] == _DOT or _ZERO <= text[k] <= _NINE):
        if text[k] == _DOT:
            fraction = True
        elif value < np.uint64(1000000000000000000):
            value = value * np.uint64(10) + np.uint64(text[k] - _ZERO)
            exponent -= fraction
        else:
            exponent += not fraction
        k += 1
    return value, exponent


@compiled
def _power(text, k, stop):
    """(power of ten written from text[k] on, position after it or -1)."""
    down = k < stop and text[k] == _MINUS
    if k < stop and (down or text[k] == _PLUS):
        k += 1
    power, after = 0, k
    while after < stop and _ZERO <= text[after] <= _NINE:
        power = min(power * 10 + np.int64(text[after]) - _ZERO, _HUGE_POWER)
        after += 1
    return (-power if down else power), (after if after > k else -1)


@compiled
def _number(text, k, stop):
    """(value, position after it) of the number at text[k]; position -1 if there is none."""
    negative = text[k] == _MINUS
    if negative or text[k] == _PLUS:
        k += 1
    first, exponent = k, 0
    digits, k = _digits(text, k, stop, np.uint64(0))
    seen = k - first
    if k < stop and text[k] == _DOT:
        point = k + 1
        digits, k = _digits(text, point, stop, digits)
        exponent = point - k
        seen -= exponent
    if seen == 0:
        return 0.0, -1
    if seen > 18:
        digits, exponent = _many_digits(text, first, stop)
    if k < stop and (text[k] | 32) == 101:
        power, k = _power(text, k + 1, stop)
        if k < 0:
            return 0.0, -1
        exponent += power
    value = _scaled(digits, exponent)
    return (-value if negative else value), k


@compiled
def _is_end(text, k, stop):
    return k >= stop or text[k] <= _SPACE or text[k] in (_COMMA, _SEMICOLON)


@compiled
def parse_numbers(text, start, stop, out, most):
    """Numbers separated by blanks, line ends, commas or semicolons from text[start:stop] to out[:most].

    Returns (how many there are, byte offset of the first thing that is no number, or -1). Numbers beyond most
    are counted, not kept. Up to 15 digits without exponent or sign are read here, any other by _number;
    positions are unsigned, which spares the test for negative indices.
    """
    one, k, end, count = np.uint64(1), np.uint64(start), np.uint64(stop), 0
    while k < end:
        c = text[k]
        if c <= _SPACE or c in (_COMMA, _SEMICOLON):
            k += one
            continue
        first, digits = k, 0
        while k < end and _ZERO <= text[k] <= _NINE:
            digits = digits * 10 + (np.int64(text[k]) - _ZERO)
            k += one
        point = k
        if k < end and text[k] == _DOT:
            k += one
            while k < end and _ZERO <= text[k] <= _NINE:
                digits = digits * 10 + (np.int64(text[k]) - _ZERO)
                k += one
        places = np.int64(k - point) - 1 if k > point else 0
        seen = np.int64(k - first) - (k > point)
        if 0 < seen < 16 and (k == end or text[k] <= _SPACE or text[k] == _COMMA):
            value = digits / POWERS[places]
        else:
            value, after = _number(text, np.int64(first), stop)
            if after < 0 or not _is_end(text, after, stop):
                return count, np.int64(first)
            k = np.uint64(after)
        if count < most:
            out[count] = value
        count += 1
    return count, np.int64(-1)


@compiled
def count_words(text, start, stop):
    """Pieces of text[start:stop] between blanks."""
    count, inside = 0, False
    for k in range(start, stop):
        blank = text[k] <= _SPACE
        count += inside and blank
        inside = not blank
    return count + inside


@compiled
def _triangle_row(triangle, i):
    """Entries (i, 0 … i-1) of data.distance_triangle."""
    start = i * (i - 1) // 2
    return triangle[start : start + i]


@compiled
def _wrong(x, y, tolerance):
    """What is wrong with d(i, j) = x and d(j, i) = y: 0 nothing, 1 not finite, 2 negative, 4 asymmetric."""
    if not (abs(x) < np.inf and abs(y) < np.inf):
        return 1
    if x < 0 or y < 0:
        return 2
    return 4 if abs(x - y) > tolerance * max(1.0, max(x, y)) else 0


@compiled
def _fold(below, above, tolerance, row):
    """row ← means of below and above; returns the place of the first two that are wrong together, or -1."""
    bad = 0
    for j in range(len(row)):
        x, y = np.float64(below[j]), np.float64(above[j])
        fits = (x >= 0) & (y >= 0) & (x < np.inf) & (y < np.inf)
        bad += not (fits & (abs(x - y) <= tolerance * max(1.0, max(x, y))))
        row[j] = 0.5 * (x + y) + 0.0  # which turns -0 into 0
    if bad == 0:
        return -1
    for j in range(len(row)):
        if _wrong(np.float64(below[j]), np.float64(above[j]), tolerance) > 0:
            return j
    return -1


@compiled
def fold_rows(buffer, first, start, stop, has_below, has_above, tolerance, entries, found):
    """Check the rows start … stop-1 against their columns; entries ← the means of both.

    buffer: (rows, n), the matrix's rows from `first` on. What lies below the diagonal counts if has_below,
    above it if has_above; the columns of earlier rows lie in entries (store_columns). found: (4,), gets i, j,
    d(i, j), d(j, i) where something is wrong. Returns 0 or what: see _wrong; 3 the diagonal.
    """
    above = np.empty(stop, entries.dtype)
    for i in range(start, stop):
        row, below = _triangle_row(entries, i), buffer[i - first]
        if has_above:
            above[:first] = row[:first]
            for j in range(first, i):
                above[j] = buffer[j - first, i]
        x, y = below[:i] if has_below else above[:i], above[:i] if has_above else below[:i]
        diagonal = np.float64(below[i])
        if not abs(diagonal) <= tolerance:
            found[0] = found[1] = i
            found[2] = diagonal
            return 3
        j = _fold(x, y, tolerance, row)
        if j >= 0:
            found[0], found[1], found[2], found[3] = i, j, x[j], y[j]
            return _wrong(np.float64(x[j]), np.float64(y[j]), tolerance)
    return 0


@compiled
def store_columns(buffer, first, last, start, stop, entries):
    """Entries (i, j) ← buffer[j - first, i] for rows j of first … last-1 and columns i of start … stop-1."""
    for i in range(start, stop):
        row = _triangle_row(entries, i)
        for j in range(first, last):
            row[j] = buffer[j - first, i]

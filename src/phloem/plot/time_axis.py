"""Axes of numbers: where their ticks stand, and as part of a drawing."""

from __future__ import annotations

import numpy as np

from phloem.plot.drawing import FAINT, GREY, Strokes, Text, nice_length


def ticks(low: float, high: float, most: int) -> np.ndarray:
    """At most `most` round numbers from low to high, evenly spaced."""
    if not high > low:
        return np.array([low])
    step = nice_length((high - low) / most)
    while np.floor(high / step) - np.ceil(low / step) + 1 > most:
        step = nice_length(2.5 * step)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return np.arange(first, last + 1) * step


def tick_texts(values: np.ndarray) -> list[str]:
    """Numbers with as many decimals as tell them apart, years without commas."""
    step = float(np.diff(values).min()) if len(values) > 1 else abs(float(values[0]))
    if 0 < max(abs(values).max(), step) < 1e-3:
        return [f"{value:.3g}" for value in values.tolist()]
    decimals = max(0, int(np.ceil(-np.log10(step) - 1e-9))) if step > 0 else 0
    return [f"{value:.{decimals}f}" for value in np.where(values == 0, 0.0, values).tolist()]


def time_axis(
    years: tuple[float, float], x: tuple[float, float], y: tuple[float, float], size: float
) -> tuple[list[Strokes], list[Text]]:
    """An axis at the foot (y[1]) of a picture from x[0] to x[1] pixels, with faint lines up to y[0]."""
    found = ticks(*years, max(2, int((x[1] - x[0]) / (6 * size))))
    at = x[0] + (found - years[0]) / ((years[1] - years[0]) or 1.0) * (x[1] - x[0])
    grid = [np.array([[place, y[0]], [place, y[1]]]) for place in at.tolist()]
    marks = [np.array([[place, y[1]], [place, y[1] + 4]]) for place in at.tolist()]
    line = np.array([[x[0], y[1]], [x[1], y[1]]])
    texts = [
        Text(place, y[1] + 5 + 0.6 * size, text, size, GREY, "middle")
        for place, text in zip(at.tolist(), tick_texts(found))
    ]
    return [Strokes(grid, FAINT, 0.5), Strokes([line, *marks], GREY, 1.0)], texts

"""A number through the generations of several runs, and how its values spread, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.plot.drawing import FAINT, GREY, INK, Drawing, Strokes, Text
from phloem.plot.time_axis import tick_texts, ticks
from phloem.summary.spread import evenly_spread

RUN_COLOURS = ("#2c6da4", "#c0592b", "#4f9d69", "#8a5fa8", "#b8902a", "#5a5a5a")
_LEFT, _RIGHT, _TOP, _FOOT, _BESIDE = 62.0, 10.0, 26.0, 26.0, 70.0
_MOST = 400  # points of a run: what a picture can show
_BINS = 36


def trace_drawing(
    name: str,
    generations: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
    first: Sequence[int],
    size: tuple[float, float] = (460.0, 170.0),
) -> Drawing:
    """Of every run its generations (n,), values (n,) and the first sample after the burn-in, before which
    lines are faint. At the right: histograms of what is kept. The axis is that of what is kept."""
    width, height = size
    kept = np.concatenate([v[k:] for v, k in zip(values, first)])
    low, high = float(kept.min()), float(kept.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    margin = 0.04 * (high - low)
    low, high = low - margin, high + margin
    last = max(float(g[-1]) for g in generations) or 1.0
    ends = _LEFT, width - _RIGHT - _BESIDE

    def up(value: np.ndarray) -> np.ndarray:
        return height - _FOOT - (np.clip(value, low, high) - low) / (high - low) * (height - _TOP - _FOOT)

    strokes, texts = _axes(name, (low, high), up, (ends[0], width - _RIGHT))
    for number, (g, v, k) in enumerate(zip(generations, values, first)):
        chosen = evenly_spread(0, len(v), _MOST)
        chosen = chosen[~np.isnan(v[chosen])]  # words in the burn-in
        points = np.stack([ends[0] + g[chosen] / last * (ends[1] - ends[0]), up(v[chosen])], axis=1)
        colour = RUN_COLOURS[number % len(RUN_COLOURS)]
        early, late = points[chosen <= k], points[chosen >= k]
        if len(early) > 1:
            strokes.append(Strokes([early], colour, 0.8, 0.3))
        if len(late) > 1:
            strokes.append(Strokes([late], colour, 0.9, 0.8))
        counts, edges = np.histogram(v[k:], bins=_BINS, range=(low, high))
        across = ends[1] + 6 + counts / max(counts.max(), 1) * (_BESIDE - 6)
        heights = up((edges[:-1] + edges[1:]) / 2)
        strokes.append(Strokes([np.stack([across, heights], axis=1)], colour, 1.2, 0.9))
    marks = np.abs(ticks(0.0, last, 4))
    x = ends[0] + marks / last * (ends[1] - ends[0])
    shown = [f"{mark:,.0f}" for mark in marks.tolist()]
    texts += [Text(at, height - 12, text, 10, GREY, "middle") for at, text in zip(x.tolist(), shown)]
    return Drawing(width, height, strokes, texts)


def _axes(name: str, limits: tuple[float, float], up, sides: tuple[float, float]):
    marks = ticks(*limits, 4)
    places = up(marks).tolist()
    grid = [np.array([[sides[0], y], [sides[1], y]]) for y in places]
    texts = [Text(sides[0] - 5, y, t, 10, GREY, "end") for y, t in zip(places, tick_texts(marks))]
    return [Strokes(grid, FAINT, 0.5)], [*texts, Text(sides[0], 13, name, 12, INK)]

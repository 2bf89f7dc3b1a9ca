"""Distances from the root against sampling dates: as a picture, and in a terminal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.plot.drawing import FAINT, GREY, INK, Drawing, Strokes, Text, text_width
from phloem.plot.time_axis import tick_texts, ticks

_LINE, _OUTLIER = "#5b9bd5", "#c0392b"
_LEFT, _RIGHT, _TOP, _FOOT = 74.0, 24.0, 40.0, 58.0


@dataclass(frozen=True, eq=False)
class RegressionPoints:
    """years, distances: (T,), of the dated tips. names: of outliers, "" for others. slope, intercept_year: of
    the line. title: what to write above. ages: whether years count from a present at 0."""

    years: np.ndarray
    distances: np.ndarray
    names: tuple[str, ...]
    slope: float
    intercept_year: float
    title: str = ""
    ages: bool = False


def regression_drawing(points: RegressionPoints, width: float = 760.0, height: float = 520.0) -> Drawing:
    """The picture; the time axis begins where the line meets distance 0, unless that is far away."""
    low, high, top = _limits(points)
    room, tall = width - _LEFT - _RIGHT, height - _TOP - _FOOT

    def place(year: np.ndarray, distance: np.ndarray) -> np.ndarray:
        x = _LEFT + (year - low) / (high - low) * room
        return np.stack([x, _TOP + tall * (1 - distance / top)], axis=-1)

    strokes, texts = _axes(points, (low, high), top, place)
    if points.slope > 0:
        ends = np.array([max(low, points.intercept_year), high])
        distances = points.slope * (ends - points.intercept_year)
        if distances[1] > top:
            ends[1], distances[1] = points.intercept_year + top / points.slope, top
        strokes.append(Strokes([place(ends, distances)], _LINE, 2.0))
    at = place(points.years, points.distances)
    named = np.array([bool(name) for name in points.names])
    angle = np.linspace(0, 2 * np.pi, 17)
    circle = 3.4 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    for chosen, colour in ((~named, INK), (named, _OUTLIER)):
        strokes.append(Strokes([point + circle for point in at[chosen]], colour, 1.3))
    for (x, y), name in zip(at[named].tolist(), [name for name in points.names if name]):
        left = x + 8 + text_width(name, 11) > width
        texts.append(
            Text(x + (-8 if left else 8), y, name, 11, _OUTLIER, "end" if left else "start", halo=True)
        )
    texts.append(Text(_LEFT, 20, points.title, 13, INK))
    return Drawing(width, height, strokes, texts)


def _limits(points: RegressionPoints) -> tuple[float, float, float]:
    """First and last year shown, and the largest distance."""
    first, last = float(points.years.min()), float(points.years.max())
    span = (last - first) or 1.0
    start = points.intercept_year
    low = start if np.isfinite(start) and first - 3 * span <= start < first else first
    top = float(points.distances.max()) or 1.0
    return low - 0.03 * (last - low), last + 0.04 * (last - low), 1.06 * top


def _axes(points: RegressionPoints, years: tuple[float, float], top: float, place):
    along, up = ticks(*years, 8), ticks(0.0, top, 6)
    corner, right = place(np.array(years[0]), np.array(0.0)), place(np.array(years[1]), np.array(0.0))
    ceiling = place(np.array(years[0]), np.array(top))
    grid = [place(np.array([year, year]), np.array([0.0, top])) for year in along.tolist()]
    grid += [place(np.array(years), np.array([one, one])) for one in up.tolist()]
    strokes = [Strokes(grid, FAINT, 0.5), Strokes([np.array([ceiling, corner, right])], GREY, 1.0)]
    texts = [
        Text(float(place(year, np.array(0.0))[0]), float(corner[1]) + 14, text, 11, GREY, "middle")
        for year, text in zip(along, tick_texts(along))
    ]
    texts += [
        Text(float(corner[0]) - 6, float(place(np.array(years[0]), one)[1]), text, 11, GREY, "end")
        for one, text in zip(up, tick_texts(up))
    ]
    texts.append(
        Text(
            float(right[0]),
            float(corner[1]) + 34,
            "years before present, negative" if points.ages else "sampling date",
            12,
            GREY,
            "end",
        )
    )
    texts.append(
        Text(14, float(corner[1] + ceiling[1]) / 2, "distance from the root", 12, GREY, "middle", -90)
    )
    return strokes, texts


def terminal_regression(points: RegressionPoints, width: int = 80, height: int = 18) -> str:
    """The same in characters: · one tip, : two or three, # more, x an outlier, and the line."""
    low, high, top = _limits(points)
    side = max(len(text) for text in tick_texts(ticks(0.0, top, 4))) + 1
    columns = max(width - side - 2, 20)
    cells = [[" "] * columns for _ in range(height)]

    def cell(year: float, distance: float) -> tuple[int, int]:
        row = height - 1 - min(max(round(distance / top * (height - 1)), 0), height - 1)
        return row, min(max(round((year - low) / (high - low) * (columns - 1)), 0), columns - 1)

    for year in np.linspace(low, high, columns).tolist():
        distance = points.slope * (year - points.intercept_year)
        if points.slope > 0 and 0 <= distance <= top:
            row, column = cell(year, distance)
            cells[row][column] = "-"
    counts: dict[tuple[int, int], int] = {}
    for year, distance, name in zip(points.years.tolist(), points.distances.tolist(), points.names):
        at = cell(year, distance)
        counts[at] = counts.get(at, 0) + (1000 if name else 1)
    for (row, column), count in counts.items():
        cells[row][column] = "x" if count >= 1000 else "·" if count == 1 else ":" if count < 4 else "#"
    marks = {
        cell(low, float(one))[0]: text
        for one, text in zip(ticks(0.0, top, 4), tick_texts(ticks(0.0, top, 4)))
    }
    lines = [f"{marks.get(row, ''):>{side}}│{''.join(line).rstrip()}" for row, line in enumerate(cells)]
    foot, labels = [" "] * columns, ticks(low, high, max(2, columns // 10))
    for value, text in zip(labels.tolist(), tick_texts(labels)):
        start = min(max(cell(value, 0.0)[1] - len(text) // 2, 0), columns - len(text))
        foot[start : start + len(text)] = text
    return "\n".join([*lines, " " * side + "└" + "─" * columns, " " * (side + 1) + "".join(foot).rstrip()])

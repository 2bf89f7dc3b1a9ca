"""Population sizes and lineages through time as a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phloem.plot.drawing import FAINT, GREY, INK, Drawing, Strokes, Text
from phloem.plot.time_axis import tick_texts, ticks, time_axis

_LINE, _BAND = "#2c6da4", "#5b9bd5"
_LEFT, _RIGHT, _TOP, _FOOT, _BETWEEN = 84.0, 20.0, 40.0, 50.0, 30.0


@dataclass(frozen=True, eq=False)
class Course:
    """A number through time: values (n, 3), median, low and high. name: what it is; logarithmic: its axis;
    mark: a value that means something, such as a reproductive number of 1, if any."""

    name: str
    values: np.ndarray
    logarithmic: bool
    mark: float | None = None


def through_time_drawing(
    times: np.ndarray, courses: list[Course], root: np.ndarray, title: str, width: float = 760.0
) -> Drawing:
    """times: (n,) years, or negative ages, the latest first. Courses one below the other, each with its band;
    root: (3,) the root's time and its limits, as a bar at the foot."""
    tall = 240.0
    height = _TOP + len(courses) * tall + (len(courses) - 1) * _BETWEEN + _FOOT
    low, high = float(times.min()), float(times.max())

    def across(time: np.ndarray) -> np.ndarray:
        return _LEFT + (time - low) / (high - low) * (width - _LEFT - _RIGHT)

    foot = height - _FOOT
    strokes, texts = time_axis((low, high), (_LEFT, width - _RIGHT), (_TOP, foot), 12.0)
    for k, course in enumerate(courses):
        top = _TOP + k * (tall + _BETWEEN)
        more, written = _panel(course, across(times), (_LEFT, width - _RIGHT), (top, top + tall))
        strokes += more
        texts += written
    ends = across(np.clip(root, low, high))
    strokes.append(Strokes([np.array([[ends[1], foot], [ends[2], foot]])], _BAND, 5.0, 0.6))
    strokes.append(Strokes([np.array([[ends[0], foot - 6], [ends[0], foot + 6]])], INK, 1.6))
    texts += [
        Text(_LEFT, 20, title, 13, INK),
        Text(float(ends[0]), foot - 14, "root", 11, GREY, "middle", halo=True),
    ]
    return Drawing(width, height, strokes, texts)


def _panel(course: Course, x: np.ndarray, sides: tuple[float, float], ends: tuple[float, float]):
    """A course between two heights, ends, of a picture: band, median, axis."""
    values = np.maximum(course.values, 1e-300) if course.logarithmic else course.values
    low, high = float(values[:, 1].min()), float(values[:, 2].max())
    scale: Callable[[np.ndarray], np.ndarray] = np.log10 if course.logarithmic else _same
    if course.logarithmic:
        first, last = np.floor(np.log10(low)), np.ceil(np.log10(high))
        marks = 10.0 ** np.arange(first, max(last, first + 1) + 1)
        low, high = float(marks[0]), float(marks[-1])
    else:
        low, high = 0.0, 1.05 * max(high, 1.0)
        marks = ticks(low, high, 6)
    up = _upwards(ends, (float(scale(np.array(low))), float(scale(np.array(high)))), scale)
    spacing = abs(float(x[1] - x[0])) if len(x) > 1 else 1.0
    band = np.stack([np.stack([x, up(values[:, 1])], 1), np.stack([x, up(values[:, 2])], 1)], 1)
    grid = [np.array([[sides[0], y], [sides[1], y]]) for y in up(marks).tolist()]
    strokes = [
        Strokes(grid, FAINT, 0.5),
        Strokes([np.array([[sides[0], ends[0]], [sides[0], ends[1]]])], GREY, 1.0),
        Strokes(band, _BAND, max(spacing + 0.3, 3.1), 0.35),
        Strokes([np.stack([x, up(values[:, 0])], 1)], _LINE, 2.0),
    ]
    if course.mark is not None and low <= course.mark <= high:
        y = float(up(np.array(course.mark)))
        strokes.insert(1, Strokes([np.array([[sides[0], y], [sides[1], y]])], INK, 1.0))
    shown = [f"{mark:g}" for mark in marks.tolist()] if course.logarithmic else tick_texts(marks)
    texts = [Text(sides[0] - 6, y, text, 11, GREY, "end") for y, text in zip(up(marks).tolist(), shown)]
    texts.append(Text(16, sum(ends) / 2, course.name, 12, GREY, "middle", -90))
    return strokes, texts


def _same(value: np.ndarray) -> np.ndarray:
    return value


def _upwards(
    ends: tuple[float, float], limits: tuple[float, float], scale: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """Pixels from values."""
    return lambda value: ends[1] - (scale(value) - limits[0]) / (limits[1] - limits[0]) * (ends[1] - ends[0])

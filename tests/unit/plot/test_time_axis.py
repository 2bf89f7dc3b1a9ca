import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.trees import parse_trees
from phloem.plot.drawing import DrawSettings
from phloem.plot.pictures import tree_svg
from phloem.plot.regression_figure import RegressionPoints, regression_drawing, terminal_regression
from phloem.plot.time_axis import tick_texts, ticks


@pytest.mark.parametrize(
    "low, high", [(1997.9, 2007.6), (0.0, 0.0057), (-1e6, 3.0), (2000.0, 2000.001), (1e-9, 3e-9)]
)
@pytest.mark.parametrize("most", [2, 5, 8])
def test_ticks_are_round_few_and_inside(low, high, most):
    found = ticks(low, high, most)
    assert 1 <= len(found) <= most
    assert found.min() >= low - 1e-6 * (high - low) and found.max() <= high + 1e-6 * (high - low)
    texts = tick_texts(found)
    assert len(set(texts)) == len(texts)
    assert [float(text) for text in texts] == pytest.approx(found.tolist(), abs=1e-3 * (high - low))


def test_a_tree_over_a_time_axis():
    tree = parse_trees("((a:2,b:5):4,c:7);")[0]
    svg = tree_svg(tree, DrawSettings(latest=2009.0))
    assert ">2002<" in svg and ">2008<" in svg and "stroke" in svg
    assert ">2002<" not in tree_svg(tree)
    with pytest.raises(InputError):
        DrawSettings(latest=float("nan"))


def points(slope: float = 1e-3) -> RegressionPoints:
    years = np.linspace(2000, 2010, 11)
    distances = 1e-3 * (years - 1995) + np.where(np.arange(11) == 4, 0.005, 0.0)
    names = tuple("odd" if i == 4 else "" for i in range(11))
    return RegressionPoints(years, distances, names, slope, 1995.0 if slope > 0 else np.nan, "title")


@pytest.mark.parametrize("slope", [1e-3, -1e-3])
def test_the_regression_as_a_picture(slope):
    drawing = regression_drawing(points(slope))
    for strokes in drawing.strokes:
        for line in strokes.lines:
            assert line[:, 0].min() >= 0 and line[:, 0].max() <= drawing.width
            assert line[:, 1].min() >= 0 and line[:, 1].max() <= drawing.height
    texts = {text.text for text in drawing.texts}
    assert {"odd", "title", "2006", "sampling date"} <= texts
    assert [len(s.lines) for s in drawing.strokes][-2:] == [10, 1]  # the outlier has its own colour
    assert len(drawing.strokes) == (5 if slope > 0 else 4)


@pytest.mark.parametrize("width", [30, 80, 200])
def test_the_regression_in_a_terminal(width):
    text = terminal_regression(points(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.count("x") == 1 and text.count("·") + text.count(":") >= 5 and "2000" in text

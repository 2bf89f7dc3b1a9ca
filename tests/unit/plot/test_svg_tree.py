"""Tree pictures: well-formed, complete, in bounds, and without labels on top of each other."""

from __future__ import annotations

import dataclasses
import time
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.plot.colours import branch_colours, colour
from phloem.plot.drawing import DrawSettings, layout, nice_length, text_width, thinned
from phloem.plot.pictures import draw, tree_svg
from phloem.tree.random import caterpillar, coalescent, uniform_unrooted
from phloem.tree.tree import Tree, node_heights

SHAPES = ("rectangular", "circular")


def annotated(n=12, seed=0):
    rng = np.random.default_rng(seed)
    tree = coalescent(n, rng)
    heights = node_heights(tree)
    notes = {x: {"rate": float(rng.gamma(3.0))} for x in range(tree.n_nodes)}
    for x in range(n, tree.n_nodes):
        notes[x] |= {"height_95%_HPD": (0.8 * heights[x], 1.2 * heights[x]), "posterior": 0.5}
    return dataclasses.replace(tree, annotations=notes)


def texts(svg):
    return [element.text for element in xml.fromstring(svg).iter() if element.tag.endswith("text")]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_every_tip_is_named_once_and_the_scale_is_there(shape, n):
    tree = caterpillar(n) if n > 1 else Tree(("only",), np.array([-1], np.int32), np.zeros(1))
    shown = texts(tree_svg(tree, DrawSettings(shape)))
    for name in tree.taxa:
        assert shown.count(name) == 1
    assert len(shown) == n + (n > 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_strokes_stay_inside_the_picture(shape):
    drawing = draw(annotated(60), DrawSettings(shape, colour_by="rate"))
    for strokes in drawing.strokes:
        points = np.concatenate(
            [np.asarray(line).reshape(-1, 2) for line in strokes.lines] or [np.ones((1, 2))]
        )
        assert points.min() >= 0
        assert points[:, 0].max() <= drawing.width and points[:, 1].max() <= drawing.height


def test_names_that_markup_would_eat():
    tree = dataclasses.replace(caterpillar(3), taxa=("a<b>&c", "x\x07y", "'q' \"r\""))
    shown = texts(tree_svg(tree))
    assert {"a<b>&c", "xy", "'q' \"r\""} <= set(shown)


@pytest.mark.parametrize("shape", SHAPES)
def test_names_stay_as_they_are_written(shape):
    """A code such as H090_695_V10 is no sentence."""
    names = ("H090_695_V10", "Pan paniscus", "_")
    shown = texts(tree_svg(dataclasses.replace(caterpillar(3), taxa=names), DrawSettings(shape)))
    assert set(names) <= set(shown)


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_thin_out_rather_than_overlap(shape):
    drawing = draw(uniform_unrooted(3000, np.random.default_rng(1)), DrawSettings(shape))
    names = [text for text in drawing.texts if text.text.startswith("t")]
    assert 50 < len(names) < 3000
    places = np.array([(text.x, text.y) for text in names])
    if shape == "rectangular":
        assert np.diff(np.sort(places[:, 1])).min() >= 12
    else:
        gaps = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
        assert gaps.min() >= 12


def test_support_intervals_and_colours_are_drawn():
    tree = annotated()
    plain = draw(dataclasses.replace(tree, annotations={}))
    full = draw(tree, DrawSettings(colour_by="rate"))
    assert len(full.strokes) > len(plain.strokes) + 5
    assert sum(text.text == "0.5" for text in full.texts) > 4
    assert not any(text.text == "0.5" for text in draw(tree, DrawSettings(support="none")).texts)
    assert any(text.text == "rate" for text in full.texts)


def test_interval_bars_end_at_their_heights():
    tree = annotated()
    drawing = draw(tree)
    bars = next(strokes for strokes in drawing.strokes if strokes.opacity < 1)
    drawn = np.asarray(bars.lines)[..., 0]
    ratio = (drawn[:, 1] - drawn[:, 0]).max() / (drawn[:, 1] - drawn[:, 0]).min()
    heights = node_heights(tree)[12:]
    assert ratio == pytest.approx(heights.max() / heights.min(), rel=1e-6)


def test_layout_of_a_small_tree():
    #   root(6): tip 2, node 4: tips 0 1
    tree = Tree(("a", "b", "c"), np.array([3, 3, 4, 4, -1], np.int32), np.array([1.0, 2.0, 4.0, 1.5, 0.0]))
    place = layout(tree)
    np.testing.assert_allclose(place.depth, [2.5, 3.5, 4.0, 1.5, 0.0])
    np.testing.assert_allclose(place.rank[place.order], [0, 1, 2])
    assert place.order[0] == 2 and place.rank[3] == 1.5
    bare = layout(dataclasses.replace(tree, lengths=np.full(5, np.nan)))
    assert not bare.timed and len(set(bare.depth[:3])) == 1


def test_thinned_keeps_the_spacing():
    kept = thinned(np.array([0, 1, 2, 3.5, 3.6, 9]), 2)
    np.testing.assert_array_equal(kept, [0, 2, 5])


def test_round_scale_lengths():
    assert [nice_length(x) for x in (0.034, 1.0, 7.3, 499, 2e-7)] == [0.02, 1.0, 5.0, 200.0, 2e-7]


def test_colours_span_the_scale():
    steps, _, low, high, _ = branch_colours(annotated(), "rate")
    assert steps.min() == 0 and steps.max() == 31 and low < high
    assert colour(0) != colour(31) and colour(-1) == "#1b1f24"
    assert branch_colours(annotated(), "absent") is None


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_tips_within_seconds(shape):
    """About 0.1 s here; the bound only catches a square-time layout."""
    tree = coalescent(10_000, np.random.default_rng(2))
    start = time.process_time()
    tree_svg(tree, DrawSettings(shape))
    assert time.process_time() - start < 5


def test_png_and_pdf(tmp_path):
    pytest.importorskip("matplotlib")
    from phloem.plot.pictures import save_figure

    for name in ("t.png", "t.pdf"):
        save_figure(draw(annotated(), DrawSettings(colour_by="rate")), tmp_path / name, 50)
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "t.pdf").read_bytes()[:4] == b"%PDF"


def test_letters_without_a_font_are_told_once(tmp_path):
    pytest.importorskip("matplotlib")
    from phloem.plot.pictures import save_figure

    tree = dataclasses.replace(caterpillar(3), taxa=("\U00012000\U00012001", "a", "b"))
    with pytest.warns(UserWarning, match="2 letters of the names") as told:
        save_figure(draw(tree), tmp_path / "t.png", 50)
    assert len(told) == 1


def test_wide_letters_take_twice_the_room():
    assert text_width("一二", 10) == text_width("abcd", 10)


def boxes(drawing, size=12.0):
    """Middle and half extent of every tip name of a circular drawing, along its own direction."""
    for text in drawing.texts:
        turn = np.radians(text.angle)
        along = np.array([np.cos(turn), np.sin(turn)]) * (1 if text.anchor == "start" else -1)
        half = text_width(text.text, size) / 2
        yield np.array([text.x, text.y]) + along * half, along, half


@pytest.mark.parametrize("n", [5, 60, 200, 1000])
def test_names_around_the_root_do_not_touch_near_the_centre(n):
    """Tips beside the root of an additive tree had their names on top of each other."""
    rng = np.random.default_rng(n)
    tree = uniform_unrooted(n, rng)
    lengths = np.where(np.arange(tree.n_nodes) < n, 1e-3, 1.0)
    tree = dataclasses.replace(tree, lengths=lengths, taxa=tuple(f"a_rather_long_name_{k}" for k in range(n)))
    drawing = draw(tree, DrawSettings("circular"))
    names = dataclasses.replace(drawing, texts=[t for t in drawing.texts if t.text.startswith("a")])
    places = list(boxes(names))
    assert len(places) >= min(n, 300)
    for k, (middle, along, half) in enumerate(places):
        for other, _, width in places[:k]:
            apart = other - middle
            across = abs(apart[1] * along[0] - apart[0] * along[1])
            assert across > 12 or abs(apart @ along) > half + 0.5 * width


def test_a_circular_picture_grows_with_its_names_up_to_the_largest():
    sides = [draw(caterpillar(n), DrawSettings("circular")).width for n in (10, 300, 5000)]
    assert sides[0] == 900 < sides[1] < sides[2] == 2400
    assert draw(caterpillar(300), DrawSettings("circular", width=500)).width == 500


def test_intervals_around_the_root_end_at_their_heights():
    tree = annotated()
    drawing = draw(tree, DrawSettings("circular"))
    bars = np.asarray(next(strokes for strokes in drawing.strokes if strokes.opacity < 1).lines)
    drawn = np.linalg.norm(bars[:, 1] - bars[:, 0], axis=1)
    heights = node_heights(tree)[12:]
    np.testing.assert_allclose(drawn / drawn.max(), heights / heights.max(), rtol=1e-6)
    assert len(draw(tree, DrawSettings("circular", intervals="none")).strokes) < len(drawing.strokes)


@pytest.mark.parametrize("option", [{"width": -3.0}, {"height": 5.0}, {"font_size": 0.0}, {"width": 1e9}])
def test_sizes_that_are_none_are_refused(option):
    with pytest.raises(InputError, match=f"--{next(iter(option)).replace('_', '-')}"):
        DrawSettings(**option)

"""`phloem draw`: what of a tree is drawn, and what is refused."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest

from phloem.analysis.draw import DrawTreeSettings, run_draw, year_of
from phloem.errors import InputError
from phloem.plot.drawing import DrawSettings

BEAST = (
    "((A[&rate=0.5]:1,B[&rate=2]:1)[&posterior=0.75,height=1,height_95%_HPD={0.5,1.5},rate=1]:1,"
    "C[&rate=1]:2)[&height=2];"
)


@pytest.fixture
def beast(tmp_path):
    (tmp_path / "beast.nwk").write_text(BEAST)
    return str(tmp_path / "beast.nwk")


def drawn(tree, tmp_path, **options):
    out = str(tmp_path / "t.svg")
    run_draw(DrawTreeSettings(tree, out, redo=True, picture=DrawSettings(**options)))
    return [element.text for element in xml.parse(out).iter() if element.tag.endswith("text")]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"colour_by": "rat"}, "'rat' that --colour-by .*\n.*has height, posterior, rate"),
        ({"colour_by": "height_95%_HPD"}, "that --colour-by can draw"),
        ({"support": "bootstrap"}, "'bootstrap' that --support"),
        ({"intervals": "rate"}, "'rate' that --intervals .*\n.*has height_95%_HPD"),
    ],
)
def test_an_annotation_that_no_node_has_is_refused(beast, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        drawn(beast, tmp_path, **options)


def test_annotations_that_are_there_are_drawn(beast, tmp_path):
    assert "0.75" in drawn(beast, tmp_path)
    assert "0.75" not in drawn(beast, tmp_path, support="none", intervals="none")
    assert "rate" in drawn(beast, tmp_path, colour_by="rate")


def test_an_annotation_in_percent_is_drawn_as_it_is(tmp_path):
    """It came out as 1, as if 90 were a probability."""
    (tmp_path / "t.nwk").write_text("((A:1,B:1)[&bootstrap=90]:3,C:4);")
    assert "90" in run_draw(DrawTreeSettings(str(tmp_path / "t.nwk")))


def test_the_terminal_keeps_the_files_order_if_told(tmp_path):
    (tmp_path / "t.nwk").write_text("(((A:1,B:1):1,D:2):2,C:4);")
    orders = []
    for ladderize in (True, False):
        picture = DrawSettings(ladderize=ladderize)
        text = run_draw(DrawTreeSettings(str(tmp_path / "t.nwk"), picture=picture))
        orders.append([c for c in text if c in "ABCD"])
    assert orders == [list("CDAB"), list("ABDC")]


def test_negative_branches_do_not_keep_a_tree_from_its_midpoint(tmp_path):
    (tmp_path / "t.nwk").write_text("(A:1,B:-0.5,(C:4,D:1):1);")
    text = run_draw(DrawTreeSettings(str(tmp_path / "t.nwk"), root="midpoint"))
    assert text.splitlines()[0].endswith(" C")


def test_what_does_not_fit_into_memory_is_not_drawn(beast, tmp_path, monkeypatch):
    monkeypatch.setattr("phloem.hardware.limits.available_bytes", lambda: 10_000)
    with pytest.raises(InputError, match="6,000 characters need 48 kB at least"):
        run_draw(DrawTreeSettings(beast, width=1000))
    with pytest.raises(InputError, match=r"a picture's 900 × .* pixels need .* MB at least") as told:
        run_draw(DrawTreeSettings(beast, str(tmp_path / "x.png")))
    assert ".svg" in str(told.value.hint) and not (tmp_path / "x.png").exists()
    run_draw(DrawTreeSettings(beast, str(tmp_path / "x.svg")))
    assert run_draw(DrawTreeSettings(beast, width=100))


def test_the_latest_tip_is_of_a_day_or_a_year():
    assert year_of("2022-09-26") == pytest.approx(2022 + 268 / 365)
    assert year_of("2007.63") == 2007.63 and year_of("2007") == 2007.0 and year_of("-500") == -500.0
    for wrong in ("2022-09", "2022-09-XX", "?", "26/09/2022", "soon", "2007±1", "1e400"):
        with pytest.raises(InputError) as error:
            year_of(wrong)
        assert error.value.hint

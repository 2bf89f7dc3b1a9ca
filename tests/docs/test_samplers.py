"""The tutorial on other libraries' samplers, as it is written: four samplers, one posterior."""

from __future__ import annotations

import math

import numpy as np
import pytest

from docs.pages import ROOT, blocks_of
from docs.test_code import run_page

PAGE = ROOT / "docs" / "tutorials" / "samplers.md"
SAMPLERS = {"numpyro": "NumPyro", "blackjax": "BlackJAX", "pyro": "Pyro"}


def effective(x: np.ndarray) -> float:
    from arviz_stats.base import array_stats

    return float(array_stats.ess(x[None], chain_axis=0, draw_axis=1))


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """The largest distance of two samplers' means, in standard errors."""
    return max(
        abs(x.mean() - y.mean()) / math.hypot(x.std() / effective(x) ** 0.5, y.std() / effective(y) ** 0.5)
        for x, y in ((a[name], b[name]) for name in a)
    )


def sampled(text: str, folder, only: tuple[str, ...]) -> dict:
    """`draws` of the page, of phloem and the libraries named."""
    from importlib.util import find_spec

    absent = [name for name in only if find_spec(name) is None]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    others = [name for name in SAMPLERS if name not in only]
    kept = [b for b in blocks_of(text) if not any(f"import {name}\n" in b.text for name in others)]
    return run_page(kept, folder)["draws"]


@pytest.mark.slow
@pytest.mark.parametrize("library", SAMPLERS)
def test_one_posterior(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draws = sampled(PAGE.read_text(), tmp_path, (library,))
    assert draws.keys() == {"phloem", SAMPLERS[library]}
    assert min(effective(x) for one in draws.values() for x in one.values()) > 400
    assert distance(*draws.values()) < 4


@pytest.mark.slow
def test_another_prior_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    wrong = text.replace("dist.Exponential(10.0)", "dist.Exponential(20.0)")  # nine standard errors
    assert wrong != text
    assert distance(*sampled(wrong, tmp_path, ("numpyro",)).values()) > 5

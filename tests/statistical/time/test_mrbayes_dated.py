"""Trees with a clock as MRBAYES blocks ask for them: posteriors and priors of MrBayes 3.2.7a."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.time import run_time
from phloem.analysis.time_options import dated_analysis
from statistical.time.time_runs import close

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "golden" / "mrbayes_blocks" / "dated"
POSTERIORS = json.loads((FOLDER / "posteriors.json").read_text())["posteriors"]
NAMES = {
    "TH": "root_height", "TL": "tree_length", "popsize": "pop_size", "net_speciation": "net_diversification",
    "relative_extinction": "relative_death", "clockrate": "clock_rate",
    "relative_fossilization": "sampling_proportion",
}  # fmt: skip
WIDE = {"kappa"}  # without data it has no mean


def found_by(case: str, tmp_path: Path, prior: str | None = None) -> dict[str, tuple[float, float]]:
    """Mean and standard error of every number. case: of the posteriors; prior: another tree prior."""
    name = case.removesuffix("0")
    more = {"generations": 300_000, "sample_every": 100, "prefix": str(tmp_path / "it"), "threads": 1}
    more |= {"prior_only": True} if case != name else {}
    block = block_analysis(FOLDER / f"posterior_{name}.nex")
    settings, _ = dated_analysis(block, more)
    if prior is not None:
        settings = replace(settings, tree=replace(settings.tree, prior=prior))
    p = run_time(settings).parameters
    return {own: (p.mean[i], p.mcse[i]) for i, own in enumerate(p.names)}


def far(case: str, found: dict[str, tuple[float, float]]) -> list[str]:
    """Numbers whose means differ by more than 4 combined standard errors."""
    names = []
    for name, its in POSTERIORS[case].items():
        if name in WIDE and case.endswith("0"):
            continue
        times = 2.0 if name == "popsize" else 1.0  # individuals there, chromosomes here
        error = times * its["sd"] / np.sqrt(its["ess"])
        if not close(found[NAMES.get(name, name)], times * its["mean"], error):
            names.append(name)
    return names


@pytest.mark.parametrize("case", POSTERIORS)
def test_means_are_those_of_mrbayes(case, tmp_path):
    assert far(case, found_by(case, tmp_path)) == []


def test_another_tree_prior_is_seen(tmp_path):
    """Births and deaths from the first split on, not given the root's age."""
    assert "net_speciation" in far("bd0", found_by("bd0", tmp_path, "bd"))


def test_uniform_ages_without_data(tmp_path):
    """The root is Gamma(1, 1), other nodes uniform below it: of 12 tips the tree's length is 7 times it."""
    found = found_by("uni0", tmp_path)
    assert close(found["root_height"], 1.0) and close(found["tree_length"], 7.0)
    assert not close(found["tree_length"], 8.0)


def test_coalescents_without_data(tmp_path):
    """Diploids of 0.1: the root is at 2N (1 - 1/12), the tree's length 2N Σ 1/i, N as here."""
    found = found_by("coal0", tmp_path)
    assert close(found["pop_size"], 0.2) and close(found["root_height"], 0.4 * 11 / 12)
    assert close(found["tree_length"], 0.4 * sum(1 / i for i in range(1, 12)))
    assert not close(found["root_height"], 0.2 * 11 / 12)

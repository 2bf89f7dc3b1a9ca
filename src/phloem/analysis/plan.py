"""`phloem plan`: what a run will need, before it is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.analysis.reading import DataOptions, alignment_of
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.hardware.machine import Hardware, detect_hardware
from phloem.hardware.notice import on_first_compilation
from phloem.inference.ml.optimize import restarts
from phloem.io.trees import read_tree
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.pruning.calibration import on_calibration
from phloem.pruning.plan import Forecast, forecast
from phloem.pruning.select import Selection, select_engine
from phloem.tree.layout import tree_layout
from phloem.tree.random import uniform_unrooted
from phloem.tree.tree import Tree


@dataclass(frozen=True)
class PlanSettings(DataOptions):
    """Options of `phloem plan`. tree: None forecasts on a random tree, which has more distinct columns than a
    good one, so that the forecast is an upper bound."""

    model: str
    tree: str | None = None
    engine: Literal["auto", "reference", "cpu", "gpu"] = "auto"
    precision: Literal["float64", "float32"] = "float64"
    threads: int | None = None


@dataclass(frozen=True)
class PlanResult:
    """taxa … categories: sizes of the problem. optimisation_evaluations: gradients that a fit takes; from
    each start it took 30 to 130 on the validation data, about 40 and one for every two taxa."""

    taxa: int
    sites: int
    patterns: int
    states: int
    categories: int
    selection: Selection
    forecast: Forecast
    hardware: Hardware
    random_tree: bool
    optimisation_evaluations: int

    @property
    def fits(self) -> bool | None:
        """Whether the memory is there; None if the machine does not tell how much it has."""
        available = self.hardware.available_bytes
        if self.selection.engine == "gpu" and self.hardware.accelerators:
            available = self.hardware.accelerators[0].memory_bytes
        return None if available is None else self.forecast.memory_bytes < available


def run_plan(
    settings: PlanSettings,
    compiling: Callable[[str], None] | None = None,
    measuring: Callable[[], None] | None = None,
) -> PlanResult:
    """Read, count, time a sample of the patterns, and forecast. Evaluates nothing of the whole problem.

    compiling, measuring: as of run_likelihood.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    if measuring is not None:
        on_calibration(measuring)
    alignment = alignment_of(settings)
    patterns = site_patterns(alignment)
    model = model_for_alignment(settings.model, alignment)
    layout = tree_layout(_tree(settings, alignment), alignment.taxa)
    problem = engine_problem(patterns, model, layout.children, settings.precision)
    selection = select_engine(settings.engine, problem, settings.threads)
    lengths = np.full(len(problem.left) * 2 + 1, 0.1)
    return PlanResult(
        taxa=alignment.n_taxa,
        sites=alignment.n_sites,
        patterns=len(patterns.weights),
        states=model.n_states,
        categories=model.n_categories,
        selection=selection,
        forecast=forecast(problem, selection, model.evaluate(model.start_values()), lengths),
        hardware=detect_hardware(),
        random_tree=settings.tree is None,
        optimisation_evaluations=len(restarts(model.free)) * (40 + alignment.n_taxa // 2),
    )


def _tree(settings: PlanSettings, alignment: Alignment) -> Tree:
    if settings.tree is not None:
        return read_tree(settings.tree)
    tree = uniform_unrooted(alignment.n_taxa, np.random.default_rng(1))
    return replace(tree, taxa=alignment.taxa)

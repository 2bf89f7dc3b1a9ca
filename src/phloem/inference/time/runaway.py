"""Chains that have lost the dates: under a prior without an end, no age is too old for data without a rate.

The clock's CTMC reference prior and a tree prior that leaves the level of its population sizes open (skyline,
skyride, skygrid) together do not change when all ages are multiplied and rates divided by one number. The
dates alone hold the ages then. Where data hardly show a rate, a chain sooner or later crosses to ages beside
which the dates are as one, from where nothing leads it back: the posterior is no distribution."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.errors import NumericalError
from phloem.inference.time.coupled import CoupledRun
from phloem.inference.time.run import Run
from phloem.inference.time.structure import TimeModel

_FAR = 1e6  # times what the dates span


def is_held_by_dates_alone(model: TimeModel) -> bool:
    """Whether neither calibrations nor a prior of a rate or of population sizes keep ages from growing."""
    return model.has_open_level and all(model.reference) and all(clade.age is None for clade in model.clades)


def check_runaway(runs: Sequence[Run | CoupledRun]) -> None:
    """NumericalError where the dates do not hold the ages of a run any more."""
    for run in runs:
        chain = run.cold
        model, state = chain.model, chain.state
        root = float(state.heights[int(state.slot[0])].max())
        if is_held_by_dates_alone(model) and root > _FAR * model.scale.time:
            raise NumericalError(
                f"run {run.number + 1} has lost the dates: its root is {root:.3g} old, and they span "
                f"{model.scale.time:.4g}. These data hardly show a rate (phloem temporal-signal says how "
                f"little), and under the tree prior {model.tree_prior.name} with the clock's CTMC reference "
                "prior no age is too old: the posterior is no distribution, and earlier samples are none of "
                f"it. Leave --prior {LEVEL}=jeffreys out, or say what is known, as in --prior "
                "'clock_rate=lognormal(-7,1)' or --calibrate 'root=uniform(1,100)', with --redo."
            )

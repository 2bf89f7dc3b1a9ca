"""The working distribution of generalised stepping stones of dated trees."""

from __future__ import annotations

from dataclasses import replace

from phloem.analysis.time_record import TimeTreeSettings, time_identity
from phloem.analysis.working import kept_draws, of_file
from phloem.errors import InputError
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.working_fit import fit_dated_working


def with_working(settings: TimeTreeSettings, model: TimeModel) -> TimeTreeSettings:
    """The settings with the working distribution that they ask for, fitted to the draws behind the warm-up of
    the finished analysis settings.stones_from, of the same data, model, clock, tree prior and priors. Errors:
    InputError where there is none such, and as of fit_dated_working."""
    if settings.stones_from is None:
        return settings
    samples, first = kept_draws(settings.stones_from, time_identity(settings, model), TimeSettings)
    try:
        working = fit_dated_working(model, samples, first)
    except InputError as error:
        raise of_file(error, settings.stones_from) from None
    return replace(settings, chains=replace(settings.chains, working=working))

"""The working distribution of generalised stepping stones of dated trees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from phloem.analysis.stones import PriorConstant
from phloem.analysis.time_record import TimeTreeSettings, time_identity
from phloem.analysis.working import kept_draws, of_file, require_same_space
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import stored_samples
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.working_fit import fit_dated_working, log_mass

_HOW = (
    "Draw from the prior first: this command with --prior-only, another --prefix, and no --stepping-stone "
    "and --stones-from; then with --prior-only, --stepping-stone 10 and --stones-from of that prefix. Add "
    "--prior-constant of it here. Or leave --stones-from out: plain stones begin at the prior."
)


_OF_WORKING = ("working_distribution", "working_draws")


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


def prior_constant(settings: TimeTreeSettings, model: TimeModel) -> PriorConstant | None:
    """That which an estimate by stones from a working distribution is to be divided by; None where the prior
    adds up to what is known, which the working distribution has. Errors: InputError where only sampling tells
    it and no analysis that did is named, or where one is named in vain or is of something else."""
    given = settings.prior_constant
    if settings.stones_from is None or not settings.chains.use_data:
        return None
    if log_mass(model) is not None:
        if given is not None:
            told = "--prior-constant is of priors whose constant only sampling tells, and this one's is known"
            raise InputError(told, hint="Leave it out.")
        return None
    if given is None:
        told = "clades" if model.clades else f"the tree prior '{model.tree_prior.name}'"
        raise InputError(f"with {told} only sampling the prior tells what it adds up to", hint=_HOW)
    prefix = f"{given.removesuffix('.json').removesuffix('.ss')}.ss"
    file = f"{prefix}.json"
    try:
        record = json.loads(Path(file).read_text())
        found = PriorConstant(record["log_prior_constant"], record["standard_error"], file)
        identity, _ = stored_samples(prefix)
    except (OSError, ValueError, KeyError, TypeError):
        told = "this is no finished stepping-stone analysis of a prior"
        raise InputError(told, file=file, hint=_HOW) from None
    own = {name: value for name, value in identity.items() if name not in _OF_WORKING}
    here = replace(settings, chains=replace(settings.chains, working=None))
    require_same_space(time_identity(here, model), own, TimeSettings, file)
    return found

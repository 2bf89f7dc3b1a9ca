"""Options of `phloem mcmc` and `phloem time` that an analysis would pass over: each is refused, with what to
do instead, before anything is computed. What needs no data is checked where settings are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from phloem.analysis.model_file import require_gamma_used
from phloem.density.parts import PartModel
from phloem.errors import InputError, require_count
from phloem.inference.mcmc.settings import THRESHOLDS, Convergence

if TYPE_CHECKING:
    from phloem.analysis.mcmc_record import McmcSettings
    from phloem.analysis.reading import SampledDataOptions
    from phloem.analysis.time_record import TimeTreeSettings


class Unused(NamedTuple):
    """option: with its value where others are obeyed. given: and without any effect. about: what it is
    about, and why there is none of that."""

    option: str
    given: bool
    about: str
    remedy: str


_OF_DATA = ("site-table", "ancestral", "predictive")
_WITHOUT_DATA = ("the data, and --prior-only ignores them", "Leave it or --prior-only out.")


def require_mcmc_obeyed(settings: McmcSettings, kinds: Sequence[str], models: Sequence[PartModel]) -> None:
    """InputError for an option of `phloem mcmc` that changes nothing. kinds: of the data of all parts."""
    chains, changed = settings.chains, _changed(settings.chains.convergence)
    of_trees = {
        "report": settings.report,
        "outgroup": settings.outgroup is not None,
        "consensus": settings.consensus != "majority",
    }
    of_data = {name: bool(getattr(settings, name.replace("-", "_"))) for name in _OF_DATA}
    of_trees |= of_data
    _refuse(
        [
            *_of_posterior(chains.stones, [*changed, *(name for name, given in of_trees.items() if given)]),
            *(Unused(name, given and not chains.use_data, *_WITHOUT_DATA) for name, given in of_data.items()),
            _of_agreement(changed, chains.n_runs),
            _of_stones(settings.stones_from, chains.stones),
            Unused(
                "precision float32",
                chains.precision == "float32" and (settings.device == "cpu" or not chains.use_data),
                "likelihoods on a GPU; chains on a CPU have float64",
                "Choose --device gpu and data, or leave it out.",
            ),
            *_of_characters(settings, kinds, models),
        ]
    )
    if settings.predictive:
        require_count("predictive", settings.predictive)
    require_gamma_used(settings.gamma, [part.model for part in models])


def _changed(wanted: Convergence) -> list[str]:
    """Options of thresholds that are others than usual."""
    usual = Convergence()
    changed = (name for name, own in THRESHOLDS.items() if getattr(wanted, own) != getattr(usual, own))
    return [name.replace("_", "-") for name in changed]


def _of_agreement(changed: Sequence[str], n_runs: int) -> Unused:
    return Unused(
        "asdsf",
        "asdsf" in changed and n_runs == 1,
        "how runs agree, and there is one",
        "Ask for several --runs, or leave it out.",
    )


def _of_characters(
    settings: SampledDataOptions, kinds: Sequence[str], models: Sequence[PartModel]
) -> list[Unused]:
    """kinds: of the data of every part."""
    return [
        Unused(
            "asc mrbayes",
            settings.asc == "mrbayes" and not any(part.model.unseen for part in models),
            "+ASC, and no model here has it",
            "Add +ASC to the model, or leave --asc out.",
        ),
        Unused(
            f"character-states {settings.character_states}",
            settings.character_states != "own" and "standard" not in kinds,
            f"standard characters, and the data are {' and '.join(dict.fromkeys(kinds))}",
            "Add --datatype standard, or leave it out.",
        ),
    ]


def require_time_obeyed(
    settings: TimeTreeSettings, kinds: Sequence[str], models: Sequence[PartModel]
) -> None:
    """InputError for an option of `phloem time` that changes nothing."""
    tree, chains, changed = settings.tree, settings.chains, _changed(settings.chains.convergence)
    have_spread = ("ucln", "autocorrelated") if tree.clock_sd == "log" else ("ucln",)
    of_trees = ["summary-tree"] if settings.summary_tree != "mcc" else []
    _refuse(
        [
            *_of_posterior(chains.stones, [*changed, *of_trees]),
            _of_stones(settings.stones_from, chains.stones),
            Unused(
                "prior-constant",
                settings.prior_constant is not None
                and not (settings.stones_from is not None and chains.use_data),
                "marginal likelihoods by stones from a working distribution",
                "Add --stones-from, without --prior-only, or leave it out.",
            ),
            _of_agreement(changed, chains.n_runs),
            *_of_characters(settings, kinds, models),
            Unused(
                f"clock-sd {tree.clock_sd}",
                tree.clock_sd != "cv" and tree.clock not in have_spread,
                f"the spread of --clock {' or '.join(have_spread)}, and the clock is {tree.clock}",
                "Leave it out, or choose --clock ucln.",
            ),
            Unused(
                "engine ancestors",
                settings.engine == "ancestors" and not chains.use_data,
                "sequences, and --prior-only ignores them",
                "Leave one of the two out.",
            ),
        ]
    )
    for option, texts in (("prior", settings.prior), ("calibrate", settings.calibrate)):
        names = [text.partition("=")[0].strip() for text in texts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"--{option} says two things of '{twice}'", hint="Leave one of them out.")
    require_gamma_used(settings.gamma, [part.model for part in models])


def _of_posterior(stones: int, given: Iterable[str]) -> list[Unused]:
    about = "samples of a posterior, and stepping stones leave none"
    return [Unused(name, stones > 0, about, "Leave it or --stepping-stone out.") for name in given]


def _of_stones(stones_from: str | None, stones: int) -> Unused:
    about = "stepping stones, and there are none"
    remedy = "Add --stepping-stone 10, or leave it out."
    return Unused("stones-from", stones_from is not None and not stones, about, remedy)


def _refuse(options: Iterable[Unused]) -> None:
    for one in options:
        if one.given:
            raise InputError(f"--{one.option} is about {one.about}", hint=one.remedy)

"""The search of `phloem ml`, and the replicates of its bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_settings import MlSettings, replicates_of
from phloem.hardware.ranks import Ranks
from phloem.model.model import Model
from phloem.model.record import ParameterValue
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.bootstrap import Resampling
    from phloem.inference.ml.branch_tests import SupportSettings
    from phloem.inference.ml.identical import Distinct
    from phloem.inference.ml.replicates import Replicates
    from phloem.inference.ml.search_result import SearchResult, SearchSettings
    from phloem.inference.ml.search_state import Checkpoint, Told
    from phloem.inference.ml.searched import Searched
    from phloem.inference.ml.tree_starts import Start


def searched(
    data: MlData,
    named: tuple[list[str], list[Model]],
    start: Start,
    of_search: SearchSettings,
    of_supports: SupportSettings,
    told: Told | None,
    here: Ranks | None,
    checkpoint: Checkpoint | None,
) -> tuple[SearchResult, list[Tree] | None, Replicates | None]:
    """named: model strings and models. What was found, trees of the standard bootstrap, and what files of
    replicates need."""
    from phloem.inference.ml.tree_search import search

    settings, (texts, models) = data.settings, named
    of_data = data.searched(models)
    found = search(of_data, start, of_search, told, of_supports, checkpoint, here)
    resampled = data.resampling(texts, models), of_data.values_of(found.optimum)
    drawn = _bootstrapped(settings, *resampled, found, of_search, told, here, checkpoint)
    return found, drawn, _together(settings, of_data, found, drawn, data.rows)


def _bootstrapped(
    settings: MlSettings,
    resampling: Resampling,
    values: Mapping[str, ParameterValue],
    found: SearchResult,
    of_search: SearchSettings,
    told: Told | None,
    here: Ranks | None,
    checkpoint: Checkpoint | None,
) -> list[Tree] | None:
    """Trees of the distinct sequences, None unless asked for."""
    from phloem.inference.ml.bootstrap import bootstrap_trees
    from phloem.inference.ml.search_state import Doing

    replicates, value = replicates_of(settings), found.optimum.log_likelihood
    if replicates is None:
        return None

    left: Literal["about", "at most"] = "at most" if replicates == "auto" else "about"

    def counted(k: int, most: int) -> None:
        if told is not None:
            told(Doing("bootstrap", k, most, f"bootstrap {k} of {most}", left), value)

    journal = None if checkpoint is None else checkpoint.replicates(values)
    return bootstrap_trees(resampling, values, replicates, of_search, counted, here, journal)


def _together(
    settings: MlSettings, data: Searched, found: SearchResult, drawn: list[Tree] | None, rows: Distinct
) -> Replicates | None:
    """Of the ultrafast bootstrap, else the standard one; None unless files of it are wanted."""
    from phloem.inference.ml.bootstrap import split_shares
    from phloem.inference.ml.branch_tests import UFBOOT
    from phloem.inference.ml.replicates import (
        Replicates,
        extended_consensus,
        inner_shares,
        with_fitted_lengths,
    )

    if not (settings.iqtree_files and (settings.ufboot or drawn is not None)):
        return None
    own = found.supports.get(UFBOOT, {}) if settings.ufboot else split_shares(drawn or ())
    shares, best = inner_shares(own, found.optimum.tree.n_tips), found.optimum
    consensus = extended_consensus(shares, best.tree.taxa)
    fitted = with_fitted_lengths(consensus, data, best, settings.threads)
    return Replicates(shares, rows.put_back(fitted))

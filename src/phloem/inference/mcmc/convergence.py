"""Have the runs found the same distribution, and enough of it? Does any move or chain never accept?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, log1p

import numpy as np

from phloem.inference.mcmc.run import Run
from phloem.inference.mcmc.samples import Samples, choices_of
from phloem.inference.mcmc.settings import Convergence
from phloem.inference.mcmc.undefined import undefined_warnings
from phloem.summary.splits import SplitTable, split_frequency_deviation, split_table
from phloem.summary.spread import first_used
from phloem.summary.trace import mixing

# Have the runs found the same distribution, and enough of it? Topologies count as much as numbers.


@dataclass(frozen=True)
class Diagnosis:
    """asdsf: average standard deviation of split frequencies, NaN for one run. ess: smallest bulk ESS,
    r_hat: largest R̂, over the trace's numbers and over splits of uncertain presence, models too where chains
    choose among them; limiting: what holds the smallest ESS. met: whether every threshold holds. n_draws: a
    run, after the burn-in. forecast: the generation at which they would hold if ESS goes on growing with the
    samples, R̂ - 1 falling as they grow, and ASDSF as their root; NaN where too little is known, and
    where that is never."""

    generation: int
    n_draws: int
    asdsf: float
    ess: float
    r_hat: float
    limiting: str
    met: bool
    forecast: float = np.nan

    @property
    def text(self) -> str:
        """In a few words."""
        state = "converged" if self.met else "not converged"
        numbers = f"ASDSF {self.asdsf:.4g}, smallest ESS {self.ess:.0f}, R-hat {self.r_hat:.4g}"
        return f"{self.generation:,} generations, {state}: {numbers}"


_LOOKS = 1 / log1p(0.05)
_NEVER = 1e12  # generations


def looks_at(generation: int, check_every: int, end: int) -> bool:
    """Whether convergence is looked at there: early at every checkpoint, later where the run is some 5 %
    longer than at the last look, so that looking costs a share of the sampling however long it is; and at the
    end. It depends on the generation alone, so that a resumed run stops where an uninterrupted one does."""
    if generation % check_every or generation >= end:
        return generation >= end
    before = generation - check_every
    return before <= 0 or int(log(generation) * _LOOKS) > int(log(before) * _LOOKS)


def kept(samples: Samples, burn_in: float, tuning: int) -> int:
    """Index of the first sample that summaries use: after the burn-in fraction, and after the tuning."""
    return first_used(samples.generation, burn_in, tuning)


def diagnose(
    samples: Sequence[Samples],
    names: tuple[str, ...],
    taxa: tuple[str, ...],
    first: int,
    thresholds: Convergence,
) -> Diagnosis:
    """Compare the runs from sample `first` on. names: of the columns of samples[r].numbers."""
    generation, n_draws = int(samples[0].generation[-1]), samples[0].n - first
    if n_draws < 4:
        return Diagnosis(generation, max(n_draws, 0), np.nan, np.nan, np.nan, "too few samples", False)
    table = split_table([s.tree_sample(taxa, first) for s in samples])
    asdsf = np.nan
    if len(samples) > 1:
        often = float(table.probability[~table.trivial].max(initial=0.0))  # of a prior no split may be
        least = min(thresholds.min_split_frequency, often / 2)
        asdsf = split_frequency_deviation(table, least).average
    draws = np.stack([s.numbers[first:] for s in samples])
    numbers = [i for i, name in enumerate(names) if not choices_of(name)]
    models, chosen = _model_presence(names, draws, thresholds.min_split_frequency)
    presence, labels = split_presence(table, len(samples), n_draws, thresholds.min_split_frequency)
    ess, r_hat = mixing(np.concatenate([draws[:, :, numbers], models, presence], axis=2))
    which = [*(names[i] for i in numbers), *chosen, *labels]
    if not (np.isfinite(ess).any() and np.isfinite(r_hat).any()):
        why = "too few samples" if np.ptp(draws, axis=1).any() else "nothing moves"
        return Diagnosis(generation, n_draws, asdsf, np.nan, np.nan, why, False)
    worst = int(np.nanargmin(ess))
    met = bool(
        np.nanmin(ess) > thresholds.ess
        and np.nanmax(r_hat) < thresholds.r_hat
        and (len(samples) == 1 or asdsf < thresholds.asdsf)
    )
    found = Diagnosis(
        generation, n_draws, asdsf, float(np.nanmin(ess)), float(np.nanmax(r_hat)), which[worst], met
    )
    return replace(found, forecast=_forecast(found, thresholds))


def _forecast(now: Diagnosis, thresholds: Convergence) -> float:
    """Diagnosis.forecast. A threshold of zero is never met."""
    if now.met:
        return float(now.generation)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        longer = np.array(
            [
                np.float64(thresholds.ess) / now.ess,
                (now.r_hat - 1) / np.float64(thresholds.r_hat - 1),
                (now.asdsf / np.float64(thresholds.asdsf)) ** 2,
            ]
        )
    needed = now.generation * max(float(np.nanmax(longer)), 1.0)
    return needed if needed < _NEVER and thresholds.r_hat > 1 else np.nan


def _model_presence(names: Sequence[str], draws: np.ndarray, minimum: float) -> tuple[np.ndarray, list[str]]:
    """(n_runs, n, m) 0/1 of every model among which the chains choose whose probability lies within [minimum,
    1 - minimum], and a name for each; what stands for it in the trace is a number without an order."""
    found, labels = [np.zeros((*draws.shape[:2], 0))], []
    for column, name in enumerate(names):
        for k, model in enumerate(choices_of(name)):
            present = draws[:, :, column] == k
            if minimum <= present.mean() <= 1 - minimum:
                found.append(present[:, :, None].astype(np.float64))
                labels.append(f"{name} {model}")
    return np.concatenate(found, axis=2), labels


def split_presence(
    table: SplitTable, n_runs: int, n_draws: int, minimum: float
) -> tuple[np.ndarray, list[str]]:
    """(n_runs, n, m) 0/1 of every split whose frequency lies within [minimum, 1 - minimum], and a name for
    each."""
    uncertain = np.flatnonzero(
        ~table.trivial & (table.probability >= minimum) & (table.probability <= 1 - minimum)
    )
    presence = np.zeros((n_runs * n_draws, len(uncertain)))
    for column, split in enumerate(uncertain):
        presence[:, column] = (table.which == split).any(axis=1)
    labels = [f"a split of {size} taxa" for size in table.sizes[uncertain]]
    return presence.reshape(n_runs, n_draws, len(uncertain)), labels


# Agreement that says little: runs that began alike, modes that are hardly ever left.


ALIKE = 0.5  # of the splits of starting trees
FEW, MANY = 50.0, 200.0  # effective samples of a split, and of the log-likelihood


def weak_evidence(
    samples: Sequence[Samples], taxa: tuple[str, ...], first: int, fixed_topology: bool = False
) -> list[str]:
    """One sentence where the runs' first trees share most of their splits, and one where the presence of some
    split has few effective samples although the log-likelihood has many: modes are rarely crossed, and runs
    that agree may all have missed some."""
    told = []
    starts = split_table([s.tree_sample(taxa).select(slice(1)) for s in samples])
    own = [set(row[row >= 0].tolist()) - set(np.flatnonzero(starts.trivial)) for row in starts.which]
    shared = [len(a & b) / max(len(a), 1) for i, a in enumerate(own) for b in own[i + 1 :]]
    if len(taxa) > 5 and not fixed_topology and shared and np.mean(shared) >= ALIKE:
        told.append(
            f"the runs started at trees that share {np.mean(shared):.0%} of their splits, so that their "
            "agreement says little; start from random trees (--start random)"
        )
    n_draws = samples[0].n - first
    if n_draws < 4:
        return told
    table = split_table([s.tree_sample(taxa, first) for s in samples])
    presence, labels = split_presence(table, len(samples), n_draws, Convergence().min_split_frequency)
    draws = np.stack([s.numbers[first:, :1] for s in samples])
    ess, _ = mixing(np.concatenate([draws, presence], axis=2))
    rare = np.flatnonzero((ess[1:] < FEW) & (ess[0] > MANY))
    if len(rare):
        worst = rare[np.argmin(ess[1:][rare])]
        told.append(
            f"trees with and without {labels[worst]} are rarely exchanged (ESS {ess[1 + worst]:.0f}, where "
            f"the log-likelihood has {ess[0]:.0f}; {len(rare)} such split(s)): runs may have missed "
            "other trees; take more chains, more heating, or more runs"
        )
    return told


# Moves and chains that never accept anything: a sign of a stuck analysis, or of a broken one.


ENOUGH_TRIES = 2000


def frozen_warnings(runs: Sequence[Run]) -> list[str]:
    """One sentence for each move that the cold chain tried often and never saw accepted, each rank of the
    heat ladder where nothing is, and each run whose cold chain never swapped, or which had proposals that
    nobody can judge."""
    warnings = []
    for run in runs:
        tried, accepted = run.state.tried, run.state.accepted
        label = f"run {run.number + 1}"
        for m in np.flatnonzero((tried[0] >= ENOUGH_TRIES) & (accepted[0] == 0)):
            warnings.append(
                f"{label}: move {run.moves[m].name} was tried {tried[0, m]:,} times and never accepted"
            )
        warnings += heat_warnings(label, tried, accepted, run.state.swaps_tried, run.state.swaps_accepted)
    return [*warnings, *undefined_warnings(runs)]


def heat_warnings(
    label: str, tried: np.ndarray, accepted: np.ndarray, swaps_tried: np.ndarray, swaps_accepted: np.ndarray
) -> list[str]:
    """Of the heat ladder of one run: moves (H, M) and swaps (H, H) by ranks of heat, tried and accepted."""
    warnings = []
    for rank in np.flatnonzero((tried.sum(axis=1) >= ENOUGH_TRIES) & (accepted.sum(axis=1) == 0)):
        warnings.append(f"{label}: the chain of heat rank {rank} accepted nothing")
    swaps = swaps_tried[0].sum(), swaps_accepted[0].sum()
    if swaps[0] >= ENOUGH_TRIES and swaps[1] == 0:
        warnings.append(f"{label}: the cold chain never swapped; lower the heating")
    return warnings


def swap_shares(tried: np.ndarray, accepted: np.ndarray) -> tuple[float, ...]:
    """Accepted shares of swaps between neighbouring ranks of heat, of (H, H) counts; NaN of none."""
    return tuple(
        float(accepted[r, r + 1] / tried[r, r + 1]) if tried[r, r + 1] else float("nan")
        for r in range(len(tried) - 1)
    )

"""Numbers of a sampler's trace, summarised: mean, spread, 95% HPD, effective sample size and R̂."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.errors import InputError


def hpd_interval(values: np.ndarray, mass: float = 0.95) -> tuple[float, float]:
    """The shortest interval that holds a share mass of the values (Chen and Shao 1999, JCGS 8:69)."""
    ordered = np.sort(values)
    held = min(int(np.ceil(mass * len(ordered))), len(ordered))
    widths = ordered[held - 1 :] - ordered[: len(ordered) - held + 1]
    start = int(np.argmin(widths))
    return float(ordered[start]), float(ordered[start + held - 1])


def digits_text(value: float, sd: float) -> str:
    """At least five digits, and down to the second of its spread: dates that are known to days are not told
    as years."""
    digits = 5
    if 0.0 < sd < abs(value) < np.inf:
        digits = int(np.floor(np.log10(abs(value))) - np.floor(np.log10(sd))) + 2
    return f"{value:.{min(max(digits, 5), 15)}g}"


MOST_ROWS = 40  # of a table that Python shows


@dataclass(frozen=True, eq=False)
class TraceSummary:
    """One row a name; all arrays (k,).

    mean, sd: over the pooled draws of all runs. hpd_low, hpd_high: shortest interval that holds `mass` of
    them. ess: bulk, ess_tail: of the 5% and 95% quantiles; r_hat: rank-normalised split R̂. mcse: Monte Carlo
    standard error of the mean. ess and r_hat are NaN for a number that never changed, and r_hat for a single
    run is that of its quarters.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    hpd_low: np.ndarray
    hpd_high: np.ndarray
    ess: np.ndarray
    ess_tail: np.ndarray
    r_hat: np.ndarray
    mcse: np.ndarray
    mass: float = 0.95

    def __repr__(self) -> str:
        """A table of the first numbers."""
        shown, wide = self.names[:MOST_ROWS], max(9, *map(len, self.names[:MOST_ROWS]))
        heads = "mean", f"{100 * self.mass:g}% HPD from", "to", "ESS", "R-hat"
        rows = [f"{'':{wide}}" + "".join(f"{head:>14}" for head in heads)]
        for i, name in enumerate(shown):
            cells = *self.texts(i), f"{self.ess[i]:.0f}", f"{self.r_hat[i]:.4f}"
            rows.append(f"{name:{wide}}" + "".join(f"{cell:>14}" for cell in cells))
        more = len(self.names) - len(shown)
        return "\n".join([*rows, f"… {more:,} more"] if more else rows)

    def texts(self, i: int) -> tuple[str, ...]:
        """Mean and ends of the interval of a number, to be read."""
        values = self.mean[i], self.hpd_low[i], self.hpd_high[i]
        return tuple(digits_text(x, self.sd[i]) for x in values)


def trace_summary(names: tuple[str, ...], draws: np.ndarray, mass: float = 0.95) -> TraceSummary:
    """Summarise draws (n_runs, n, k) of k numbers, burn-in already left out.

    ESS and R̂ after Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021 (Bayesian Analysis 16:667), by
    arviz-stats. InputError for fewer than four draws a run.
    """
    if draws.ndim != 3 or draws.shape[2] != len(names):
        raise InputError(f"a trace of shape {draws.shape} does not hold {len(names)} numbers of several runs")
    if draws.shape[1] < 4:
        raise InputError(
            f"only {draws.shape[1]} samples a run are left after the burn-in",
            hint="Run for more generations.",
        )
    pooled = draws.reshape(-1, draws.shape[2])
    intervals = np.array([hpd_interval(column, mass) for column in pooled.T]).reshape(-1, 2)
    ess, r_hat = mixing(draws)
    tail, _ = mixing(draws, "tail")
    from_first = pooled - pooled[0]  # so that a number that is held has its own value as mean, and no spread
    sd = from_first.std(axis=0, ddof=1)
    return TraceSummary(
        names=tuple(names),
        mean=pooled[0] + from_first.mean(axis=0),
        sd=sd,
        hpd_low=intervals[:, 0],
        hpd_high=intervals[:, 1],
        ess=ess,
        ess_tail=tail,
        r_hat=r_hat,
        mcse=sd / np.sqrt(ess),
        mass=mass,
    )


def mixing(draws: np.ndarray, part: Literal["bulk", "tail"] = "bulk") -> tuple[np.ndarray, np.ndarray]:
    """ESS of the bulk, or of the 5% and 95% quantiles, and R̂ of draws (n_runs, n, k), each (k,); NaN
    where a number never changed."""
    from arviz_stats.base import array_stats  # half a second to load: only a summary pays for it

    ess, r_hat = np.full(draws.shape[2], np.nan), np.full(draws.shape[2], np.nan)
    moving = np.flatnonzero(np.ptp(draws, axis=(0, 1)) > 0)
    if len(moving):
        x = np.ascontiguousarray(np.moveaxis(draws[:, :, moving], 2, 0))
        quantiles = {} if part == "bulk" else {"prob": (0.05, 0.95)}
        with np.errstate(divide="ignore", invalid="ignore"):
            ess[moving] = array_stats.ess(x, chain_axis=1, draw_axis=2, method=part, **quantiles)
            if len(draws) == 1:  # the library wants two chains, and splits each once more
                x = x[:, 0, x.shape[2] % 2 :].reshape(len(moving), 2, -1)
            r_hat[moving] = array_stats.rhat(x, chain_axis=1, draw_axis=2, method="rank")
    return ess, r_hat

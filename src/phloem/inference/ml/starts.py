"""Where an optimiser starts: several places for parameters whose likelihood has several peaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.model.record import Parameter, ParameterValue
from phloem.model.site_rates import gamma_rates

Start = dict[str, ParameterValue]


def restarts(free: Sequence[Parameter]) -> list[Start]:
    """Values that replace the parameters' own starts, one dictionary a run.

    alpha and p_invariable trade off against each other (Yang 1993; Jia, Lo and Ho 2014), and mixtures of free
    rates have several peaks: these are tried from few and many invariable sites, strong and weak variation.
    """
    names = {p.name: p for p in free}
    selected = [name for name in ("omega_3", "omega_s") if name in names]
    if selected and "mixture_weights" in names:
        return _positive_selection(selected[0], names["mixture_weights"].size)
    if "rates" in names and "weights" in names:
        return _free_rates(names["rates"].size, "p_invariable" in names)
    if "alpha" in names and "p_invariable" in names:
        return [{"alpha": a, "p_invariable": p} for a, p in ((1.0, 0.2), (0.3, 0.01), (3.0, 0.5))]
    if "alpha" in names:
        return [{"alpha": 1.0}, {"alpha": 0.2}]
    if "p_invariable" in names:
        return [{"p_invariable": 0.1}, {"p_invariable": 0.5}]
    return [{}]


def _positive_selection(omega: str, n: int) -> list[Start]:
    """Many sites a little above 1, or few far above (M2a and M8 have both peaks; Yang et al. 2000)."""
    starts: list[Start] = []
    for value, share in ((1.2, 0.2), (4.0, 0.03)):
        rest = np.array([1.0, 0.5][: n - 1])
        starts.append({omega: value, "mixture_weights": np.append((1 - share) * rest / rest.sum(), share)})
    return starts


def _free_rates(n: int, invariable: bool) -> list[Start]:
    starts: list[Start] = []
    for alpha in (1.0, 0.4, 0.15):
        rates = np.maximum(gamma_rates(alpha, n, "mean"), 1e-3)
        starts.append({"rates": rates, "weights": np.full(n, 1.0 / n)})
    falling = np.arange(n, 0, -1.0)
    starts.append({"rates": 3.0 ** np.arange(n), "weights": falling / falling.sum()})
    shares = (0.2, 0.01, 0.4, 0.1)
    return [start | {"p_invariable": p} for start, p in zip(starts, shares)] if invariable else starts


def one_class_more(values: Start) -> list[Start]:
    """Free rates of one class more: the class of most sites, or the fastest, cut in two."""
    rates, weights = np.asarray(values["rates"], np.float64), np.asarray(values["weights"], np.float64)
    starts: list[Start] = []
    for k in dict.fromkeys((int(np.argmax(weights)), int(np.argmax(rates)))):
        cut = np.append(np.where(np.arange(len(rates)) == k, 0.5 * rates, rates), 1.6 * rates[k])
        share = np.append(np.where(np.arange(len(rates)) == k, 0.5 * weights, weights), 0.5 * weights[k])
        order = np.argsort(cut)
        start: dict[str, ParameterValue] = {"rates": cut[order], "weights": share[order]}
        if "p_invariable" in values:
            start["p_invariable"] = values["p_invariable"]
        starts.append(start)
    return starts

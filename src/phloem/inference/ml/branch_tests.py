"""Support of branches by resampled log-likelihoods of sites (RELL; Kishino, Miyata and Hasegawa 1990)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import erfc

from phloem.errors import InputError
from phloem.inference.ml.constrained_messages import Messages, unconstrained
from phloem.inference.ml.ultrafast import climb_each, ultrafast
from phloem.tree.half_edges import HalfEdges, branch_splits

# What a replicate is drawn of: sites of every part; whole parts; parts, and in every one drawn its sites.
Sampling = Literal["site", "gene", "genesite"]

ALRT, PARAMETRIC, LOCAL, ABAYES, UFBOOT = "SH-aLRT", "aLRT", "LBP", "aBayes", "UFBoot"
_ALRT_STREAM, _UFBOOT_STREAM = 1, 2  # of random numbers
_AT_A_TIME = 64  # branches, whose resolutions' sites are held together

# Half of the 0.1 that other programs ask for on the scale of likelihood ratios: branches whose alternatives
# are as good would else be supported by rounding.
_AHEAD = 0.05
_FITTED = 0.01  # log units, as far as lengths are fitted: what is not farther behind is equal


def resampled_weights(
    weights: Sequence[np.ndarray], n_replicates: int, seed: int, stream: int, sampling: Sampling = "site"
) -> np.ndarray:
    """(R, P) how often every pattern is drawn, in every part of the data as often as it has sites.

    weights: (P_part,) of every part. stream: draws for another purpose are others.
    """
    rng = np.random.default_rng([seed, stream])
    draws = []
    if sampling == "site":
        draws = [rng.multinomial(int(own.sum()), own / own.sum(), n_replicates) for own in weights]
    else:
        times = rng.multinomial(len(weights), np.full(len(weights), 1 / len(weights)), n_replicates)
        for own, n in zip(weights, times.T):
            sites = n * int(own.sum())
            draws.append(n[:, None] * own if sampling == "gene" else rng.multinomial(sites, own / own.sum()))
    return np.concatenate(draws, axis=1).astype(np.float64)


def sh_alrt(values: np.ndarray, sites: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(n,) SH-like support of branches, 0 to 1 (Guindon et al. 2010, Syst. Biol. 59:307).

    values (n, 3), sites (n, 3, P): of the three resolutions around each branch, the tree's own first.
    counts: (R, P), weights of resampled patterns. A branch is supported by a replicate where the tree is
    farther ahead of the next resolution than the best of the replicate's centred sums is of its second.
    """
    result = np.zeros(len(values))
    for i, (value, by_pattern) in enumerate(zip(values, sites)):
        ahead = value[0] - value[1:].max()
        centred = np.sort(counts @ by_pattern.T - value, axis=1)
        result[i] = np.mean(ahead > centred[:, 2] - centred[:, 1] + _AHEAD)
    return result


def parametric_alrt(values: np.ndarray) -> np.ndarray:
    """(n,) 1 less the P-value of the likelihood ratio test that a branch has no length (Anisimova and Gascuel
    2006, Syst. Biol. 55:539): twice what the tree's own resolution is ahead of the next one, beside the
    largest of three numbers, one a resolution, each of half χ² with one degree of freedom and half 0. Where
    the three are equally likely it is 1/8, and 0 where another one is ahead.

    values (n, 3): log-likelihoods of the resolutions around each branch, the tree's own first.
    """
    ahead = values[:, 0] - values[:, 1:].max(1)
    each = 1.0 - 0.5 * erfc(np.sqrt(np.maximum(ahead, 0.0)))  # P(χ² > 2a) = erfc(√a)
    return np.where(ahead < -_FITTED, 0.0, each**3)


def local_bootstrap(sites: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(n,) share of replicates in which the tree's own one of three resolutions is ahead of both others
    (Adachi and Hasegawa 1996, MOLPHY 2.3). sites (n, 3, P): by pattern, own first; counts: (R, P)."""
    sums = [counts @ by_pattern.T for by_pattern in sites]
    return np.array([np.mean(one[:, 0] > one[:, 1:].max(1)) for one in sums])


def a_bayes(values: np.ndarray) -> np.ndarray:
    """(n,) approximate Bayes supports (Anisimova et al. 2011, Syst. Biol. 60:685): the probability of the
    tree's own one of three resolutions around a branch, each as probable before and at its best lengths.

    values (n, 3): their log-likelihoods, the tree's own first.
    """
    return 1.0 / np.exp(np.minimum(values - values[:, :1], 700.0)).sum(1)


@dataclass(frozen=True)
class SupportSettings:
    """alrt, lbp, ufboot: replicates, 0 for none. bnni: climb from every tree of the ultrafast bootstrap with
    the replicate's own weights. sampling: of the replicates. abayes, parametric_alrt: whether wanted."""

    alrt: int = 0
    ufboot: int = 0
    bnni: bool = False
    sampling: Sampling = "site"
    abayes: bool = False
    parametric_alrt: bool = False
    lbp: int = 0

    @property
    def any(self) -> bool:
        return bool(self.local or self.ufboot)

    @property
    def local(self) -> tuple[str, ...]:
        """Names of those that compare the three resolutions around a branch, in the order of the labels."""
        names = ALRT, PARAMETRIC, LOCAL, ABAYES
        wanted = self.alrt, self.parametric_alrt, self.lbp, self.abayes
        return tuple(name for name, asked in zip(names, wanted) if asked)

    def __post_init__(self) -> None:
        if self.ufboot and self.ufboot < 1000:
            raise InputError(
                f"{self.ufboot} replicates of the ultrafast bootstrap",
                hint="Give 1000 or more: they are cheap.",
            )
        for name, replicates in ((ALRT, self.alrt), (LOCAL, self.lbp)):
            if replicates and replicates < 100:
                hint = "Give 100 or more: they are cheap."
                raise InputError(f"{replicates} replicates of {name}", hint=hint)
        if self.bnni and not self.ufboot:
            raise InputError("--bnni is about the ultrafast bootstrap", hint="Add --ufboot 1000.")


def branch_supports(
    messages: Messages,
    weights: Sequence[np.ndarray],
    hilltops: Sequence[HalfEdges],
    settings: SupportSettings,
    seed: int,
    radius: int,
    only: Collection[bytes] | None = None,
) -> dict[str, dict[bytes, float]]:
    """By name of the support, in the order of the labels (SupportSettings.local, UFBOOT), its share by split
    (half_edges.branch_splits); UFBOOT's also of splits that only replicates have.

    messages: have the model; all but UFBoot compare with all neighbours, UFBoot's trees obey a constraint
    that they have. weights: of the data, part by part. hilltops: the tree that is supported first. only:
    splits of the inner branches that are to be supported; None for all.
    """
    result = _local_supports(messages, weights, hilltops[0], settings, seed, only) if settings.local else {}
    if settings.ufboot:
        counts = resampled_weights(weights, settings.ufboot, seed, _UFBOOT_STREAM, settings.sampling)
        rng = np.random.default_rng([seed, _UFBOOT_STREAM, 1])
        replicates = ultrafast(messages, hilltops, counts, rng, radius)
        if settings.bnni:
            replicates = climb_each(messages, replicates, counts, np.concatenate(weights))
        splits = branch_splits(hilltops[0].back)[1]
        result[UFBOOT] = dict.fromkeys((split.tobytes() for split in splits), 0.0) | replicates.frequencies()
    return result


def _local_supports(
    messages: Messages,
    weights: Sequence[np.ndarray],
    tree: HalfEdges,
    settings: SupportSettings,
    seed: int,
    only: Collection[bytes] | None,
) -> dict[str, dict[bytes, float]]:
    """Those of the three resolutions around every branch, each with the five lengths around fitted."""
    (back, lengths), n_tips = tree, tree.n_tips
    order, splits = branch_splits(back)
    drawn = {
        name: resampled_weights(weights, n, seed, _ALRT_STREAM, settings.sampling)
        for name, n in ((ALRT, settings.alrt), (LOCAL, settings.lbp))
        if n
    }
    messages.fill(back, lengths, order)
    inner = np.flatnonzero((order >= n_tips) & (back[order] >= n_tips))
    inner = np.array([k for k in inner if only is None or splits[k].tobytes() in only], np.int64)
    result: dict[str, dict[bytes, float]] = {name: {} for name in settings.local}
    for first in range(0, len(inner), _AT_A_TIME):
        part = inner[first : first + _AT_A_TIME]
        keys = [splits[k].tobytes() for k in part]
        found = unconstrained(messages).resolutions(back, lengths, order[part])
        shares = {
            ALRT: lambda f: sh_alrt(f.values, f.sites, drawn[ALRT]),
            PARAMETRIC: lambda f: parametric_alrt(f.values),
            LOCAL: lambda f: local_bootstrap(f.sites, drawn[LOCAL]),
            ABAYES: lambda f: a_bayes(f.values),
        }
        for name in settings.local:
            result[name] |= dict(zip(keys, shares[name](found).tolist()))
    return result

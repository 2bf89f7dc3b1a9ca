"""Support of branches by resampled log-likelihoods of sites (RELL; Kishino, Miyata and Hasegawa 1990)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.inference.ml.constrained_messages import Messages, unconstrained
from phloem.inference.ml.ultrafast import climb_each, ultrafast
from phloem.tree.half_edges import HalfEdges, branch_splits

# What a replicate is drawn of: sites of every part; whole parts; parts, and in every one drawn its sites.
Sampling = Literal["site", "gene", "genesite"]

ALRT, ABAYES, UFBOOT = "SH-aLRT", "aBayes", "UFBoot"
_ALRT_STREAM, _UFBOOT_STREAM = 1, 2  # of random numbers
_AT_A_TIME = 64  # branches, whose resolutions' sites are held together

# Half of the 0.1 that other programs ask for on the scale of likelihood ratios: branches whose alternatives
# are as good would else be supported by rounding.
_AHEAD = 0.05


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


def a_bayes(values: np.ndarray) -> np.ndarray:
    """(n,) approximate Bayes supports (Anisimova et al. 2011, Syst. Biol. 60:685): the probability of the
    tree's own one of three resolutions around a branch, each as probable before and at its best lengths.

    values (n, 3): their log-likelihoods, the tree's own first.
    """
    return 1.0 / np.exp(np.minimum(values - values[:, :1], 700.0)).sum(1)


@dataclass(frozen=True)
class SupportSettings:
    """alrt, ufboot: replicates, 0 for none. bnni: climb from every tree of the ultrafast bootstrap with the
    replicate's own weights. sampling: of the replicates. abayes: whether wanted."""

    alrt: int = 0
    ufboot: int = 0
    bnni: bool = False
    sampling: Sampling = "site"
    abayes: bool = False

    @property
    def any(self) -> bool:
        return bool(self.alrt or self.abayes or self.ufboot)

    def __post_init__(self) -> None:
        if self.ufboot and self.ufboot < 1000:
            raise InputError(
                f"{self.ufboot} replicates of the ultrafast bootstrap",
                hint="Give 1000 or more: they are cheap.",
            )
        if self.alrt and self.alrt < 100:
            raise InputError(f"{self.alrt} replicates of SH-aLRT", hint="Give 100 or more: they are cheap.")
        if self.bnni and not self.ufboot:
            raise InputError("--bnni is about the ultrafast bootstrap", hint="Add --ufboot 1000.")


def branch_supports(
    messages: Messages,
    weights: Sequence[np.ndarray],
    hilltops: Sequence[HalfEdges],
    settings: SupportSettings,
    seed: int,
    radius: int,
) -> dict[str, dict[bytes, float]]:
    """By name of the support, in the order of ALRT, ABAYES and UFBOOT, its share by split
    (half_edges.branch_splits); UFBOOT's also of splits that only replicates have.

    messages: have the model; SH-aLRT and aBayes compare with all neighbours, UFBoot's trees obey a constraint
    that they have. weights: of the data, part by part. hilltops: the tree that is supported first.
    """
    result: dict[str, dict[bytes, float]] = {}
    (back, lengths), n_tips = hilltops[0], hilltops[0].n_tips
    order, splits = branch_splits(back)
    if settings.alrt or settings.abayes:
        drawn = None
        if settings.alrt:
            drawn = resampled_weights(weights, settings.alrt, seed, _ALRT_STREAM, settings.sampling)
        messages.fill(back, lengths, order)
        inner = np.flatnonzero((order >= n_tips) & (back[order] >= n_tips))
        result |= {name: {} for name, wanted in ((ALRT, settings.alrt), (ABAYES, settings.abayes)) if wanted}
        for first in range(0, len(inner), _AT_A_TIME):
            part = inner[first : first + _AT_A_TIME]
            keys = [splits[k].tobytes() for k in part]
            found = unconstrained(messages).resolutions(back, lengths, order[part])
            if drawn is not None:
                result[ALRT] |= dict(zip(keys, sh_alrt(found.values, found.sites, drawn).tolist()))
            if settings.abayes:
                result[ABAYES] |= dict(zip(keys, a_bayes(found.values).tolist()))
    if settings.ufboot:
        counts = resampled_weights(weights, settings.ufboot, seed, _UFBOOT_STREAM, settings.sampling)
        rng = np.random.default_rng([seed, _UFBOOT_STREAM, 1])
        replicates = ultrafast(messages, hilltops, counts, rng, radius)
        if settings.bnni:
            replicates = climb_each(messages, replicates, counts, np.concatenate(weights))
        result[UFBOOT] = dict.fromkeys((split.tobytes() for split in splits), 0.0) | replicates.frequencies()
    return result

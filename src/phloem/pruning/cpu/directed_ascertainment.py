"""Characters that could not be observed (Lewis 2001, Syst. Biol. 50:913), as patterns of directed messages.

Of N characters, each conditional on being one that could be seen, log L = Σ w log L_p − N log(1 − S) with S
the likelihood of all that could not. For any numbers n_c of unseen characters, n in all,

    Σ w log L_p + Σ n_c log L_c + (N + n) log(N + n) − N log N − Σ n_c log n_c  ≤  log L,

equal where n_c = N L_c / (1 − S), what is expected to have gone unseen. So unseen characters are patterns
like others, with these weights: what gains under them gains at least as much in truth, and near the tree at
hand the two are alike to the first order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MOST = 1.0 - 1e-12  # of S; a tree without any length leaves nothing to be seen


class Unseen:
    """The unseen patterns of some parts, whose weights it sets.

    parts: of every part that has some, the places of its observed patterns and of the others. weights:
    of all places, the engine's own array.
    """

    def __init__(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], weights: np.ndarray) -> None:
        self._parts, self._weights = tuple(parts), weights
        self.constant = 0.0  # what is to be added to sums of weight × log-likelihood

    def __bool__(self) -> bool:
        return bool(self._parts)

    def put(self, value: float, sites: np.ndarray) -> float:
        """The log-likelihood of a tree, given what the kernels make of the weights as they were; the weights
        are then those of this tree. sites: log-likelihoods by place."""
        self.constant = 0.0
        for seen, hidden in self._parts:
            number, logs = self._weights[seen].sum(), sites[hidden]
            value -= self._weights[hidden] @ logs
            left = 1.0 - min(float(np.exp(logs).sum()), _MOST)
            value -= number * np.log(left)
            expected = number * np.exp(logs) / left
            total, own = number + expected.sum(), expected[expected > 0]
            self._weights[hidden] = expected
            self.constant += total * np.log(total) - number * np.log(number) - own @ np.log(own)
        return value

    def conditional(self, sites: np.ndarray) -> np.ndarray:
        """Log-likelihoods (…, places) given that the character can be seen, of the tree that they are of;
        0 at unseen ones. In place."""
        for seen, hidden in self._parts:
            left = 1.0 - np.minimum(np.exp(sites[..., hidden]).sum(-1, keepdims=True), _MOST)
            sites[..., seen] -= np.log(left)
            sites[..., hidden] = 0.0
        return sites

"""What a search over trees asks of directed messages, wherever they are (pruning/cpu/directed.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from phloem.model.record import SiteModel

if TYPE_CHECKING:
    from phloem.pruning.cpu.directed_insertions import Looks
    from phloem.pruning.cpu.directed_messages import Regrafts
    from phloem.pruning.cpu.directed_quartets import Resolutions


class TreeMessages(Protocol):
    """back, lengths: half_edges.HalfEdges, int64 and float64; order: half_edges.preorder. Answers are about
    the tree that they are asked of; fitted, resolutions and sweep want its messages there, from fill
    (fill_half for a sweep) or regrafts. DirectedMessages of pruning/cpu has what each one means."""

    @property
    def n_sites(self) -> float: ...

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float: ...

    def fill_half(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float: ...

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float: ...

    def sites(self) -> np.ndarray: ...

    def set_weights(self, weights: np.ndarray) -> None: ...

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts: ...

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions: ...

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks: ...


@runtime_checkable
class OneSetMessages(TreeMessages, Protocol):
    """Of one set of branch lengths: takes its models' numbers over, and what lengths are multiplied by."""

    def set_models(self, models: Sequence[SiteModel], rates: Sequence[float]) -> None: ...

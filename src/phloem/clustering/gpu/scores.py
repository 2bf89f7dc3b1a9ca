"""Tables of the score of a pair of sequences on the device."""

from __future__ import annotations

import numpy as np
import torch

from phloem.clustering.formula import ScoreTables


class DeviceScores:
    """arguments of the kernels: tables as int64, [first node, step], last node, guesses, last guess."""

    def __init__(self, scores: ScoreTables, device: torch.device):
        pairs = np.ascontiguousarray(scores.tables, np.float32).view(np.int64)[..., 0]
        nodes = torch.tensor([scores.nodes[0], scores.nodes[1] - scores.nodes[0]], dtype=torch.float64)
        guesses = torch.from_numpy(scores.guesses.astype(np.int32))
        self.arguments = (
            torch.from_numpy(pairs).to(device),
            nodes.to(device),
            len(scores.nodes) - 1,
            guesses.to(device),
            len(scores.guesses) - 1,
        )

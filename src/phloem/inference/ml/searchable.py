"""Which models a search over unrooted trees can take."""

from __future__ import annotations

import numpy as np

from phloem.errors import ModelError
from phloem.likelihood.state import ModelPoint
from phloem.model.model import Model
from phloem.model.record import ParameterValue


def refuse(model: Model) -> None:
    """ModelError for what the directed messages cannot do."""
    if not root_is_free(model):
        raise ModelError(
            f"{model.name} is not reversible, and phloem ml has unrooted trees",
            hint="Take a reversible model, such as GTR+FO+G4; on a rooted tree phloem likelihood --optimize "
            "--tree fits this one.",
        )


def refuse_classes(model: Model, where: str, hint: str) -> None:
    """ModelError for +H where no classes of sites can have branch lengths of their own."""
    if model.n_length_classes > 1:
        raise ModelError(
            f"{model.name} has {model.n_length_classes} sets of branch lengths, {where} knows one", hint=hint
        )


def root_is_free(model: Model) -> bool:
    """Whether the likelihood is the same wherever the root is put, whatever the parameters are."""
    return ModelPoint(model, _anywhere(model)).reversible


def _anywhere(model: Model) -> dict[str, ParameterValue]:
    """Values without the symmetry of the starts, at which an irreversible model may be reversible."""
    rng, values = np.random.default_rng(1), model.start_values()
    for p in model.free:
        spread = np.exp(rng.uniform(-0.3, 0.3, p.size))
        moved = np.atleast_1d(values[p.name]) * (spread if p.kind in ("positive", "simplex") else 1.0)
        moved = moved / moved.sum() if p.kind == "simplex" else np.clip(moved, p.lower, p.upper)
        values[p.name] = moved if p.elements else float(moved[0])
    return values

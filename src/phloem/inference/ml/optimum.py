"""What a fit of branch lengths and model parameters found: one record of one part, one of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from phloem.inference.ml.criteria import criteria
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.term import BlockLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.model.record import ParameterValue
from phloem.tree.tree import Tree


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best point found; the likelihood that was given stands there too.

    starting_log_likelihoods: what each start reached; of several parts last the one from the best of each
    part, and of parts that share nothing only the sum over them of the best start. converged: whether the
    last round gained less than the tolerance. largest_derivative: of log L in the coordinates of
    density/transform.py, of a number at its bound only the way back in. n_free: numbers fitted or counted in
    the data, branch lengths included (criteria.free_numbers). aic, aicc, bic: criteria.criteria.
    """

    log_likelihood: float
    starting_log_likelihoods: tuple[float, ...]
    n_free: int
    evaluations: int
    converged: bool
    largest_derivative: float
    aic: float
    aicc: float
    bic: float


@dataclass(frozen=True, eq=False)
class OptimizeResult(Optimum):
    """branch_lengths (B,) aligned with branch_names; parameters: every parameter's value; tree and model_text
    carry them."""

    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    parameters: dict[str, ParameterValue]
    tree: Tree
    model_text: str

    def __repr__(self) -> str:
        told = f"log_likelihood={self.log_likelihood:.6f}, aic={self.aic:.4f}, bic={self.bic:.4f}"
        return f"OptimizeResult({told}, converged={self.converged}, model_text={self.model_text!r})"


@dataclass(frozen=True, eq=False)
class PartitionedOptimum(Optimum):
    """part_log_likelihoods: (L,). tree, part_trees, partition_rates, parameters, model_texts: those of the
    likelihood at the optimum (PartitionedLikelihood)."""

    part_log_likelihoods: np.ndarray
    tree: Tree
    part_trees: dict[str, Tree]
    partition_rates: np.ndarray
    parameters: dict[str, dict[str, ParameterValue]]
    model_texts: dict[str, str]


@overload
def result_of(likelihood: TreeLikelihood, best: dict) -> OptimizeResult: ...
@overload
def result_of(likelihood: PartitionedLikelihood, best: dict) -> PartitionedOptimum: ...
def result_of(likelihood, best):
    """best: the fields of Optimum; the likelihood stands there."""
    if isinstance(likelihood, TreeLikelihood):
        return OptimizeResult(
            **best,
            branch_names=likelihood.branch_names,
            branch_lengths=likelihood.branch_lengths,
            parameters=likelihood.parameters,
            tree=likelihood.tree,
            model_text=likelihood.model_text,
        )
    return PartitionedOptimum(
        **best,
        part_log_likelihoods=likelihood.part_log_likelihoods(),
        tree=likelihood.tree,
        part_trees=likelihood.part_trees,
        partition_rates=likelihood.partition_rates,
        parameters=likelihood.parameters,
        model_texts=likelihood.model_texts,
    )


class Run(NamedTuple):
    """What a climb reached, where, and whether its last round gained almost nothing."""

    log_likelihood: float
    vector: np.ndarray
    converged: bool


def best_run(runs: Sequence[Run]) -> Run:
    return max(runs, key=lambda run: run.log_likelihood)


def fields_of_optimum(
    likelihood: BlockLikelihood, runs: Sequence[Run], n_free: int, evaluations: int, slope: np.ndarray
) -> dict:
    """Where the likelihood stands, the end of the best of some runs; slope: projected at bounds."""
    _order_free_rates(likelihood)
    _order_classes(likelihood)
    value, n_sites = likelihood.log_likelihood(), sum(part.n_sites for part in likelihood.part_models)
    return {
        "log_likelihood": value,
        "starting_log_likelihoods": tuple(run.log_likelihood for run in runs),
        "n_free": n_free,
        "evaluations": evaluations,
        "converged": best_run(runs).converged,
        "largest_derivative": float(np.abs(slope).max(initial=0.0)),
        **criteria(value, n_free, n_sites)._asdict(),
    }


def _order_free_rates(likelihood: BlockLikelihood) -> None:
    """Free rates as they act, with weighted mean 1, in ascending order unless each has its own process."""
    if isinstance(likelihood, TreeLikelihood):
        likelihood.set(parameters=_mean_rate_one(likelihood.parameters, likelihood.model.fused))
    elif isinstance(likelihood, PartitionedLikelihood):
        fused = [part.model.fused for part in likelihood.part_models]
        for (part, values), fixed_order in zip(likelihood.parameters.items(), fused):
            shared = [r for r in ("rates", "weights") if likelihood.linkage.parameters.get(r)]
            if len(shared) != 1:  # shared rates over weights of every part's own have no order
                likelihood.set(parameters={part: _mean_rate_one(values, fixed_order)})


def _order_classes(likelihood: BlockLikelihood) -> None:
    """Classes of sites with branch lengths of their own by rising tree length, where nothing but their
    numbers tells them apart."""
    if not isinstance(likelihood, TreeLikelihood) or not _classes_are_alike(likelihood.model):
        return
    lengths, weights = likelihood.branch_lengths, np.asarray(likelihood.parameters["weights"])
    order = np.argsort(lengths.sum(1), kind="stable")
    likelihood.set(branch_lengths=lengths[order], parameters={"weights": weights[order]})


def _classes_are_alike(model: Model) -> bool:
    """Whether a model has classes with branch lengths of their own that may change places."""
    own_weights = any(p.name == "weights" for p in model.free)
    return model.n_length_classes > 1 and not model.fused and own_weights


def _mean_rate_one(values: Mapping[str, ParameterValue], fixed_order: bool) -> dict[str, ParameterValue]:
    if "rates" not in values or "weights" not in values:
        return {}
    weights, rates = np.asarray(values["weights"]), np.asarray(values["rates"])
    order = np.arange(len(rates)) if fixed_order else np.argsort(rates)
    return {"rates": (rates / (weights @ rates))[order], "weights": weights[order]}

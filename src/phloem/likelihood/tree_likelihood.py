"""The likelihood of a tree: its value, its whole gradient, and cheap changes with accept and reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment, taxa_with_data
from phloem.data.patterns import site_patterns
from phloem.density.parameterisation import BlockValues, Parameterisation, PartGradient
from phloem.density.parts import Linkage, PartModel
from phloem.errors import InputError, NumericalError, in_file, require_type
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import (
    Gradient,
    engine_problem,
    refuse_along_sites,
    require_finite,
    require_possible,
    site_distances,
)
from phloem.likelihood.site_posteriors import site_categories
from phloem.likelihood.state import Branches, State, by_element, initial_state
from phloem.model.codon_sites import CodonSites
from phloem.model.markov_modulated import RatesOfSubstitutions
from phloem.model.model import Model
from phloem.model.record import ParameterValue
from phloem.pruning.grid import OnRanks, chosen
from phloem.pruning.interface import Evaluator
from phloem.pruning.reference.evaluator import ReferenceEvaluator
from phloem.pruning.select import Selection
from phloem.tree.layout import tree_layout
from phloem.tree.tree import Tree


class TreeLikelihood:
    """Log-likelihood of an alignment given a tree and a model, and its derivatives.

    alignment, tree: their taxa are matched by name; the tree is rooted or has a basal trifurcation.
    model: a Model, or a string such as "GTR+F+I+G4" (frequencies of a bare +F are counted in the alignment).
    engine: auto, reference (NumPy), cpu or gpu, here or on several processes (OnRanks). precision: of the
    messages; sums are float64. float32 is offered on a CPU only where it pays, from 32 states on. threads:
    None lets phloem choose. repeats: False computes every pattern at every node, for comparison.
    branch_rates: (B,) by branch, or some by name (others 1); a branch's effective length is length × rate.
    multifurcations: True resolves them by zero-length branches.

    Errors: InputError (taxa, lengths, model), ModelError on evaluation where a parameter has no value,
    NumericalError where a site is impossible, DeviceError. Branch names: tree/match.py.
    """

    def __init__(
        self,
        alignment: Alignment,
        tree: Tree,
        model: Model | str,
        engine: Literal["auto", "reference", "cpu", "gpu"] | OnRanks = "auto",
        precision: Literal["float64", "float32"] = "float64",
        threads: int | None = None,
        *,
        repeats: bool = True,
        branch_rates: Branches | None = None,
        multifurcations: bool = False,
    ) -> None:
        require_type("the alignment", alignment, Alignment, "Read it: read_alignment(file).")
        self.alignment = alignment
        self.model = model_for_alignment(model, alignment) if isinstance(model, str) else model
        self._multifurcations = multifurcations
        self._patterns = site_patterns(alignment)
        layout = tree_layout(tree, alignment.taxa, multifurcations)
        with in_file(alignment.source):
            told = precision, repeats, site_distances(self.model, alignment)
            self._problem = engine_problem(self._patterns, self.model, layout.children, *told)
        self._asked = engine, threads
        made: tuple[Selection, Evaluator] = chosen(engine, self._problem, threads)
        self.selection, self._evaluator = made
        self._accepted = initial_state(layout, self.model).changed(branch_rates=branch_rates)
        self._proposed: State | None = None
        self._evaluated = False

    def __getstate__(self) -> dict:
        """Without the engine, which is chosen anew where it is stored to (pickle, copy), nor a proposal."""
        left_out = {"selection": None, "_evaluator": None, "_proposed": None, "_evaluated": False}
        return vars(self) | left_out

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        engine, threads = self._asked
        self.selection, self._evaluator = chosen(engine, self._problem, threads)

    def __repr__(self) -> str:
        size = f"{self.alignment.n_taxa:,} taxa × {self.alignment.n_sites:,} sites"
        return f"TreeLikelihood({size}, {self.model_text}, engine {self.selection.engine})"

    @property
    def tree(self) -> Tree:
        """The tree, tips in alignment order, with the current branch lengths.

        Under +H they are the means over variable sites; trees has those of every class.
        """
        return self._tree_of(self.length_weights @ np.atleast_2d(self._accepted.lengths))

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The tree with every set of branch lengths: one, or K under +H."""
        return tuple(self._tree_of(lengths) for lengths in np.atleast_2d(self._accepted.lengths))

    @property
    def length_weights(self) -> np.ndarray:
        """(K,) how often variable sites have each set of branch lengths; sum 1."""
        model = self._accepted.point.model
        if model.n_length_classes == 1:
            return np.ones(1)
        site_model = self._accepted.point.site_model
        weights = np.bincount(site_model.length_class, site_model.weights)
        return weights / weights.sum()

    @property
    def branch_names(self) -> tuple[str, ...]:
        """B names; a branch's number is that of the node below it in tree."""
        return self._accepted.layout.names

    def subtree(self, branch: str) -> tuple[str, ...]:
        """Names of a branch and of every branch below it, as the tree is drawn; for changes to a subtree."""
        return self._accepted.layout.subtree(branch)

    @property
    def branch_lengths(self) -> np.ndarray:
        """(B,) a copy, aligned with branch_names; (K, B) where the model has K sets of lengths (+H)."""
        return self._accepted.lengths.copy()

    @property
    def branch_rates(self) -> np.ndarray:
        """(B,) a copy, aligned with branch_names."""
        return self._accepted.rates.copy()

    @property
    def parameters(self) -> dict[str, ParameterValue]:
        """Values by parameter name; parameters without a value are missing."""
        return dict(self._accepted.point.values)

    @property
    def parameters_by_element(self) -> dict[str, float]:
        """One number by element name (kappa, frequency_A, rate_1, …), as gradient().parameters has them."""
        return by_element(self.model.parameters, self._accepted.point.values)

    @property
    def model_text(self) -> str:
        """The model string with the current values."""
        return self.model.text(self._accepted.point.values)

    @property
    def root_is_free(self) -> bool:
        """Whether the likelihood is the same wherever the root is put (reversible model, stationary root)."""
        return self._accepted.point.reversible

    @property
    def taxa_with_data(self) -> np.ndarray:
        """(1, T) bool: taxa with a character that says anything."""
        return taxa_with_data(self.alignment)[None]

    @property
    def part_models(self) -> tuple[PartModel, ...]:
        """The model and its sites, as the one part of a density."""
        return (PartModel("", self.model, self.alignment.n_sites),)

    @property
    def linkage(self) -> Linkage:
        """Of one part."""
        return Linkage()

    @property
    def n_patterns(self) -> int:
        """Distinct site patterns of the alignment."""
        return len(self._patterns.weights)

    def log_likelihood(self) -> float:
        """Evaluated from scratch at the current branch lengths and parameters."""
        state = self._ready()
        value = self._evaluator.log_likelihood(state.effective(), state.point.site_model)
        self._evaluated = True
        return require_possible(value, self._evaluator.site_log_likelihoods, self._patterns)

    def site_log_likelihoods(self) -> np.ndarray:
        """(L,) by site; they sum to log_likelihood(), ascertainment included."""
        refuse_along_sites(self.model, "a site's own log-likelihood")
        self.log_likelihood()
        by_pattern = self._evaluator.site_log_likelihoods()
        hidden = np.exp(by_pattern[self._problem.ascertained]).sum()
        return by_pattern[self._patterns.site_pattern] - np.log1p(-hidden)

    def site_categories(self) -> np.ndarray:
        """(C + 1, L) posterior probability that a site is of each category, or invariable (last)."""
        self.log_likelihood()
        state = self._accepted
        found = site_categories(self._evaluator, state.effective(), state.point.site_model, self._patterns)
        self._evaluated = False
        return found

    @property
    def category_rates(self) -> np.ndarray:
        """(C,) of the categories of site_categories but the last, whose rate is 0."""
        point = self._accepted.point
        if isinstance(self.model.mixture, RatesOfSubstitutions):  # there they are in the processes
            return self.model.mixture.categories.evaluate(point.values)[0]
        return point.site_model.rates

    def site_rates(self) -> np.ndarray:
        """(L,) posterior mean rates of sites, invariable ones at 0 (Yang and Wang 1995, Genetics 139:993)."""
        return self.category_rates @ self.site_categories()[:-1]

    def site_omegas(self) -> np.ndarray | None:
        """(2, L) posterior probability that ω > 1 and mean ω of every codon, at these numbers (naive
        empirical Bayes; Nielsen and Yang 1998, Genetics 148:929); None of models without classes of ω."""
        mixture, point = self.model.mixture, self._accepted.point
        if not isinstance(mixture, CodonSites):
            return None
        omegas = mixture.classes.evaluate(point.values)[0][point.site_model.process]
        shares = self.site_categories()[:-1]
        return np.stack([shares[omegas > 1].sum(0), omegas @ shares])

    def gradient(self, parameters: bool = True) -> Gradient:
        """Derivatives with respect to everything, in one backward pass; parameters=False: branches only."""
        state = self._ready()
        result = self._evaluator.gradient(state.effective(), state.point.site_model, parameters)
        self._evaluated = True
        require_possible(result.log_likelihood, self._evaluator.site_log_likelihoods, self._patterns)
        effective = state.layout.to_branches(np.asarray(result.branch_lengths))
        by_name, root_frequencies = {}, None
        if result.site_model is not None:
            slopes = state.point.backpropagate(result.site_model)
            by_name = by_element(self.model.parameters, slopes)
            if len(result.site_model.processes) == 1:
                at_root = result.site_model.processes[0].root_frequencies
                root_frequencies = at_root + result.site_model.invariant_frequencies
        return require_finite(
            Gradient(
                log_likelihood=result.log_likelihood,
                branch_names=state.layout.names,
                branch_lengths=effective * state.rates,
                branch_rates=np.atleast_2d(effective * state.lengths).sum(0),
                parameters=by_name,
                root_frequencies=root_frequencies,
            )
        )

    def part_gradients(self, parameters: bool = True) -> tuple[np.ndarray, list[PartGradient]]:
        """The gradient as that of the one part, for densities (term.BlockLikelihood)."""
        g = self.gradient(parameters)
        by_name: dict[str, ParameterValue] = {}
        for p in self.model.parameters if parameters else ():
            slope = np.array([g.parameters[element] for element in p.elements or (p.name,)])
            by_name[p.name] = slope if p.elements else float(slope[0])
        return np.array([g.log_likelihood]), [PartGradient(g.branch_lengths.ravel(), by_name)]

    def site_branch_derivatives(self) -> np.ndarray:
        """(B, L) or (K, B, L) d site log-likelihood / d branch length; sums over sites are
        gradient().branch_lengths."""
        self.log_likelihood()  # names a site of likelihood 0, which has no derivative
        state, evaluator = self._accepted, self._evaluator
        by_pattern = evaluator.site_branch_derivatives(state.effective(), state.point.site_model)
        by_site = by_pattern[..., self._patterns.site_pattern]
        if self._problem.ascertained.any():
            hidden = np.exp(evaluator.site_log_likelihoods()[self._problem.ascertained])
            slope = by_pattern[..., self._problem.ascertained] @ hidden
            by_site = by_site + (slope / (1 - hidden.sum()))[..., None]
        by_branch = state.layout.to_branches(np.swapaxes(by_site, -1, -2))
        return np.swapaxes(by_branch, -1, -2) * state.rates[:, None]

    def second_derivatives(self) -> np.ndarray:
        """(B,) or (K, B) d² log L / d length² of each branch on its own (the Hessian's diagonal)."""
        self.log_likelihood()
        state, evaluator = self._accepted, self._evaluator
        by_node = evaluator.second_derivatives(state.effective(), state.point.site_model)
        return state.layout.to_branches(by_node) * state.rates**2

    def ancestral_states(self, node: str = "root") -> np.ndarray:
        """(L, S) marginal posterior of the states at an internal node, by branch name or "root" (the base).

        S counts the alphabet's states; hidden classes of a Markov-modulated model are summed. Always computed
        by the reference engine. Source: Yang, Kumar and Nei 1995.
        """
        layout = self._accepted.layout
        number = int(layout.origin[layout.internal_node(node)])
        return next(found for x, found in self.states_of_all_nodes() if x == number)[self.site_pattern]

    def states_of_all_nodes(self) -> Iterator[tuple[int, np.ndarray]]:
        """Every node of the tree with (P, S), the marginal posterior of its states in every pattern of sites,
        as ancestral_states has it; parents first. Of tips, too: of an ambiguous character."""
        self.log_likelihood()
        state, reference = self._accepted, self._reference()
        shows = self.model.observed_state[:, None] == np.arange(self.alignment.alphabet.n_states)
        for x, posterior in reference.node_posteriors(state.effective(), state.point.site_model):
            node = int(state.layout.origin[x])
            if node >= 0:
                yield node, posterior @ shows

    @property
    def site_pattern(self) -> np.ndarray:
        """(L,) the pattern of every site."""
        return self._patterns.site_pattern

    @property
    def state_frequencies(self) -> np.ndarray:
        """(S,) of the alphabet's states at the root, over all classes of sites."""
        model = self._accepted.point.site_model
        at_root = model.weights @ model.root_frequencies + model.invariant * model.invariant_frequencies
        shows = self.model.observed_state[:, None] == np.arange(self.alignment.alphabet.n_states)
        return at_root @ shows

    def place(self, parameterisation: Parameterisation, values: BlockValues) -> None:
        """Take the values of free blocks over, of a parameterisation of part_models."""
        lengths = parameterisation.effective_lengths(values, 0).reshape(self.branch_lengths.shape)
        self.set(lengths, parameterisation.model_values(values, 0))

    def set(
        self,
        branch_lengths: Branches | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        branch_rates: Branches | None = None,
    ) -> None:
        """Change values, all or some by name, without evaluating anything yet."""
        self._accepted = self._settled().changed(branch_lengths, parameters, branch_rates)
        self._evaluated = False

    def propose(
        self,
        branch_lengths: Branches | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        tree: Tree | None = None,
        branch_rates: Branches | None = None,
    ) -> float:
        """The log-likelihood after a change, recomputing only what it touches; accept() or reject() it next.

        branch_lengths, branch_rates: all (B,), or some by branch name; with K sets of branch lengths (K, B),
        or K values a name. parameters: some by name.
        tree: another tree of the same taxa, whose lengths are taken over (branch_lengths then changes them);
        branch rates start again at 1. After a NumericalError nothing is pending.
        """
        old = self._settled()
        if not self._evaluated:
            self.log_likelihood()
        base = old if tree is None else old.with_layout(self._layout(tree))
        new = base.changed(branch_lengths, parameters, branch_rates)
        new.require_root()
        children = (None, None) if tree is None else new.layout.children
        lengths = new.effective()
        changed = np.flatnonzero(np.atleast_2d(lengths != old.effective()).any(0))
        site_model = None if new.point is old.point else new.point.site_model
        value = self._evaluator.propose(lengths, changed, site_model, *children)
        try:
            value = require_possible(value, self._evaluator.site_log_likelihoods, self._patterns)
        except NumericalError:
            self._evaluator.reject()
            raise
        self._proposed = new
        return value

    def accept(self) -> None:
        """Keep the proposed state."""
        new = self._pending()
        self._evaluator.accept()
        self._accepted, self._proposed = new, None

    def reject(self) -> None:
        """Go back to the state before the proposal."""
        self._pending()
        self._evaluator.reject()
        self._proposed = None

    def _tree_of(self, lengths: np.ndarray) -> Tree:
        tree = self._accepted.layout.tree
        return replace(tree, lengths=np.append(lengths, tree.lengths[-1]))

    def _layout(self, tree: Tree):
        return tree_layout(tree, self.alignment.taxa, self._multifurcations)

    def _settled(self) -> State:
        if self._proposed is not None:
            raise InputError("a proposal is pending", hint="Call accept() or reject() first.")
        return self._accepted

    def _ready(self) -> State:
        state = self._settled()
        state.require_root()
        return state

    def _pending(self) -> State:
        if self._proposed is None:
            raise InputError("no proposal is pending", hint="Call propose() first.")
        return self._proposed

    def _reference(self) -> ReferenceEvaluator:
        left, right = self._accepted.layout.children
        return ReferenceEvaluator(replace(self._problem, left=left, right=right))

"""The problems that every likelihood engine has to get right, and what the NumPy reference says to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from gpu.random_problems import Case, random_case, random_model, random_topology
from oracle.small_problems import named_arrays, random_mixture
from phloem.model.grammar import parse_model
from phloem.model.record import SiteModel
from phloem.pruning.reference.evaluator import ReferenceEvaluator

TIPS, PATTERNS, STATES = (2, 3, 5, 64, 257), (1, 63, 1000), (2, 4, 8, 20, 61)
# Patterns by tips (down) and states (across): every pair of sizes occurs, the largest of all three does not.
_PATTERNS = (
    (1, 63, 1000, 63, 1000),
    (63, 1000, 1, 1, 1),
    (1000, 1, 63, 1000, 63),
    (1, 1000, 63, 1, 63),
    (63, 1000, 1, 63, 63),
)
SIZES = [(t, p, s) for t, row in zip(TIPS, _PATTERNS) for s, p in zip(STATES, row)]


def sizes() -> dict[str, Callable[[], Case]]:
    rows = {}
    for seed, (tips, patterns, states) in enumerate(SIZES):
        categories = 4 if states < 20 else 2
        rows[f"{tips} tips, {patterns} patterns, {states} states"] = _sized(
            tips, patterns, states, categories, seed
        )
    return rows


def _sized(*arguments: int) -> Callable[[], Case]:
    *size, seed = arguments
    return lambda: random_case(*size, seed=seed)


def _with_model(case: Case, text: str, datatype: str) -> Case:
    """A case under a model of the package, tips in states of positive frequency only."""
    states = {"states": tuple("01234567")} if datatype == "standard" else {}
    model = parse_model(text, datatype=datatype, **states).evaluate()
    possible = np.flatnonzero(model.single.root_frequencies > 0)
    n_states = len(model.single.root_frequencies)
    codes = case.problem.tip_codes
    codes = np.where(codes < n_states, possible[codes % len(possible)], n_states).astype(codes.dtype)
    problem = replace(case.problem, tip_codes=codes, n_categories=len(model.rates))
    return replace(case, problem=problem, model=model)


def _zero_frequencies(n_states: int, zeros: tuple[int, ...]) -> str:
    weights = np.arange(1.0, n_states + 1)
    weights[list(zeros)] = 0.0
    return ",".join(repr(f) for f in (weights / weights.sum()).tolist())


def _more_codes_than_patterns(n_states: int) -> Case:
    """Two hundred sets of states for seven columns: pairs of classes must not be mistaken for each other."""
    case = random_case(6, 7, n_states, 2, seed=3)
    rng = np.random.default_rng(5)
    sets = rng.random((200, n_states)) < 0.5
    sets[np.arange(200), rng.integers(0, n_states, 200)] = True
    state_sets = np.vstack([case.problem.state_sets[: n_states + 1], sets])
    codes = rng.integers(0, len(state_sets), case.problem.tip_codes.shape).astype(np.uint16)
    return replace(case, problem=replace(case.problem, state_sets=state_sets, tip_codes=codes))


def _short(n_states: int, length: float) -> Case:
    """All branches of one tiny length: exp(Q t) − I must keep its digits. Tips differ in half the columns."""
    case = random_case(5, 40, n_states, 2, seed=4)
    codes = case.problem.tip_codes.copy()
    codes[:, ::2] = codes[0, ::2]
    return replace(case, problem=replace(case.problem, tip_codes=codes), lengths=case.lengths * 0 + length)


def _missing(case: Case) -> Case:
    """A tip without data, and a column without data."""
    codes = case.problem.tip_codes.copy()
    n_states = case.problem.state_sets.shape[1]
    codes[1], codes[:, 2] = n_states, n_states
    return replace(case, problem=replace(case.problem, tip_codes=codes))


def _one_length_zero(case: Case) -> Case:
    lengths = case.lengths.copy()
    lengths[[1, -2]] = 0.0
    return replace(case, lengths=lengths)


def _mixture(n_states: int, seed: int, **options) -> Case:
    """Three processes, each in two of six categories; n_lengths sets of branch lengths."""
    case, rng = random_case(6, 40, n_states, 6, seed=seed), np.random.default_rng(seed)
    model = random_mixture(rng, n_states, **options)
    lengths = case.lengths
    if model.n_length_classes > 1:
        lengths = rng.exponential(0.2, (model.n_length_classes, len(lengths)))
        lengths[:, -1] = 0.0
    return replace(case, model=model, lengths=lengths)


def _without_repeats(case: Case) -> Case:
    return replace(case, problem=replace(case.problem, repeats=False))


def special() -> dict[str, Callable[[], Case]]:
    return {
        "one column, 4 states": lambda: random_case(7, 1, 4, 4, seed=11),
        "one column, 61 states": lambda: random_case(7, 1, 61, 1, seed=12),
        "200 codes, 7 patterns, 4 states": lambda: _more_codes_than_patterns(4),
        "200 codes, 7 patterns, 20 states": lambda: _more_codes_than_patterns(20),
        "lengths 1e-8, 4 states": lambda: _short(4, 1e-8),
        "lengths 1e-8, 20 states": lambda: _short(20, 1e-8),
        "lengths 1e-8, 61 states": lambda: _short(61, 1e-8),
        "two lengths zero": lambda: _one_length_zero(random_case(6, 30, 4, 2, seed=13)),
        "no data in a tip and a column": lambda: _missing(random_case(6, 30, 20, 1, seed=14)),
        "zero frequency, GTR": lambda: _with_model(
            random_case(6, 40, 4, 4, seed=15),
            f"GTR{{1.2,4.0,0.7,0.9,5.0}}+F{{{_zero_frequencies(4, (2,))}}}+G4{{0.5}}",
            "dna",
        ),
        "zero frequencies, WAG": lambda: _with_model(
            random_case(6, 40, 20, 1, seed=16), f"WAG+F{{{_zero_frequencies(20, (4, 17))}}}", "protein"
        ),
        "zero frequency, Mk": lambda: _with_model(
            random_case(6, 40, 8, 1, seed=17), f"MK+F{{{_zero_frequencies(8, (0,))}}}", "standard"
        ),
        "invariable sites, 4 states": lambda: random_case(6, 41, 4, 2, invariant=0.2, seed=18),
        "invariable sites, 20 states": lambda: random_case(6, 41, 20, 2, invariant=0.2, seed=19),
        "ascertained, 2 states": lambda: random_case(6, 41, 2, 2, ascertained=True, seed=20),
        "ascertained, 8 states": lambda: random_case(6, 41, 8, 1, ascertained=True, seed=21),
        "caterpillar of 257": lambda: random_case(
            257, 3, 4, 1, shape="caterpillar", mean_length=1.0, seed=22
        ),
        "mixture of processes, 4 states": lambda: _mixture(4, 24),
        "mixture of processes, 20 states": lambda: _mixture(20, 25, invariant=0.1),
        "mixture of processes, 61 states": lambda: _mixture(61, 26),
        "mixture of processes and lengths, 4 states": lambda: _mixture(4, 27, n_lengths=2, invariant=0.1),
        "mixture of processes and lengths, 20 states": lambda: _mixture(20, 28, n_lengths=3),
        "mixture of irreversible processes": lambda: _mixture(4, 29, reversible=False),
        "without distinct columns": lambda: _without_repeats(random_case(6, 40, 4, 2, seed=23)),
    }


CASES = sizes() | special()


@dataclass(frozen=True)
class Change:
    """A proposal: new lengths, the nodes whose length changed, and what else changed; whether it is kept."""

    lengths: np.ndarray
    changed: np.ndarray
    model: SiteModel | None
    children: tuple[np.ndarray, np.ndarray] | tuple[None, None]
    kept: bool


@dataclass(frozen=True)
class Answer:
    """What the reference finds: of the case, of each change in turn, and of the state they leave."""

    log_likelihood: float
    site_log_likelihoods: np.ndarray
    branch_lengths: np.ndarray
    site_model: dict[str, np.ndarray]
    proposed: tuple[float, ...]
    last_gradient: np.ndarray


@cache
def case_of(name: str) -> Case:
    return CASES[name]()


def _another_model(case: Case, rng: np.random.Generator) -> SiteModel:
    """With other numbers, of the same categories, processes and sets of lengths."""
    n_states, old = case.problem.state_sets.shape[1], case.model
    if len(old.processes) == 1:
        return random_model(n_states, case.problem.n_categories, rng, old.invariant)
    new = random_mixture(rng, n_states, len(old.processes), old.n_length_classes, old.invariant)
    return replace(new, process=old.process, length_class=old.length_class)


@cache
def changes_of(name: str) -> tuple[Change, ...]:
    """A length dropped, two lengths kept, a model dropped, a tree kept, the last length of that tree kept."""
    case, rng = case_of(name), np.random.default_rng(len(name))
    n_tips, n_nodes = len(case.problem.tip_codes), case.lengths.shape[-1]
    lengths = case.lengths

    def moved(old: np.ndarray, *nodes: int) -> np.ndarray:
        new = old.copy()
        new[..., list(nodes)] = new[..., list(nodes)] * 1.5 + 1e-3
        return new

    two = np.unique(rng.integers(0, n_nodes - 1, 2))
    kept = moved(lengths, *two)
    model = _another_model(case, rng)
    changes = [
        Change(moved(lengths, 0), np.array([0]), None, (None, None), False),
        Change(kept, two, None, (None, None), True),
    ]
    if all(np.all(process.root_frequencies > 0) for process in case.model.processes):
        changes.append(Change(kept, np.array([], int), model, (None, None), False))
    if n_tips > 2:
        other = random_topology(n_tips, rng)
        last = moved(kept, n_nodes - 2)
        changes.append(Change(kept, np.array([], int), None, other, True))
        changes.append(Change(last, np.array([n_nodes - 2]), None, (None, None), True))
    return tuple(changes)


@cache
def answer_of(name: str) -> Answer:
    """The reference evaluates every change from scratch."""
    case, problem = case_of(name), case_of(name).problem
    reference = ReferenceEvaluator(problem)
    gradient = reference.gradient(case.lengths, case.model, parameters=True)
    assert gradient.site_model is not None
    sites, proposed, lengths = reference.site_log_likelihoods().copy(), [], case.lengths
    for change in changes_of(name):
        left, right = change.children
        tried = problem if left is None else replace(problem, left=left, right=right)
        value = ReferenceEvaluator(tried).log_likelihood(change.lengths, change.model or case.model)
        proposed.append(value)
        if change.kept:
            problem, lengths = tried, change.lengths
    last = ReferenceEvaluator(problem).gradient(lengths, case.model).branch_lengths
    return Answer(
        gradient.log_likelihood,
        sites,
        gradient.branch_lengths,
        named_arrays(gradient.site_model),
        tuple(proposed),
        last,
    )

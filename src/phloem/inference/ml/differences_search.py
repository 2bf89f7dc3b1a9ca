"""The likeliest tree of very many nearly equal genomes: placed one by one, subtrees moved, numbers fitted.

After De Maio et al. 2023 (Nature Genetics 55:746). Lists are made anew from the tree at every step that a
checkpoint may follow, so that a search that goes on from one ends with the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.data.genomes import Genomes
from phloem.differences.engine import Engine
from phloem.differences.trees import take, tree_of, with_supports
from phloem.errors import InputError
from phloem.hardware.limits import require_memory
from phloem.inference.ml.differences_state import DifferencesResult, DifferencesState, Round
from phloem.inference.ml.search_state import Checkpoint, Doing, Told
from phloem.model.frequencies import empirical_frequencies
from phloem.model.model import Model
from phloem.model.nucleotide import NucleotideModel
from phloem.model.record import ParameterValue
from phloem.tree.tree import Tree

_FIRST_FIT = 200  # genomes, after which lengths and rates are fitted for the first time
_GROWTH = 1.15  # by which the tree grows from one such fit to the next
_STEP = 100  # genomes from one message to the next
_BATCH = 4_000  # subtrees whose places are looked for on one tree
_ROUNDS, _LAST_FITS = 12, 30  # at most
_GAIN, _FITTED = 0.1, 1e-3  # log units: of a round that is followed by another, and of the last fits,
_SHARE = 1e-7  # or, where that is more, this share of log L
_PLACE_DROP, _MOVE_DROP = 25.0, 15.0  # log units below the best, where a walk ends
_LOOKED = 50_000, 3_000  # branches that a walk looks at, of a placement and of a move
_FAR = 1_000_000  # branches: no bound
_DIFFERENT = 0.03  # differences a site, from where genomes are not nearly equal
_LONG = 0.03  # substitutions per site, from where the first order is far off


@dataclass(frozen=True)
class DifferencesSettings:
    """radius: branches that a subtree passes at most, None for as far as it may gain. seed: of the order of
    genomes with equally many differences. threads share the walks of subtrees; they change no number.
    supports: whether branches get them."""

    radius: int | None = None
    seed: int = 1
    threads: int = 1
    supports: bool = False

    def __post_init__(self) -> None:
        if self.radius is not None and self.radius < 1:
            raise InputError(f"radius is {self.radius}", hint="Give 1 or more.")


def counted_frequencies(genomes: Genomes) -> np.ndarray:
    """(4,) what +F stands for: of all genomes, as model/frequencies.py counts them."""
    sets = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    observed = np.arange(1, 16)
    return empirical_frequencies(observed[None, :] - 1, sets[1:], genomes.counts[1:].astype(float))


def bytes_of(genomes: Genomes) -> float:
    """That a search takes, about: three lists a branch, beside them their copy while memory grows."""
    entries = 1.7 * len(genomes.states) / max(genomes.n_distinct, 1) + 4
    lists = 6.0 * genomes.n_distinct * entries
    return 2.5 * lists * 17 + 0.3 * lists * 32 + 2000.0 * genomes.n_distinct


def refuse(model: Model) -> NucleotideModel:
    """The family of a model that this engine has; InputError for others, with the remedy."""
    hint = "Choose a model such as GTR+F, HKY+F or JC, or --engine patterns."
    if model.n_categories != 1 or model.mixture.n_processes != 1 or model.root_term or model.unseen:
        raise InputError(
            f"--engine differences has no rates across sites or mixtures: {model.name}", hint=hint
        )
    family = model.substitution
    if not isinstance(family, NucleotideModel) or any(p.tied for p in model.parameters):
        raise InputError(
            f"--engine differences has reversible nucleotide models: not {model.name}", hint=hint
        )
    if any(p.name == "frequencies" for p in model.free):
        raise InputError(
            f"--engine differences fits no frequencies, and those of {model.name} are free",
            hint="Add +F, which counts them, or --engine patterns.",
        )
    if model.evaluate(model.start_values()).invariant > 0:
        raise InputError(f"--engine differences has no invariable sites: {model.name}", hint=hint)
    return family


def search_differences(
    genomes: Genomes,
    model: Model,
    settings: DifferencesSettings | None = None,
    told: Told | None = None,
    checkpoint: Checkpoint | None = None,
    start: Tree | None = None,
) -> DifferencesResult:
    """Maximum likelihood over unrooted trees, lengths and the model's free rates, to the first order in
    lengths. start: a tree of some or all taxa; others are placed on it. Errors: InputError for fewer than
    three distinct genomes, there or in the start, for taxa that only that has, too little memory, and as
    refuse."""
    refuse(model)
    if genomes.n_distinct < 3:
        raise InputError(
            f"of {genomes.n_taxa:,} genomes only {genomes.n_distinct} are distinct: no tree can be told",
            file=genomes.source,
            hint="Add taxa.",
        )
    mean = float(genomes.substitutions.mean()) / genomes.n_sites
    if mean > _DIFFERENT:
        raise InputError(
            f"these sequences differ in {100 * mean:.1f} % of their sites from the commonest states, and "
            "--engine differences is for nearly equal ones",
            file=genomes.source,
            hint="Say --engine patterns.",
        )
    require_memory(
        f"the lists of {genomes.n_distinct:,} genomes",
        bytes_of(genomes),
        "Use fewer genomes, or a machine with more.",
        genomes.source,
    )
    walk = _Search(genomes, model, settings or DifferencesSettings(), told or (lambda *_: None), start)
    try:
        return walk.run(checkpoint)
    finally:
        walk.engine.close()


def long_branches(tree: Tree) -> int:
    """How many are too long for P(t) = I + Q t."""
    return int((tree.lengths[:-1] > _LONG).sum())


def order_of(genomes: Genomes, seed: int, start: Tree | None = None) -> np.ndarray:
    """Distinct genomes in the order in which they are placed: those of a tree first, then few differences
    first, then few missing columns, then by chance."""
    chance, later = np.random.default_rng(seed).permutation(genomes.n_distinct), np.zeros(genomes.n_distinct)
    if start is not None:
        later[:] = 1
        later[_genomes_of(start, genomes)] = 0
    return np.lexsort((chance, genomes.missing, genomes.substitutions, later))


def _genomes_of(start: Tree, genomes: Genomes) -> list[int]:
    """The distinct genomes of a tree's taxa; InputError for taxa that have none, and fewer than three."""
    group = dict(zip(genomes.taxa, genomes.group.tolist()))
    for name in start.taxa:
        if name not in group:
            raise InputError(
                f"'{name}' is on the tree and not in the alignment", taxon=name, hint="Prune it."
            )
    found = [group[name] for name in start.taxa]
    if len(set(found)) < 3:
        raise InputError("the tree has fewer than three distinct genomes", hint="Leave it out.")
    return found


class _Search:
    def __init__(
        self,
        genomes: Genomes,
        model: Model,
        settings: DifferencesSettings,
        told: Told,
        start: Tree | None = None,
    ) -> None:
        from phloem.differences.cpu.placement import Reach

        self._genomes, self._model, self._settings, self._told = genomes, model, settings, told
        self._start, self._order = start, order_of(genomes, settings.seed, start)
        self.engine = Engine(genomes, self._order, settings.threads)
        one, radius = 1.0 / genomes.n_sites, settings.radius or _FAR
        self._place = Reach(_PLACE_DROP, one, _LOOKED[0], _FAR)
        self._move = Reach(_MOVE_DROP, one, _LOOKED[1], radius)
        self._values = dict(model.start_values())
        self._value = float("nan")

    def run(self, checkpoint: Checkpoint | None) -> DifferencesResult:
        state: DifferencesState | None = checkpoint.read() if checkpoint is not None else None
        if state is not None:
            self._go_on(state)
        else:
            self._set_rates()
            self._begin()
            state = self._state(DifferencesState(0, *self._tree(), {}))
        while state.placed < self.engine.tips:
            self._grow(state)
            self._keep(state, checkpoint)
        if state.first is None:
            self._fit()
            state = self._state(state)
            state.first, state.waiting = self._value, self._movable()
            self._keep(state, checkpoint)
        while len(state.rounds) < _ROUNDS and len(state.waiting):
            self._improve(state)
            self._keep(state, checkpoint)
        return self._finished(state)

    # Steps.

    def _begin(self) -> None:
        """From the tree that was given, if any."""
        if self._start is None:
            return
        place = np.empty(len(self._order), np.int64)
        place[self._order] = np.arange(len(self._order))
        tip_of = dict(zip(self._genomes.taxa, place[self._genomes.group].tolist()))
        own = {name: tip_of[name] for name in self._start.taxa}
        placed = take(self._start, own, self.engine.tips, 1.0 / self._genomes.n_sites, self.engine.tree)
        self.engine.resume(placed)
        self._fit(3)

    def _grow(self, state: DifferencesState) -> None:
        """Genomes are placed until the tree is larger by a share; then lengths and rates are fitted."""
        tips = self.engine.tips
        goal = min(max(_FIRST_FIT, int(state.placed * _GROWTH)), tips)
        total = -(-tips // _STEP)
        for k in range(state.placed + _STEP, goal + _STEP, _STEP):
            self.engine.add(min(k, goal), self._place)
            at = min(k, goal)
            doing = Doing("placement", at // _STEP, total, f"placed {at:,} of {tips:,} genomes", "about")
            self._told(doing, self._value)
        if goal > 2:
            self._fit()
        self._state(state)

    def _fit(self, rounds: int = 1) -> None:
        """Lengths, then rates from the expected substitutions, then all lists and the value."""
        self.engine.fit_lengths(rounds)
        if self._rates_from_counts():
            self.engine.make_lists()
        self._value = self.engine.log_likelihood()

    def _improve(self, state: DifferencesState) -> None:
        """A batch of subtrees; behind the last of a round lengths are fitted."""
        batch, state.waiting = state.waiting[:_BATCH], state.waiting[_BATCH:]
        moved, _, touched = self.engine.improve(batch, self._move)
        state.tried, state.moved = state.tried + len(batch), state.moved + moved
        state.touched = np.union1d(state.touched, touched)
        number, left = len(state.rounds) + 1, len(state.waiting)
        doing = f"round {number}: {state.tried:,} subtrees tried, {state.moved:,} moved"
        total = -(-(state.tried + left) // _BATCH)
        self._told(Doing(f"round {number}", -(-state.tried // _BATCH), total, doing, "about"), self._value)
        if left:
            self.engine.make_lists()
        else:
            before = self._value
            self._fit(2)
            state.rounds.append(Round(state.tried, state.moved, self._value))
            again = state.moved and self._value > before + _GAIN
            state.waiting = self._near(state.touched) if again else state.waiting
            state.touched, state.tried, state.moved = np.zeros(0, np.int64), 0, 0
        self._state(state)

    def _finished(self, state: DifferencesState) -> DifferencesResult:
        """The last fits, supports, and the tree."""
        from phloem.differences.cpu.storage import way_down

        converged = False
        for _ in range(_LAST_FITS):
            before = self._value
            self._fit()
            self._told(Doing("last fit"), self._value)
            converged = abs(self._value - before) < max(_FITTED, _SHARE * abs(before))
            if converged:
                break
        nodes, shares = self._supports() if self._settings.supports else (np.zeros(0, np.int64), None)
        steps = way_down(self.engine.tree)
        assert state.first is not None
        free = self._model.free
        counted = sum(p.size - 1 if p.elements else 1 for p in self._model.parameters if p.counted)
        places = {int(x): str(k) for k, x in enumerate(nodes)}  # the tree has an order of its own
        tree = tree_of(self._genomes, self._order, self.engine.tree, steps, places)
        if shares is not None:
            tree, shares = with_supports(tree, shares)
        return DifferencesResult(
            tree,
            self._value,
            dict(self._values),
            self._model.text(self._values),
            2 * self.engine.tips - 3 + len(free) + counted,
            state.first,
            tuple(state.rounds),
            converged,
            shares,
            self.engine.entries,
        )

    def _supports(self) -> tuple[np.ndarray, np.ndarray]:
        """SPRTA-like: of every inner branch with a length, its node, and how probable it is that its subtree
        hangs there."""
        nodes = self._movable()
        nodes = nodes[nodes >= self.engine.tips]
        share = np.zeros(0)
        parts = []
        for k in range(0, len(nodes), _BATCH):
            parts.append(self.engine.supports(nodes[k : k + _BATCH], self._move))
            done = min(k + _BATCH, len(nodes))
            self._told(Doing("supports", done // _BATCH, -(-len(nodes) // _BATCH), "", "about"), self._value)
        share = np.concatenate(parts) if parts else share
        return nodes, share

    # Numbers of the model.

    def _set_rates(self) -> None:
        process = self._model.evaluate(self._values).processes[0]
        self.engine.set_rates(process.rate_matrix, process.frequencies)

    def _rates_from_counts(self) -> bool:
        """An EM step for the free rates: substitutions between two states, in both directions, by how much
        time there was for them. Whether there are any."""
        if not self._model.free:
            return False
        numbers, dwell = self.engine.substitutions()
        process = self._model.evaluate(self._values).processes[0]
        self._values |= next_rates(self._model, process.frequencies, numbers, dwell)
        self._set_rates()
        return True

    # The tree, and the checkpoint.

    def _movable(self) -> np.ndarray:
        """Nodes whose subtree can be moved: attached, with a length."""
        tree = self.engine.tree
        return np.flatnonzero((tree.parent > 0) & (tree.length > 0))

    def _near(self, touched: np.ndarray) -> np.ndarray:
        """Movable nodes at a touched one, or next to one."""
        tree, near = self.engine.tree, np.zeros(self.engine.nodes, bool)
        near[touched] = True
        for _ in range(2):
            inner = np.flatnonzero(near & (tree.children[:, 0] >= 0))
            near[tree.children[inner].ravel()[tree.children[inner].ravel() >= 0]] = True
            above = tree.parent[np.flatnonzero(near)]
            near[above[above > 0]] = True
        movable = self._movable()
        return movable[near[movable]]

    def _tree(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tree = self.engine.tree
        return tree.parent, tree.children, tree.length

    def _state(self, state: DifferencesState) -> DifferencesState:
        """The state with the tree and the numbers as they are."""
        state.placed, state.values = self.engine.placed, dict(self._values)
        state.parent, state.children, state.length = self._tree()
        return state

    def _go_on(self, state: DifferencesState) -> None:
        for own, kept in zip(self._tree(), (state.parent, state.children, state.length)):
            own[:] = kept
        self._values = dict(state.values)
        self._set_rates()
        self.engine.resume(state.placed)
        self._value = self.engine.log_likelihood() if state.placed > 1 else float("nan")
        self._told(Doing("going on"), self._value)

    def _keep(self, state: DifferencesState, checkpoint: Checkpoint | None) -> None:
        if checkpoint is not None:
            checkpoint.write(state)


def next_rates(
    model: Model, frequencies: np.ndarray, numbers: np.ndarray, dwell: np.ndarray
) -> dict[str, ParameterValue]:
    """Rates relative to that of G and T, from expected numbers of substitutions (4, 4) and the time spent in
    every state (4,): the most probable ones given these, within the model's classes. Those for which there
    was no time are left out."""
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    names = ["rate_" + "ACGT"[a] + "ACGT"[b] for a, b in pairs]
    seen = np.array([numbers[a, b] + numbers[b, a] for a, b in pairs])
    room = np.array([dwell[a] * frequencies[b] + dwell[b] * frequencies[a] for a, b in pairs])
    share = np.ones(6)  # of the rate of G and T, of those that are not free
    for p in model.parameters:
        own = [k for k, name in enumerate(names) if name in p.aliases]
        if own:
            share[own] = 0.0 if p.is_free else np.asarray(p.value)
    time = float((share * room).sum())
    found: dict[str, ParameterValue] = {}
    for p in model.free:
        own = [k for k, name in enumerate(names) if name in p.aliases]
        if time > 0 and room[own].sum() > 0:
            reference = max(seen[share > 0].sum(), 0.5) / time
            value = seen[own].sum() / room[own].sum() / reference
            found[p.name] = float(np.clip(value, p.lower, p.upper))
    return found

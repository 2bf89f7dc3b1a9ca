"""The choice of a substitution model by an information criterion, all of them on one tree.

In the manner of Kalyaanamoorthy et al. 2017 (Nat. Methods 14:587): rates across sites on the most general
family, then every family with the best rates, then the winner with all rates. What lies below another model
that is too bad already is not fitted (`Skipped`): the larger model bounds its likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.errors import InputError
from phloem.inference.ml.criteria import Criteria, criteria
from phloem.inference.ml.kept_fits import KeptFits
from phloem.inference.ml.model_sets import MOST_CLASSES, Base, bases, exchangeabilities, rate_names
from phloem.inference.ml.optimize import refine
from phloem.inference.ml.optimum import OptimizeResult
from phloem.inference.ml.search_state import Doing, Told
from phloem.inference.ml.searchable import refuse, refuse_classes
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.starts import Start, one_class_more, restarts
from phloem.inference.ml.tree_search import SearchSettings, climbed_once
from phloem.inference.ml.tree_starts import Start as TreeStart
from phloem.inference.ml.tree_starts import with_lengths
from phloem.likelihood.model_for_alignment import ModelReader
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.model.site_rates import gamma_rates
from phloem.tree.tree import Tree

Criterion = Literal["bic", "aicc", "aic"]
CRITERIA: tuple[Criterion, ...] = ("bic", "aicc", "aic")

_ROOM = 10.0  # what a criterion may be worse and its model still count as a rival; its weight is e^-5
_CLOSE = 3.0  # rivals whose fits are brought to their end
_GLANCE, _ENOUGH = 0.3, 0.005  # log units: steps that gain less end a start's fit, and a round of a model's
_SETTLED = 0.05  # log units: a round that gains less ends a model's fit
_FEW_STEPS = 12


@dataclass(frozen=True)
class ChoiceSettings:
    """families, frequencies, rates: model_sets.bases and rate_names; None for those of the data type.
    most_classes: of +R. ascertained: with +ASC, all models."""

    families: tuple[str, ...] | None = None
    frequencies: tuple[str, ...] | None = None
    rates: tuple[str, ...] | None = None
    criterion: Criterion = "bic"
    most_classes: int = MOST_CLASSES
    ascertained: bool = False

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise InputError(f"'{self.criterion}' is no criterion", hint=f"Choose of {', '.join(CRITERIA)}.")
        if self.most_classes < 2:
            raise InputError(f"{self.most_classes} classes of free rates", hint="Give 2 or more.")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that was fitted: on the tree of the choice, its lengths too. text: without values."""

    text: str
    base: Base
    rates: str
    fit: OptimizeResult

    @property
    def criteria(self) -> Criteria:
        return Criteria(self.fit.aic, self.fit.aicc, self.fit.bic)

    def by(self, criterion: Criterion) -> float:
        return float(getattr(self.fit, criterion))


class Skipped(NamedTuple):
    """A model that cannot win. within: the fitted model that contains it, so that none of its criteria is
    below `least`."""

    text: str
    within: str
    least: Criteria


@dataclass(frozen=True, eq=False)
class ModelChoice:
    """candidates: by the criterion, best first. log_likelihood of each is on one topology, that of the
    winner's tree. n_taxa, n_sites: of the data. held: whether the tree was given to be held."""

    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    settings: ChoiceSettings
    origin: str
    n_taxa: int
    n_sites: int
    held: bool = False

    @property
    def winner(self) -> Candidate:
        return self.candidates[0]

    def best(self, criterion: Criterion) -> Candidate:
        return min(self.candidates, key=lambda c: c.by(criterion))

    def weights(self, criterion: Criterion) -> np.ndarray:
        """(n,) Akaike weights, exp(-Δ/2) divided by their sum (Burnham and Anderson 2002); of the Bayesian
        criterion roughly posterior probabilities. NaN where no criterion is finite."""
        values = np.array([c.by(criterion) for c in self.candidates])
        if not np.isfinite(values).any():
            return np.full(len(values), np.nan)
        share = np.exp(-0.5 * (values - values.min()))
        return share / share.sum()


def bases_of(alphabet: Alphabet, settings: ChoiceSettings) -> list[Base]:
    """What is tried with all rates; errors as of model_sets.bases."""
    found = bases(alphabet, settings.families, settings.frequencies)
    suffix = "+ASC" if settings.ascertained else ""
    return [base._replace(text=base.text + suffix) for base in found]


def rates_of(settings: ChoiceSettings) -> tuple[str, ...]:
    """Of all characters that vary none is of an invariable site, unless such rates are asked for."""
    found = rate_names(settings.rates)
    return (
        found
        if settings.rates is not None or not settings.ascertained
        else tuple(name for name in found if not name.startswith("I"))
    )


def require_used(tried: Sequence[Base], settings: ChoiceSettings) -> None:
    """InputError for what no model of the set has. tried: model_sets.bases."""
    whole = all(base.whole for base in tried)
    if whole and settings.rates is not None:
        raise InputError("all models of this set bring their own rates", hint="Leave --rate-set out.")
    free = not whole and any(name.endswith("R") for name in rates_of(settings))
    if settings.most_classes != MOST_CLASSES and not free:
        raise InputError(
            "--most-classes is about +R, and no model of this set has classes of that kind to be counted",
            hint="Add R to --rate-set, or leave it out.",
        )


def choose_model(
    alignment: Alignment,
    start: TreeStart,
    settings: ChoiceSettings | None = None,
    search: SearchSettings | None = None,
    reader: ModelReader | None = None,
    told: Told | None = None,
    climb: bool = True,
    kept: KeptFits | None = None,
) -> ModelChoice:
    """Fit models on one tree, that of a climb from the start or (climb=False) the start's own, and order them
    by the criterion.

    reader: of the models' names; by default one that counts in the alignment. kept: fits of a killed run, the
    same but for that, which are not done again. Errors: as model_sets.bases,
    and for models that a search cannot take as tree_search.
    """
    reads = reader or ModelReader(alignment)
    how = settings or ChoiceSettings(), search or SearchSettings()
    choice = _Choice(alignment, *how, reads, climb, kept or KeptFits())
    return choice.run(start, told or (lambda *_: None))


@dataclass(eq=False)
class _Choice:
    alignment: Alignment
    settings: ChoiceSettings
    search: SearchSettings
    reader: ModelReader
    climb: bool = True
    kept: KeptFits = field(default_factory=KeptFits)
    found: dict[str, Candidate] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def run(self, start: TreeStart, told: Told) -> ModelChoice:
        settings = self.settings
        self._require_defined(start.tree.n_nodes - 1 if start.held else 2 * self.alignment.n_taxa - 3)
        rates = rates_of(settings)
        tried = bases_of(self.alignment.alphabet, settings)
        require_used(tried, settings)
        self._told = told
        models = [self.reader(b.text) for b in tried]
        for model in models:
            refuse(model)
            refuse_classes(model, "a choice of models", "Leave +H out, or say --model GTR+F+H4.")
        general = tried[0]
        first = "" if general.whole else _suffix("G4" if "G4" in rates else rates[0])
        fit = self.kept.optimum("first", lambda: self._first(self.reader(general.text + first), start))
        self._near = fit
        self._keep(general, first, fit)
        ladder = [""] if general.whole else self._ladder(general, rates)
        self._families(tried[1:], ladder)
        self._best_with_all_rates(rates)
        self._require_defined(min(c.fit.n_free for c in self.found.values()))
        self._finish()
        ordered = sorted(self.found.values(), key=lambda c: c.by(settings.criterion))
        skipped = tuple(s for s in self.skipped.values() if s.text not in self.found)
        data = self.alignment
        numbers = data.n_taxa, data.n_sites
        return ModelChoice(tuple(ordered), skipped, settings, start.origin, *numbers, start.held)

    def _first(self, model: Model, start: TreeStart) -> OptimizeResult:
        """The tree on which all others are fitted."""
        one = OneAlignment(self.alignment, model)
        if start.held:
            at_start = self._at(with_lengths(start.tree), model, model.start_values())
            return refine(at_start, restarts(model.free), 1e-2, _FEW_STEPS)
        if self.climb:
            fit = climbed_once(one, start, self.search)
        else:
            begun = one.likelihood(one.edges(start.tree), one.start_values(), self.search.threads or 1)
            fit = one.refined(begun, one.starts(None), 1e-2, _FEW_STEPS)
        assert isinstance(fit, OptimizeResult)
        return fit

    def _require_defined(self, least: int) -> None:
        """InputError where AICc is to decide and is infinite for all models. least: free numbers that every
        model has."""
        sites = self.alignment.n_sites
        if self.settings.criterion == "aicc" and least + 1 >= sites:
            raise InputError(
                f"AICc is defined for none of these models: {sites} sites, and {least} free numbers at least",
                file=self.alignment.source,
                hint="It needs two sites more than there are free numbers; choose by --criterion bic.",
            )

    def _ladder(self, base: Base, rates: Sequence[str]) -> list[str]:
        """Fit a family with all rates, those of k classes until one class more does not pay; the suffixes
        that are no worse than _ROOM, best first."""
        done = []
        for name in rates:
            if not name.endswith("R"):
                done.append(self._fit(base, _suffix(name)))
                continue
            before, first = np.inf, 1 if name == "R" else 0
            for k in range(first + 1, self.settings.most_classes + 1):
                one = self._fit(base, f"{_suffix(name)}{k}")
                done.append(one)
                if not one.by(self.settings.criterion) < before:
                    break
                before = one.by(self.settings.criterion)
        done.sort(key=lambda c: c.by(self.settings.criterion))
        best = done[0].by(self.settings.criterion)
        return [c.rates for c in done if c.by(self.settings.criterion) <= best + _ROOM]

    def _families(self, others: Sequence[Base], ladder: Sequence[str]) -> None:
        """Every family with the best rates; those that are near the best with the next best ones too."""
        for k, rates in enumerate(ladder):
            for base in others:
                if base.whole:
                    if k == 0:
                        self._fit(base, "")
                elif k == 0 or self._is_near(self.found.get(base.text + ladder[0])):
                    self._fit_unless_bounded(base, rates)

    def _is_near(self, candidate: Candidate | None) -> bool:
        criterion = self.settings.criterion
        best = min(c.by(criterion) for c in self.found.values())
        return candidate is not None and candidate.by(criterion) <= best + _ROOM

    def _fit_unless_bounded(self, base: Base, rates: str) -> None:
        best = [min(getattr(c.criteria, x) for c in self.found.values()) for x in Criteria._fields]
        for larger in list(self.found.values()):
            if larger.rates != rates or not larger.base.contains(base):
                continue
            n_free = larger.fit.n_free - (larger.base.n_rates - base.n_rates)
            least = criteria(larger.fit.log_likelihood, n_free, self.alignment.n_sites)
            if all(value > limit + _ROOM or value == np.inf for value, limit in zip(least, best)):
                self.skipped[base.text + rates] = Skipped(base.text + rates, larger.text, least)
                return
        self._fit(base, rates)

    def _best_with_all_rates(self, rates: Sequence[str]) -> None:
        """The winner's family has not met all rates; another may win then, which meets them too."""
        met = set[str]()
        while True:
            winner = min(self.found.values(), key=lambda c: c.by(self.settings.criterion))
            if winner.base.whole or winner.base.text in met:
                return
            met.add(winner.base.text)
            self._ladder(winner.base, rates)

    def _fit(self, base: Base, rates: str) -> Candidate:
        """From the numbers of the last model with these rates, and lengths; else from several starts."""
        text = base.text + rates
        if text in self.found:
            return self.found[text]
        fit = self.kept.optimum(text, lambda: self._fitted(base, rates))
        self._told(Doing("models", len(self.found) + 1, None, text), fit.log_likelihood)
        return self._keep(base, rates, fit)

    def _fitted(self, base: Base, rates: str) -> OptimizeResult:
        text = base.text + rates
        model, near = self.reader(text), self._neighbour(base, rates)
        inherited = _inherited(model, self.reader(near.model_text), near.parameters)
        likelihood = self._at(near.tree, model, model.start_values() | inherited)
        starts = self._starts(model, base, inherited)
        if len(starts) > 1:
            refine(likelihood, starts, np.inf, _FEW_STEPS, _GLANCE)
        return refine(likelihood, tolerance=_SETTLED, least_gain=_ENOUGH)

    def _neighbour(self, base: Base, rates: str) -> OptimizeResult:
        """The best fit with the same rates, else the best fit of the family, else the first."""
        for alike in (
            [c for c in self.found.values() if c.rates == rates],
            [c for c in self.found.values() if c.base == base],
        ):
            if alike:
                return max((c.fit for c in alike), key=lambda fit: fit.log_likelihood)
        return self._near

    def _starts(self, model: Model, base: Base, inherited: Start) -> list[Start]:
        """Of what a neighbour does not have; of k free rates also those of k - 1, one class cut in two."""
        missing = {p.name for p in model.free} - inherited.keys()
        if not missing & {"alpha", "p_invariable", "rates", "weights"}:
            return [{}]
        starts = restarts(model.free)
        if "rates" not in missing:
            return starts
        invariable = "p_invariable" in {p.name for p in model.free}
        n = model.parameter("rates").size
        fewer = self.found.get(f"{base.text}{'+I' if invariable else ''}+R{n - 1}")
        gamma = self.found.get(f"{base.text}{'+I' if invariable else ''}+G4")
        if gamma is not None:
            rates = np.maximum(gamma_rates(float(gamma.fit.parameters["alpha"]), n, "mean"), 1e-3)
            starts.append({"rates": rates, "weights": np.full(n, 1.0 / n)})
        return starts if fewer is None else [*one_class_more(fewer.fit.parameters), *starts[:2], *starts[4:]]

    def _keep(self, base: Base, rates: str, fit: OptimizeResult) -> Candidate:
        candidate = Candidate(base.text + rates, base, rates, fit)
        self.found[candidate.text] = candidate
        return candidate

    def _finish(self) -> None:
        """Bring the fits of rivals to their end."""
        best = {x: min(c.by(x) for c in self.found.values()) for x in CRITERIA}
        for c in list(self.found.values()):
            if any(c.by(x) <= best[x] + _CLOSE for x in CRITERIA):
                ended = self.kept.optimum(f"{c.text}\tended", partial(self._ended, c))
                self._keep(c.base, c.rates, ended)

    def _ended(self, one: Candidate) -> OptimizeResult:
        likelihood = self._at(one.fit.tree, self.reader(one.text), one.fit.parameters)
        return refine(likelihood, tolerance=1e-2)

    def _at(self, tree: Tree, model: Model, values: Start) -> TreeLikelihood:
        """With multifurcations, which only a tree that is held has."""
        threads = self.search.threads or 1
        found = TreeLikelihood(self.alignment, tree, model, "cpu", threads=threads, multifurcations=True)
        found.set(parameters=values)
        return found


def _suffix(name: str) -> str:
    return "" if name == "E" else f"+{name}"


def _inherited(model: Model, other: Model, values: Start) -> Start:
    """What a model's free parameters can take over: those of the same name and size, and exchangeabilities,
    of pairs that share one their geometric mean."""
    result: Start = {}
    rates = {
        name: float(values[p.name]) for p in other.parameters if p.reference for name in (p.name, *p.aliases)
    }
    by_pair = exchangeabilities(rates)
    own = [p for p in model.free if p.reference == "rate_GT" and p.aliases]
    taken = {a.removeprefix("rate_") for p in own for a in p.aliases}
    reference = _geometric([rate for pair, rate in by_pair.items() if pair not in taken])
    for p in own:
        result[p.name] = _geometric([by_pair[a.removeprefix("rate_")] for a in p.aliases]) / reference
    for p in model.free:
        if p.name not in result and np.size(values.get(p.name, ())) == p.size and p.name != "frequencies":
            result[p.name] = values[p.name]
    return result


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-3)))))

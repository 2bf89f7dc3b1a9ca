"""`phloem plan`: what a run will need, before it is started."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.analysis.division import Processes, busiest_bytes, chain_bytes, divide
from phloem.analysis.model_file import model_of, usual_model
from phloem.analysis.reading import DataOptions, Part, alignment_of, of_part, parts_of
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.errors import InputError, require_count
from phloem.hardware.machine import Hardware, detect_hardware
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.ml.optimize import restarts
from phloem.io.trees import read_tree
from phloem.likelihood.problem import engine_problem, site_distances
from phloem.model.model import Model
from phloem.pruning.calibration import on_calibration
from phloem.pruning.gpu.cost import ChainPlan
from phloem.pruning.interface import Problem
from phloem.pruning.plan import Divided, Forecast, forecast, forecast_divided, remainder, undivided
from phloem.pruning.select import Selection, select_chains, select_engine
from phloem.tree.layout import tree_layout
from phloem.tree.random import uniform_rooted, uniform_unrooted
from phloem.tree.tree import Tree

MOST_RANKS = 65_536
MESSAGE_SECONDS = 1e-4  # in which processes that share a chain tell each other what their cells come to


@dataclass(frozen=True)
class PlanSettings(DataOptions):
    """Options of `phloem plan`. model: with partitions, of the subsets to which their file gives none; None
    is usual_model, as of `phloem ml`. tree: None forecasts on a random tree, which has more distinct columns
    than a good one, so that the forecast is an upper bound. ranks: processes, up to which a forecast is asked
    for."""

    model: str | None = None
    tree: str | None = None
    engine: Literal["auto", "reference", "cpu", "gpu"] = "auto"
    precision: Literal["float64", "float32"] = "float64"
    threads: int | None = None
    ranks: int | None = None


@dataclass(frozen=True)
class PartPlan:
    """One part of the data: sizes of its problem, what would run it, and what an evaluation takes."""

    name: str
    model: str
    sites: int
    patterns: int
    states: int
    categories: int
    selection: Selection
    forecast: Forecast


@dataclass(frozen=True)
class ChainsDivided:
    """busy: of size processes those that have chains or columns; seconds: a generation of all chains;
    memory_bytes: of the chains of the busiest at most; None on GPUs."""

    size: int
    busy: int
    seconds: float
    memory_bytes: int | None


@dataclass(frozen=True)
class RanksPlan:
    """likelihood: on 1, 2, 4, … processes, none of several parts, which are not divided. chains: of `phloem
    mcmc` with its defaults."""

    likelihood: tuple[Divided, ...]
    chains: tuple[ChainsDivided, ...]

    @property
    def remainder(self) -> float:
        """Share of a likelihood's time that is not divided (Amdahl); NaN where nothing is."""
        return remainder(self.likelihood) if self.likelihood else float("nan")

    @property
    def remainder_of_chains(self) -> float:
        """The same of a generation of all chains."""
        return undivided([(one.busy, one.seconds) for one in self.chains])


@dataclass(frozen=True)
class PlanResult:
    """parts: one, called "all", without partitions. usual: of those without a model, by name, the one that
    they were planned with. chains: where `phloem mcmc` with its defaults would
    evaluate its chains, and why. optimisation_evaluations: gradients that a fit takes;
    from each start it took 30 to 130 on the validation data, about 40 and one for every two taxa."""

    taxa: int
    parts: tuple[PartPlan, ...]
    usual: dict[str, str]
    chains: Selection
    hardware: Hardware
    random_tree: bool
    optimisation_evaluations: int
    ranks: RanksPlan | None = None

    def total(self, what: Callable[[Forecast], float]) -> float:
        """A number of the forecasts, summed over parts."""
        return sum(what(part.forecast) for part in self.parts)

    @property
    def fits(self) -> bool | None:
        """Whether the memory is there; None if the machine does not tell how much it has."""
        on_gpu = sum(p.forecast.memory_bytes for p in self.parts if p.selection.engine == "gpu")
        on_host = self.total(lambda forecast: forecast.memory_bytes) - on_gpu
        host = self.hardware.available_bytes
        device = self.hardware.accelerators[0].memory_bytes if self.hardware.accelerators else None
        asked = [(on_host, host), (on_gpu, device)]
        known = [need < there for need, there in asked if need and there is not None]
        return all(known) if known else None


def run_plan(
    settings: PlanSettings,
    compiling: Callable[[str], None] | None = None,
    measuring: Callable[[], None] | None = None,
) -> PlanResult:
    """Read, count, time a sample of the patterns, and forecast. Evaluates nothing of the whole problem.

    compiling, measuring: as of run_likelihood. Errors: InputError or ModelError that name the part.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    if measuring is not None:
        on_calibration(measuring)
    if not settings.partitioned:
        parts: tuple[Part, ...] = (Part("all", alignment_of(settings), settings.model),)
    else:
        _, parts = parts_of(settings, settings.model)
    if settings.ranks is not None:
        require_count("ranks", settings.ranks)
        if settings.ranks > MOST_RANKS:
            raise InputError(f"{settings.ranks:,} ranks", hint=f"Ask for {MOST_RANKS:,} at most.")
    first = parts[0].alignment
    children = tree_layout(_tree(settings, first), first.taxa).children
    plans, problems, starts = [], list[Problem](), 1
    for part in parts:
        with of_part(part) if len(parts) > 1 else nullcontext():
            model = model_of(part.model_text, part.alignment)
            own, apart = part.alignment, site_distances(model, part.alignment)
            problem = engine_problem(site_patterns(own), model, children, settings.precision, distance=apart)
            plans.append(_plan(part, model, problem, settings))
            problems.append(replace(problem, precision="float64"))
            starts = max(starts, len(restarts(model.free)))
    return PlanResult(
        taxa=first.n_taxa,
        parts=tuple(plans),
        usual={p.name: usual_model(p.alignment.alphabet.kind) for p in parts if p.model_text is None},
        chains=_chains(problems, settings),
        hardware=detect_hardware(),
        random_tree=settings.tree is None,
        optimisation_evaluations=starts * (40 + first.n_taxa // 2),
        ranks=None if settings.ranks is None else _on_ranks(settings.ranks, plans, problems),
    )


def _on_ranks(most: int, plans: list[PartPlan], problems: list[Problem]) -> RanksPlan:
    """As runs would be divided: columns of one alignment, and runs and chains of `phloem mcmc`."""
    sizes = [*(1 << k for k in range((most - 1).bit_length())), most]
    likelihood: list[Divided] = []
    if len(plans) == 1:
        problem = replace(problems[0], precision=plans[0].selection.precision)
        likelihood = forecast_divided(problem, plans[0].selection, plans[0].forecast, sizes)
    usual = ChainSettings()
    gpu = select_chains("auto", lambda: problems, _usual_plan(usual)).engine == "gpu"
    chains, each = [], 0 if gpu else sum(map(chain_bytes, problems))
    for size in sizes:
        found = divide(problems, usual, Processes(size, 1, MESSAGE_SECONDS, gpu))
        memory = None if gpu else busiest_bytes(found, each)
        chains.append(ChainsDivided(size, found.busy, found.seconds, memory))
    return RanksPlan(tuple(likelihood), tuple(chains))


def _chains(problems: list[Problem], settings: PlanSettings) -> Selection:
    """What analysis.mcmc chooses."""
    device = "auto" if settings.engine == "reference" else settings.engine
    return select_chains(device, lambda: problems, _usual_plan(ChainSettings()), settings.threads)


def _usual_plan(chains: ChainSettings) -> ChainPlan:
    return ChainPlan(chains.n_runs, chains.n_chains, chains.generations)


def _plan(part: Part, model: Model, problem: Problem, settings: PlanSettings) -> PartPlan:
    selection = select_engine(settings.engine, problem, settings.threads)
    lengths = np.full(len(problem.left) * 2 + 1, 0.1)
    return PartPlan(
        name=part.name,
        model=model.name,
        sites=part.alignment.n_sites,
        patterns=int((~problem.ascertained).sum()),
        states=model.n_states,
        categories=model.n_categories,
        selection=selection,
        forecast=forecast(problem, selection, model.evaluate(model.start_values()), lengths),
    )


def _tree(settings: PlanSettings, alignment: Alignment) -> Tree:
    if settings.tree is not None:
        return read_tree(settings.tree, allow_negative=True)
    if alignment.n_taxa < 2:
        raise InputError("a tree needs two taxa", file=alignment.source, hint="Add a sequence.")
    draw = uniform_unrooted if alignment.n_taxa > 2 else uniform_rooted
    tree = draw(alignment.n_taxa, np.random.default_rng(1))
    return replace(tree, taxa=alignment.taxa)

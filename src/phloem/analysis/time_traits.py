"""Discrete traits in `phloem time`: what is asked, the table of routes, the tree by states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from phloem.data.given_fields import settle_fields
from phloem.density.traits import prior_of_route
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import KEPT
from phloem.inference.time.draws import STATES, Columns
from phloem.inference.time.sampler import AnyRun
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.traits import RATES, ROUTES, TraitModel
from phloem.io.input_file import input_digest
from phloem.io.output_file import write_file
from phloem.io.trait_table import read_traits
from phloem.plot.drawing import DrawSettings
from phloem.plot.pictures import draw, svg_text
from phloem.summary.routes import Route, route_table
from phloem.summary.trees import StatesAlong
from phloem.tree.tree import Tree


@dataclass(frozen=True)
class TraitOptions:
    """table: of taxa and their states (io/trait_table.py); column: which, None where there is one. rates:
    whether both directions of a route have the same. bssvs: routes come and go, few are expected (Bayesian
    stochastic search variable selection). root: frequencies there, equal or free."""

    table: str
    column: str | None = None
    rates: Literal["symmetric", "asymmetric"] = "symmetric"
    bssvs: bool = False
    root: Literal["equal", "free"] = "equal"

    def __post_init__(self) -> None:
        settle_fields(self)

    def read(self, taxa: Sequence[str], use_data: bool) -> TraitModel:
        """The trait of these taxa; without data nothing is known of any."""
        tips = read_traits(self.table, taxa, self.column)
        tips = tips if use_data else tips.ignored()
        return TraitModel(tips, self.rates == "symmetric", self.bssvs, self.root == "free")

    def identity(self) -> dict[str, object]:
        """What of it decides the numbers that are drawn."""
        return asdict(self) | {"table": input_digest(self.table)}


def check_name(model: TraitModel) -> None:
    """InputError where a trait's name is that of another annotation of the trees."""
    if model.tips.name.lower() in ("rate", "prob", "height", "length", "posterior"):
        raise InputError(
            f"'{model.tips.name}' is another annotation of the trees", hint="Give the column another name."
        )


def trait_files(prefix: str) -> dict[str, str]:
    """File name → what it holds."""
    return {
        f"{prefix}.routes.tsv": "routes of the trait: probabilities, Bayes factors, changes",
        f"{prefix}.trait.svg": "the summary tree, coloured by the trait",
    }


def states_along(model: TraitModel, runs: Sequence[AnyRun], first: int) -> dict[str, StatesAlong]:
    """The drawn states of all nodes, by the trait's name."""
    values = np.concatenate([run.samples.sets[first:, STATES] for run in runs]).astype(np.int64)
    return {model.tips.name: StatesAlong(values, model.tips.states)}


def routes_of(model: TimeModel, columns: Columns, draws: np.ndarray) -> tuple[Route, ...]:
    """The table of routes from draws (n_runs, n, k) of a trace's columns."""
    trait = model.trait
    assert trait is not None and columns.trait is not None
    names = ("LnL", "LnPr", *columns.names)
    at = {name: i for i, name in enumerate(names)}

    def of(block: str) -> np.ndarray:
        return draws[:, :, [at[name] for name in model.space.block(block).elements]]

    states = trait.tips.states
    ways = [[(i, j), (j, i)] if trait.symmetric else [(i, j)] for i, j in trait.pairs.tolist()]
    changes = np.stack(
        [sum(draws[:, :, at[f"changes({states[i]}->{states[j]})"]] for i, j in own) for own in ways], axis=2
    )
    prior = prior_of_route(columns.trait) if trait.few else 1.0
    return route_table(trait.route_names, of(RATES), of(ROUTES) if trait.few else None, changes, prior)


def write_trait(prefix: str, name: str, routes: Sequence[Route], tree: Tree, latest: float | None) -> None:
    """PREFIX.routes.tsv and PREFIX.trait.svg."""
    heads = ("route", "probability", "ess", "bayes_factor", "rate", "changes", "low", "high", "taken")
    rows = ["\t".join(heads)]
    for route in routes:
        numbers = list(asdict(route).values())[1:]
        rows.append("\t".join([route.name, *("" if x is None else f"{x:.6g}" for x in numbers)]))
    write_file(f"{prefix}.routes.tsv", "\n".join(rows) + "\n", KEPT)
    picture = DrawSettings(colour_by=name, intervals="none", latest=latest)
    write_file(f"{prefix}.trait.svg", svg_text(draw(tree, picture)), KEPT)

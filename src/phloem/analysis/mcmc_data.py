"""What an analysis by `phloem mcmc` samples: the parts of its data, their models, shared numbers, priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phloem.analysis.constraint_text import HARD, NEGATIVE, PARTIAL, parse_constraint
from phloem.analysis.mcmc_parts import Piece, expanded_prior
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.obeyed import require_mcmc_obeyed
from phloem.analysis.pieces import (
    linkage_of,
    members_of,
    pieces_of_parts,
    shared_structure,
    sites_in_file,
    taxon_of,
)
from phloem.analysis.reading import Part, alignment_of, parts_of
from phloem.analysis.same_data import characters_read
from phloem.analysis.working import read_working
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.data.sites import format_sites
from phloem.density.parameterisation import PARTITION_RATES
from phloem.density.parts import PartModel
from phloem.errors import InputError
from phloem.inference.mcmc.guard import Plain, plain_likelihood
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.recipes import Observations, observations
from phloem.inference.mcmc.settings import ChainSettings, Constraints, Priors, length_prior_text
from phloem.inference.mcmc.structure import ChainModel, structure_of_parts
from phloem.inference.mcmc.working import WorkingDistribution
from phloem.likelihood.problem import engine_problem, site_distances
from phloem.model.amino_acid import MIXED_MATRICES
from phloem.model.model import Model
from phloem.pruning.interface import Problem
from phloem.tree.layout import tree_layout
from phloem.tree.random import uniform_unrooted

# What an analysis by `phloem mcmc` samples: the parts of its data, their models, the numbers they share.


@dataclass(frozen=True, eq=False)
class ChainInput:
    """alignments: of every part by name, taxa in one order; one part is called "all". structure: their models
    and numbers. priors: by the names of these parts. unrecorded: of every part, see recipes.observations.
    constraints: of the topologies. dropped: columns in no part, in words, or ''; told:
    what else is done with the data. sites: of every part the numbers of its sites in the file, of codons that
    of the first nucleotide; None where --sites chose them. read: what says which characters these are
    (same_data.characters_read). working: where stepping stones begin, if not at the prior."""

    alignments: dict[str, Alignment]
    structure: ChainModel
    priors: Priors
    unrecorded: tuple[int, ...]
    constraints: Constraints
    dropped: str = ""
    told: tuple[str, ...] = ()
    sites: tuple[np.ndarray | None, ...] = ()
    read: dict[str, Any] = field(default_factory=dict)
    working: WorkingDistribution | None = None

    @property
    def models(self) -> dict[str, Model]:
        return {part.name: part.model for part in self.structure.parts}

    @property
    def largest(self) -> str:
        """The part that a starting tree from distances is made of: the largest that has distances."""
        return max(
            self.alignments,
            key=lambda name: (
                self.alignments[name].alphabet.kind != "standard",
                self.alignments[name].n_sites,
            ),
        )

    @property
    def taxa(self) -> tuple[str, ...]:
        return next(iter(self.alignments.values())).taxa

    def chains(self, settings: ChainSettings) -> ChainSettings:
        """The settings of chains with what is known since the data were read."""
        hard, partial, negative = self.constraints
        return replace(
            settings, priors=self.priors, constraints=hard, partial_constraints=partial,
            negative_constraints=negative, working=self.working,
        )  # fmt: skip

    def observed(self) -> list[Observations]:
        """Site patterns of every part."""
        return [
            observations(
                self.alignments[part.name], part.model.unseen, n, sites, part.model.along_sites is not None
            )
            for part, n, sites in zip(self.structure.parts, self.unrecorded, self.sites)
        ]

    def problems(self) -> list[Problem]:
        """Of every part, on one random tree: it has more distinct columns than a good one."""
        tree = replace(uniform_unrooted(len(self.taxa), np.random.default_rng(1)), taxa=self.taxa)
        children, found = tree_layout(tree, self.taxa).children, list[Problem]()
        for part in self.structure.parts:
            own = self.alignments[part.name]
            apart = site_distances(part.model, own)
            found.append(engine_problem(site_patterns(own), part.model, children, distance=apart))
        return found

    def plain_likelihood(self) -> Plain:
        """What the guard compares with."""
        return plain_likelihood(list(self.alignments.values()), self.structure, self.unrecorded)

    def record(self) -> dict[str, object]:
        """What was read: of the only part, or sums and every part."""
        parts: dict[str, dict[str, Any]] = {
            name: {
                "sites": alignment.n_sites,
                "patterns": len(site_patterns(alignment).weights),
                "datatype": alignment.alphabet.kind,
                "states": alignment.alphabet.n_states,
            }
            for name, alignment in self.alignments.items()
        }
        taxa: dict[str, object] = {"taxa": len(self.taxa)}
        if len(parts) == 1:
            return taxa | next(iter(parts.values()))
        totals = {key: sum(part[key] for part in parts.values()) for key in ("sites", "patterns")}
        return taxa | totals | {"parts": parts, "dropped_columns": self.dropped}

    def model_text(self) -> str:
        """The model, or every part's with its name."""
        texts = {name: model.text() for name, model in self.models.items()}
        alone = next(iter(texts.values()))
        return alone if len(texts) == 1 else "; ".join(f"{name}: {t}" for name, t in texts.items())


def chain_input(settings: McmcSettings) -> ChainInput:
    """Read the data and models of an analysis. Errors: InputError, ModelError that name file and part."""
    quiet, dropped = settings.of_block is not None, ""
    if not settings.partitioned:
        if settings.linkage is not None or settings.link:
            raise InputError(
                "--linkage and --link say what parts share, and there is one", hint="Leave them out."
            )
        parts: tuple[Part, ...] = (Part("all", alignment_of(settings, quiet), settings.model, None),)
    else:
        scheme, parts = parts_of(settings, settings.model, quiet)
        dropped = format_sites(scheme.dropped) if len(scheme.dropped) else ""
    taxa = parts[0].alignment.taxa
    for part in parts:
        if part.alignment.taxa != taxa:
            raise InputError(f"the taxa of part '{part.name}' are not those of '{parts[0].name}'")
    pieces, models, told = pieces_of_parts(settings, parts, settings.gamma)
    require_mcmc_obeyed(settings, [part.alignment.alphabet.kind for part in parts], models)
    structure, priors = _shared(settings, parts, pieces, models)
    number_priors(structure, priors)
    alignments = {piece.name: piece.alignment for piece in pieces}
    if settings.outgroup is not None:
        taxon_of(settings.outgroup, pieces[0].alignment.taxa)
    kept = pieces[0].alignment.taxa
    if settings.chains.fixed_topology and settings.constraint:
        raise InputError(
            "--constraint is of topologies that are sampled, and this one is fixed",
            hint="Leave --constraint or --fixed-topology out.",
        )
    found = ChainInput(
        alignments,
        structure,
        priors,
        tuple(piece.unrecorded for piece in pieces),
        _constraints(settings.constraint, kept),
        dropped,
        tuple(told),
        sites_in_file(settings, parts, pieces),
        characters_read(parts, pieces, [part.model.unseen for part in models]),
    )
    if settings.stones_from is None:
        return found
    chains = found.chains(settings.chains)
    return replace(found, working=read_working(settings, structure, chains, found.model_text()))


def _shared(
    settings: McmcSettings, parts: Sequence[Part], pieces: Sequence[Piece], models: Sequence[PartModel]
) -> tuple[ChainModel, Priors]:
    """Models and numbers of the pieces, and priors by their names: pieces of a part share what it has."""
    priors = settings.chains.priors
    if len(pieces) == 1:
        return structure_of_parts(models), priors
    members = members_of(parts, pieces)
    structure = shared_structure(linkage_of(settings.linkage, parts), settings.link, members, models)
    return structure, replace(priors, others=tuple(expanded_prior(text, members) for text in priors.others))


def _constraints(texts: Sequence[str], taxa: Sequence[str]) -> Constraints:
    """Of an analysis' options, as numbers of taxa."""
    number = {taxon: i for i, taxon in enumerate(taxa)}
    found: dict[str, list[tuple[tuple[int, ...], ...]]] = {HARD: [], PARTIAL: [], NEGATIVE: []}
    for one in (parse_constraint(text, taxa) for text in texts):
        found[one.kind].append(tuple(tuple(sorted(number[name] for name in own)) for own in one.sets))
    partial = tuple((one, other) for one, other in found[PARTIAL])
    return Constraints(tuple(x for (x,) in found[HARD]), partial, tuple(x for (x,) in found[NEGATIVE]))


# The priors of an analysis in words, before it starts.

_NAMED = {"omega", "frequencies", "alpha", "p_invariable", "weights", "mixture_weights", "rho"}


def prior_text(structure: ChainModel, priors: Priors, fixed_topology: bool = False) -> str:
    """Priors of branch lengths, of topologies, and of those parameters that the models leave free: the usual
    ones but where --prior gives all parts another."""
    given = {text.split("=")[0].strip() for text in priors.others}
    free = {parameter.name for part in structure.parts for parameter in part.model.free} - given
    free -= {name for name in free if name.startswith("rate_") and "rates" in given}
    unit = " per nucleotide site" if any(part.site_length > 1 for part in structure.parts) else ""
    sets = f" of each of {structure.n_sets} sets" if structure.n_sets > 1 else ""
    parts = [f"branch lengths{sets}{unit} {length_prior_text(priors.branch_lengths)}"]
    parts.append("a fixed topology" if fixed_topology else "uniform topologies")
    if PARTITION_RATES in structure.space:
        parts.append("flat Dirichlet shares of the rates of parts")
    blocks = [(block.name.split("{")[0], block.support) for block in structure.space.blocks]
    positive = {name for name, support in blocks if support == "positive"} - {"alpha"}
    if positive - given:
        parts.append(f"exponential(1) {', '.join(sorted(positive - given))}")
    shares = {name for name, support in blocks if support == "unit"} - {"p_invariable"}
    if shares - given:
        parts.append(f"uniform {', '.join(sorted(shares - given))}")
    averaged = {p.name: p for part in structure.parts for p in part.model.free if p.averaged}
    if any(p.tied for p in averaged.values()):
        sums = f"{_dirichlet(priors.exchangeability)} sums of equal rates"
        parts.append(f"each of 203 models of the rates as probable, {sums}")
    if free - _NAMED - positive - shares - set(averaged):
        parts.append(f"{_dirichlet(priors.exchangeability)} rates")
    if any(p.kind == "choice" for p in averaged.values()):
        parts.append(f"each of {len(MIXED_MATRICES)} matrices as probable")
    if "omega" in free:
        parts.append(f"{_dirichlet(priors.omega)} rates of synonymous and other changes")
    if "frequencies" in free:
        parts.append(f"{_dirichlet(priors.frequency)} frequencies")
    if "alpha" in free:
        parts.append(f"exponential({priors.alpha_rate:g}) alpha")
    if "rho" in free:
        parts.append("uniform(-1,1) correlation of neighbours' rates")
    if "p_invariable" in free:
        parts.append("uniform proportion of invariable sites")
    if free & {"weights", "mixture_weights"}:
        parts.append("flat Dirichlet weights of classes")
    return ", ".join([*parts, *priors.others])


def _dirichlet(concentration: float) -> str:
    return "flat Dirichlet" if concentration == 1 else f"Dirichlet({concentration:g})"

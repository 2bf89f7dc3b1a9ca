"""What an analysis by `phloem mcmc` samples: the parts of its data, their models, shared numbers, priors."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.partitioned_likelihood import read_linkage
from phloem.analysis.reading import alignment_of, parts_of
from phloem.data.alignment import Alignment
from phloem.data.sites import format_sites
from phloem.density.parameterisation import PARTITION_RATES, PartModel
from phloem.errors import InputError
from phloem.inference.mcmc.recipes import Observations, observations
from phloem.inference.mcmc.settings import Priors, length_prior_text
from phloem.inference.mcmc.structure import ChainModel, sites_per_character, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.parts import in_part
from phloem.model.model import Model

# What an analysis by `phloem mcmc` samples: the parts of its data, their models, the numbers they share.


DEFAULT_MODELS = {"dna": "GTR+G4", "rna": "GTR+G4", "protein": "LG+G4", "codon": "GY94+F3X4"}


@dataclass(frozen=True, eq=False)
class ChainInput:
    """alignments: of every part by name, taxa in one order; one part is called "all". structure: their models
    and numbers. dropped: columns in no part, in words, or ''."""

    alignments: dict[str, Alignment]
    structure: ChainModel
    dropped: str = ""

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

    def observed(self) -> list[Observations]:
        """Site patterns of every part."""
        return [
            observations(self.alignments[part.name], part.model.ascertainment == "variable")
            for part in self.structure.parts
        ]

    def model_text(self) -> str:
        """The model, or every part's with its name."""
        texts = {name: model.text() for name, model in self.models.items()}
        return texts["all"] if len(texts) == 1 else "; ".join(f"{name}: {t}" for name, t in texts.items())


def chain_input(settings: McmcSettings) -> ChainInput:
    """Read the data and models of an analysis. Errors: InputError, ModelError that name file and part."""
    if settings.partitions is None:
        if settings.linkage is not None or settings.link:
            raise InputError(
                "--linkage and --link say what parts share, and there is one", hint="Leave them out."
            )
        whole = alignment_of(settings)
        return ChainInput({"all": whole}, structure_of_parts([_part("all", whole, settings.model, settings)]))
    scheme, parts = parts_of(settings, settings.model)
    taxa, alignments, models = parts[0].alignment.taxa, {}, []
    for part in parts:
        if part.alignment.taxa != taxa:
            raise InputError(f"the taxa of part '{part.name}' are not those of '{parts[0].name}'")
        with in_part(part.name):
            models.append(_part(part.name, part.alignment, part.model_text, settings))
        alignments[part.name] = part.alignment
    by_name = {part.name: part.model for part in models}
    linkage = read_linkage(settings.linkage or "proportional", settings.link, by_name)
    structure = structure_of_parts(models, linkage)
    dropped = format_sites(scheme.dropped) if len(scheme.dropped) else ""
    return ChainInput(alignments, structure, dropped)


def _part(name: str, alignment: Alignment, text: str | None, settings: McmcSettings) -> PartModel:
    text = text or DEFAULT_MODELS.get(alignment.alphabet.kind, "MK+G4")
    model = model_for_alignment(text, alignment, settings.gamma)
    return PartModel(name, model, alignment.n_sites, sites_per_character(model))


# The priors of an analysis in words, before it starts.


_NAMED = {"omega", "frequencies", "alpha", "p_invariable"}


def prior_text(structure: ChainModel, priors: Priors) -> str:
    """Priors of branch lengths, of topologies, and of those parameters that the models leave free."""
    free = {parameter.name for part in structure.parts for parameter in part.model.free}
    unit = " per nucleotide site" if any(part.site_length > 1 for part in structure.parts) else ""
    sets = f" of each of {structure.n_sets} sets" if structure.n_sets > 1 else ""
    parts = [f"branch lengths{sets}{unit} {length_prior_text(priors.branch_lengths)}", "uniform topologies"]
    if PARTITION_RATES in structure.space:
        parts.append("flat Dirichlet shares of the rates of parts")
    others = {b.name.split("{")[0] for b in structure.space.blocks if b.support == "positive"} - {"alpha"}
    if others:
        parts.append(f"exponential(1) {', '.join(sorted(others))}")
    if free - _NAMED - others:
        parts.append(f"{_dirichlet(priors.exchangeability)} rates")
    if "omega" in free:
        parts.append(f"{_dirichlet(priors.omega)} rates of synonymous and other changes")
    if "frequencies" in free:
        parts.append(f"{_dirichlet(priors.frequency)} frequencies")
    if "alpha" in free:
        parts.append(f"exponential({priors.alpha_rate:g}) alpha")
    if "p_invariable" in free:
        parts.append("uniform proportion of invariable sites")
    if priors.others:
        parts.append(f"but {', '.join(priors.others)}")
    return ", ".join(parts)


def _dirichlet(concentration: float) -> str:
    return "flat Dirichlet" if concentration == 1 else f"Dirichlet({concentration:g})"

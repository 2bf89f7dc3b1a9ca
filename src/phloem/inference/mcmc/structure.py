"""What the chains sample: partitions with their models, and the blocks of numbers that these read.

Built on density.parameterisation, which the fit uses too: what one can free the other can sample. Relative
rates are shares of a simplex, as in MrBayes, so that priors do not depend on which rate is the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from phloem.data.alphabet import columns_of
from phloem.density.parameterisation import LENGTHS, PARTITION_RATES, SUBMODEL, Parameterisation, parameterise
from phloem.density.parts import Linkage, PartModel
from phloem.density.space import Block, Space
from phloem.density.terms.tied_dirichlet import (
    all_groupings,
    code_of,
    groups_of,
    in_order_of_appearance,
)
from phloem.errors import InputError, ModelError
from phloem.model.model import Model
from phloem.model.record import ParameterValue, SiteModel
from phloem.model.substitution import without_unreachable_states

_BOUNDS = {"alpha": (1e-3, 200.0), "sigma": (1e-3, 200.0), "p_invariable": (0.0, 0.9999), "rho": (-1.0, 1.0)}
_SHARE = (1e-6, 1.0 - 1e-6)  # of numbers below 1
_PRINTED = {"p_invariable": "pinvar", "rate_GT": "r(G<->T)"}
_PRINTED |= {f"rate_{a}{b}": f"r({a}<->{b})" for a in "ACGT" for b in "ACGT" if (a, b) != ("G", "T")}
N_RATES = "k_revmat"
_ALL_PAIRS = 6  # exchangeabilities of nucleotides; printed as shares where all are there, else as ratios


@dataclass(frozen=True, eq=False)
class ChainModel:
    """parameterisation: of all parts; its free blocks but the branch lengths are the numbers that a chain
    carries."""

    parameterisation: Parameterisation

    @property
    def parts(self) -> tuple[PartModel, ...]:
        return self.parameterisation.parts

    @cached_property
    def space(self) -> Space:
        """The numbers of a chain: free blocks without the branch lengths, with the bounds of sampling."""
        blocks = []
        for block in self.parameterisation.free_space.blocks:
            if not block.name.startswith(LENGTHS):
                usual = _SHARE if block.support == "unit" else (block.lower, block.upper)
                low, high = _BOUNDS.get(_bare(block.name), usual)
                blocks.append(replace(block, lower=low, upper=high))
        return Space(tuple(sorted(blocks, key=_place_in_trace)))

    @cached_property
    def sets(self) -> tuple[range, ...]:
        """The sets of branch lengths that each part reads: its own where lengths are unlinked, else those of
        all; several where its model has classes of sites with lengths of their own (+H)."""
        counts = {
            block: part.model.n_length_classes
            for block, part in zip(self.parameterisation.lengths, self.parts)
        }
        ends = np.cumsum([0, *counts.values()]).tolist()
        of_block = dict(zip(counts, (range(first, end) for first, end in pairwise(ends))))
        return tuple(of_block[block] for block in self.parameterisation.lengths)

    @property
    def n_sets(self) -> int:
        """G, sets of branch lengths."""
        return max(own.stop for own in self.sets)

    @property
    def set_names(self) -> tuple[str, ...]:
        """Of the sets where there are several: the part's name, the number of the class, or both."""
        if self.n_sets == 1:
            return ()
        if len(set(self.sets)) == 1:
            return tuple(str(k + 1) for k in self.sets[0])
        blocks = dict(zip(self.parameterisation.lengths, self.sets))
        return tuple(
            block.removeprefix(LENGTHS)[1:-1] + (f".{k + 1}" if len(own) > 1 else "")
            for block, own in blocks.items()
            for k in range(len(own))
        )

    def mean_lengths(self, lengths: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(N,) mean over sites of the lengths of all sets (G, N): parts count as they have sites, classes by
        their weights at the chain's numbers (n,)."""
        if self.n_sets == 1:
            return lengths[0]
        shares, weights = self.parameterisation.site_shares, np.zeros(self.n_sets)
        for part, own in enumerate(self.sets):
            each: np.ndarray = np.ones(1)
            if len(own) > 1:
                model = self.parts[part].model.evaluate(self.model_values(part, values))
                each = np.bincount(model.length_class, model.weights)
            weights[own.start : own.stop] += shares[part] * each / each.sum()
        return weights @ lengths

    @property
    def along_sites(self) -> bool:
        """Whether sites of some part depend on their neighbours."""
        return any(part.model.along_sites is not None for part in self.parts)

    @property
    def length_unit(self) -> str:
        """What a branch length counts, as files and tables say it."""
        nucleotide = any(part.site_length > 1 for part in self.parts)
        return f"expected substitutions per {'nucleotide ' if nucleotide else ''}site"

    def block_values(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """By name of every block but lengths, the fixed ones included, from the chain's numbers (n,)."""
        fixed = {k: v for k, v in self.parameterisation.fixed_values().items() if not k.startswith(LENGTHS)}
        return fixed | self.space.unpack(values)

    def model_values(self, part: int, values: np.ndarray) -> dict[str, ParameterValue]:
        """The parameters of a part's model from the chain's numbers (n,)."""
        return self.parameterisation.model_values(self.block_values(values), part)

    def site_model(self, part: int, values: np.ndarray) -> SiteModel:
        """A part's model at the chain's numbers, its rates in the unit of the branch lengths."""
        blocks, here = self.block_values(values), self.parts[part]
        model = here.model.evaluate(self.parameterisation.model_values(blocks, part))
        processes = tuple(without_unreachable_states(process) for process in model.processes)
        return replace(model, processes=processes, rates=model.rates * self.rate_factor(part, values))

    def rate_factor(self, part: int, values: np.ndarray) -> float:
        """A part's effective lengths over the sampled ones: its rate, times sites of a character."""
        rate = self.parameterisation.rate(self.block_values(values), part)
        return rate * self.parts[part].site_length

    def reads(self, part: int) -> np.ndarray:
        """(n,) bool: which of the chain's numbers the part's model, or its rate, depends on."""
        mask = np.zeros(self.space.size, bool)
        for reading in self.parameterisation.readings[part]:
            if reading.block in self.space:
                mask[self.space.place(reading.block)] = True
        if self.parameterisation.rates[part] >= 0:
            mask[self.space.place(PARTITION_RATES).start + self.parameterisation.rates[part]] = True
        return mask

    def values_of(self, numbers: Mapping[str, float]) -> np.ndarray:
        """The chain's numbers (n,) from those that a trace prints, by their names there."""
        parts = [np.empty(0)]
        for block in self.space.blocks:
            names = printed_names(self, block)
            if block.support == "tied":
                x = _from_printed(np.array([numbers[name] for name in names]))
            elif len(names) == block.size:
                x = np.array([numbers[name] for name in names])
            else:  # ratios to the first entry
                x = np.array([1.0, *(numbers[name] for name in names)])
            if block.name == PARTITION_RATES:
                x = x * self.parameterisation.rate_shares
            parts.append(x / x.sum() if block.support == "simplex" else x)
        return np.concatenate(parts)


def _place_in_trace(block: Block) -> int:
    """MrBayes' order: rates, omega, frequencies, gamma shape and correlation, invariable sites, the rest."""
    order = ("relative_rates", "kappa", "omega", "frequencies", "alpha", "sigma", "rho", "p_invariable")
    name = _bare(block.name)
    if name in order:
        return order.index(name)
    return len(order) + (name == PARTITION_RATES)


def _bare(name: str) -> str:
    """Without the parts in braces."""
    return name.split("{")[0]


def is_shares(structure: ChainModel, block: Block) -> bool:
    """Whether a simplex has a reference rate first."""
    readings = [r for own in structure.parameterisation.readings for r in own if r.block == block.name]
    return any(r.over_first for r in readings)


def printed_names(structure: ChainModel, block: Block) -> tuple[str, ...]:
    """Names of a block's numbers in a trace, as MrBayes has them where it has the parameter. Shares of rates
    are printed as ratios to the first, which has no name then, unless they are all six of nucleotides. Tied
    ones are followed by the number of the submodel and how many rates it has."""
    names, all_pairs = [], block.size == _ALL_PAIRS or block.support == "tied"
    for element in block.elements:
        bare, brace, label = element.partition("{")
        if bare.startswith("frequency_") and _bare(block.name) == "frequencies":
            bare = f"pi({bare.removeprefix('frequency_')})"
        if _bare(block.name) == "relative_rates" and all_pairs:
            bare = _PRINTED.get(bare, bare)
        if bare == "p_invariable":
            bare = _PRINTED[bare]
        names.append(bare + brace + label)
    if block.support == "tied":
        return (*names, names[-1].replace(SUBMODEL, N_RATES))
    if is_shares(structure, block) and not names[0].startswith("r("):
        return tuple(names[1:])
    return tuple(names)


def printed_values(structure: ChainModel, block: Block, x: np.ndarray) -> np.ndarray:
    """The numbers under printed_names, from the block's."""
    if block.name == PARTITION_RATES:
        return x / structure.parameterisation.rate_shares
    if block.support == "tied":
        groups = np.roll(groups_of(x[-1], len(x) - 1), -1)  # the rate of reference goes last
        submodel = all_groupings(len(groups)).index(in_order_of_appearance(groups.tolist()))
        return np.array([*x[:-1], submodel, len(set(groups.tolist()))])
    if is_shares(structure, block) and len(printed_names(structure, block)) < block.size:
        return x[1:] / x[0]
    return x


def _from_printed(printed: np.ndarray) -> np.ndarray:
    """Tied shares and what says which are equal, from the numbers under printed_names."""
    groups = all_groupings(len(printed) - 2)[int(printed[-2])]
    return np.append(printed[:-2], code_of(np.roll(groups, 1).tolist()))


def sites_per_character(model: Model) -> int:
    """Nucleotide sites that one character of the data spans: 3 of a codon, 2 of a doublet. Branch lengths are
    sampled, and their priors stated, in substitutions per site, as MrBayes 3.2.7a has them (likelihood.c,
    TiProbs_Gen)."""
    return columns_of(model.datatype)


def structure_of_model(model: Model, n_sites: int = 1) -> ChainModel:
    """What the sampler needs of a model. ModelError where it cannot sample it, naming what stands in the
    way."""
    return structure_of_parts([PartModel("all", model, n_sites, sites_per_character(model))])


def structure_of_parts(parts: Sequence[PartModel], linkage: Linkage | None = None) -> ChainModel:
    """The same for several partitions on one tree, their numbers linked or not."""
    for part in parts:
        _refuse(part.model)
    classes = max(parts, key=lambda part: part.model.n_length_classes)
    if classes.model.n_length_classes > 1 and len(parts) > 1:
        shares = linkage is None or any(classes.name in group for group in linkage.together)
        if shares or linkage is None or linkage.lengths != "unlinked":
            raise InputError(
                f"the model of part '{classes.name}' has {classes.model.n_length_classes} sets of branch "
                "lengths, and the parts share one",
                hint="Unlink the branch lengths (--linkage unlinked), or choose another model.",
            )
    lengths = Block(LENGTHS, "positive", np.array([0.1]), 1e-8, 100.0)
    return ChainModel(parameterise(parts, lengths, linkage, relative_rates="shares"))


def _refuse(model: Model) -> None:
    """ModelError for what needs a root: the chains' trees are unrooted."""
    site_model = model.evaluate(_apart(model))
    reversible = model.root_term is None and all(
        np.allclose(p.frequencies[:, None] * p.rate_matrix, (p.frequencies[:, None] * p.rate_matrix).T)
        and np.allclose(p.frequencies, p.root_frequencies)
        for p in site_model.processes
    )
    if not reversible:
        raise ModelError(
            f"{model.name} needs a root, and phloem mcmc samples unrooted trees",
            hint="Choose a reversible model.",
        )
    if any(process.real_eigen is None for process in site_model.processes):
        raise ModelError(f"{model.name} has no real eigensystem; phloem mcmc cannot sample it")


def _apart(model: Model) -> dict[str, ParameterValue]:
    """Values at which no two free rates are equal: with equal ones an irreversible model can be
    reversible."""
    values = model.start_values()
    for p in model.free:
        if p.kind == "positive":
            x = np.atleast_1d(values[p.name]) * (1.0 + 0.1 * np.arange(1, p.size + 1))
            values[p.name] = x if p.elements else float(x[0])
    return values

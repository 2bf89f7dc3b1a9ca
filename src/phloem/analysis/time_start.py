"""Where the chains of a dated analysis run, and what they start from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment, side_by_side
from phloem.data.patterns import site_patterns
from phloem.dating.least_squares import DatingSettings, date_tree
from phloem.errors import InputError
from phloem.hardware.machine import usable_cores
from phloem.inference.mcmc.checkpoint import stored_device
from phloem.inference.time.ancestors.start import of_nucleotides, require_ancestors
from phloem.inference.time.calibrated_start import starting_tips
from phloem.inference.time.start import Origin
from phloem.likelihood.problem import engine_problem
from phloem.model.record import SiteModel
from phloem.pruning.gpu.cost import ChainPlan
from phloem.pruning.select import Selection, chains_on_cpu, chains_on_gpu, select_chains
from phloem.tree.dated import lifted_tree
from phloem.tree.layout import tree_layout
from phloem.tree.random import uniform_unrooted

if TYPE_CHECKING:
    from phloem.analysis.time_data import TimeInput
    from phloem.analysis.time_record import TimeTreeSettings
    from phloem.pruning.interface import Problem

SHORTEST = 1e-3  # branches of a start by least squares, in shares of the tree's typical age over the taxa


MANY, FEW = 200, 0.01  # genomes from where, and differences a site up to which, ancestors are sampled unasked
CODED_SAMPLES = 20  # times as far apart: a sample's likelihood without them costs as much as 500 moves
MANY_CODED = 20  # of codons or amino acids, of which summing over ancestors costs a hundred times as much


def with_usual_samples(settings: TimeTreeSettings, n_taxa: int) -> TimeTreeSettings:
    """Where nothing else is asked for, samples that are farther apart the more taxa there are: a tree of a
    thousand changes little in 200 moves, and takes 60 kB."""
    if not settings.usual_samples:
        return settings
    every = 200 * max(1, n_taxa // 100)
    return replace(settings, chains=replace(settings.chains, sample_every=every))


def with_engine(settings: TimeTreeSettings, data: TimeInput) -> tuple[TimeTreeSettings, str]:
    """The settings with chains that sum over ancestors or sample them, as settings.engine says; and why,
    where they are sampled. InputError where they cannot be and were to be."""
    chains, told = settings.chains, "as --engine asks for"
    if settings.engine == "patterns" or not chains.use_data:
        return settings, ""
    if settings.engine == "auto":
        other = chains.stones or chains.n_chains > 1 or settings.device == "gpu"
        other = other or data.model.samples_ancestors
        many = MANY if of_nucleotides(data.model.engine) else MANY_CODED
        if other or len(data.taxa) < many or not _have_ancestors(data):
            return settings, ""
        share = _differences(data)
        if share > FEW:
            return settings, ""
        told = f"{len(data.taxa):,} genomes differ at {100 * share:.2g}% of their sites"
    elif settings.device == "gpu":
        raise InputError("sequences of ancestors are sampled on CPUs", hint="Leave --device out.")
    elif data.model.samples_ancestors:
        raise InputError(
            "sequences of ancestors are not sampled where a sample may be one",
            hint="Choose --engine patterns, or --fossils tips, the posterior given that none is.",
        )
    else:
        require_ancestors(data.model.engine)
    chains = replace(chains, ancestors="sampled")
    if settings.usual_samples and not of_nucleotides(data.model.engine):
        chains = replace(chains, sample_every=CODED_SAMPLES * chains.sample_every)
    return replace(settings, chains=chains), told


def _have_ancestors(data: TimeInput) -> bool:
    try:
        require_ancestors(data.model.engine)
    except InputError:
        return False
    return True


def _differences(data: TimeInput) -> float:
    """The share of known characters that are not the most frequent one of their site; inf where none is."""
    own = site_patterns(data.alignments[0])
    known = np.flatnonzero(np.asarray(own.state_sets, bool).sum(axis=1) == 1)
    counts = np.stack([(own.codes == code).sum(axis=0) for code in known])
    n_known = float((own.weights * counts.sum(0)).sum())
    return float((own.weights * (counts.sum(0) - counts.max(0))).sum()) / n_known if n_known else np.inf


def time_selection(settings: TimeTreeSettings, data: TimeInput) -> Selection:
    """Where the likelihoods are found, and why: as of phloem mcmc, whose forecasts these are. A checkpoint is
    gone on with where it was made."""
    chains = settings.chains
    there = None if settings.redo else stored_device(settings.file_prefix)
    threads = chains.threads or usable_cores()[0]
    if chains.ancestors == "sampled":
        return chains_on_cpu("chosen: sequences of ancestors are sampled there", threads)
    if settings.device == "auto" and there == "gpu" and chains.use_data:
        return chains_on_gpu("chosen: the checkpoint was made on one")
    why = "the checkpoint was made on one" if there == "cpu" else None
    if settings.device == "gpu" and not chains.use_data:
        raise InputError("a prior needs no likelihood, so no GPU", hint="Leave --device out.")
    if not chains.use_data:
        why = "a prior needs no likelihood"
    elif any(p.real_eigen is None for model in _models(data) for p in model.processes):
        why = "matrices without a real eigensystem are made there"
    if settings.device == "auto" and why is not None:
        return chains_on_cpu(f"chosen: {why}", threads)
    plan = ChainPlan(chains.n_runs, chains.n_chains, chains.expected_generations)
    return select_chains(settings.device, lambda: problems_of(data), plan, chains.threads)


def _models(data: TimeInput) -> list[SiteModel]:
    engine = data.model.engine
    return [engine.site_model(i, engine.space.start()) for i in range(len(engine.parts))]


def problems_of(data: TimeInput) -> list[Problem]:
    """On a random tree: it has more distinct columns than a good one."""
    taxa = data.taxa
    tree = replace(uniform_unrooted(len(taxa), np.random.default_rng(1)), taxa=taxa)
    children = tree_layout(tree, taxa).children
    parts = zip(data.alignments, data.model.engine.parts)
    return [engine_problem(site_patterns(own), part.model, children) for own, part in parts]


def time_origin(settings: TimeTreeSettings, data: TimeInput) -> Origin | None:
    """The tree and the rate that all chains start from; None for random ones. By least squares: the tree of
    the alignment's distances (neighbour joining), its root and dates those that fit best; of several parts
    those of the data type that has most sites, side by side."""
    if settings.chains.start == "random":
        return None
    if data.dates is None:
        raise InputError("least-squares dates need dates", hint="Add --dates FILE, or leave --start out.")
    model, (alignment, site_length) = data.model, _most_alike(data)
    tree = starting_tree(alignment, "nj").tree
    found = date_tree(tree, data.dates, DatingSettings(sites=alignment.n_sites))
    heights = model.youngest - found.years
    heights[: model.n_tips] = starting_tips(model)
    dated = lifted_tree(found.tree.parent, heights, SHORTEST * model.scale.time / model.n_tips)
    return Origin(dated, found.rate / site_length)


def _most_alike(data: TimeInput) -> tuple[Alignment, float]:
    """Of the parts of one alphabet, that which has most sites and, where any has, distances, the columns side
    by side; and how long a character of them is."""
    kinds: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for i, own in enumerate(data.alignments):
        kinds.setdefault((own.alphabet.kind, own.alphabet.states), []).append(i)
    sites = {kind: sum(data.alignments[i].n_sites for i in parts) for kind, parts in kinds.items()}
    most = kinds[max(kinds, key=lambda kind: (kind[0] != "standard", sites[kind]))]
    alike = [data.alignments[i] for i in most]
    return side_by_side(alike) if len(alike) > 1 else alike[0], data.model.engine.parts[most[0]].site_length

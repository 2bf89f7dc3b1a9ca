"""`phloem ml --iqtree-files`: the results once more under IQ-TREE's names and in its forms, so that what
reads its files goes on. Lines that are searched for have its wording; the rest is phloem's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.ml_ancestral import named_nodes
from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_merge import part_columns
from phloem.analysis.ml_outgroup import hung
from phloem.analysis.ml_report import NAMES, report_text
from phloem.inference.ml.optimum import PartitionedOptimum
from phloem.inference.ml.replicates import words_of
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits, split_members
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult
    from phloem.inference.ml.searched import Likelihood

_DIGITS = 10  # of the log-likelihood of a site


def write_iqtree(result: MlResult, data: MlData) -> None:
    """All of them."""
    prefix = result.settings.file_prefix
    texts = {".iqtree": "\n".join(_report(result, data)) + "\n", ".log": "\n".join(_log(result)) + "\n"}
    if result.choices and data.partitioned:
        texts[".best_scheme.nex"] = "\n".join(_scheme(result, data)) + "\n"
    if result.found is not None:
        likelihood = result.found.likelihood
        by_site = _of_sites(likelihood)
        values = " ".join(f"{x:.{_DIGITS}g}" for x in by_site)
        texts[".treefile"] = _tree_line(result)
        texts[".sitelh"] = f"1 {len(by_site)}\nSite_Lh    {values}\n"
        texts[".rate"] = "\n".join(_rates(likelihood)) + "\n"
    if result.replicates is not None:
        texts[".contree"] = newick_text([hung(result.replicates.consensus, result.outgroup)])
        texts[".splits.nex"] = "\n".join(_splits(result)) + "\n"
    if result.supports is not None and result.settings.bootstrap:
        texts[".boottrees"] = newick_text(result.supports.replicates)
    for ending, text in texts.items():
        write_file(f"{prefix}{ending}", text)


def _tree_line(result: MlResult) -> str:
    """Supports as labels; with --ancestral behind the nodes' names."""
    if not result.settings.ancestral:
        return f"{result.newick}\n"
    assert result.found is not None
    named = named_nodes(result.found.optimum.tree, result.rows, result.outgroup).tree
    if result.supports is None:
        return newick_text([named])
    supported = hung(result.supports.tree, result.outgroup)
    by_split = dict(zip(_keys(supported), supported.labels or ()))
    labels = [
        None if name is None else "/".join(filter(None, (name, by_split.get(key))))
        for key, name in zip(_keys(named), named.labels or ())
    ]
    return newick_text([replace(named, labels=tuple(labels))])


def _keys(tree: Tree) -> list[bytes]:
    """Of every node the split of the branch above it."""
    return [split.tobytes() for split in sample_splits(sample_of_trees([tree]))[0]]


def _of_sites(likelihood: Likelihood) -> np.ndarray:
    """(L,) log-likelihoods, part after part."""
    if isinstance(likelihood, PartitionedLikelihood):
        return np.concatenate(list(likelihood.site_log_likelihoods().values()))
    return likelihood.site_log_likelihoods()


def _rates(likelihood: Likelihood) -> Iterator[str]:
    yield "# Rate: posterior mean. Cat: likeliest category (0 invariable, 1 the slowest). C_Rate: its rate."
    if not isinstance(likelihood, PartitionedLikelihood):
        yield "Site\tRate\tCat\tC_Rate"
        yield from _rates_of(likelihood, 1.0)
        return
    yield f"# Part: {', '.join(f'{k} = {name}' for k, name in enumerate(likelihood.part_names, 1))}"
    yield "Part\tSite\tRate\tCat\tC_Rate"
    speeds = likelihood.partition_rates.tolist()
    for k, (name, speed) in enumerate(zip(likelihood.part_names, speeds), 1):
        yield from (f"{k}\t{row}" for row in _rates_of(likelihood.alone(name), speed))


def _rates_of(one: TreeLikelihood, speed: float) -> Iterator[str]:
    """Categories of one rate, as of a mixture's processes, count as one. speed: of the part."""
    shares, rates = one.site_categories(), one.category_rates
    distinct, own = np.unique(np.round(rates, 12), return_inverse=True)
    by_rate = np.zeros((len(distinct) + 1, shares.shape[1]))
    by_rate[0] = shares[-1]
    np.add.at(by_rate, own + 1, shares[:-1])
    of_category = np.concatenate([[0.0], distinct]) * speed
    likeliest, means = by_rate.argmax(0), of_category @ by_rate
    for site, (mean, k) in enumerate(zip(means.tolist(), likeliest.tolist()), 1):
        yield f"{site}\t{mean:.5f}\t{k}\t{of_category[k]:.5f}"


def _splits(result: MlResult) -> Iterator[str]:
    """Splits of all sequences: copies are on the side of their equal."""
    assert result.replicates is not None
    taxa, shares = result.rows.alignment.taxa, result.replicates.shares
    yield "#nexus\n\nBEGIN Taxa;"
    yield f"DIMENSIONS ntax={len(taxa)};\nTAXLABELS"
    yield from (f"[{k}] '{_quoted(name)}'" for k, name in enumerate(taxa, 1))
    n = len(result.rows.kept)
    members = split_members(words_of(shares, n), n)[:, result.rows.of]
    yield f";\nEND; [Taxa]\n\nBEGIN Splits;\nDIMENSIONS ntax={len(taxa)} nsplits={len(shares)};"
    yield "FORMAT labels=no weights=yes confidences=no intervals=no;\nMATRIX"
    rows = sorted(zip(shares.values(), members.tolist()), key=lambda row: -row[0])
    for share, inside in rows:
        numbers = " ".join(str(k) for k, one in enumerate(inside, 1) if one)
        yield f"\t{100 * share:.6g}\t {numbers},"
    yield ";\nEND; [Splits]"


def _quoted(name: str) -> str:
    return name.replace("'", "''")


def _scheme(result: MlResult, data: MlData) -> Iterator[str]:
    chosen: Mapping[str, str] = {name: choice.winner.text for name, choice in result.choices.items()}
    yield "#nexus\nbegin sets;"
    for part in data.parts:
        yield f"  charset {part.name} = {part_columns(part).replace(',', '')};"
    yield "  charpartition mymodels ="
    models = [f"    {part.model_text or chosen[part.name]}: {part.name}" for part in data.parts]
    yield ",\n".join(models) + ";\nend;"


def _model_names(result: MlResult) -> str:
    """Without numbers; of parts with their names."""
    assert result.found is not None
    likelihood = result.found.likelihood
    if isinstance(likelihood, PartitionedLikelihood):
        return ",".join(f"{part.model.name}:{part.name}" for part in likelihood.parts)
    return likelihood.model.name


def _best_fit(result: MlResult) -> str:
    """The models that were chosen, "" where none was to be."""
    names = {part: choice.winner.text for part, choice in result.choices.items()}
    return names[""] if "" in names else ",".join(f"{text}:{part}" for part, text in names.items())


def _report(result: MlResult, data: MlData) -> Iterator[str]:
    settings, about = result.settings, result.data
    yield f"phloem {result.provenance['version']}; lines as IQ-TREE writes them, phloem's report below"
    yield f"\nInput file name: {settings.alignment}\nRandom seed number: {settings.seed}\n"
    if data.partitioned:
        parts = f"{len(data.parts)} partitions and {about['sites']} total sites"
        yield f"Input data: {about['taxa']} taxa with {parts}"
    else:
        kind = {"dna": "nucleotide", "rna": "nucleotide", "protein": "amino-acid"}.get(str(about["datatype"]))
        what = f"{kind or about['datatype']} sites"
        yield f"Input data: {about['taxa']} sequences with {about['sites']} {what}"
    if result.choices:
        yield f"\nBest-fit model according to {NAMES[settings.criterion]}: {_best_fit(result)}"
    if result.found is not None:
        yield from _optimum_lines(result)
    yield f"\nTotal wall-clock time used: {result.seconds:.3f} seconds\n\n{report_text(result)}"


def _optimum_lines(result: MlResult) -> Iterator[str]:
    assert result.found is not None
    found, by_site = result.found, _of_sites(result.found.likelihood)
    optimum = found.optimum
    tree, inner = optimum.tree, np.arange(optimum.tree.n_tips, optimum.tree.n_nodes - 1)
    yield f"\nModel of substitution: {_model_names(result)}"
    if not isinstance(optimum, PartitionedOptimum):
        for name, wording in (
            ("p_invariable", "Proportion of invariable sites"),
            ("alpha", "Gamma shape alpha"),
        ):
            if name in optimum.parameters:
                yield f"{wording}: {float(optimum.parameters[name]):.4f}"  # type: ignore[arg-type]
    error = np.sqrt(len(by_site) * by_site.var(ddof=1)) if len(by_site) > 1 else 0.0
    yield f"\nLog-likelihood of the tree: {optimum.log_likelihood:.4f} (s.e. {error:.4f})"
    yield f"Number of free parameters (#branches + #model parameters): {optimum.n_free}"
    yield f"Akaike information criterion (AIC) score: {optimum.aic:.4f}"
    yield f"Corrected Akaike information criterion (AICc) score: {optimum.aicc:.4f}"
    yield f"Bayesian information criterion (BIC) score: {optimum.bic:.4f}"
    total, within = tree.lengths[:-1].sum(), tree.lengths[inner].sum()
    share = 100 * within / total if total > 0 else 0.0
    yield f"\nTotal tree length (sum of branch lengths): {total:.4f}"
    yield f"Sum of internal branch lengths: {within:.4f} ({share:.4f}% of tree length)"
    if result.supports is not None:
        supports = " / ".join(f"{name} support (%)" for name in result.supports.names)
        yield f"Numbers in parentheses are {supports}"
    yield f"\nTree in newick format:\n\n{_tree_line(result)}"
    if result.replicates is not None:
        consensus = newick_text([hung(result.replicates.consensus, result.outgroup)])
        yield f"Consensus tree in newick format: \n\n{consensus}"


def _log(result: MlResult) -> Iterator[str]:
    settings, about = result.settings, result.data
    yield f"phloem {result.provenance['version']}, {result.provenance['date']}"
    yield f"Seed:    {settings.seed}"
    yield f"Alignment has {about['taxa']} sequences with {about['sites']} columns"
    yield from (f"WARNING: {warning}" for warning in result.warnings)
    if result.choices:
        yield f"Best-fit model: {_best_fit(result)} chosen according to {NAMES[settings.criterion]}"
    found = result.found
    if found is not None:
        for number, start in enumerate(found.starts, 1):
            yield f"{number}. Initial log-likelihood: {start.first:.3f} ({start.origin})"
        for better in found.found:
            yield f"BETTER TREE FOUND at iteration {better.number}: {better.log_likelihood:.3f}"
        if result.held is None:
            yield f"TREE SEARCH COMPLETED AFTER {found.tries} ITERATIONS"
        yield f"Optimal log-likelihood: {found.optimum.log_likelihood:.3f}"
        yield f"BEST SCORE FOUND : {found.optimum.log_likelihood:.3f}"
        yield f"Total tree length: {found.optimum.tree.lengths[:-1].sum():.3f}"
        if result.held is None:
            yield f"Total number of iterations: {found.tries}"
    yield f"Total wall-clock time used: {result.seconds:.3f} sec"

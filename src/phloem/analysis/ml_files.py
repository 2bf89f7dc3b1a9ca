"""The files of `phloem ml`: the tree with its supports, the model with its numbers, sites, tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.draw import DrawSettings, at_midpoint, save_picture
from phloem.analysis.ml_ancestral import write_ancestral
from phloem.analysis.ml_auspice import write_for_auspice
from phloem.analysis.ml_classes import class_trees
from phloem.analysis.ml_data import MlData, columns_of
from phloem.analysis.ml_iqtree import write_iqtree
from phloem.analysis.ml_merge import scheme_text
from phloem.analysis.ml_omegas import sites_of_omegas
from phloem.analysis.ml_outgroup import rooted
from phloem.analysis.ml_report import choices_table, report_text
from phloem.analysis.model_file import model_file_of, text_of_parts
from phloem.analysis.outputs import write_json
from phloem.io.output_file import write_file
from phloem.io.trees import write_trees
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult
    from phloem.inference.ml.searched import Likelihood


def write_result(result: MlResult, data: MlData) -> None:
    """All files; the JSON last: with it all is there."""
    prefix, supports = result.settings.file_prefix, result.supports
    if result.found is not None:
        write_file(f"{prefix}.tree", tree_text(result))
        likelihood = result.found.likelihood
        write_file(f"{prefix}.model", _model_text(likelihood))
        write_file(f"{prefix}.sites", "\n".join(_site_lines(likelihood, data)) + "\n")
        if isinstance(likelihood, PartitionedLikelihood) and likelihood.linkage.lengths != "linked":
            write_trees(f"{prefix}.parts.nwk", part_trees(likelihood, data))
        if classes := class_trees(likelihood, data.rows):
            write_trees(f"{prefix}.classes.nwk", classes)
        if result.settings.ancestral:
            write_ancestral(result.found, data, result.outgroup, prefix)
        if result.settings.auspice:
            write_for_auspice(result, data)
    if result.settings.picture is not None and result.tree is not None:
        labelled = result.tree if supports is None else supports.tree
        where = result.outgroup
        save_picture(
            rooted(labelled, where)[0] if where else at_midpoint(labelled),
            result.settings.picture,
            DrawSettings(),
        )
    if supports is not None and supports.replicates:
        write_trees(f"{prefix}.bootstrap.nwk", supports.replicates)
    if result.merging is not None:
        chosen = {name: choice.winner.text for name, choice in result.choices.items()}
        write_file(f"{prefix}.scheme", scheme_text(data.parts, *result.merging, chosen))
    if result.choices:
        write_file(f"{prefix}.models.tsv", choices_table(result.choices))
    if result.settings.iqtree_files:
        write_iqtree(result, data)
    write_file(f"{prefix}.report", report_text(result))
    write_json(result.to_json(), f"{prefix}.json")


def tree_text(result: MlResult) -> str:
    """The tree with its supports, named in a comment ahead of it."""
    supports = result.supports
    head = "" if supports is None else f"[branch labels, in percent: {'/'.join(supports.names)}]\n"
    return f"{head}{result.newick}\n"


def part_trees(likelihood: PartitionedLikelihood, data: MlData) -> list[Tree]:
    """One tree a part, of all sequences, lengths in expected changes per character of the part."""
    return [data.rows.put_back(tree) for tree in likelihood.part_trees.values()]


def _model_text(likelihood: Likelihood) -> str:
    if not isinstance(likelihood, PartitionedLikelihood):
        return model_file_of(likelihood.model, likelihood.model_text).text()
    texts = likelihood.model_texts
    return text_of_parts({p.name: model_file_of(p.model, texts[p.name]) for p in likelihood.parts})


def _site_lines(likelihood: Likelihood, data: MlData) -> Iterable[str]:
    """A row a site: log-likelihood, posterior mean rate; of parts, which part, and its column in the file; of
    codons with classes of ω its mean and the probability that it is above 1 (- of other parts)."""
    classes = sites_of_omegas(likelihood)
    more = "\tomega\tpositive_selection" if classes else ""
    if not isinstance(likelihood, PartitionedLikelihood):
        yield f"site\tlog_likelihood\trate{more}"
        rates = likelihood.site_rates().tolist()
        omegas = _omega_cells(classes, "", len(rates))
        for k, (value, rate, omega) in enumerate(zip(_site_cells(likelihood), rates, omegas), 1):
            yield f"{k}\t{value}\t{rate:.6g}{omega}"
        return
    yield f"part\tsite\tlog_likelihood\trate{more}"
    for part, own_rate in zip(data.parts, likelihood.partition_rates.tolist()):
        alone = likelihood.alone(part.name)
        rates = (alone.site_rates() * own_rate).tolist()
        columns, omegas = columns_of(part).tolist(), _omega_cells(classes, part.name, len(rates))
        for k, value, rate, omega in zip(columns, _site_cells(alone), rates, omegas):
            yield f"{part.name}\t{k}\t{value}\t{rate:.6g}{omega}"


def _site_cells(one: TreeLikelihood) -> list[str]:
    """Log-likelihoods of sites; - where neighbours depend on each other (+AG), and none has its own."""
    if one.model.along_sites is not None:
        return ["-"] * one.alignment.n_sites
    return [f"{value:.10g}" for value in one.site_log_likelihoods().tolist()]


def _omega_cells(classes: dict[str, np.ndarray], part: str, n: int) -> list[str]:
    if part not in classes:
        return ["\t-\t-" if classes else ""] * n
    return [f"\t{omega:.6g}\t{positive:.6g}" for positive, omega in classes[part].T.tolist()]

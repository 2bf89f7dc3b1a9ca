"""`phloem ml --merge`: parts merged before models are chosen, and the scheme as a partition file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.model_file import usual_model
from phloem.analysis.reading import Part
from phloem.data.alignment import side_by_side
from phloem.data.doublets import columns_text
from phloem.errors import InputError
from phloem.likelihood.model_for_alignment import ModelReader
from phloem.likelihood.tree_likelihood import TreeLikelihood

if TYPE_CHECKING:
    from phloem.inference.ml.kept_fits import KeptFits
    from phloem.inference.ml.merging import Fitted, Members, MergeSettings, Merging, Step
    from phloem.inference.ml.optimum import PartitionedOptimum
    from phloem.inference.ml.search_state import Told

_LONG = 40  # characters of a name


def merge_settings(settings: MlSettings) -> MergeSettings | None:
    """None where nothing is merged; InputError for options that would not be obeyed."""
    from phloem.inference.ml.merging import MergeSettings

    if settings.merge is None:
        if settings.merge_percent is not None:
            raise InputError("--merge-percent is about --merge relaxed", hint="Add it, or leave it out.")
        return None
    if not settings.partitioned or not settings.automatic:
        raise InputError(
            "--merge is about parts whose models are chosen",
            hint="Add --partitions FILE and --model auto, or leave it out.",
        )
    if settings.ascertained:
        raise InputError(
            "parts are merged under usual models, which have no +ASC",
            hint="Leave --merge out, or merge with --model MF first.",
        )
    if settings.link:
        raise InputError(
            "--link names parts, and --merge makes new ones",
            hint="Merge first, then search with --partitions PREFIX.scheme and --link.",
        )
    if settings.merge == "greedy" and settings.merge_percent is not None:
        raise InputError("--merge greedy tries all pairs", hint="Say --merge relaxed, or leave it out.")
    if settings.merge == "relaxed" and settings.linkage == "linked":
        raise InputError(
            "--merge relaxed compares the rates of parts, and linked parts have one",
            hint="Say --merge greedy, or --linkage proportional.",
        )
    percent = settings.merge_percent
    return MergeSettings(settings.merge) if percent is None else MergeSettings(settings.merge, percent)


def merged(
    data: MlData, fit: PartitionedOptimum, settings: MergeSettings, told: Told | None, kept: KeptFits
) -> tuple[MlData, Merging]:
    """Parts without a model of their own, all under the usual model of their kind, on the tree of the fit.

    Where lengths are shared they are held, or multiplied by a rate a group. kept: fits of a killed run.
    """
    from phloem.inference.ml.merging import Fitted, Merger, fit_group
    from phloem.inference.ml.search_state import Doing

    own, lengths = data.settings, data.settings.linkage or "proportional"
    sums = [0.0, 0]

    def fitted(members: Members) -> Fitted:
        joined = joined_part([data.parts[i] for i in members])
        name = ",".join(map(str, members))
        found = kept.fit(name, lambda: group(joined, members), Fitted.to_json, Fitted.from_json)
        sums[1] += 1
        if told is not None:
            whole = fit if merger.so_far is None else merger.so_far  # all groups, not the one that is tried
            told(Doing("merging", int(sums[1]), None, f"merging: {joined.name}"), whole.log_likelihood)
        return found

    def group(joined: Part, members: Members) -> Fitted:
        alignment = data.rows.rows_of(joined.alignment)
        text = joined.model_text or usual_model(alignment.alphabet.kind)
        model = ModelReader(joined.alignment, own.gamma)(text)
        first = data.parts[members[0]].name
        tree, threads = fit.part_trees[first], own.threads or 1
        likelihood = TreeLikelihood(alignment, tree, model, "cpu", threads=threads, multifurcations=True)
        starts = [fit.parameters[data.parts[i].name] for i in (members[0], members[-1])]
        return fit_group(likelihood, starts[: len(members)], lengths)

    kinds = [
        (part.alignment.alphabet, "") if part.model_text is None else (None, part.name) for part in data.parts
    ]
    n_lengths, n_sites = fit.tree.n_nodes - 1, sum(part.alignment.n_sites for part in data.parts)
    merger = Merger(kinds, fitted, lengths, n_lengths, n_sites, own.criterion, settings)
    found = merger.run()
    parts = tuple(joined_part([data.parts[i] for i in members]) for members in found.groups)
    return replace(data, parts=parts), found


def joined_part(parts: Sequence[Part]) -> Part:
    """Parts of one kind as one, columns in the order of the file."""
    if len(parts) == 1:
        return parts[0]
    alignment = side_by_side([part.alignment for part in parts])
    sites = np.concatenate([np.asarray(part.sites) for part in parts])
    rows = sites.reshape(alignment.n_sites, -1)  # three of a codon
    order = np.argsort(rows[:, 0], kind="stable")
    alignment = replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, order]), places=None)
    return Part(joined_name([p.name for p in parts]), alignment, parts[0].model_text, rows[order].ravel())


def part_columns(part: Part) -> str:
    """Its columns as a partition list has them."""
    return columns_text(part.alignment.alphabet.kind, np.asarray(part.sites))


def joined_name(names: Sequence[str]) -> str:
    """Of a group; names of parts are unique, so are these."""
    whole = "_".join(names)
    return whole if len(whole) <= _LONG else f"{names[0]}_and_{len(names) - 1}_more"


def scheme_text(
    parts: Sequence[Part], merging: Merging, given: Sequence[Part], chosen: Mapping[str, str]
) -> str:
    """A partition file that names the models, for --partitions. parts: as merged, of which chosen has the
    models of those that had none; given: as they were."""
    lines = []
    for part, members in zip(parts, merging.groups):
        columns = ", ".join(part_columns(given[i]) for i in members)
        lines.append(f"{part.model_text or chosen[part.name]}, {part.name} = {columns}")
    return "\n".join(lines) + "\n"


def merging_record(merging: Merging, given: Sequence[Part]) -> dict[str, object]:
    """given: the parts as they were."""
    names = [part.name for part in given]
    return {
        "groups": [[names[i] for i in members] for members in merging.groups],
        "steps": [_step_record(step, names) for step in merging.steps],
        "refused": None if merging.refused is None else _step_record(merging.refused, names),
    }


def _step_record(step: Step, names: Sequence[str]) -> dict[str, object]:
    joined = step.joined and [[names[i] for i in members] for members in step.joined]
    return step._asdict() | {"joined": joined}


def merging_lines(merging: Merging, given: Sequence[Part], criterion: str) -> list[str]:
    """The table of steps, and what was refused."""
    names = [part.name for part in given]
    lines = ["merging of parts, each under the usual model of its kind:"]
    lines.append(f"  {'parts':>5}{'tried':>7}{'log L':>16}{'numbers':>9}{criterion:>15}  merged")

    def row(step: Step) -> str:
        numbers = f"{step.log_likelihood:>16.4f}{step.n_free:>9}{step.value:>15.4f}"
        pair = [joined_name([names[i] for i in members]) for members in step.joined or ()]
        return f"  {step.groups:>5}{step.tried:>7}{numbers}  {' + '.join(pair)}".rstrip()

    lines += [row(step) for step in merging.steps]
    if merging.refused is not None:
        lines += ["the best merging that was left:", row(merging.refused)]
    groups = [" ".join(names[i] for i in members) for members in merging.groups if len(members) > 1]
    return [*lines, *(f"  together: {group}" for group in groups), ""]

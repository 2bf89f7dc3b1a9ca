"""`phloem likelihood --partitions`: the likelihood of the parts of an alignment on one tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from phloem.analysis.likelihood import (
    LikelihoodSettings,
    few_sites,
    optimum_record,
    plain,
    settings_record,
    tree_warnings,
    trees_of,
)
from phloem.analysis.model_file import holds_parts, model_of, require_gamma_used
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import Part, of_part, parts_of, without_data
from phloem.data.sites import format_sites
from phloem.density.parts import LengthLinkage, Linkage
from phloem.errors import InputError, in_file
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import ranks
from phloem.io.trees import newick_text, write_trees
from phloem.likelihood.partitioned import PartitionedGradient, PartitionedLikelihood
from phloem.model.model import Model
from phloem.pruning.calibration import on_calibration
from phloem.pruning.grid import OnRanks

if TYPE_CHECKING:
    from phloem.inference.ml.optimum import PartitionedOptimum


@dataclass(frozen=True)
class PartResult:
    """One part. rate: its rate, 1 unless lengths are proportional. tree: Newick, lengths in expected changes
    per character of the part; tree_length: their sum. alignment_settings: how its characters were read."""

    name: str
    datatype: str
    states: int
    sites: int
    patterns: int
    model: str
    log_likelihood: float
    rate: float
    tree: str
    tree_length: float
    alignment_settings: dict[str, object]


@dataclass(frozen=True, eq=False)
class PartitionedResult:
    """What was found. parameters: value by element name, with parts in braces where not all share it;
    branch_lengths: (B,) aligned with branch_names, or (L, B) where they are unlinked.

    gradient and optimum are None unless asked for; tree: Newick, of unlinked lengths with their mean over
    sites; length_unit: what its lengths count changes per.
    """

    settings: LikelihoodSettings
    log_likelihood: float
    parts: tuple[PartResult, ...]
    parameters: dict[str, float]
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    length_unit: str
    tree: str
    tree_origin: str
    gradient: PartitionedGradient | None
    optimum: PartitionedOptimum | None
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        record: dict[str, object] = {
            "log_likelihood": self.log_likelihood,
            "parts": [asdict(part) for part in self.parts],
            "parameters": self.parameters,
            "tree": self.tree,
            "tree_origin": self.tree_origin,
            "length_unit": self.length_unit,
            "warnings": list(self.warnings),
        }
        if self.gradient is not None:
            record["gradient"] = {
                "branch_names": list(self.branch_names),
                "branch_lengths": self.gradient.branch_lengths.tolist(),
                "partition_rates": self.gradient.partition_rates.tolist(),
                "parameters": self.gradient.parameters,
                "simplex_coordinates": "softmax: x = exp(z) / sum(exp(z)), derivatives are d/dz",
            }
        if self.optimum is not None:
            record["optimum"] = optimum_record(self.optimum)
        return record | {"settings": settings_record(self.settings), "provenance": self.provenance}


def run_partitioned_likelihood(
    settings: LikelihoodSettings,
    progress: Callable[[int, float], None] | None = None,
    compiling: Callable[[str], None] | None = None,
    measuring: Callable[[], None] | None = None,
) -> PartitionedResult:
    """As run_likelihood, of the parts that settings.partitions names.

    out_tree gets one tree, or of unlinked lengths one for every part, in order. Without a tree, that of the
    distances of the largest part is taken.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    if measuring is not None:
        on_calibration(measuring)
    check_outputs([settings.out_tree], settings.inputs, settings.redo, [settings.json])
    scheme, parts = parts_of(settings, settings.model)
    largest = max(parts, key=lambda p: (p.alignment.alphabet.kind != "standard", p.alignment.n_sites))
    trees, origin = trees_of(settings, largest.alignment)
    if settings.tree is None:
        origin += f" of part '{largest.name}'"
    models = _models(parts, settings)
    require_gamma_used(settings.gamma, models.values())
    linkage = read_linkage(settings.linkage, settings.link, models)
    with in_file(settings.tree):
        likelihood = PartitionedLikelihood(
            {p.name: (p.alignment, models[p.name]) for p in parts},
            trees[0],
            linkage,
            engine=OnRanks(settings.engine, ranks()),
            precision=settings.precision,
            threads=settings.threads,
            multifurcations=settings.multifurcations,
        )
    optimum = _fit(likelihood, progress) if settings.optimize else None
    gradient, lengths = likelihood.gradient() if settings.gradient else None, likelihood.branch_lengths
    results = part_results(likelihood)
    said = tree_warnings(lengths, len(trees), settings.optimize) + without_data([p.alignment for p in parts])
    said += few_sites(optimum.n_free, sum(p.sites for p in results)) if optimum is not None else ()
    if settings.out_tree:
        fitted = likelihood.part_trees.values() if settings.linkage == "unlinked" else [likelihood.tree]
        write_trees(settings.out_tree, list(fitted))
    result = PartitionedResult(
        settings=settings,
        log_likelihood=float(np.sum([p.log_likelihood for p in results])),
        parts=results,
        parameters=likelihood.parameters_by_element,
        branch_names=likelihood.branch_names,
        branch_lengths=lengths,
        length_unit=likelihood.length_unit,
        tree=newick_text([likelihood.tree]).strip(),
        tree_origin=origin,
        gradient=gradient,
        optimum=optimum,
        provenance=provenance(settings.inputs, likelihood.selections[largest.name])
        | {"engines": {name: chosen.reason for name, chosen in likelihood.selections.items()}},
        warnings=(*dropped_columns(scheme.dropped), *said),
    )
    write_json(result.to_json(), settings.json)
    return result


def read_linkage(lengths: LengthLinkage, texts: Sequence[str], models: dict[str, Model]) -> Linkage:
    """What parts share. texts: "alpha" (every part whose model has it), "alpha:gene1,gene2", "lengths:a,b"
    (one rate, or one set of branch lengths where they are unlinked) or "rate=1:a" (see density's Linkage).

    Errors: InputError for a parameter that no model or fewer than two parts have, and for what is so anyway.
    """
    groups: dict[str, tuple[tuple[str, ...], ...]] = {}
    together, unit = list[tuple[str, ...]](), list[str]()
    for text in texts:
        name, colon, named = text.partition(":")
        name = name.strip()
        having = tuple(part for part, model in models.items() if _meant(name, model))
        chosen = tuple(part.strip() for part in named.split(",")) if colon else having
        if name == "rate=1" and colon:
            if lengths != "proportional":
                raise InputError(
                    f"no part has a rate where branch lengths are {lengths}",
                    hint="Leave 'rate=1' out of --link.",
                )
            unit += chosen
            continue
        if len(chosen) < 2:
            every = ", ".join(dict.fromkeys(p.name for model in models.values() for p in model.parameters))
            raise InputError(
                f"--link {text} names {len(chosen)} part(s) that could share '{name}'",
                hint=f"Parameters of the models are: {every or 'none'}; branch lengths are 'lengths:a,b'.",
            )
        if name == "lengths":
            if lengths == "linked":
                raise InputError(
                    f"--link {text} names parts with the same branch lengths, and all are linked",
                    hint="Leave it out, or choose another --linkage.",
                )
            together.append(chosen)
            continue
        meant = [_meant(name, models[part]) for part in chosen if part in models]
        for one in dict.fromkeys(one for own in meant for one in own) or (name,):
            groups[one] = (*groups.get(one, ()), chosen)
    return Linkage(lengths, groups, tuple(together), tuple(unit))


def _meant(name: str, model: Model) -> tuple[str, ...]:
    """The parameters of a model that a name stands for: "rates", of a model that has none called so, are its
    exchangeabilities, as in priors."""
    names = [p.name for p in model.parameters]
    if name == "rates" and name not in names:
        return tuple(n for n in names if n.startswith(("rate_", "exchangeabilities", "transition_rates")))
    return (name,) if name in names else ()


def _models(parts: Sequence[Part], settings: LikelihoodSettings) -> dict[str, Model]:
    models = {}
    all_given = holds_parts(settings.model)  # each by its name
    for part in parts:
        if part.model_text is None:
            raise InputError(
                f"part '{part.name}' has no model",
                file=settings.data_files[-1],
                hint="Write one for it in the partition file, or add --model.",
            )
        with of_part(part):
            text = settings.model if all_given else part.model_text
            models[part.name] = model_of(text, part.alignment, settings.gamma, part.name)
    return models


def _fit(
    likelihood: PartitionedLikelihood, progress: Callable[[int, float], None] | None
) -> PartitionedOptimum:
    from phloem.inference.ml.optimize import optimize  # SciPy's optimisers take a quarter of a second to load

    return optimize(likelihood, progress=progress)


def part_results(likelihood: PartitionedLikelihood) -> tuple[PartResult, ...]:
    """Of every part, as the likelihood stands."""
    values, rates = likelihood.part_log_likelihoods().tolist(), likelihood.partition_rates.tolist()
    texts, trees = likelihood.model_texts, likelihood.part_trees
    return tuple(
        PartResult(
            name=part.name,
            datatype=part.alignment.alphabet.kind,
            states=part.alignment.alphabet.n_states,
            sites=part.alignment.n_sites,
            patterns=len(part.patterns.weights),
            model=texts[part.name],
            log_likelihood=value,
            rate=rate,
            tree=newick_text([trees[part.name]]).strip(),
            tree_length=float(trees[part.name].lengths[:-1].sum()),
            alignment_settings={key: plain(value) for key, value in part.alignment.settings.items()},
        )
        for part, value, rate in zip(likelihood.parts, values, rates)
    )


def dropped_columns(columns: np.ndarray) -> tuple[str, ...]:
    """A warning, if there are any."""
    if not len(columns):
        return ()
    listed = format_sites(columns)
    listed = listed if len(listed) <= 60 else listed[:60].rsplit(",", 1)[0] + ", …"
    return (f"{len(columns):,} columns are in no part and are left out: {listed}",)

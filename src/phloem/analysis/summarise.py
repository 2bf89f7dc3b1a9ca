"""`phloem summarize`: samples of one or more runs, of any program: numbers, trees, and whether runs agree."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.analysis.auspice import AuspiceOptions
from phloem.analysis.auspice_summary import attributes_of_summary
from phloem.analysis.draw import check_picture_name, save_picture, support_key, year_of
from phloem.analysis.outputs import check_outputs
from phloem.analysis.report import Report, ReportNumbers, report_html
from phloem.analysis.split_tables import SPLIT_TABLES, write_split_tables
from phloem.analysis.trace_file import is_trace, refuse_powers
from phloem.analysis.trace_view import LEAST_DRAWS, read_trace_files
from phloem.analysis.tree_runs import TreeRuns, read_tree_runs
from phloem.analysis.tree_view import latest_of_past
from phloem.data.given_fields import settle_fields
from phloem.errors import STANDARD_INPUT, InputError, InputWarning, require_choice
from phloem.inference.mcmc.convergence import Diagnosis, split_presence
from phloem.inference.mcmc.samples import choices_of
from phloem.inference.mcmc.settings import Convergence
from phloem.io.auspice import AuspiceDataset, write_auspice
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, write_trees
from phloem.plot.drawing import DrawSettings
from phloem.plot.terminal_tree import draw_tree
from phloem.summary.clade_trees import tree_of_clades
from phloem.summary.splits import SplitFrequencyDeviation, split_frequency_deviation, topology_table
from phloem.summary.spread import evenly_spread
from phloem.summary.trace import mixing, trace_summary
from phloem.summary.trees import consensus_tree, sample_heights
from phloem.tree.tree import Tree

SummaryTree = Literal["majority", "allcompat", "mcc", "hipstr", "ccd"]
OF_CLADES = ("mcc", "hipstr", "ccd")
Middle = Literal["mean", "median", "common-ancestor", "keep"]
_AN_HOUR = 1e-4  # years
WANTED = Convergence()  # the thresholds of phloem mcmc
KINDS = {
    "majority": "Majority-rule consensus",
    "allcompat": "Majority-rule consensus with all compatible splits",
    "mcc": "Tree of maximum clade credibility",
    "hipstr": "Tree of the most credible clades, paired as sampled",
    "ccd": "Tree of the most credible clades",
}


@dataclass(frozen=True)
class SummariseSettings:
    """files: of trees or of traces, one a run, or what the names of an analysis' files begin with
    (sampled_files); the first share burn_in of each is left out.

    tree: the majority-rule consensus, the same with further compatible splits, or the sampled tree of maximum
    clade credibility, or one put together of sampled clades (hipstr, ccd: summary/clade_trees.py). middle:
    branch lengths of a consensus (mean, median), or of unrooted mcc trees (keep as well), or node heights of
    the others. mass: of HPD intervals and of the credible set of topologies.
    out: file for the tree; NEXUS if its name says so. picture: of the tree, .svg, .png or .pdf. tables: what
    the names of .parts, .tstat and .vstat begin with. report: page of HTML. Replaced only with redo. auspice:
    dataset for Nextstrain; latest: the latest tip's day or decimal year, None where it is not known but of
    what `phloem time` has written.
    """

    files: tuple[str, ...]
    tree: SummaryTree = "majority"
    burn_in: float = 0.25
    middle: Middle = "mean"
    mass: float = 0.95
    out: str | None = None
    redo: bool = False
    picture: str | None = None
    tables: str | None = None
    report: str | None = None
    auspice: AuspiceOptions = field(default_factory=AuspiceOptions)
    latest: str | None = None

    def __post_init__(self) -> None:
        settle_fields(self)


@dataclass(frozen=True)
class TreeSampleSummary:
    """tree: annotated with clade probabilities and intervals; None without trees. per_run: how many trees of
    each run were used; held: of how many of them lengths, heights and topologies are; frequencies are of all.

    topologies: how many distinct ones; credible: the fewest of them that hold the mass. deviation: of split
    frequencies between runs, None for a single run. numbers: of the traces, None without them; draws: a run.
    diagnosis: whether the runs agree, None without traces.
    """

    tree: Tree | None
    per_run: tuple[int, ...]
    topologies: int
    credible: int
    deviation: SplitFrequencyDeviation | None
    held: int = 0
    numbers: ReportNumbers | None = None
    draws: int = 0
    diagnosis: Diagnosis | None = None


def run_summarise(settings: SummariseSettings) -> TreeSampleSummary:
    """Read, summarise and, if files are named, write. InputError for runs of different taxa or rooting."""
    _check(settings)
    trees, traces = sampled_files(settings.files)
    for file in (*trees, *traces):
        refuse_powers(file)
    tables, auspice = settings.tables, settings.auspice
    out = [settings.out, settings.picture, settings.report, auspice.file]
    more = [f"{tables}.{ending}" for ending in SPLIT_TABLES] if tables is not None else []
    check_outputs([*out, *more], [*trees, *traces, auspice.table()], settings.redo)
    if settings.picture is not None:
        check_picture_name(settings.picture)
    for option in ("out", "picture", "tables"):
        if not trees and getattr(settings, option) is not None:
            raise InputError(f"without a file of trees there is no {option}", hint="Name files of trees too.")
    if not trees and auspice.file is not None:
        raise InputError("without a file of trees there is no auspice", hint="Name files of trees too.")
    latest = _latest(settings, trees)
    runs = read_tree_runs(trees, settings.burn_in) if trees else None
    if latest is not None and runs is not None:
        _require_dated(settings, runs)
    columns = auspice.read(runs.table.sample.taxa) if runs is not None else {}
    found = _of_trees(settings, runs) if runs else TreeSampleSummary(None, (), 0, 0, None)
    if traces:
        numbers = summarised_numbers(traces, settings.burn_in, settings.mass)
        draws = min(len(v) - k for v, k in zip(numbers.values, numbers.first))
        found = replace(found, numbers=numbers, draws=draws)
        found = replace(found, diagnosis=_diagnosis(found, runs))
    if found.tree is not None and runs is not None:
        if settings.out is not None:
            write_trees(settings.out, found.tree)
        if settings.picture is not None:
            save_picture(found.tree, settings.picture, DrawSettings())
        if tables is not None:
            write_split_tables(tables, runs.table)
        if auspice.file is not None:
            write_auspice(auspice.file, _dataset(settings, found, latest, columns))
    if settings.report is not None:
        write_file(settings.report, report_html(_report(settings, found, runs, (*trees, *traces))))
    return found


def _check(settings: SummariseSettings) -> None:
    require_choice("kind of summary tree", settings.tree, ("majority", "allcompat", *OF_CLADES))
    if settings.tree not in OF_CLADES and settings.middle not in ("mean", "median"):
        raise InputError(
            f"a consensus has no '{settings.middle}' branch lengths",
            hint="Choose mean or median, or --tree mcc.",
        )
    if not 0.0 < settings.mass <= 1.0:
        raise InputError(f"a mass of {settings.mass:g} is no share", hint="Choose above 0, at most 1.")
    if not 0.0 <= settings.burn_in < 1.0:
        raise InputError(
            f"a burn-in of {settings.burn_in} leaves no tree", hint="Give a share from 0 to below 1."
        )


# Which files are meant.


def sampled_files(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of trees and of traces: those named, told by their content; of a name that is no file, those that
    begin with it as phloem (.run1.t, .run1.p; .run1.trees, .run1.log), MrBayes (.t, .p of one run), RevBayes
    (_run_1.trees, _run_1.log) and BEAST (.trees, .log) call them. InputError where there are none, and for a
    file that is meant twice."""
    trees: list[str] = []
    traces: list[str] = []
    for name in names:
        if name == STANDARD_INPUT or os.path.exists(name):
            (traces if name != STANDARD_INPUT and is_trace(name) else trees).append(name)
            continue
        of_trees, of_traces = _of_prefix(name, ("t", "trees")), _of_prefix(name, ("p", "log"))
        if not of_trees and not of_traces:
            raise InputError(
                "there is no such file, and none of an analysis of this name",
                file=name,
                hint=f"Name files, or what they begin with, as {name}.run1.t and {name}.run1.p do.",
            )
        trees += of_trees
        traces += of_traces
    _refuse_twice([*trees, *traces])
    return tuple(trees), tuple(traces)


def _refuse_twice(files: Sequence[str]) -> None:
    """A run beside itself agrees with itself, which says nothing."""
    places = [os.path.realpath(file) for file in files]
    for file, place in zip(files, places):
        if file != STANDARD_INPUT and places.count(place) > 1:
            raise InputError("this file is given twice", file=file, hint="Name every run once.")


def _of_prefix(prefix: str, endings: tuple[str, ...]) -> list[str]:
    """PREFIX.run1.x, PREFIX.run2.x, …, PREFIX_run_1.x, … or PREFIX.x, of the first ending that has files."""
    for ending in endings:
        found: list[str] = []
        for run in (".run", "_run_"):
            while Path(path := f"{prefix}{run}{len(found) + 1}.{ending}").exists():
                found.append(path)
            if found:
                break
        alone = f"{prefix}.{ending}"
        if found or Path(alone).exists():
            return found or [alone]
    return []


# What they hold.


def _of_trees(settings: SummariseSettings, runs: TreeRuns) -> TreeSampleSummary:
    table = runs.table
    if settings.tree == "majority" or settings.tree == "allcompat":
        lengths: Literal["mean", "median"] = "median" if settings.middle == "median" else "mean"
        tree = consensus_tree(table, settings.tree, mass=settings.mass, lengths=lengths)
    else:
        tree = tree_of_clades(table, settings.tree, settings.middle, settings.mass)
    topologies = topology_table(table)
    return TreeSampleSummary(
        tree,
        runs.per_run,
        len(topologies.frequency),
        len(topologies.credible_set(settings.mass)),
        split_frequency_deviation(table) if table.n_runs > 1 else None,
        runs.held,
    )


def summarised_numbers(files: Sequence[str], burn_in: float, mass: float) -> ReportNumbers:
    """Of traces, one a run. Where runs have different numbers of samples after the burn-in, as many of each
    as the fewest, evenly spread: all of them still cover all of their time, also where one was written more
    often than another. Columns that hold the number of a model (gtrsubmodel) have no mean, and are left out;
    those with a sample after the burn-in that is no finite number are left out with a warning."""
    traces = read_trace_files(files)
    first = [int(burn_in * len(v)) for v in traces.values]
    least = min(len(v) - k for v, k in zip(traces.values, first))
    if least < LEAST_DRAWS:
        n = min(map(len, traces.values))
        raise InputError(
            f"of a run of {n:,} samples the burn-in leaves {least:,}; {LEAST_DRAWS} are the least",
            file=files[0] if len(files) == 1 else None,
            hint="Sample more, or leave out less: --burn-in.",
        )
    wrong = np.sum([(~np.isfinite(v[k:])).sum(axis=0) for v, k in zip(traces.values, first)], axis=0)
    for i in np.flatnonzero(wrong):
        told = f"in {wrong[i]:,} samples after the burn-in {traces.names[i]} is no finite number"
        warnings.warn(f"{told}; it is left out", InputWarning, stacklevel=2)
    kept = [i for i, name in enumerate(traces.names) if not wrong[i] and not choices_of(name)]
    names, values = tuple(traces.names[i] for i in kept), tuple(v[:, kept] for v in traces.values)
    spread = [evenly_spread(k, len(v), least) for v, k in zip(values, first)]
    draws = np.stack([v[rows] for v, rows in zip(values, spread)])
    return ReportNumbers(trace_summary(names, draws, mass), traces.generations, values, first)


def _diagnosis(found: TreeSampleSummary, runs: TreeRuns | None) -> Diagnosis:
    """By the thresholds of phloem mcmc: of the numbers, and of splits where every tree is at hand and runs
    are equally long."""
    assert found.numbers is not None
    p, wanted = found.numbers.summary, WANTED
    ess, r_hat, names = p.ess, p.r_hat, list(p.names)
    if runs is not None and runs.held == sum(runs.per_run) and len(set(runs.per_run)) == 1:
        if runs.per_run[0] >= 4:
            presence, labels = split_presence(
                runs.table, runs.table.n_runs, runs.per_run[0], wanted.min_split_frequency
            )
            of_splits = mixing(presence)
            ess, r_hat = np.append(ess, of_splits[0]), np.append(r_hat, of_splits[1])
            names += labels
    generation = int(min(g[-1] for g in found.numbers.generations))
    asdsf = found.deviation.average if found.deviation is not None else np.nan
    if not (np.isfinite(ess).any() and np.isfinite(r_hat).any()):
        return Diagnosis(generation, found.draws, asdsf, np.nan, np.nan, "nothing moves", False)
    least, most = float(np.nanmin(ess)), float(np.nanmax(r_hat))
    met = least > wanted.ess and most < wanted.r_hat and (np.isnan(asdsf) or asdsf < wanted.asdsf)
    return Diagnosis(generation, found.draws, asdsf, least, most, names[int(np.nanargmin(ess))], met)


def _report(
    settings: SummariseSettings, found: TreeSampleSummary, runs: TreeRuns | None, files: Sequence[str]
) -> Report:
    facts = [("files", ", ".join(files)), ("burn-in", f"{100 * settings.burn_in:g}% of every run")]
    if found.numbers is not None:
        facts.append(("samples", f"{found.draws:,} a run, of {len(found.numbers.values)}"))
    facts += [("trees", line) for line in tree_lines(found, settings.mass)]
    return Report(
        title=f"Samples of {Path(settings.files[0]).name}",
        facts=facts,
        numbers=found.numbers,
        tree=found.tree,
        tree_kind=KINDS[settings.tree],
        table=None if runs is None else runs.table,
        diagnosis=found.diagnosis,
        wanted=WANTED,
    )


def tree_lines(found: TreeSampleSummary, mass: float) -> list[str]:
    """What there is to say about the trees, sentence by sentence."""
    if found.tree is None:
        return []
    total = sum(found.per_run)
    lines = [" + ".join(f"{n:,}" for n in found.per_run) + " trees after the burn-in"]
    if found.held < total:
        lines.append(
            f"frequencies of splits are of all of them; the tree, its lengths and heights and topologies of "
            f"{found.held:,}, evenly spread"
        )
    lines.append(
        f"{found.topologies:,} topologies; the {found.credible:,} most frequent hold {100 * mass:g}% of them"
    )
    if found.deviation is not None:
        lines.append(
            f"split frequencies differ by {found.deviation.average:.4f} on average between runs (standard "
            f"deviation of {found.deviation.n_splits:,} splits), at most {found.deviation.largest:.4f}"
        )
    return lines


def _latest(settings: SummariseSettings, trees: Sequence[str]) -> float | None:
    """The decimal year of the latest tip, as is said, or written by phloem time beside its trees."""
    if settings.latest is not None:
        if settings.auspice.file is None:
            raise InputError("--latest is for a dataset of Auspice", hint="Add --auspice FILE.")
        return year_of(settings.latest)
    past = {re.sub(r"\.run\d+\.trees$", "", file) + ".past.tsv" for file in trees}
    if settings.auspice.file is None or len(past) != 1 or not Path(table := past.pop()).is_file():
        return None
    return latest_of_past(table)


def _require_dated(settings: SummariseSettings, runs: TreeRuns) -> None:
    """InputError for trees whose nodes have no dates: a consensus has mean lengths, which do not end at the
    dates of tips."""
    if not runs.table.sample.rooted:
        raise InputError("unrooted trees have no dates", hint="Leave --latest out.")
    if settings.tree not in OF_CLADES:
        hint = "Choose --tree mcc, hipstr or ccd."
        raise InputError("the nodes of a consensus have mean lengths, and no dates", hint=hint)
    heights = sample_heights(runs.table.sample)[:, : runs.table.sample.n_tips]
    if not (heights.max(axis=0) < _AN_HOUR).any():
        raise InputError(
            "no tip is the latest in all trees: its date varies, and so do those of equal heights",
            hint="phloem time --auspice has dates of all its draws; else leave --auspice out.",
        )


def _dataset(
    settings: SummariseSettings,
    found: TreeSampleSummary,
    latest: float | None,
    columns: Mapping[str, Mapping[str, str]],
) -> AuspiceDataset:
    """Of the summary tree. columns: name → tip → text, carried along."""
    tree = found.tree
    assert tree is not None
    attributes = attributes_of_summary(tree, latest)
    attributes.metadata(columns)
    unit = [] if latest is not None else ["no date of the latest tip was given: lengths as in the trees"]
    kind = KINDS[settings.tree]
    return attributes.dataset(f"{kind}, {tree.n_tips:,} tips", [*tree_lines(found, settings.mass), *unit])


def summary_newick(summary: TreeSampleSummary) -> str:
    """The tree as one line of Newick, annotated."""
    return newick_text([summary.tree]).rstrip("\n") if summary.tree is not None else ""


def summary_drawing(summary: TreeSampleSummary, width: int) -> str:
    """The tree for a terminal of so many columns."""
    tree = summary.tree
    return "" if tree is None else draw_tree(tree, width, support_key(tree))

"""The files of a dated analysis, and what it says of the past: a table and a picture."""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.checkpoint import KEPT, checkpoint_files
from phloem.inference.time.sampler import paths
from phloem.io.output_file import write_file
from phloem.plot.pictures import svg_text
from phloem.plot.through_time_figure import Course, through_time_drawing
from phloem.summary.clade_trees import SUMMARY_TREES
from phloem.summary.through_time import ThroughTime


def output_files(prefix: str, n_runs: int, tree: str = "mcc") -> dict[str, str]:
    """File name → what it holds."""
    files = {}
    for r in range(n_runs):
        log, trees = paths(prefix, r)
        files[str(log)] = f"trace of run {r + 1} (Tracer)"
        files[str(trees)] = f"dated trees of run {r + 1} with rates (FigTree)"
    files[f"{prefix}.{tree}.tre"] = f"{SUMMARY_TREES[tree]} with ages (FigTree)"
    files[f"{prefix}.past.tsv"] = "lineages and population sizes through time"
    files[f"{prefix}.past.svg"] = "the same as a picture"
    files[f"{prefix}.json"] = "settings, provenance, summary"
    return files | checkpoint_files(prefix, n_runs)


def write_past(prefix: str, past: ThroughTime, youngest: float) -> None:
    """PREFIX.past.tsv and PREFIX.past.svg; times are dates where there are any, else ages before the present,
    negative in the picture."""
    dated = bool(np.isfinite(youngest))
    times, root = ((youngest if dated else 0.0) - of for of in (past.ages, past.root))
    columns, names = [past.ages], ["age"]
    if dated:
        columns, names = [past.ages, times], ["age", "date"]
    found = [Course("lineages", past.lineages, logarithmic=False)]
    if past.sizes is not None:
        found.insert(0, Course("population size", past.sizes, logarithmic=True))
    for course in found:
        name = course.name.replace(" ", "_")
        names += [name, f"{name}_low", f"{name}_high"]
        columns += list(course.values.T)
    rows = ["\t".join(names), *("\t".join(f"{x:.8g}" for x in row) for row in np.stack(columns, 1))]
    write_file(f"{prefix}.past.tsv", "\n".join(rows) + "\n", KEPT)
    title = f"Through time: medians, and where {100 * past.mass:g}% of the draws are"
    write_file(f"{prefix}.past.svg", svg_text(through_time_drawing(times, found, root, title)), KEPT)

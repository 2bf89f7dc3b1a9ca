"""Runs of the sampler of dated trees for the statistical tests: a trace by names, clades by frequency."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.sampler import first_kept
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.splits import split_table
from phloem.summary.trace import trace_summary
from phloem.tree.splits import split_members


def killed_after(command: Sequence[str], file: Path, lines: int) -> None:
    """Start a command, and kill it where a file of its has more lines than these."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (file.exists() and file.read_text().count("\n") > lines):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def sampled(
    alignment: Alignment,
    heights: np.ndarray,
    model: str,
    tree: TreeModel,
    trait=None,
    planted=None,
    parts=None,
    **settings,
):
    """One run, its constants as planted makes them; returns (names → (mean, mcse), frozenset of taxa →
    (probability, mcse), run). parts: (of two, how many columns a has, how lengths are linked), or one."""
    bounds = np.stack([heights, heights], axis=1) if heights.ndim == 1 else heights
    site_model, observed = model_for_alignment(model, alignment, "median"), [observations(alignment)]
    structure = structure_of_model(site_model, alignment.n_sites)
    if parts is not None:
        n, linkage = parts
        own = [replace(alignment, codes=alignment.codes[:, at]) for at in (slice(n), slice(n, None))]
        models = [PartModel(name, site_model, each.n_sites) for name, each in zip("ab", own)]
        structure, observed = structure_of_parts(models, Linkage(linkage)), [observations(x) for x in own]
    whole = time_model(structure, tree, alignment.taxa, bounds, float("nan"), trait)
    chains = TimeSettings(n_runs=1, **{"sample_every": 50, "seed": 1} | settings)
    begun = new_run(0, observed, whole, chains)
    if planted is not None:
        begun = replace(begun, data=planted(begun.data))
    run = advanced(begun, chains.generations)
    first = first_kept(run)
    summary = trace_summary(("LnL", "LnPr", *run.columns.names), run.samples.numbers[first:][None])
    numbers = {name: (summary.mean[i], summary.mcse[i]) for i, name in enumerate(summary.names)}
    return numbers, clades(run, first), run


def clades(run, first: int):
    """Frequencies of clades, and their standard errors by batches."""
    table = split_table(run.samples.tree_sample(run.model.taxa, first))
    members, n = split_members(table.splits, run.model.n_tips), run.samples.n - first
    found = {}
    for split in np.flatnonzero(~table.trivial):
        there = (table.which == split).any(axis=1)
        batches = there[: n // 40 * 40].reshape(40, -1).mean(axis=1)
        taxa = frozenset(run.model.taxa[x] for x in np.flatnonzero(members[split]))
        found[taxa] = float(there.mean()), float(batches.std(ddof=1) / np.sqrt(40))
    return found


def nothing_observed(n_tips: int, taxa=None, n: int = 1) -> Alignment:
    """An alignment of n columns that say nothing."""
    names = taxa or [f"t{i}" for i in range(n_tips)]
    return alignment_from_sequences({name: "N" * n for name in names}, alphabet("dna"))


def close(found, expected: float, error: float = 0.0, times: float = 4.0) -> bool:
    """Whether a mean lies within so many combined standard errors."""
    mean, mcse = found
    return abs(mean - expected) < times * np.hypot(mcse, error)

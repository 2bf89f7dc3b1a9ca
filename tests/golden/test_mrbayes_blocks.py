"""Log-likelihoods that MrBayes 3.2.7a printed, at its own trees and numbers, of small files with its block.

The files were made up for this. So the block is read as MrBayes reads it, and its formulae are met: states by
character, ordered characters, symbols, its corrections for variable and informative characters, restriction
sites, counted frequencies, codons, covarion, log-normal rates.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mcmc_data import ChainInput, chain_input
from phloem.analysis.mcmc_options import mcmc_settings, merged_options
from phloem.analysis.mrbayes import block_analysis
from phloem.inference.mcmc.structure import printed_names
from phloem.io.newick import parse_newick

FOLDER = Path(__file__).parent / "mrbayes_blocks"
CASES = json.loads((FOLDER / "samples.json").read_text())["cases"]
ITS_NAMES = {"frequency_0": "pi(0)", "p_invariable": "pinvar"}
ITS_NAMES |= {"switch_on": "s(off->on)", "switch_off": "s(on->off)"}
PAIRED_OTHERWISE = "SH94+FO, stems = 1-2:22-21, 3-6:20-17, 9-12:34-37, 25-26:32-33"
LOOPS = "F81+FO, loops = 7-8, 13-16, 23-24, 27-31, 38"
BOUND = 2e-3  # seven digits of a log-likelihood, six of every number it depends on


def read(name: str, **options) -> ChainInput:
    block = block_analysis(FOLDER / name)
    settings = mcmc_settings(merged_options(block, {}, options)[0])
    return chain_input(replace(settings, of_block=block.file))


def differences(data: ChainInput, name: str) -> list[float]:
    """Of every sample that MrBayes printed: phloem's log-likelihood minus its own."""
    names = [n for block in data.structure.space.blocks for n in printed_names(data.structure, block)]
    plain, found = data.plain_likelihood(), []
    for sample in CASES[name]["samples"]:
        tree = parse_newick(sample["tree"])[0]
        place = {tree.taxa.index(taxon): i for i, taxon in enumerate(data.taxa)}
        where = np.array([place.get(x, x) for x in range(tree.n_nodes)])
        parent, lengths = np.full(tree.n_nodes, -1), np.zeros(tree.n_nodes)
        parent[where] = np.where(tree.parent >= 0, where[tree.parent], -1)
        lengths[where] = tree.lengths
        lengths[-1] = 0.0
        bare = {n: n.split("{")[0] for n in names}
        numbers = {n: sample["numbers"][ITS_NAMES.get(b, b)] for n, b in bare.items()}
        value = plain(parent.astype(tree.parent.dtype), lengths[None], numbers)
        found.append(value - sample["numbers"]["LnL"])
    return found


@pytest.mark.parametrize("name", CASES)
def test_log_likelihoods_are_those_of_mrbayes(name):
    found = differences(read(name), name)
    assert len(found) == 3 and np.abs(found).max() < BOUND


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("std.nex", {"character_states": "all"}),
        ("std.nex", {"ordered": "9, 12, 18"}),
        ("std.nex", {"model": "MK+G4"}),
        ("symbols.nex", {"character_states": "own"}),
        ("std3.nex", {"asc": "lewis"}),
        ("res.nex", {"model": "MK+FO+G4"}),
        ("res.nex", {"model": "MK+FO+G4+ASC"}),
        ("stdinf.nex", {"model": "MK+G4+ASC"}),
        ("symdir.nex", {"model": "MK+FB3+G4+ASC"}),
        ("symdir.nex", {"model": "MK+FB4+G4"}),
        ("resinf.nex", {"model": "MK+FO+G4+ASC"}),
        ("lnorm.nex", {"model": "JC+LN5"}),
        ("cod1.nex", {"model": "GY94{kappa=1}+F3X4"}),
        ("cod6.nex", {"model": "GY94GTR+F3X4"}),
        ("dbl1.nex", {"part": [PAIRED_OTHERWISE, LOOPS]}),
    ],
)
def test_what_is_taken_otherwise_has_other_log_likelihoods(name, options):
    assert np.abs(differences(read(name, **options), name)).max() > 10 * BOUND

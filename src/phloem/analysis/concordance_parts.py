"""Rows of `phloem concordance` about sites: of the alignment, and of every part on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from phloem.analysis.reading import DataOptions, parts_of
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.summary.site_concordance import SiteConcordance, site_concordance
from phloem.tree.match import respelled
from phloem.tree.tree import Tree

COLUMNS = ("branch", "part", "characters", "sCF", "sCF_N", "sDF1", "sDF1_N", "sDF2", "sDF2_N", "sN")


def rows_of_taxa(tree: Tree, alignment: Alignment, groups: np.ndarray, file: str) -> np.ndarray:
    """groups (T, n, 4), by tip of the tree, by row of the alignment. InputError for taxa that one lacks."""
    tree = respelled(tree, alignment.taxa)
    row = {name: i for i, name in enumerate(alignment.taxa)}
    unlike = sorted(row.keys() ^ set(tree.taxa))
    if unlike:
        where, other = ("tree", "alignment") if unlike[0] in row else ("alignment", "tree")
        what = f"the {other} has a taxon '{unlike[0]}' that the {where} has not"
        raise InputError(what, file=file, taxon=unlike[0], hint="Both must have the same taxa.")
    own = np.zeros_like(groups)
    own[[row[name] for name in tree.taxa]] = groups
    return own


def rows_of_sites(name: str, found: SiteConcordance) -> list[dict[str, Any]]:
    """Shares in percent, None where no site is decisive; numbers of sites."""
    last = name.removeprefix("sCF")
    rows = []
    for shares, sites, n, looked, telling in zip(*found):
        row: dict[str, Any] = {}
        for own, share, count in zip((name, f"sDF{last}1", f"sDF{last}2"), shares.tolist(), sites.tolist()):
            row |= {own: 100.0 * share if np.isfinite(share) else None, f"{own}_N": count}
        quartets = {} if last else {"quartets": int(looked), "decisive_quartets": int(telling)}
        rows.append(row | {f"sN{last}": float(n)} | quartets)
    return rows


def part_rows(
    data: DataOptions, tree: Tree, groups: np.ndarray, branches: Sequence[str], quartets: int, seed: Sequence
) -> Iterator[dict[str, Any]]:
    """A row a branch and part, by COLUMNS. The same quartets in every part, since seed draws them anew.
    Shares in percent, None where no quartet has a decisive site in the part."""
    for part in parts_of(data)[1]:
        own = rows_of_taxa(tree, part.alignment, groups, data.alignment)
        rng = np.random.default_rng(seed)
        found = site_concordance(site_patterns(part.alignment), own, quartets, rng)
        for branch, own_row in zip(branches, rows_of_sites("sCF", found)):
            row = {"branch": branch, "part": part.name, "characters": part.alignment.n_sites} | own_row
            yield {name: row[name] for name in COLUMNS}

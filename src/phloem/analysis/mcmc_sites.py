"""`--site-table` of `phloem mcmc` and `phloem time`: what draws say of every site, and how well the model
foretells sites that it has not seen (summary/predictive.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phloem.analysis.mcmc_draws import ChainData, Drawn, Told, likelihood_of, part_rate
from phloem.io.output_file import write_file
from phloem.summary.predictive import UNRELIABLE, LeftOut, leave_one_out
from phloem.summary.trace import mixing

ENDING = "sites"


@dataclass(frozen=True, eq=False)
class SiteTable:
    """Of a part: (L,) each. mean, sd: of a site's log-likelihood over draws. left_out: its log density where
    it is left out; spent: how much less that is; k: Pareto's, of that. rate:
    posterior mean, 1 on the average of all sites; the part's included."""

    mean: np.ndarray
    sd: np.ndarray
    left_out: np.ndarray
    spent: np.ndarray
    k: np.ndarray
    rate: np.ndarray


def site_tables(data: ChainData, drawn: Drawn, told: Told) -> list[SiteTable]:
    """Of every part."""
    draws, parts = drawn.evenly(), range(len(data.structure.parts))
    of_site = [[[np.empty(0)] * len(run) for run in draws] for _ in parts]
    rates: list[Any] = [0.0 for _ in parts]
    done, n = 0, sum(map(len, draws))
    for r, run in enumerate(draws):
        for i, draw in enumerate(run):
            for part in parts:
                one = likelihood_of(data, part, draw)
                of_site[part][r][i] = one.site_log_likelihoods()
                rates[part] = rates[part] + one.site_rates() * (part_rate(data, part, draw) / n)
            told("sites", done := done + 1, n)
    total = sum(np.array(own).sum(axis=2) for own in of_site)
    share = float(np.clip(mixing(total[:, :, None])[0][0] / n, 1 / n, 1.0))
    return [_table(np.array(own).transpose(2, 0, 1), rate, share) for own, rate in zip(of_site, rates)]


def _table(values: np.ndarray, rate: np.ndarray, share: float) -> SiteTable:
    """values: (L, runs, draws). share: effective draws a draw."""
    distinct, back = np.unique(values.reshape(len(values), -1), axis=0, return_inverse=True)
    found = leave_one_out(distinct.reshape(-1, *values.shape[1:]), share)
    of_left_out, spent, k = (x[back.ravel()] for x in found)
    return SiteTable(values.mean((1, 2)), values.std((1, 2), ddof=1), of_left_out, spent, k, rate)


def all_left_out(tables: list[SiteTable], n_draws: int) -> LeftOut:
    """Of all parts together."""
    of_site, spent, k = (
        np.concatenate([getattr(table, name) for table in tables]) for name in ("left_out", "spent", "k")
    )
    return LeftOut(
        float(of_site.sum()), float(np.sqrt(len(of_site) * of_site.var())), float(spent.sum()),
        int((k > UNRELIABLE).sum()), len(of_site), n_draws,
    )  # fmt: skip


def write_sites(prefix: str, data: ChainData, tables: list[SiteTable], kept: str) -> None:
    """PREFIX.sites: a row a site; sites by their number in the file where that is known."""
    several = len(tables) > 1
    lines = ["part\t" * several + "site\tlog_likelihood\tsd\tleft_out\tpareto_k\trate"]
    for part, numbers, table in zip(data.structure.parts, data.sites, tables):
        places = np.arange(1, len(table.mean) + 1) if numbers is None else numbers
        columns = (table.mean, table.sd, table.left_out, table.k, table.rate)
        for place, row in zip(places.tolist(), np.stack(columns, 1).tolist()):
            cells = "\t".join(f"{x:.8g}" for x in row)
            lines.append(f"{part.name}\t" * several + f"{place}\t{cells}")
    write_file(f"{prefix}.{ENDING}", "\n".join(lines) + "\n", kept)

"""`phloem time --auspice`: the summary tree as a dataset for Nextstrain, PREFIX.auspice.json."""

from __future__ import annotations

from collections.abc import Mapping

from phloem.analysis.auspice_summary import attributes_of_summary
from phloem.analysis.time_record import TimeResult
from phloem.io.auspice import write_auspice
from phloem.summary.clade_trees import SUMMARY_TREES


def write_for_auspice(
    result: TimeResult, latest: float | None, tips: Mapping[str, Mapping[str, str]]
) -> None:
    """latest: decimal year of the latest tip, None where times have no calendar: the dataset has ages before
    the root then. tips: column → tip → text, carried along."""
    settings, p = result.settings, result.parameters
    file = settings.auspice_options.file
    assert file is not None
    lines = [f"{result.model}; {settings.tree.clock} clock; {settings.tree.prior}", result.diagnosis.text]
    for name in ("root_date", "root_height", "clock_rate"):
        if name in p.names:
            i = p.names.index(name)
            lines.append(f"{name} {p.mean[i]:.6g}, 95% HPD {p.hpd_low[i]:.6g} to {p.hpd_high[i]:.6g}")
    attributes = attributes_of_summary(result.tree, latest)
    attributes.metadata(tips)
    kind = SUMMARY_TREES[settings.summary_tree].rstrip(",").capitalize()
    write_auspice(file, attributes.dataset(f"{kind}, {result.tree.n_tips:,} tips", lines))

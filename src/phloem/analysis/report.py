"""A report of sampled numbers and trees: one self-contained page of HTML, without scripts or network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from phloem import __version__
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.settings import Convergence
from phloem.plot.drawing import DrawSettings
from phloem.plot.pictures import svg_text, tree_svg
from phloem.plot.trace_figure import RUN_COLOURS, trace_drawing
from phloem.summary.splits import SplitTable
from phloem.summary.trace import TraceSummary
from phloem.tree.splits import split_members
from phloem.tree.tree import Tree

MOST_PICTURES, MOST_SPLITS = 60, 60
_SURE = 0.995  # splits at least as frequent in every run are counted, not listed


@dataclass(frozen=True, eq=False)
class ReportNumbers:
    """summary: of the columns. generations, values: of every run, all samples; first: its first after the
    burn-in."""

    summary: TraceSummary
    generations: Sequence[np.ndarray]
    values: Sequence[np.ndarray]
    first: Sequence[int]


@dataclass(frozen=True, eq=False)
class Report:
    """title; facts: name and text, for the head. numbers: None without traces. tree, its kind in words, and
    table of splits: None without trees. diagnosis, wanted: what says whether runs agree; None without both
    traces and trees of the same samples. warnings: sentences."""

    title: str
    facts: Sequence[tuple[str, str]]
    numbers: ReportNumbers | None = None
    tree: Tree | None = None
    tree_kind: str = ""
    table: SplitTable | None = None
    diagnosis: Diagnosis | None = None
    wanted: Convergence | None = None
    warnings: Sequence[str] = ()


def report_html(report: Report) -> str:
    """The page."""
    parts = [f"<h1>{escape(report.title)}</h1>", _facts(report.facts)]
    if report.diagnosis is not None and report.wanted is not None:
        parts.append(_verdict(report.diagnosis, report.wanted))
    parts += [f'<p class="warning">{escape(text)}</p>' for text in report.warnings]
    if report.numbers is not None:
        parts.append(_numbers(report.numbers.summary))
    if report.tree is not None:
        parts.append(f"<h2>{escape(report.tree_kind)}</h2>{_picture(report.tree)}")
    if report.table is not None:
        parts.append(_splits(report.table))
    if report.numbers is not None:
        parts.append(_traces(report.numbers))
    parts.append(f"<footer>phloem {escape(__version__)}</footer>")
    title = escape(report.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


_STYLE = """
body{font:15px/1.5 Helvetica,Arial,'Liberation Sans',sans-serif;color:#222}
body{max-width:980px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
table{border-collapse:collapse;font-size:.9em}caption{text-align:left;color:#555;padding:.3em 0}
th,td{padding:.15em .7em;text-align:right;border-bottom:1px solid #e4e4e4}
th:first-child,td:first-child,td.words,th.words{text-align:left}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em}
dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
.short{background:#fbe9d0}.good{color:#2f6f45}.bad,.warning{color:#9a4a10}.wide{overflow-x:auto}
svg{max-width:100%;height:auto}
.traces{display:grid;grid-template-columns:repeat(auto-fill,minmax(440px,1fr));gap:.6em}
.key span{display:inline-block;width:1.6em;border-top:3px solid;margin:0 .4em 0 1em;vertical-align:middle}
footer{margin-top:3em;color:#777;font-size:.85em}@media print{.traces{display:block}}
"""


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(n)}</dt><dd>{escape(t)}</dd>" for n, t in facts) + "</dl>"


def _verdict(d: Diagnosis, wanted: Convergence) -> str:
    """Whether thresholds hold, and each of them."""
    what = "All thresholds hold." if d.met else "Not all thresholds hold: sample more."
    rows = [
        ("average standard deviation of split frequencies", _short(d.asdsf), f"&lt; {wanted.asdsf:g}"),
        (f"smallest effective sample size ({escape(d.limiting)})", _short(d.ess, 0), f"&gt; {wanted.ess:g}"),
        ("largest R-hat", _short(d.r_hat), f"&lt; {wanted.r_hat:g}"),
    ]
    text = "".join(f"<tr><td>{name}</td><td>{value}</td><td>{want}</td></tr>" for name, value, want in rows)
    return (
        f'<h2>Do the runs agree?</h2><p class="{"good" if d.met else "bad"}">{what}</p>'
        f"<table><tr><th>what</th><th>found</th><th>wanted</th></tr>{text}</table>"
    )


def _numbers(p: TraceSummary) -> str:
    heads = ("mean", "sd", f"{100 * p.mass:g}% HPD", "", "ESS", "tail ESS", "R-hat")
    rows = []
    for i, name in enumerate(p.names):
        mean, low, high = p.texts(i)
        cells = [f"<td>{text}</td>" for text in (mean, f"{p.sd[i]:.3g}", low, high)]
        cells += [f"<td{_mark(x < 200)}>{_short(x, 0)}</td>" for x in (p.ess[i], p.ess_tail[i])]
        cells.append(f"<td{_mark(p.r_hat[i] > 1.01)}>{_short(p.r_hat[i])}</td>")
        rows.append(f"<tr><td>{escape(name)}</td>{''.join(cells)}</tr>")
    head = "".join(f"<th>{text}</th>" for text in ("parameter", *heads))
    return (
        '<h2>Numbers</h2><div class="wide"><table><caption>Marked: effective sample sizes below 200, '
        f"R-hat above 1.01.</caption><tr>{head}</tr>{''.join(rows)}</table></div>"
    )


def _mark(short: bool) -> str:
    return ' class="short"' if short else ""


def _short(value: float, decimals: int = 4) -> str:
    return "–" if not np.isfinite(value) else f"{value:.{decimals}f}" if value < 1e6 else "over 1000000"


def _picture(tree: Tree) -> str:
    return f'<div class="wide">{tree_svg(tree, DrawSettings(width=900.0))}</div>'


def _splits(table: SplitTable) -> str:
    """Splits that some run has in a tenth of its trees, and not all of them have almost always."""
    often = ~table.trivial & (table.frequency.max(axis=0) >= 0.1)
    sure = often & (table.frequency.min(axis=0) >= _SURE)
    chosen = np.flatnonzero(often & ~sure)
    chosen = chosen[np.argsort(-table.probability[chosen], kind="stable")]
    spread = table.frequency.std(axis=0, ddof=1) if table.n_runs > 1 else np.full(table.n_splits, np.nan)
    rows = []
    for split in chosen[:MOST_SPLITS].tolist():
        inside = split_members(table.splits[split], table.sample.n_tips)
        taxa = [name for name, held in zip(table.sample.taxa, inside) if held]
        runs = "".join(f"<td>{x:.3f}</td>" for x in table.frequency[:, split].tolist())
        cells = f"<td>{table.probability[split]:.3f}</td>{runs}<td>{_short(spread[split], 3)}</td>"
        shown = ", ".join(taxa[:8]) + (f" and {len(taxa) - 8} more" if len(taxa) > 8 else "")
        rows.append(f'<tr>{cells}<td class="words">{escape(shown)}</td></tr>')
    what = "clades" if table.sample.rooted else "splits"
    told = f"{int(sure.sum())} {what} are in at least {100 * _SURE:g}% of every run's trees."
    if len(chosen) > MOST_SPLITS:
        told += f" Of {len(chosen)} others the {MOST_SPLITS} most frequent stand here."
    runs = "".join(f"<th>run {r + 1}</th>" for r in range(table.n_runs))
    head = f'<tr><th>all</th>{runs}<th>sd</th><th class="words">taxa</th></tr>'
    listed = f'<div class="wide"><table>{head}{"".join(rows)}</table></div>' if rows else ""
    return f"<h2>{what.capitalize()} that are uncertain</h2><p>{told}</p>{listed}"


def _traces(numbers: ReportNumbers) -> str:
    names = numbers.summary.names
    pictures = [
        svg_text(
            trace_drawing(name, numbers.generations, [run[:, k] for run in numbers.values], numbers.first)
        )
        for k, name in enumerate(names[:MOST_PICTURES])
    ]
    key = "".join(
        f'<span style="border-color:{RUN_COLOURS[r % len(RUN_COLOURS)]}"></span>run {r + 1}'
        for r in range(len(numbers.values))
    )
    rest = f" The first {MOST_PICTURES} of {len(names)} numbers." if len(names) > MOST_PICTURES else ""
    return (
        f'<h2>Traces</h2><p class="key">{key} Faint: burn-in. Right: histograms of what is kept.{rest}</p>'
        f'<div class="traces">{"".join(pictures)}</div>'
    )

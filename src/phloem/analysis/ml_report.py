"""What `phloem ml` writes for people: the choice of a model, how the search went, the tree drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.json_record import plain
from phloem.analysis.likelihood import criteria_line, optimum_record
from phloem.analysis.ml_adequacy import adequacy_lines
from phloem.analysis.ml_classes import class_lines, class_records
from phloem.analysis.ml_constraint import constraint_lines
from phloem.analysis.ml_effort import effort_line
from phloem.analysis.ml_held import held_lines
from phloem.analysis.ml_merge import merging_lines
from phloem.analysis.ml_omegas import omega_lines
from phloem.analysis.ml_settings import DRAWN
from phloem.analysis.partitioned_likelihood import part_results
from phloem.inference.ml.identical import listed
from phloem.inference.ml.optimum import PartitionedOptimum
from phloem.likelihood.partitioned import PartitionedLikelihood

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult
    from phloem.inference.ml.criteria import Criteria
    from phloem.inference.ml.model_choice import Candidate, Criterion, ModelChoice
    from phloem.inference.ml.searched import Fit, Likelihood
    from phloem.inference.ml.tree_search import SearchResult

NAMES = {"bic": "BIC", "aicc": "AICc", "aic": "AIC"}
_LISTED, _LISTED_OF_PARTS = 20, 5  # models in the tables for people


def report_text(result: MlResult) -> str:
    """Data, model, how the search went, parameters, and the tree drawn."""
    data = result.data
    lines = [
        f"phloem {result.provenance['version']}, {result.provenance['date']}",
        "",
        f"alignment: {result.settings.alignment}",
        f"  {data['taxa']} taxa, {data['sites']:,} sites, {data['datatype']}, {data['states']} states",
        f"seconds: {result.seconds:.2f}, seed {result.settings.seed}",
        "",
        *identical_lines(result),
        *merge_lines(result),
        *all_choice_lines(result.choices),
        *adequacy_lines(result.adequacy),
        *_search_lines(result),
        *(f"warning: {warning}" for warning in result.warnings),
    ]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return wrap(text, 80, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)


def _search_lines(result: MlResult) -> list[str]:
    found = result.found
    if found is None:
        return []
    optimum, parts = found.optimum, part_lines(found.likelihood)
    return [
        *(f"model: {model_text_of(optimum)}" for _ in (1,) if not parts),
        *parts,
        "",
        f"log-likelihood: {optimum.log_likelihood:.4f}",
        f"free numbers: {optimum.n_free}",
        criteria_line(optimum.aic, optimum.aicc, optimum.bic),
        f"tree length: {optimum.tree.lengths[:-1].sum():.6f} substitutions per site",
        *class_lines(class_records(found.likelihood, result.rows).get("classes", [])),
        "",
        *_how_lines(result, found),
        "",
        result.drawing,
        "",
        *support_lines(result),
        *omega_lines(found.likelihood),
        "The tree is unrooted: where it is drawn from carries no information.",
    ]


def _how_lines(result: MlResult, found: SearchResult) -> list[str]:
    """How the search went, or what tree was held."""
    if result.selection is None:
        return ["tree:", *(line for one in held_lines(result.held) for line in _wrapped(one))]
    return [
        "search:",
        f"  {effort_line(result.settings.effort)}",
        *_wrapped(f"on the {result.selection.reason}"),
        *(line for one in constraint_lines(result.constraint) for line in _wrapped(one)),
        *start_lines(found),
        f"  {found.tries} tries from elsewhere, {len(found.found)} led to a better tree",
        *(f"  try {b.number} ({b.kind}): {b.log_likelihood:.4f}" for b in found.found),
        *difficulty_lines(found),
    ]


def model_text_of(optimum: Fit) -> str:
    """The model with its numbers; of parts as partition files write it, MODEL:part."""
    if isinstance(optimum, PartitionedOptimum):
        return ", ".join(f"{text}:{name}" for name, text in optimum.model_texts.items())
    return optimum.model_text


def parts_record(likelihood: Likelihood) -> dict[str, object]:
    """Of several parts: each, and what they share."""
    if not isinstance(likelihood, PartitionedLikelihood):
        return {}
    linkage = likelihood.linkage
    return {
        "parts": [asdict(part) for part in part_results(likelihood)],
        "linkage": linkage.lengths,
        "linked": {name: [list(group) for group in groups] for name, groups in linkage.parameters.items()},
        "length_unit": likelihood.length_unit,
    }


def part_lines(likelihood: Likelihood) -> list[str]:
    """A row a part and its model, within 80 columns; none of one alignment."""
    if not isinstance(likelihood, PartitionedLikelihood):
        return []
    how = {
        "linked": "the parts share branch lengths",
        "proportional": "branch lengths of the parts are proportional, rates with mean 1 over sites",
        "unlinked": "every part has branch lengths of its own",
    }
    lines = _wrapped(f"{len(likelihood.parts)} parts; {how[likelihood.linkage.lengths]}:", "")
    lines.append(f"  {'part':<18}{'sites':>8}{'patterns':>9}{'log L':>15}{'rate':>9}{'length':>10}")
    for part in part_results(likelihood):
        name = part.name if len(part.name) <= 17 else part.name[:16] + "…"
        numbers = f"{part.log_likelihood:>15.4f}{part.rate:>9.4f}{part.tree_length:>10.4f}"
        lines.append(f"  {name:<18}{part.sites:>8,}{part.patterns:>9,}{numbers}")
    for name, text in likelihood.model_texts.items():
        lines += _wrapped(f"{name}: {text}")
    return lines


def identical_lines(result: MlResult) -> list[str]:
    """Which sequences were kept out of the search."""
    groups = result.rows.groups()
    if not groups:
        return []
    head = f"{result.rows.copies} kept out of the search and put back:"
    return [head, *(line for one in listed(groups) for line in _wrapped(one)), ""]


def start_lines(found: SearchResult) -> list[str]:
    """What every search began from, and reached."""
    lines = []
    for number, one in enumerate(found.starts, 1):
        ahead = f"start {number}, " if len(found.starts) > 1 else ""
        end = f", in the end {one.log_likelihood:.4f}" if len(found.starts) > 1 else ""
        lines += _wrapped(f"{ahead}from {one.origin}: {one.first:.4f}{end}")
    return lines


def difficulty_lines(found: SearchResult) -> list[str]:
    """How much independent climbs agree."""
    hard = found.difficulty
    if hard is None:
        return []
    return _wrapped(
        f"difficulty {hard.value:.2f} (0 to 1): {hard.climbs} independent climbs ended on {hard.topologies} "
        f"trees, {hard.plausible} of them plausible, {100 * hard.distance:.0f} % of branches apart"
    )


def support_lines(result: MlResult) -> list[str]:
    """How many branches are well supported, by name."""
    supports = result.supports
    if supports is None:
        return []
    drawn, names = DRAWN[result.settings.sampling], "/".join(supports.names)
    of = "" if result.settings.sampling == "site" else f", by replicates of {drawn},"
    lines = [f"supports of {len(supports.branches)} inner branches{of} ({names} in PREFIX.tree):"]
    for name, column in zip(supports.names, supports.shares.T):
        high = int((column >= 0.95).sum())
        known = column[np.isfinite(column)]
        mean = f"{100 * known.mean():.1f} %" if len(known) else "-"
        lines.append(f"  {name:<10} mean {mean}, {high} of 95 % or more")
    if supports.replicates:
        lines.append(f"  {len(supports.replicates)} bootstrap replicates")
    return [*lines, ""]


def merge_lines(result: MlResult) -> list[str]:
    """The steps of merging, if parts were merged."""
    return [] if result.merging is None else merging_lines(*result.merging, NAMES[result.settings.criterion])


def all_choice_lines(choices: Mapping[str, ModelChoice], most: int = _LISTED) -> list[str]:
    """Of one alignment, or of every part, of which fewer models are listed."""
    lines = []
    for part, choice in choices.items():
        lines += [f"part {part}:"] if part else []
        lines += choice_lines(choice, most if not part else min(most, _LISTED_OF_PARTS))
    return lines


def choice_lines(choice: ModelChoice, most: int = _LISTED) -> list[str]:
    """The table of models, best first, within 80 columns, and why the winner won."""
    by = choice.settings.criterion
    weights = choice.weights(by)
    head = f"{'model':<21}{'log L':>12}{'free':>5}{'AIC':>12}{'AICc':>12}{'BIC':>12}{'w':>6}"
    tree = choice.origin if choice.held else f"the tree of a climb from {choice.origin}"
    lines = _wrapped(f"choice of model by {NAMES[by]}, all on {tree}:", "")
    lines.append(head)
    for candidate, weight in zip(choice.candidates[:most], weights):
        lines.append(_row(candidate.text, candidate, weight))
    left = len(choice.candidates) - most
    if left > 0:
        lines.append(f"… and {left} models that are worse")
    if choice.skipped:
        names = f"{len(choice.skipped)} models cannot win and were not fitted: others contain them"
        lines.append(names)
    return [*lines, *(line for text in reasons(choice) for line in _wrapped(text, "")), ""]


def _row(text: str, candidate: Candidate, weight: float) -> str:
    c = candidate.criteria
    numbers = "".join(f"{x:>12.2f}" if np.isfinite(x) else f"{'-':>12}" for x in c)
    value, free = candidate.fit.log_likelihood, candidate.fit.n_free
    share = f"{weight:>6.3f}" if np.isfinite(weight) else f"{'-':>6}"
    name = text if len(text) <= 20 else text[:19] + "…"
    return f"{name:<21}{value:>12.2f}{free:>5}{numbers}{share}"


def reasons(choice: ModelChoice) -> list[str]:
    """Sentences: what the winner is ahead of, by how much, and whether other criteria agree."""
    by, winner = choice.settings.criterion, choice.winner
    lines = [f"{winner.text} has the best {NAMES[by]}, {winner.by(by):.2f}."]
    if len(choice.candidates) > 1:
        second = choice.candidates[1]
        lines.append(_against(winner, second, by, choice.n_sites))
        likeliest = max(choice.candidates, key=lambda c: c.fit.log_likelihood)
        if likeliest is not winner and likeliest is not second:
            lines.append(_against(winner, likeliest, by, choice.n_sites))
    for other in (c for c in NAMES if c != by):
        best = choice.best(other)  # type: ignore[arg-type]
        if not np.isfinite(best.by(other)):  # type: ignore[arg-type]
            lines.append(f"{NAMES[other]} is not defined: there are too few sites for so many numbers.")
        elif best is winner:
            lines.append(f"{NAMES[other]} chooses the same.")
        else:
            lines.append(f"{NAMES[other]} chooses {best.text}.")
    return lines


def _against(winner: Candidate, other: Candidate, by: Criterion, n_sites: int) -> str:
    ahead = other.by(by) - winner.by(by)
    gain = winner.fit.log_likelihood - other.fit.log_likelihood
    more = winner.fit.n_free - other.fit.n_free
    numbers = f"{abs(more)} free number{'s' * (abs(more) != 1)} {'more' if more > 0 else 'fewer'}"
    price = f" (a number costs {0.5 * np.log(n_sites):.2f})" if by == "bic" else ""
    return (
        f"{ahead:.2f} ahead of {other.text}: log-likelihood {abs(gain):.2f} "
        f"{'higher' if gain >= 0 else 'lower'}, {numbers if more else 'as many free numbers'}{price}."
    )


def choice_record(choice: ModelChoice) -> dict[str, object]:
    """The same for programs."""
    by: tuple[Criterion, ...] = ("aic", "aicc", "bic")
    weights = {name: choice.weights(name).tolist() for name in by}
    return {
        "criterion": choice.settings.criterion,
        "winner": choice.winner.text,
        "best": {name: choice.best(name).text for name in by},
        "why": reasons(choice),
        "tree_from": choice.origin,
        "models": [
            {
                "model": c.text,
                "fitted_model": c.fit.model_text,
                "log_likelihood": c.fit.log_likelihood,
                **{k: v for k, v in optimum_record(c.fit).items() if k in ("free_numbers", *by)},
                **{f"{name}_weight": plain(weights[name][i]) for name in by},
            }
            for i, c in enumerate(choice.candidates)
        ],
        "not_fitted": [
            {"model": s.text, "within": s.within, "least": _finite(s.least)} for s in choice.skipped
        ],
    }


def choices_table(choices: Mapping[str, ModelChoice]) -> str:
    """choice_table; of parts one below the other, with the part's name first."""
    if "" in choices:
        return choice_table(choices[""])
    tables = {part: choice_table(choice).splitlines() for part, choice in choices.items()}
    head = next(iter(tables.values()))[0]
    rows = [f"{part}\t{row}" for part, table in tables.items() for row in table[1:]]
    return "\n".join([f"part\t{head}", *rows]) + "\n"


def choice_table(choice: ModelChoice) -> str:
    """All models, tabs between the columns; of those not fitted what bounds their criteria from below."""
    head = "model\tlog_likelihood\tfree_numbers\taic\taicc\tbic\tweight\tnot_fitted_within"
    weights = choice.weights(choice.settings.criterion).tolist()
    rows = [
        (c.text, c.fit.log_likelihood, c.fit.n_free, *c.criteria, w, "")
        for c, w in zip(choice.candidates, weights)
    ]
    bounds: Iterable[tuple] = ((s.text, "", "", *s.least, 0.0, s.within) for s in choice.skipped)
    return "\n".join([head, *("\t".join(map(_cell, row)) for row in (*rows, *bounds))]) + "\n"


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _finite(least: Criteria) -> dict[str, float | None]:
    return {name: plain(value) for name, value in least._asdict().items()}

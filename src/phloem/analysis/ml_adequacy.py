"""What `phloem ml` says of its data's composition and symmetry, which reversible models take for granted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.analysis.json_record import plain
from phloem.analysis.reading import Part
from phloem.summary.composition import Composition, Symmetry, composition_test, symmetry_test

MOST_TAXA = 200  # of whose pairs all are tested: time goes with their square
IN_A_ROW = (
    "composition_tested", "composition_failing", "symmetry_tested", "symmetry_failing", "symmetry_p_corrected"
)  # fmt: skip
_LEVEL = 0.05
_LISTED = 20  # sequences in the report


@dataclass(frozen=True, eq=False)
class PartAdequacy:
    """Of one part, all sequences; symmetry: None of more than MOST_TAXA."""

    name: str
    taxa: tuple[str, ...]
    states: tuple[str, ...]
    composition: Composition
    symmetry: Symmetry | None

    @property
    def failing(self) -> list[int]:
        """Rows of the sequences with p < 0.05, the worst first."""
        p = self.composition.p
        return [int(k) for k in np.argsort(p, kind="stable") if p[k] < _LEVEL]

    @property
    def tested(self) -> int:
        """Sequences of which the composition was tested."""
        return int(np.isfinite(self.composition.p).sum())

    def in_a_row(self) -> dict[str, int | float | None]:
        """IN_A_ROW by name; None of pairs that were not tested."""
        found = self.symmetry
        pairs = 0 if found is None else int(np.isfinite(found.p).sum())
        of_pairs = (None, None, None) if found is None else (pairs, int((found.p < _LEVEL).sum()), None)
        if found is not None and pairs:
            of_pairs = (*of_pairs[:2], bonferroni(found))
        return dict(zip(IN_A_ROW, (self.tested, len(self.failing), *of_pairs)))

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        own = self.composition
        columns = zip(self.taxa, own.counts.sum(1).tolist(), own.chi_square.tolist(), own.p.tolist())
        sequences = [
            {"taxon": taxon, "characters": n, "chi_square": plain(square), "p": plain(p)}
            for taxon, n, square, p in columns
        ]
        composition = {
            "states": list(self.states),
            "mean": own.expected.tolist(),
            "degrees_of_freedom": own.degrees_of_freedom,
            "below_0.05": len(self.failing),
            "sequences": sequences,
        }
        named = {"part": self.name} if self.name else {}
        return named | {"composition": composition, "symmetry": self._symmetry_record()}

    def _symmetry_record(self) -> dict[str, object]:
        if self.symmetry is None:
            return {"not_tested": not_tested(len(self.taxa))}
        found = self.symmetry
        p, best = found.p, worst_pair(found)
        record: dict[str, object] = {
            "pairs": int(np.isfinite(p).sum()),
            "pairs_without_a_difference": int(np.isnan(p).sum()),
            "below_0.05": int((p < _LEVEL).sum()),
        }
        if best is None:
            return record
        return record | {
            "smallest": {
                "taxa": [self.taxa[k] for k in found.pairs[best]],
                "chi_square": float(found.chi_square[best]),
                "degrees_of_freedom": int(found.degrees_of_freedom[best]),
                "p": float(p[best]),
                "p_bonferroni": bonferroni(found),
            }
        }


@dataclass(frozen=True)
class Adequacy:
    """Of every part."""

    parts: tuple[PartAdequacy, ...]

    def to_json(self) -> dict[str, object]:
        """Of one alignment its record, of parts a list of them."""
        records = [part.to_json() for part in self.parts]
        return {"adequacy": records if self.parts[0].name else records[0]}


def adequacy_of(parts: Sequence[Part]) -> Adequacy:
    """Both tests of every part, as it was given; pairs of at most MOST_TAXA sequences."""
    found = []
    for part in parts:
        data = part.alignment
        symmetry = symmetry_test(data) if data.n_taxa <= MOST_TAXA else None
        found.append(
            PartAdequacy(part.name, data.taxa, data.alphabet.states, composition_test(data), symmetry)
        )
    return Adequacy(tuple(found))


def not_tested(n_taxa: int) -> str:
    """Why pairs were not tested."""
    return f"pairs are tested of at most {MOST_TAXA} sequences, and these are {n_taxa:,}"


def worst_pair(found: Symmetry) -> int | None:
    """Which pair has the smallest p, of equal ones the largest χ²; None where none can be tested."""
    if not np.isfinite(found.p).any():
        return None
    return int(np.lexsort((-np.nan_to_num(found.chi_square), np.nan_to_num(found.p, nan=2.0)))[0])


def bonferroni(found: Symmetry) -> float:
    """The smallest p times the number of pairs tested, at most 1; it is Holm's, too."""
    return min(1.0, float(np.nanmin(found.p)) * int(np.isfinite(found.p).sum()))


def adequacy_lines(adequacy: Adequacy) -> list[str]:
    """For people: of one alignment which sequences fail, of parts a row each."""
    if adequacy.parts[0].name:
        return _table(adequacy.parts)
    (part,) = adequacy.parts
    return ["adequacy of stationary, reversible models:", *_composition(part), *_symmetry(part), ""]


def _composition(part: PartAdequacy) -> list[str]:
    own, failing = part.composition, part.failing
    tested = part.tested
    if not tested:
        return ["  composition: no two states were seen, nothing to test"]
    lines = [
        f"  composition, chi-square with {own.degrees_of_freedom} degrees of freedom: "
        f"{len(failing)} of {tested} sequences",
        f"  differ from the mean of all at 5 % ({_LEVEL * tested:.1f} would by chance)",
    ]
    for k in failing[:_LISTED]:
        name = part.taxa[k] if len(part.taxa[k]) <= 40 else part.taxa[k][:39] + "…"
        lines.append(f"    {name:<42}{own.chi_square[k]:>12.2f}  p {_p(own.p[k])}")
    more = len(failing) - _LISTED
    return lines + ([f"    … and {more} more, in the JSON file"] if more > 0 else [])


def _symmetry(part: PartAdequacy) -> list[str]:
    if part.symmetry is None:
        return [f"  symmetry (Bowker) not tested: {not_tested(len(part.taxa))}"]
    found = part.symmetry
    best, tested = worst_pair(found), int(np.isfinite(found.p).sum())
    if best is None:
        return ["  symmetry (Bowker): no two sequences differ, nothing to test"]
    one, other = (part.taxa[k] for k in found.pairs[best])
    equal = len(found.p) - tested
    return [
        f"  symmetry (Bowker): {int((found.p < _LEVEL).sum())} of {tested} pairs of sequences have p < 0.05"
        + (f"; {equal} pairs are equal" if equal else ""),
        f"    smallest p {_p(found.p[best])}, times the number of pairs (Bonferroni) "
        f"{_p(bonferroni(found))}:",
        f"    {one}, {other}",
    ]


def _table(parts: Sequence[PartAdequacy]) -> list[str]:
    lines = [
        "adequacy of stationary, reversible models: sequences whose composition differs",
        "from the mean (chi-square), pairs that are not symmetric (Bowker), at 5 %; the",
        "smallest p of a pair times their number (Bonferroni); sequences are in the JSON",
        f"  {'part':<18}{'sequences':>16}{'pairs':>18}{'Bonferroni':>14}",
    ]
    for part in parts:
        name = part.name if len(part.name) <= 17 else part.name[:16] + "…"
        lines.append(f"  {name:<18}{f'{len(part.failing)} of {part.tested}':>16}{_pairs_of(part.symmetry)}")
    if any(part.symmetry is None for part in parts):
        lines.append(f"  -: {not_tested(len(parts[0].taxa))}")
    return [*lines, ""]


def _pairs_of(found: Symmetry | None) -> str:
    if found is None:
        return f"{'-':>18}{'-':>14}"
    tested = int(np.isfinite(found.p).sum())
    corrected = _p(bonferroni(found)) if tested else "none"
    return f"{f'{int((found.p < _LEVEL).sum())} of {tested}':>18}{corrected:>14}"


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 1e-3 else f"{p:.1e}" if p > 0 else "< 1e-300"

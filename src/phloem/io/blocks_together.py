"""Several alignments of one file as one matrix, each a part of its data type; taxa matched by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.data.sites import format_sites, parse_sites
from phloem.errors import InputError
from phloem.io.character_rows import CharacterRow, CharacterRows, side_by_side
from phloem.tree.match import folded


def together(blocks: Sequence[CharacterRows], names: Sequence[str] = ()) -> CharacterRows:
    """Blocks of one file side by side, taxa that a block lacks missing. names: of the blocks, which are sets
    of columns of these names then, or the blocks' own sets where one has some; each is a part. Else blocks
    are the parts, called by their data types.

    Raises InputError at the second block for blocks that declare no data type or several, and for standard
    ones of different symbols.
    """
    source = blocks[0].source
    kinds = [block.datatype for block in blocks]
    symbols = {block.symbols for block, kind in zip(blocks, kinds) if kind == "standard"}
    if None in kinds or any(block.parts for block in blocks) or len(symbols) > 1:
        raise source.error(
            "these blocks of characters cannot be read together",
            blocks[0].rows[0].name_start,
            hint="Give every block one data type, and the same symbols to all of type standard.",
        )
    rows: dict[str, CharacterRow] = {}
    for row in (row for block in blocks for row in block.rows):
        rows.setdefault(folded(row.taxon), CharacterRow(row.taxon, row.name_start))
    ranges, called, first = [], list[str](), 1
    for k, (block, kind) in enumerate(zip(blocks, kinds)):
        own = {folded(row.taxon): row for row in block.rows}
        for name, row in rows.items():
            for piece, start in zip(*_pieces(own.get(name), row, block.n_sites)):
                row.add(piece, start)
        for name, sites in _sets(block, names[k] if names else ""):
            ranges.append((str(kind), format_sites(sites + first - 1)))
            called.append(name)
        first += block.n_sites
    _, matrix, sets = side_by_side(blocks)
    return CharacterRows(
        source, list(rows.values()), matrix, sets,
        with_sets=any(block.with_sets for block in blocks), format_name=blocks[0].format_name,
        charsets=dict(zip(called, [columns for _, columns in ranges])) if names else {},
        symbols=next(iter(symbols), None), parts=tuple(ranges), part_names=tuple(called) if names else (),
    )  # fmt: skip


def _sets(block: CharacterRows, name: str) -> list[tuple[str, np.ndarray]]:
    """Names and columns (0-based) of a block's parts: its sets where it has a name and some, or all of it."""
    if not name or not block.charsets:
        return [(name, np.arange(block.n_sites))]
    try:
        return [(own, parse_sites(text, block.n_sites)) for own, text in block.charsets.items()]
    except InputError as error:
        raise block.placed(error) from None


def _pieces(own: CharacterRow | None, row: CharacterRow, n_sites: int) -> tuple[Sequence[str], Sequence[int]]:
    """A block's text of a taxon, so that a site of the whole is found again; question marks without one."""
    return (own.pieces, own.starts) if own is not None else (["?" * n_sites], [row.name_start])

"""Several alignments of one file as one matrix, each a part of its data type; taxa matched by name."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.io.character_rows import CharacterRow, CharacterRows, side_by_side
from phloem.tree.match import folded


def together(blocks: Sequence[CharacterRows], names: Sequence[str] = ()) -> CharacterRows:
    """Blocks of one file side by side, taxa that a block lacks missing. names: of the parts, which are sets
    of columns of these names then; else parts are called by their data types.

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
    ranges, first = [], 1
    for block, kind in zip(blocks, kinds):
        own = {folded(row.taxon): row for row in block.rows}
        for name, row in rows.items():
            for piece, start in zip(*_pieces(own.get(name), row, block.n_sites)):
                row.add(piece, start)
        ranges.append((str(kind), f"{first}-{first + block.n_sites - 1}"))
        first += block.n_sites
    _, matrix, sets = side_by_side(blocks)
    return CharacterRows(
        source, list(rows.values()), matrix, sets,
        with_sets=any(block.with_sets for block in blocks), format_name=blocks[0].format_name,
        charsets=dict(zip(names, [columns for _, columns in ranges])),
        symbols=next(iter(symbols), None), parts=tuple(ranges), part_names=tuple(names),
    )  # fmt: skip


def _pieces(own: CharacterRow | None, row: CharacterRow, n_sites: int) -> tuple[Sequence[str], Sequence[int]]:
    """A block's text of a taxon, so that a site of the whole is found again; question marks without one."""
    return (own.pieces, own.starts) if own is not None else (["?" * n_sites], [row.name_start])

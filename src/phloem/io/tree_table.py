"""Trees in a table, as RevBayes writes them: a row of names, then a row a sample, one column with trees."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.errors import InputError
from phloem.io.source_text import SourceText

RUN = "Replicate_ID"  # RevBayes' column that says which run a sample is of, where one file holds several


@dataclass(frozen=True)
class TreeTable:
    """column: that of the trees. run: that of the run, None where the file holds one. first_line: number,
    from 1, of the row of names."""

    column: int
    run: int | None
    first_line: int

    def fields(self, line: str, number: int, file: str | None) -> tuple[str, int, str]:
        """Of a row the tree, how many characters stand before it, and the run's name, "" for a file of one.
        InputError for a row that ends before them."""
        fields = line.split("\t")
        if len(fields) <= max(self.column, self.run or 0):
            told = f"this row has {len(fields)} columns, the tree is column {self.column + 1}"
            raise InputError(told, file=file, line=number, hint="Take it off, or name another file.")
        before = sum(len(field) + 1 for field in fields[: self.column])
        return fields[self.column], before, "" if self.run is None else fields[self.run].strip()


def tree_table(head: str, file: str | None = None) -> TreeTable | None:
    """How trees stand in a table, by the first lines of a text; None where it is no such table.

    InputError where two columns hold trees.
    """
    if head.lstrip()[:6].upper() == "#NEXUS":
        return None
    lines = [(i, line) for i, line in enumerate(head.split("\n"), 1) if line.strip() and line[0] not in "#["]
    if len(lines) < 2 or "\t" not in lines[0][1] or "(" in lines[0][1].split("\t")[0]:
        return None
    names = [name.strip() for name in lines[0][1].split("\t")]
    row = lines[1][1].split("\t")
    trees = [k for k, field in enumerate(row[: len(names)]) if _is_tree(field)]
    if len(row) < 2 or not trees:
        return None
    if len(trees) > 1:
        raise InputError(
            f"the columns {' and '.join(names[k] for k in trees)} hold trees",
            file=file,
            line=lines[0][0],
            hint="Leave one column of trees in the file.",
        )
    return TreeTable(trees[0], names.index(RUN) if RUN in names else None, lines[0][0])


def _is_tree(field: str) -> bool:
    """Newick; a history of a character, {state,time:…} along the branches of a tree, is none."""
    field = field.lstrip()
    if ":{" in field:
        return False
    return field.startswith("(") or field[:3].upper() in ("[&R", "[&U")


def newick_of_table(source: SourceText, table: TreeTable) -> tuple[SourceText, list[str]]:
    """The trees alone, where they stood, so that errors have their line and column; and the run of each."""
    kept: list[str] = []
    runs: list[str] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if number <= table.first_line or not line.strip():
            kept.append("")
            continue
        tree, before, run = table.fields(line, number, source.file)
        kept.append(" " * before + tree)
        runs.append(run)
    return SourceText("\n".join(kept), source.file), runs

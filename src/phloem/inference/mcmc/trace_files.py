"""Files of the runs as MrBayes has them, so that sump, sumt, Tracer and FigTree read them: PREFIX.run1.p and
PREFIX.run1.t with what was drawn, PREFIX.mcmc with how the runs went."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from phloem.inference.mcmc.checkpoint import KEPT
from phloem.inference.mcmc.convergence import looks_at
from phloem.inference.mcmc.move_table import LENGTHS, NUMBERS, TOPOLOGY, ChainMove
from phloem.inference.mcmc.run import Run
from phloem.inference.mcmc.stones import NO_POSTERIOR
from phloem.io.newick_text import newick_name
from phloem.io.output_file import appended_text, replaced_text

# PREFIX.run1.p and PREFIX.run1.t.


def paths(prefix: str, number: int) -> tuple[Path, Path]:
    """The .p and the .t file of run `number` (from 0)."""
    return Path(f"{prefix}.run{number + 1}.p"), Path(f"{prefix}.run{number + 1}.t")


def analysis_id(seed: int) -> int:
    """A number that ties the files of an analysis together, from its seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) or 1


def write_trace(prefix: str, run: Run, taxa: tuple[str, ...], done: int) -> int:
    """Write samples done … n of a run, headers first if done is 0; returns n.

    On a resume done is 0: the files are replaced from the checkpoint, so a line cut by a kill is gone.
    """
    p_path, t_path = paths(prefix, run.number)
    identity, unit = f"[ID: {analysis_id(run.settings.seed)}]", run.columns.structure.length_unit
    columns = "\t".join(["Gen", "LnL", "LnPr", *run.columns.names])
    powers = f" [{NO_POSTERIOR}]" if run.settings.stones else ""
    p_header = f"{identity} [TL: {unit}]{powers}\n{columns}\n"
    t_header = _tree_header(f"{identity}\n[Branch lengths: {unit}]{powers}", taxa)
    for path, header, line in ((p_path, p_header, _numbers_line), (t_path, t_header, _tree_line)):
        with appended_text(path, KEPT) if done else replaced_text(path, kept=KEPT) as file:
            file.write("" if done else header)
            file.writelines(line(run, i) for i in range(done, run.samples.n))
    return run.samples.n


def _numbers_line(run: Run, i: int) -> str:
    numbers = run.samples.numbers[i]
    written = [f"{x:.10e}" for x in numbers]
    for place in run.columns.whole:
        written[2 + place] = f"{numbers[2 + place]:.0f}"
    return "\t".join([str(run.samples.generation[i]), *written]) + "\n"


def _tree_line(run: Run, i: int) -> str:
    samples = run.samples
    newick = _newick(samples.parent[i], samples.lengths[i])
    return f"   tree gen.{samples.generation[i]} = [&U] {newick};\n"


def close_trace(prefix: str, run: Run) -> None:
    """End the TREES block."""
    with appended_text(paths(prefix, run.number)[1], KEPT) as t_file:
        t_file.write("end;\n")


def _tree_header(comments: str, taxa: tuple[str, ...]) -> str:
    names = ",\n".join(f"      {i + 1:2d} {newick_name(name)}" for i, name in enumerate(taxa))
    return f"#NEXUS\n{comments}\n[Param: tree]\nbegin trees;\n   translate\n{names};\n"


def _newick(parent: np.ndarray, lengths: np.ndarray) -> str:
    """The tree in numbers from 1, without its semicolon."""
    n_tips = (len(parent) + 2) // 2
    inside: list[list[str]] = [[] for _ in parent]
    for x in range(len(parent) - 1):
        text = str(x + 1) if x < n_tips else f"({','.join(inside[x])})"
        inside[parent[x]].append(f"{text}:{lengths[x]:.10e}")
    return f"({','.join(inside[-1])})"


# PREFIX.mcmc: a row for every look at the runs.


def history_path(prefix: str) -> Path:
    """Where acceptance and agreement are written, by generation."""
    return Path(f"{prefix}.mcmc")


def begin_history(prefix: str, runs: Sequence[Run], asdsf: float) -> None:
    """The file's head, and the rows before the runs' generation that an interrupted analysis left.

    What is accepted is counted since the start, so that the row of the checkpoint itself follows from the
    runs, whether the former process came to write it or not. Where an extended analysis ended between two
    looks there is no row.
    """
    settings, at = runs[0].settings, runs[0].generation
    path, head = history_path(prefix), _history_head(runs)
    before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    rows = before.removeprefix(head).splitlines() if before.startswith(head) else []
    every, end = settings.check_every, settings.generations
    columns = head.splitlines()[-1].count("\t")
    kept = [
        row
        for row in rows
        if 0 < _generation(row) < at and looks_at(_generation(row), every, end) and row.count("\t") == columns
    ]
    with replaced_text(path, kept=KEPT) as file:
        file.write(head)
        file.writelines(f"{row}\n" for row in kept)
        if at and looks_at(at, every, end):
            file.write(_history_line(runs, asdsf))


def append_history(prefix: str, runs: Sequence[Run], asdsf: float) -> None:
    """A row of how the runs went until now."""
    with appended_text(history_path(prefix), KEPT) as file:
        file.write(_history_line(runs, asdsf))


def _generation(row: str) -> int:
    first = row.partition("\t")[0]
    return int(first) if first.isdecimal() else -1


def _history_head(runs: Sequence[Run]) -> str:
    moves, n_chains = [], runs[0].settings.n_chains
    for run in runs:
        for move in run.moves:
            moves.append(f"{_move_name(run, move)}$acc_run{run.number + 1}")
            if move.move.target:
                moves.append(f"{_move_name(run, move)}$tuning_run{run.number + 1}")
        for i, j in combinations(range(n_chains), 2):
            moves.append(f"Swap({i + 1}<>{j + 1})$acc({run.number + 1})")
    return (
        f"[ID: {analysis_id(runs[0].settings.seed)}]\n"
        "[   Gen                            --  Generation]\n"
        "[   <move>(<parameter>)$acc_run2   --  Share of a move's proposals accepted since the start by the "
        "chain at temperature 1 of run 2]\n"
        "[   <move>(<parameter>)$tuning_run2 --  Its tuning parameter there]\n"
        "[   Swap(1<>2)$acc(2)              --  The same of swaps between two ranks of heat in run 2]\n"
        "[   AvgStdDev(s)                   --  Average standard deviation of split frequencies]\n"
        + "\t".join(["Gen", *moves, "AvgStdDev(s)"])
        + "\n"
    )


def _move_name(run: Run, move: ChainMove) -> str:
    """The move and, as MrBayes calls it, what it changes."""
    known = {LENGTHS: "V", TOPOLOGY: "Tau", NUMBERS: "all"}
    if move.move.on in known:
        return f"{move.name}({known[move.move.on]})"
    block = run.structure.space.blocks[move.block].name
    return f"{move.name.removeprefix(f'{block}_')}({block})"


def _history_line(runs: Sequence[Run], asdsf: float) -> str:
    fields = [str(runs[0].generation)]
    for run in runs:
        state = run.state
        for m, move in enumerate(run.moves):
            fields.append(_share(state.accepted[0, m], state.tried[0, m]))
            if move.move.target:
                fields.append(f"{state.tuning[0, m]:.6e}")
        for i, j in combinations(range(run.settings.n_chains), 2):
            fields.append(_share(state.swaps_accepted[i, j], state.swaps_tried[i, j]))
    return "\t".join([*fields, "NA" if np.isnan(asdsf) else f"{asdsf:.6f}"]) + "\n"


def _share(accepted: int, tried: int) -> str:
    return f"{accepted / tried:.6f}" if tried else "NA"


# All of them together.


class TraceFiles:
    """The files of all runs of an analysis, of which those of numbers and trees are written anew from the
    samples at the start, so that a line cut by a kill is gone. A stepping-stone analysis has no history."""

    def __init__(self, prefix: str, taxa: tuple[str, ...], runs: Sequence[Run], asdsf: float) -> None:
        self._prefix, self._taxa = prefix, taxa
        self._written = [write_trace(prefix, run, taxa, 0) for run in runs]
        self._has_history = not runs[0].settings.stones
        if self._has_history:
            begin_history(prefix, runs, asdsf)

    def add(self, runs: Sequence[Run], asdsf: float | None) -> None:
        """What was drawn since, and where the runs were looked at a row of the history."""
        self._written = [write_trace(self._prefix, r, self._taxa, n) for r, n in zip(runs, self._written)]
        if self._has_history and asdsf is not None:
            append_history(self._prefix, runs, asdsf)

    def close(self, runs: Sequence[Run]) -> None:
        """The end of the trees."""
        for run in runs:
            close_trace(self._prefix, run)

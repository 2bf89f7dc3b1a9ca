"""PREFIX.run1.p and PREFIX.run1.t as MrBayes writes them, so that sump, sumt, Tracer and FigTree read
them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from phloem.inference.mcmc.run import Run
from phloem.io.newick_write import newick_name


def paths(prefix: str, number: int) -> tuple[Path, Path]:
    """The .p and the .t file of run `number` (from 0)."""
    return Path(f"{prefix}.run{number + 1}.p"), Path(f"{prefix}.run{number + 1}.t")


def analysis_id(seed: int) -> int:
    """A number that ties the files of an analysis together, from its seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) or 1


def write_trace(prefix: str, run: Run, taxa: tuple[str, ...], done: int) -> int:
    """Write samples done … n of a run, headers first if done is 0; returns n.

    On a resume done is 0: the files are written anew from the checkpoint, so a line cut by a kill is gone.
    """
    p_path, t_path = paths(prefix, run.number)
    identity, unit = f"[ID: {analysis_id(run.settings.seed)}]", run.columns.structure.length_unit
    with open(p_path, "w" if done == 0 else "a") as p_file, open(t_path, "w" if done == 0 else "a") as t_file:
        if done == 0:
            p_file.write(
                f"{identity} [TL: {unit}]\n" + "\t".join(["Gen", "LnL", "LnPr", *run.columns.names]) + "\n"
            )
            t_file.write(_tree_header(f"{identity}\n[Branch lengths: {unit}]", taxa))
        for i in range(done, run.samples.n):
            numbers = "\t".join(f"{x:.10e}" for x in run.samples.numbers[i])
            p_file.write(f"{run.samples.generation[i]}\t{numbers}\n")
            newick = _newick(run.samples.parent[i], run.samples.lengths[i])
            t_file.write(f"   tree gen.{run.samples.generation[i]} = [&U] {newick};\n")
    return run.samples.n


def close_trace(prefix: str, run: Run) -> None:
    """End the TREES block."""
    with open(paths(prefix, run.number)[1], "a") as t_file:
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

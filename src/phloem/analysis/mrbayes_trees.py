"""Dated trees and species trees, which MRBAYES blocks may ask for: whether `phloem time` samples the same;
else the error names all lines that do, and the command that comes nearest.

As in MrBayes, what is said about clocks and species has no meaning until `prset brlenspr` or `topologypr`
asks for them: the divisions of the data decide, when all commands are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phloem.analysis.mrbayes_dated import what_differs
from phloem.analysis.mrbayes_divisions import Division, Setting

_TREE_PRIORS = {  # what follows brlenspr=clock: → --tree-prior of phloem time
    "": "bd", "uniform": "bd", "birthdeath": "bd", "coalescence": "constant", "fossilization": "fbd-root",
}  # fmt: skip
_CLOCKS = {  # clockvarpr → --clock: the same, or the nearest
    "igr": "white-noise", "ibr": "white-noise", "mixed": "ucln", "tk02": "autocorrelated",
    "bm": "autocorrelated", "cpp": "random",
}  # fmt: skip
_CLOCKED = ("clock", "relaxedclock")


def is_dated(file: str, divisions: Sequence[Division], said: Iterable[int]) -> bool:
    """Whether trees have a clock. InputError where they are other than those of phloem time, or a species
    tree. file: of the data; said: lines of the commands that are about these alone."""
    found = False
    for division in divisions:
        lengths, topology = division.value("brlenspr"), division.value("topologypr")
        of_species = topology.word == "speciestree" or lengths.second == "speciestree"
        if not of_species and lengths.word not in _CLOCKED:
            continue
        found = True
        why = "" if of_species else what_differs(divisions)
        if not (of_species or why):
            continue
        option = "brlenspr" if lengths.word in _CLOCKED else "topologypr"
        asked = [d.settings[o] for d in divisions for o in ("brlenspr", "topologypr") if o in d.settings]
        lines = _ranges({*said, *(s.option.line for s in asked if _of_other_trees(s))})
        parts = f" --partitions {file}" if len(divisions) > 1 else ""
        what = f"{option}={lengths if option == 'brlenspr' else topology} is not supported"
        if of_species:
            told = f"{what}: there are no species trees (multispecies coalescent) here"
            hint = (
                f"Nearest: one tree for all parts, phloem mcmc {file} --mrbayes-block ignore{parts}, or this"
                f" block without {lines}. A gene's own tree: --sites with its columns."
            )
        else:
            told = f"{what}{why}"
            hint = _dated(f"phloem time {file}{parts}", division, lines)
            if topology.word == "fixed":
                hint += f" The topology alone is held without a clock, by topologypr={topology}."
        raise division.refuse(option, told, hint)
    return found


def _of_other_trees(setting: Setting) -> bool:
    value = setting.option.value
    return value is not None and (value.word in (*_CLOCKED, "speciestree") or value.second == "speciestree")


def _dated(command: str, division: Division, lines: str) -> str:
    """How phloem time samples what comes nearest to the clock and tree prior that were asked for."""
    prior = _TREE_PRIORS.get(division.value("brlenspr").second.lower(), "bd")
    kind = division.value("clockvarpr").word.lower()
    return (
        f"Dated trees: {command} --tree-prior {prior} --clock {_CLOCKS.get(kind, 'strict')},"
        " with --dates FILE for tips and fossils, --clade, --monophyletic and --calibrate for nodes, in the"
        f" place of {lines} (docs/time-trees.md). Without dates: this block without {lines}."
    )


def _ranges(numbers: set[int]) -> str:
    """'the command of line 3' or 'the commands of line 3, 7-9'."""
    found = list[list[int]]()
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found]
    return f"the command{'s' if len(numbers) > 1 else ''} of line {', '.join(texts)}"

"""The analysis that the MRBAYES blocks of a file describe, as options of `phloem mcmc` (docs/mrbayes.md).

Commands are obeyed in their order up to the one that starts the chains. What MrBayes understands and phloem
does not have is an error at its line; what has no meaning here is listed; nothing is ignored in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phloem.analysis.mrbayes_ages import Known, calibrations_of
from phloem.analysis.mrbayes_chains import Chains
from phloem.analysis.mrbayes_dated import (
    OF_BRANCHES,
    OF_CLOCKS,
    OF_OTHER_TREES,
    Dated,
    clock_notes,
)
from phloem.analysis.mrbayes_divisions import GENETIC_CODES, NUCLEOTIDES, Division, Setting
from phloem.analysis.mrbayes_execute import executed
from phloem.analysis.mrbayes_models import DivisionModel, check_supported, division_model, model_notes
from phloem.analysis.mrbayes_parts import (
    Groups,
    branch_prior,
    counted_again,
    linked_groups,
    options_of_characters,
    options_of_parts,
    priors_of,
)
from phloem.analysis.mrbayes_report import Reports
from phloem.analysis.mrbayes_sets import Sets
from phloem.analysis.mrbayes_start import Starts
from phloem.analysis.mrbayes_trees import is_dated
from phloem.data.alignment import Coding
from phloem.data.alphabet import TRANSLATED
from phloem.data.coding import guess_datatype
from phloem.data.genetic_code import genetic_code
from phloem.data.partition import Subset, make_scheme, with_declared_datatypes
from phloem.errors import count_of
from phloem.io.alignment import part_alignment, read_characters, read_scheme
from phloem.io.character_rows import CharacterRows
from phloem.io.mrbayes import MrBayesCommand, Option, read_mrbayes

_NO_MEANING_TEXT = """
about acknowledgments charstat citations databreaks disclaimer help log manual plot showbeagle
showmatrix showmcmctrees showmodel showmoves showparams showusertrees taxastat taxset charset version quit
"""
_NO_MEANING = frozenset(_NO_MEANING_TEXT.split())
_NOT_YET = {
    "comparetree": "Compare trees with phloem summarise.",
    "compareref": "Compare trees with phloem summarise.",
    "propset": "Leave it out: moves tune themselves.",
    "sumss": "The table of stones is written by the analysis itself.",
    "usertree": "Start from a tree with --start FILE instead.",
}
_BEFORE_THE_CHAINS_TEXT = """
mcmc mcmcp ss ssp lset prset set link unlink partition delete restore exclude include ctype pairs outgroup
constraint calibrate startvals report
"""
_BEFORE_THE_CHAINS = frozenset(_BEFORE_THE_CHAINS_TEXT.split())
_OF_OTHER_MODELS_TEXT = """
rootfreqpr brownscalepr browncorrpr browncorr nmixtcat augment gibbsfreq
"""
_OF_OTHER_MODELS = frozenset(_OF_OTHER_MODELS_TEXT.split())


@dataclass(frozen=True)
class BlockAnalysis:
    """options: as `analysis.mcmc_options.mcmc_settings` takes them; where it asks for dated trees, as
    `analysis.time_options.time_settings` does. lines: option → line of the command that says so. notes: what
    has no meaning here, and what is done otherwise. file: with the block."""

    file: str
    options: dict[str, Any]
    lines: dict[str, int]
    notes: tuple[str, ...]
    dated: bool = False


def block_analysis(path: str | os.PathLike[str], block: str | None = None) -> BlockAnalysis | None:
    """What the MRBAYES blocks of a file ask for; None where it has none. block: of characters, as in
    read_characters.

    Raises InputError with file and line for what cannot be obeyed.
    """
    file = os.fspath(path)
    if not (commands := read_mrbayes(path)):
        return None
    data, commands = executed(file, commands)
    characters = read_characters(data, block, quiet=True)
    analysis = _Analysis(data, characters)
    for command in commands:
        analysis.obey(command)
    options, lines = analysis.options()
    return BlockAnalysis(file, options, lines, tuple(analysis.notes), analysis.dated)


@dataclass
class _Analysis:
    """What the commands so far have said."""

    data: str
    characters: CharacterRows
    chains: Chains = field(default_factory=Chains)
    notes: list[str] = field(default_factory=list)
    divisions: list[Division] = field(default_factory=list)
    partitions: dict[str, tuple[MrBayesCommand, list[Subset]]] = field(default_factory=dict)
    last_link: int = 0
    of_other_trees: list[int] = field(default_factory=list)
    of_clocks: list[tuple[MrBayesCommand, str]] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    dated: bool = False
    unlinked: tuple[MrBayesCommand, Option] | None = None
    started: MrBayesCommand | None = None
    stopped: bool = False
    topology: Setting | None = None
    reports: Reports = field(default_factory=Reports)
    lines: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sets, self.starts = Sets(self.characters), Starts(self.characters.source)
        self.divide([])

    def obey(self, command: MrBayesCommand) -> None:
        """One command; after QUIT nothing is obeyed."""
        name = command.name
        if self.stopped:
            return
        self.stopped = name == "quit"
        if name in _NOT_YET:
            raise command.error(f"{name.upper()} is not supported", _NOT_YET[name])
        if self.started is not None and name in _BEFORE_THE_CHAINS:
            if name in ("mcmc", "ss"):
                raise command.error(
                    f"the block starts two analyses, the first in line {self.started.line}",
                    "Give each a file of its own.",
                )
            self.note(command, f"comes after {self.started.name}")
            return
        if name in ("mcmc", "ss"):
            self.started = command
        if name in ("mcmc", "mcmcp", "ss", "ssp", "sump", "sumt"):
            self.chains.take(command)
        elif name in ("lset", "prset"):
            self.set_model(command)
        elif name in ("link", "unlink"):
            self.set_links(command)
        elif name == "set":
            self.set_run(command)
        elif name == "partition":
            title, subsets = self.sets.partition(command)
            self.partitions[title.lower()] = (command, subsets)
        elif name == "report":
            if others := self.reports.take(command):
                self.note(command, "no meaning here", f"report {', '.join(others)}")
        elif name == "startvals":
            self.starts.take(command)
        elif name in OF_OTHER_TREES:
            self.of_other_trees.append(command.line)
            self.known += calibrations_of(command) if name == "calibrate" else []
            self.of_clocks.append((command, name))
        elif not self.sets.take(command) or name in ("charset", "taxset"):
            if name not in _NO_MEANING:
                raise command.error(f"{name.upper()} is not supported", "Delete it.")
            if name not in ("charset", "taxset", "quit"):
                self.note(command, "no meaning here")

    def note(self, command: MrBayesCommand, why: str, what: str = "") -> None:
        self.notes.append(f"line {command.line}: {what or command.name}: {why}")

    def set_run(self, command: MrBayesCommand) -> None:
        others = []
        for option in command.options:
            if option.name == "partition":
                self.set_partition(command, "" if option.value is None else option.value.word)
            elif option.name in ("seed", "swapseed"):
                self.chains.set(option, command)
            elif option.name == "dir":
                hint = "Leave it out; name files from the working directory."
                raise command.error("SET DIR is not supported", hint, option.line)
            else:
                others.append(option.name)
            if option.name == "speciespartition":
                self.of_other_trees.append(option.line)
        if others:
            self.note(command, "no meaning here", f"set {', '.join(others)}")

    def set_partition(self, command: MrBayesCommand, word: str) -> None:
        """By name or number; "default", and 1, is that of the data types. What LSET, PRSET, LINK and UNLINK
        said before no longer holds, as in MrBayes."""
        before = [d for d in self.divisions if d.settings or d.links]
        if before:
            self.note(command, "sets models and links back, as in MrBayes", "set partition")
        names = list(self.partitions)
        key = word.lower()
        if key not in names and 2 <= count_of(word) <= len(names) + 1:
            key = names[count_of(word) - 2]
        if key not in names:
            if key not in ("default", "1"):
                known = ", ".join(["default", *names])
                raise command.error(f"there is no partition '{word}'", f"There are: {known}.")
            self.divide([])
            return
        self.lines["part"] = command.line
        self.divide(self.partitions[key][1])

    def divide(self, subsets: Sequence[Subset]) -> None:
        """New divisions with MrBayes' defaults; without subsets one for each data type."""
        characters = self.characters
        declared = read_scheme(characters)
        if subsets:
            scheme = make_scheme(subsets, characters.n_sites, file=characters.source.file)
            scheme = with_declared_datatypes(scheme, declared) if characters.parts else scheme
        else:
            scheme = declared
        kind = characters.datatype or (None if characters.parts else guess_datatype(characters.matrix))
        self.divisions = [Division(s.name, s.datatype or str(kind), s.sites) for s in scheme.subsets]

    def applied(self, command: MrBayesCommand) -> Iterator[tuple[Setting, list[Division]]]:
        """Every option with the divisions that APPLYTO, before it in the same command, names."""
        chosen = self.divisions
        for option in command.options:
            if option.name == "applyto":
                chosen = [self.divisions[i] for i in self.numbers(command, option.value)]
                continue
            if option.value is None:
                told = f"{command.name.upper()}: {option.name} has no value"
                raise command.error(told, "Write 'option=value'.", option.line)
            yield Setting(option, command), chosen

    def numbers(self, command: MrBayesCommand, value: Any) -> list[int]:
        """Numbers of divisions in (1,2), (1-3) or (all)."""
        words = list[str](value.arguments or ()) if value is not None else []
        if [word.lower() for word in words] == ["all"]:
            return list(range(len(self.divisions)))
        found = list[int]()
        for word in words:
            first, dash, last = word.partition("-")
            ends = [first, last or (str(len(self.divisions)) if dash else first)]
            if not all(1 <= count_of(end) <= len(self.divisions) for end in ends):
                raise command.error(
                    f"'{word}' is no part of the data: there are {len(self.divisions)}",
                    "Number the parts of the partition that is set, or write (all).",
                )
            found += range(count_of(ends[0]) - 1, count_of(ends[1]))
        if not found:
            raise command.error("no part of the data is named", "Write (1,2) or (all).")
        return found

    def set_model(self, command: MrBayesCommand) -> None:
        unused = []
        for setting, divisions in self.applied(command):
            name, value = setting.option.name, setting.option.value
            if name in OF_CLOCKS:
                self.of_other_trees.append(setting.option.line)
                self.of_clocks.append((command, name))
            if name in _OF_OTHER_MODELS:
                unused.append(name)
                continue
            if name in ("seqerror", "aamodel"):
                raise command.error(f"{name} is not supported", "Delete it.", setting.option.line)
            if name == "topologypr":
                self.topology = setting
            if name == "ratepr" and value is not None and value.word == "dirichlet":
                if (n := len(value.arguments or ())) != len(divisions):
                    told = f"ratepr=dirichlet has {n} numbers for {len(divisions)} parts"
                    raise command.error(told, "Give one number a part.", setting.option.line)
            for division in divisions:
                division.settings[name] = setting
        if unused:
            self.note(command, "no meaning without the model they are of", ", ".join(unused))

    def set_links(self, command: MrBayesCommand) -> None:
        unused = []
        for option in command.options:
            if option.name in OF_BRANCHES:
                self.of_clocks.append((command, option.name))
            elif option.name in OF_CLOCKS or option.name in _OF_OTHER_MODELS:
                unused.append(option.name)
                continue
            if option.name == "topology" and command.name == "unlink":
                self.unlinked = command, option
            if option.name == "ratemultiplier" and command.name == "unlink":
                raise command.error(
                    "UNLINK RATEMULTIPLIER is not supported", "See prset ratepr.", option.line
                )
            numbers = self.numbers(command, option.value)
            self.last_link += 1
            for i in numbers:
                self.divisions[i].links[option.name] = self.last_link
                self.last_link += command.name == "unlink"
        if unused:
            self.note(command, "no meaning without the clock or model they are of", ", ".join(unused))

    # ------------------------------------------------------------------------------------ result

    def options(self) -> tuple[dict[str, Any], dict[str, int]]:
        """Options of `phloem mcmc`, and the line that each comes from."""
        divisions = [self.sets.without_excluded(d).as_read() for d in self.divisions]
        self.dated = self.check_trees(divisions)
        for said, name, why in clock_notes(divisions[0], self.dated, self.of_clocks):
            self.note(said, why, name)
        for division in divisions:
            check_supported(division)
        models = [division_model(d, self.counted, n_codons=_n_codons(d)) for d in divisions]
        groups = linked_groups(divisions, models)
        pools = {i: [divisions[j] for j in group] for group in groups["statefreq"] for i in group}
        models = [
            division_model(d, self.counted, pools.get(i, ()), _n_codons(d)) for i, d in enumerate(divisions)
        ]
        self.notes += [*model_notes(divisions, self.characters.symbols), *counted_again(divisions)]
        more: dict[str, Any] = self.reports.options([model.text for model in models])
        more |= options_of_characters(divisions, models, self.characters.symbols)
        self.notes += self.chains.notes
        if self.dated:
            return self.dated_options(divisions, models, groups) | more, self._lines()
        found = self.data_options(divisions, models, groups)
        if (prior := branch_prior(divisions)) is not None:
            found["branch_prior"], self.lines["branch_prior"] = prior
        found |= self.sets.options(self.topology) | self.chains.options() | more
        found |= self.starts.options(self.topology, self.chains.get("starttree"), self.notes)
        return {k: v for k, v in found.items() if v not in (None, [], "")}, self._lines()

    def check_trees(self, divisions: Sequence[Division]) -> bool:
        """Whether trees are dated. InputError for others than one for all divisions, unrooted or dated."""
        said, several = self.of_other_trees, len({d.links.get("topology", 0) for d in divisions}) > 1
        unlinked = self.unlinked if several else None
        dated = is_dated(self.data, divisions, [*said, *([unlinked[1].line] if unlinked else [])])
        if unlinked is not None:
            command, option = unlinked
            hint = "All parts have one topology. Link it, or analyse a part alone: --sites with its columns."
            raise command.error("UNLINK TOPOLOGY is not supported", hint, option.line)
        return dated

    def data_options(
        self, divisions: Sequence[Division], models: Sequence[DivisionModel], groups: Groups
    ) -> dict[str, Any]:
        """Options about data, models, what parts share, and the priors of their numbers."""
        found: dict[str, Any] = {"alignment": self.data}
        if len(divisions) == 1:
            own = divisions[0]
            sites = own.columns if own.doublet or len(own.sites) < self.characters.n_sites else None
            return found | {
                "model": models[0].text,
                "sites": sites,
                "prior": priors_of(divisions, models, groups),
                **own.of_columns(),
            }
        if len(np.concatenate([d.sites for d in divisions])) < self.characters.n_sites:
            found["unassigned_sites"] = "drop"
        return found | options_of_parts(divisions, models, groups)

    def dated_options(
        self, divisions: Sequence[Division], models: Sequence[DivisionModel], groups: Groups
    ) -> dict[str, Any]:
        """Options of `phloem time`, where the block asks for a clock."""
        division, found = divisions[0], self.data_options(divisions, models, groups)
        self.starts.refuse_dated()
        constraints, taxa = self.sets.chosen(self.topology), self.sets.kept
        gone = self.sets.deleted_names
        trees = Dated(self.data, division, models, found.pop("prior"), constraints, self.known, taxa, gone)
        for said, name, why in trees.unused():
            self.note(said, why, name)
        of_data = self.sets.options(self.topology)
        found |= trees.options() | {name: of_data[name] for name in ("without", "ordered")}
        found |= self.chains.dated_options()
        self.notes += ["outgroup: no meaning, dated trees have a root"] if self.sets.outgroup else []
        return {k: v for k, v in found.items() if v not in (None, [], "")}

    def counted(self, divisions: Sequence[Division]) -> tuple[float, ...]:
        """Frequencies as MrBayes counts them: every character shares itself evenly among the states that it
        may be, missing ones among all."""
        total: np.ndarray | float = 0.0
        for d in divisions:
            kind = "dna" if d.datatype in NUCLEOTIDES else TRANSLATED if d.translated else d.datatype
            code = d.of_columns().get("genetic_code") if d.translated else None
            subset = Subset(d.name, d.sites, datatype=kind, genetic_code=code)
            alignment = part_alignment(self.characters, subset, Coding())
            rows = [t not in self.sets.deleted_names for t in alignment.taxa]
            sets = alignment.state_sets / alignment.state_sets.sum(1, keepdims=True)
            total = total + sets[alignment.codes[rows]].sum(axis=(0, 1))
        return tuple((np.asarray(total) / np.sum(total)).tolist())

    def _lines(self) -> dict[str, int]:
        model = [s.option.line for d in self.divisions for s in d.settings.values()]
        lines = {"model": min(model), "part": min(model)} if model else {}
        return lines | self.lines | self.chains.lines | self.reports.lines


def _n_codons(division: Division) -> int:
    if not division.codon:
        return 61
    return len(genetic_code(GENETIC_CODES[division.value("code").word]).sense_codons)

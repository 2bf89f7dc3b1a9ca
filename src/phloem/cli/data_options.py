"""The options that say how an alignment is read, declared once for every command that reads one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal

import typer

GENETIC_CODE = typer.Option(1, help="NCBI's number of the genetic code, of codons and translated ones.")

ALIGNMENT_HELP = (
    "FASTA, PHYLIP, NEXUS or Clustal file, compressed by gzip, xz or bzip2 or not; - is standard input."
)
_Options = list[tuple[str, Any, Any]]  # name, type, typer's declaration

PART = typer.Option(None, help="A part, 'MODEL, name = columns', instead of a file; may be repeated.")
LINKAGE = typer.Option(
    None, help="Branch lengths of parts: the same, times a rate a part (the default), or each its own."
)
DEVICES = typer.Option(None, help="GPUs of this host, as in 0,1, or all; or cpu.")
LINK = typer.Option(None, help="A parameter that parts share: alpha, or alpha:gene1,gene2; may be repeated.")


def _of_reading(ambiguity: str | None) -> _Options:
    return [
        (
            "datatype",
            str | None,
            typer.Option(
                None, help="dna, rna, protein, codon, translated, doublet, binary, standard; else guessed."
            ),
        ),
        ("genetic_code", int, GENETIC_CODE),
        (
            "stop_codons",
            Literal["error", "mask"],
            typer.Option("error", help="What a stop codon is: error, or missing."),
        ),
        (
            "sites",
            str | None,
            typer.Option(
                None,
                help="Sites to use: '1-900\\3', 1-9,20, 'not 7,9', variable, informative; of doublets "
                "5-9:70-66.",
            ),
        ),
        (
            "ambiguity",
            Literal["partial", "missing"] | None,
            typer.Option(ambiguity, help="A partly ambiguous character: the states it allows, or missing."),
        ),
        (
            "block",
            str | None,
            typer.Option(None, help="NEXUS block of characters, by title or number, or all together."),
        ),
        (
            "phylip_layout",
            Literal["sequential", "interleaved", "strict-sequential", "strict-interleaved"] | None,
            typer.Option(None, help="Layout of a PHYLIP file, where several fit."),
        ),
    ]


def _of_partitions() -> _Options:
    return [
        (
            "partitions",
            str | None,
            typer.Option(
                None,
                help="Partition file: RAxML-NG or IQ-TREE list, NEXUS sets, MrBayes block; 'declared': the "
                "parts, blocks or CHARSETs of the alignment file itself.",
            ),
        ),
        ("part", list[str] | None, PART),
        ("partition_name", str | None, typer.Option(None, help="Which one, where the file has several.")),
        (
            "unassigned_sites",
            Literal["error", "drop"],
            typer.Option("error", help="Columns in no subset: an error, or left out."),
        ),
    ]


def takes_data(
    *,
    ambiguity: str | None = "partial",
    partitions: bool = False,
    alignment_help: str = ALIGNMENT_HELP,
    alignment_default: Any = ...,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces the parameter `data` of a command by its options, one by one, with their declarations.

    The command gets them as a dictionary whose keys are the fields of analysis.reading.DataOptions.
    ambiguity: the usual one. partitions: whether the command can do with several parts. alignment_default:
    None where the alignment may be named elsewhere.
    """
    kind = str if alignment_default is ... else str | None
    options = [("alignment", kind, typer.Argument(alignment_default, help=alignment_help))]
    options += _of_reading(ambiguity)
    options += _of_partitions() if partitions else []

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        return replaced(command, "data", options, lambda own, at: [own[0], *at, *own[1:]])

    return decorate


COUPLING: _Options = [
    ("chains", int, typer.Option(1, help="Metropolis-coupled chains in each run, where one has many peaks.")),
    ("heating", float, typer.Option(0.1, help="Chain i runs at 1 / (1 + heating i).")),
    ("swap_every", int, typer.Option(20, help="Generations between tries to swap two chains.")),
    ("swap_seed", int | None, typer.Option(None, help="Of the swaps of chains; the seed.")),
]


def takes_coupling(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `coupling` of a command by options about heated chains, which follow all of its
    own; it gets them as a dictionary."""
    return replaced(command, "coupling", COUPLING, lambda own, at: [*at, *own])


THRESHOLDS: _Options = [
    ("asdsf", float, typer.Option(0.01, help="Of --until-converged: split frequencies deviate by less.")),
    ("least_ess", float, typer.Option(200.0, help="Of --until-converged: every ESS above it.")),
    ("r_hat", float, typer.Option(1.01, help="Of --until-converged: every R-hat below it.")),
]


def takes_thresholds(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `thresholds` of a command by options about convergence, likewise."""
    return replaced(command, "thresholds", THRESHOLDS, lambda own, at: [*at, *own])


def replaced(
    command: Callable[..., None],
    parameter: str,
    options: _Options,
    arranged: Callable[[list[inspect.Parameter], list[inspect.Parameter]], list[inspect.Parameter]],
) -> Callable[..., None]:
    """The command with options in place of a parameter, which it gets as a dictionary. arranged: in which
    order they come, by these options and the command's others."""
    own = inspect.signature(command)
    types = {
        name: eval(kind, command.__globals__) if isinstance(kind, str) else kind
        for name, kind in command.__annotations__.items()
    }
    declared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in options
    ]
    mine = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[name])
        for name, one in own.parameters.items()
        if name != parameter
    ]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        together = {name: given.pop(name) for name, _, _ in options}
        if "part" in together:
            together["part"] = tuple(together["part"] or ())
        command(**{parameter: together}, **given)

    together = arranged(declared, mine)
    with_options.__signature__ = own.replace(parameters=together)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in together}
    del with_options.__wrapped__  # typer would read the signature of what is wrapped
    return with_options

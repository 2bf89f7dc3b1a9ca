"""How an alignment file is to be read: one record of options for every command, and what it gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment, Ambiguity, Coding, StopCodons, taxa_with_data
from phloem.data.alphabet import canonical_kind
from phloem.data.doublets import pairs_not_said
from phloem.data.given_fields import settle_fields
from phloem.data.partition import Scheme, Subset, Unassigned, make_scheme, with_declared_datatypes
from phloem.data.recorded import Kind, kept_kind, only_of_kind
from phloem.data.sites import parse_sites
from phloem.data.translation import reads_codons
from phloem.errors import STANDARD_INPUT, InputError, InputWarning, ModelError, shown_file
from phloem.io.alignment import (
    one_alignment,
    part_alignment,
    read_characters,
    read_scheme,
    require_stop_codons,
)
from phloem.io.alignment_text import PhylipLayout
from phloem.io.beast_xml import BEAST_FORMAT
from phloem.io.character_rows import CharacterRows
from phloem.io.input_file import unpacked_name
from phloem.io.partition_words import plain_sets
from phloem.io.partitions import chooses_partition, listed_partitions
from phloem.likelihood.parts import in_part
from phloem.model.families import datatypes_of
from phloem.model.model_string import split_model

DECLARED = "declared"
_OF_SEVERAL_COLUMNS = ("codon", "translated", "doublet")  # which sets of single columns would cut


@dataclass(frozen=True)
class DataOptions:
    """What every command that reads an alignment can be told; its settings extend this record.

    alignment: FASTA, PHYLIP, NEXUS or Clustal file. datatype: None takes what the file says, or guesses.
    genetic_code: NCBI number, for codons. stop_codons: "error", or "mask" for missing data.
    sites: columns to keep, such as "1-900\\3"; "variable" or "informative", of parts too: characters that are
    so (data/recorded.py). ambiguity: what a partly ambiguous character says, "partial"
    (a likelihood takes the set of states, a distance their even mixture) or nothing, "missing".
    block: which DATA or CHARACTERS block of a NEXUS file, by title or number, or "all" side by side;
    phylip_layout: of a PHYLIP file; both are needed only where the file leaves it open.
    partitions: a partition file (`read_partitions`), or "declared": the parts that the alignment file itself
    declares (MIXED, or block="all"); partition_name: which one of several in it;
    part: lines of such a file in its place, "MODEL, name = columns".
    unassigned_sites: columns in no subset are an "error", or left out ("drop").
    """

    alignment: str
    _: KW_ONLY
    datatype: str | None = None
    genetic_code: int = 1
    stop_codons: StopCodons = "error"
    sites: str | None = None
    ambiguity: Ambiguity = "partial"
    block: str | None = None
    phylip_layout: PhylipLayout | None = None
    partitions: str | None = None
    partition_name: str | None = None
    unassigned_sites: Unassigned = "error"
    part: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle_fields(self)

    @property
    def usual_prefix(self) -> str:
        """What the names of files written begin with where no prefix is given."""
        name = "stdin" if self.alignment == STANDARD_INPUT else unpacked_name(self.alignment)
        return name.rsplit(".", 1)[0]

    @property
    def partitioned(self) -> bool:
        """Whether the columns are parts, each read on its own."""
        return self.partitions is not None or bool(self.part)

    @property
    def by_digit(self) -> bool:
        """Whether states of standard characters are digits, whatever symbols the file lists."""
        return False

    @property
    def data_files(self) -> list[str]:
        """The files that the data are read from."""
        own = self.partitions in (None, DECLARED)
        return [self.alignment] if own else [self.alignment, str(self.partitions)]


@dataclass(frozen=True)
class SampledDataOptions(DataOptions):
    """What samplers can be told of data, besides. without: names of taxa that are left out. ordered:
    columns of standard characters whose states are ordered. character_states: under MK each has its "own"
    number of states, or "all" that of the alphabet; "digits" is "own" of states that are their digits, 0 the
    lowest, whatever symbols the file lists. asc: +ASC as Lewis has it, or as MrBayes 3.2.7a
    computes it (analysis.mcmc_parts)."""

    _: KW_ONLY
    without: tuple[str, ...] = ()
    ordered: str | None = None
    character_states: Literal["own", "digits", "all"] = "own"
    asc: Literal["lewis", "mrbayes"] = "lewis"

    @property
    def by_digit(self) -> bool:
        return self.character_states == "digits"


def sampled_identity(settings: SampledDataOptions) -> dict[str, object]:
    """What of SampledDataOptions' own is not as usual, which older checkpoints do not name."""
    usual = SampledDataOptions("")
    own = [f.name for f in fields(SampledDataOptions) if f.name not in DataOptions.__dataclass_fields__]
    return {name: found for name in own if (found := getattr(settings, name)) != getattr(usual, name)}


@dataclass(frozen=True, eq=False)
class Part:
    """A subset of the columns with its own alignment; model_text: None where neither file nor user says.
    sites: its columns in the file, 0-based; None where the options say. model_place: file and line of the
    partition file that says the model."""

    name: str
    alignment: Alignment
    model_text: str | None
    sites: np.ndarray | None = None
    model_place: tuple[str | None, int | None] = (None, None)


@contextmanager
def of_part(part: Part) -> Iterator[None]:
    """Errors raised inside say in which part; of its model also where it is written."""
    with _model_at(*part.model_place), in_part(part.name):
        yield


@contextmanager
def _model_at(file: str | None, line: int | None) -> Iterator[None]:
    """ModelErrors raised inside name this file and line."""
    try:
        yield
    except ModelError as error:
        error.file, error.line = error.file or file, error.line or line
        raise


def reading_identity(options: DataOptions) -> dict[str, object]:
    """The options by name, without the file's: with its content they decide what is read."""
    found = {field.name: getattr(options, field.name) for field in fields(DataOptions)[1:]}
    if not options.part:  # as in older checkpoints
        del found["part"]
    return found


def alignment_of(options: DataOptions, quiet: bool = False, undivided: bool = False) -> Alignment:
    """Read the alignment that the options name, as one part. quiet: as in `parts_of`. undivided: parts are no
    matter here, so that none are spoken of."""
    if options.partitioned:
        said = "--partitions" if options.partitions is not None else "--part"
        raise InputError(f"this analysis has one part, and {said} gives several", hint="Leave it out.")
    for name, given in (
        ("partition-name", options.partition_name is not None),
        ("unassigned-sites", options.unassigned_sites != "error"),
    ):
        if given:
            raise InputError(
                f"--{name} is about --partitions", hint="Add --partitions FILE, or leave it out."
            )
    characters = _characters(options, quiet)
    if not (quiet or undivided or options.sites or options.datatype in _OF_SEVERAL_COLUMNS):
        _tell_of_parts(characters)
    return one_alignment(characters, _coding(options), options.sites)


def _characters(options: DataOptions, quiet: bool) -> CharacterRows:
    found = read_characters(options.alignment, options.block, options.phylip_layout, quiet)
    return replace(found, symbols=None) if options.by_digit else found


def _coding(options: DataOptions) -> Coding:
    return Coding(options.datatype, options.genetic_code, options.stop_codons, options.ambiguity)


def _columns_in_sets(characters: CharacterRows) -> np.ndarray:
    """How many of the file's sets of columns hold each column; none where one cannot be read."""
    named, n_sites = plain_sets(characters.charsets), characters.n_sites
    try:
        sets = [parse_sites(one, n_sites, named) for one in named.values()]
    except InputError:  # one that nobody asked for
        sets = []
    return np.bincount(np.concatenate([np.zeros(0, int), *sets]), minlength=n_sites)


def _are_divided(characters: CharacterRows) -> bool:
    """Whether several sets of columns of the file hold each column once."""
    return len(plain_sets(characters.charsets)) > 1 and bool((_columns_in_sets(characters) == 1).all())


def _tell_of_parts(characters: CharacterRows) -> None:
    """That the file's sets of columns would be parts, where they divide all of it; that all columns are
    read, where the analysis of a BEAST file is of some."""
    named = characters.charsets
    shown = ", ".join(list(named)[:3]) + (", …" if len(named) > 3 else "")
    file = shown_file(characters.source.file or "the alignment")
    within = _columns_in_sets(characters)
    if _are_divided(characters):
        told = (
            f"its {len(named)} sets of columns ({shown}) are read as one; --partitions declared makes parts"
        )
        warnings.warn(f"{file}: {told} of them", InputWarning, stacklevel=3)
    elif characters.format_name == BEAST_FORMAT and within.any() and not within.all():
        told = f"all columns are read, also those in none of its sets; --sites takes these: {shown}"
        warnings.warn(f"{file}: {told}", InputWarning, stacklevel=3)


def without_data(alignments: Sequence[Alignment]) -> tuple[str, ...]:
    """What is said of taxa of which nothing is known in any part."""
    known = np.any([taxa_with_data(one) for one in alignments], axis=0)
    names = [name for name, some in zip(alignments[0].taxa, known.tolist()) if not some]
    if not names:
        return ()
    listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    many = "1 taxon" if len(names) == 1 else f"{len(names)} taxa"
    return (f"of {many} nothing is known, whose place and branch length mean nothing: {listed}",)


def parts_of(
    options: DataOptions, model: str | None = None, quiet: bool = False
) -> tuple[Scheme, tuple[Part, ...]]:
    """Read the parts that the partition file names (or DATATYPE=MIXED declares), each coded on its own.

    quiet: no warning of what a MRBAYES block asks for.
    model: of the subsets to which the partition file gives none. A subset without a data type has that of
    its model's name where there is only one. Raises InputError with file and line.
    """
    from phloem.analysis.model_file import require_model_used

    _require_one_choice(options)
    characters = _characters(options, quiet)
    if options.part:
        sets = characters.charsets
        scheme = listed_partitions(options.part, characters.n_sites, sets, options.unassigned_sites)
        if characters.parts:
            scheme = with_declared_datatypes(scheme, read_scheme(characters))
    elif options.partitions == DECLARED:
        scheme = _declared(characters, options)
    else:
        scheme = read_scheme(
            characters,
            options.partitions,
            name=options.partition_name,
            unassigned=options.unassigned_sites,
        )
    _require_datatype_used(options.datatype, scheme)
    subsets = tuple(_typed(subset, options, scheme) for subset in scheme.subsets)
    coding = _coding(options)
    parts = tuple(
        _kept(
            Part(
                subset.name,
                part_alignment(characters, subset, coding),
                subset.model_text or model,
                subset.sites,
                (scheme.file, subset.line) if subset.model_text is not None else (None, None),
            ),
            kept_kind(options.sites),
        )
        for subset in subsets
    )
    if options.genetic_code != 1 and not any(reads_codons(part.alignment) for part in parts):
        raise InputError(
            f"genetic code {options.genetic_code} is chosen, and no part is read as codons",
            file=scheme.file,
            hint="Write CODON or a codon model for one, or leave the genetic code out.",
        )
    require_stop_codons(options.stop_codons, [part.alignment.alphabet.kind for part in parts], scheme.file)
    require_model_used(model, [subset.model_text for subset in subsets], scheme.file)
    return replace(scheme, subsets=subsets), parts


def _kept(part: Part, kind: Kind | None) -> Part:
    """The part with its characters of this kind alone; all of None."""
    if kind is None or part.sites is None:
        return part
    with in_part(part.name):
        alignment, kept = only_of_kind(part.alignment, kind)
    sites = part.sites.reshape(len(kept), -1)[kept].ravel()
    return replace(part, alignment=alignment, sites=sites)


def _declared(characters: CharacterRows, options: DataOptions) -> Scheme:
    """The parts of the alignment's own file: as its partition says, else one for each of its sets of columns
    where these divide all, else of its data types or blocks, if it has several."""
    file, name, unassigned = characters.source.file, options.partition_name, options.unassigned_sites
    nexus = file if characters.format_name == "NEXUS" else None
    chosen = nexus is not None and not characters.part_names and chooses_partition(nexus, name)
    if characters.parts and not chosen and not _are_divided(characters):
        if options.partition_name is not None:
            told = "--partition-name chooses among partitions, and parts are this file's data types or blocks"
            raise InputError(told, hint="Leave it out.")
        return read_scheme(characters)
    if not characters.charsets and not chosen:
        raise InputError(
            "the alignment declares no parts",
            file=options.alignment,
            hint="Leave --partitions out for one part; else give a partition file, CHARSETs, DATATYPE=MIXED, "
            "or --block all where there are several blocks.",
        )
    if nexus is not None:
        return read_scheme(characters, nexus, name=name, unassigned=unassigned)
    if name is not None:
        raise InputError(f"there is no partition '{name}'", hint="Leave the name out: the file has one list.")
    width, sets = characters.n_sites, characters.charsets
    try:
        subsets = [Subset(own, parse_sites(text, width, sets)) for own, text in sets.items()]
    except InputError as error:
        raise characters.placed(error) from None
    scheme = make_scheme(subsets, width, file=file, unassigned=unassigned)
    return with_declared_datatypes(scheme, read_scheme(characters)) if characters.parts else scheme


def _require_one_choice(options: DataOptions) -> None:
    """InputError where two options say what the parts are, or one says nothing about them."""
    if options.sites is not None and kept_kind(options.sites) is None:
        given = "--part" if options.part else "--partitions"
        raise InputError(
            f"--sites and {given} both choose columns", hint="Leave one out, or say --sites variable."
        )
    if options.part and options.partitions is not None:
        raise InputError("--partitions and --part both say what the parts are", hint="Leave one out.")
    if options.part and options.partition_name is not None:
        raise InputError("--partition-name is about --partitions", hint="Leave it out.")


def _require_datatype_used(given: str | None, scheme: Scheme) -> None:
    """InputError for a data type that no part takes, since the file names another for each."""
    kinds = [subset.datatype for subset in scheme.subsets]
    if given is not None and None not in kinds and canonical_kind(given) not in map(str, kinds):
        raise InputError(
            f"every part has a data type already, and --datatype {given} is for parts that have none",
            file=scheme.file,
            hint="Leave --datatype out, or the data types out of the partition file.",
        )


def _typed(subset: Subset, options: DataOptions, scheme: Scheme) -> Subset:
    """The subset with the data type of its model, where nothing else says it."""
    if subset.maybe_model and datatypes_of(subset.name):
        raise InputError(
            f"'{subset.name}' is the name of a subset here, and of a model",
            file=scheme.file,
            line=subset.line,
            hint="Define a CHARSET for its columns, and write 'MODEL:set'; or call it something else.",
        )
    if subset.datatype is not None:
        return subset
    kinds: tuple[str, ...] = ()
    if options.datatype is not None:
        kinds = (canonical_kind(options.datatype),)
    elif subset.model_text is not None:
        with _model_at(scheme.file, subset.line):
            kinds = datatypes_of(split_model(subset.model_text)[0].name)
    if kinds == ("doublet",):  # pairs of columns are doublets whatever else is said
        error = pairs_not_said(f"of '{subset.name}'")
        error.file, error.line = scheme.file, subset.line
        raise error
    return replace(subset, datatype=kinds[0]) if options.datatype is None and len(kinds) == 1 else subset

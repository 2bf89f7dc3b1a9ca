"""The options of `phloem time` by name: from a command line or a MRBAYES block to settings, and the
command line that says the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from phloem.analysis.dated_input import DateOptions
from phloem.analysis.mrbayes import BlockAnalysis
from phloem.analysis.time_record import TimeTreeSettings
from phloem.analysis.time_traits import TraitOptions
from phloem.analysis.working import WORKING_SHAPE
from phloem.errors import InputError
from phloem.inference.mcmc.settings import THRESHOLDS, Convergence, chain_length
from phloem.inference.time.settings import TimeSettings, TreeModel

_TEXTS = (
    "without", "prior", "clade", "monophyletic", "calibrate", "clock_clade", "constraint", "link", "shift",
    "metadata_column",
)  # fmt: skip
_OF_TRAITS = {"trait_column": None, "trait_rates": "symmetric", "bssvs": False, "trait_root": "equal"}
_OF_DATES = ("date_field", "date_delimiter", "date_pattern", "name_column", "date_column", "ages", "tip_age")
_OF_TREE = {"clock": "clock", "clock_sd": "clock_sd", "tree_prior": "prior", "pieces": "pieces"}
_OF_PRIOR = ("cutoff", "sampled", "fossils", "sampling", "condition", "numbers")
_RENAMED = {"runs": "n_runs", "chains": "n_chains"}
_OF_RUN = (
    "generations", "until_converged", *THRESHOLDS, "runs", "chains", "seed", "swap_seed", "swap_every",
    "heating", "sample_every", "check_every", "warm_up", "prior_only", "stepping_stone", "stone_shape",
    "threads", "start",
)  # fmt: skip
_OWN = tuple(f.name for f in fields(TimeTreeSettings) if f.name not in ("tree", "chains", "trait", "dates"))
OPTION_NAMES = (
    *_OWN, *_OF_RUN, *_OF_TREE, *_OF_PRIOR, *_OF_DATES, *_OF_TRAITS, "dates", "whole_years", "trait",
)  # fmt: skip
"""What `time_settings` takes."""
_OF_BLOCKS = {"burn_in": "warm_up"}  # what phloem mcmc calls an option that both commands have


def time_settings(options: Mapping[str, Any]) -> TimeTreeSettings:
    """The settings that some options ask for; what is not among them is as `phloem time` has it.

    options: by the names of the command line, with '_'. Errors: InputError for unknown ones, and as of the
    records that they are sorted into.
    """
    given = dict(options)
    for name in given:
        if name not in OPTION_NAMES:
            raise InputError(f"there is no option '{name}'", hint=f"There are: {', '.join(OPTION_NAMES)}.")
    if given.get("stone_shape") is None:
        near = given.get("stones_from") is not None and given.get("stepping_stone")
        given["stone_shape"] = WORKING_SHAPE if near else TimeSettings.stone_shape
    given["dates"], given["trait"] = _date_source(given), _trait(given)
    of_prior = {n: value for n in _OF_PRIOR if (value := given.pop(n, None)) is not None}
    tree = TreeModel(**{ours: given.pop(n) for n, ours in _OF_TREE.items() if n in given}, options=of_prior)
    for name in _TEXTS:
        given[name] = tuple(given.get(name) or ())
    stones = given.pop("stepping_stone", None) or 0
    length = chain_length(given.pop("generations", None), given.pop("until_converged", None) or None, stones)
    chains: dict[str, Any] = dict(zip(("generations", "until_converged"), length)) | {"stones": stones}
    chains["use_data"] = not given.pop("prior_only", False)
    given["usual_samples"] = given.get("sample_every") is None
    chains |= {name: given.pop(n) for n, name in _RENAMED.items() if n in given}
    thresholds = {field: float(given.pop(n)) for n, field in THRESHOLDS.items() if n in given}
    chains["convergence"] = Convergence(**thresholds)
    own = {n: given.pop(n) for n in TimeSettings.__dataclass_fields__ if n in given}
    if given["usual_samples"]:
        own.pop("sample_every", None)
    return TimeTreeSettings(**given, tree=tree, chains=TimeSettings(**chains, **own))


def _trait(options: dict[str, Any]) -> TraitOptions | None:
    """What changes along the tree, by the options about it, which it takes out."""
    table = options.pop("trait", None)
    own = {name: options.pop(name, usual) for name, usual in _OF_TRAITS.items()}
    if table is not None:
        return TraitOptions(table, *own.values())
    for name, value in own.items():
        if value != _OF_TRAITS[name]:
            told = f"--{name.replace('_', '-')} is about a trait, and there is none"
            raise InputError(told, hint="Give its table: --trait FILE.")
    return None


def _date_source(options: dict[str, Any]) -> DateOptions | None:
    """Where dates come from, by the options about them, which it takes out."""
    found = {name: options.pop(name, None) for name in _OF_DATES}
    found["tip_age"] = tuple(found["tip_age"] or ()) or None
    given = {name: value for name, value in found.items() if value is not None and value is not False}
    years, table = options.pop("whole_years", "auto"), options.pop("dates", None)
    if table is None and not given and years == "auto":
        return None
    return DateOptions(table, whole_years=years, **given)


def dated_analysis(block: BlockAnalysis, given: Mapping[str, Any]) -> tuple[TimeTreeSettings, str]:
    """The settings of a block that asks for a clock, and the command line that says the same without it.

    given: options of `phloem mcmc` by name that stand before what the block says. Errors: InputError for
    those that dated trees do not have."""
    found, told = dict(block.options), list(block.notes)
    for name, value in given.items():
        own = _OF_BLOCKS.get(name, name)
        if own not in OPTION_NAMES or own in (
            "model",
            "prior",
            "partitions",
            "part",
            "sites",
            "link",
            "linkage",
            "start",
        ):
            raise InputError(
                f"--{name.replace('_', '-')} is no option of dated trees, or one that the MRBAYES block says",
                file=block.file,
                hint="Leave it out, or take the command that --dry-run prints.",
            )
        if own in found and found[own] != value and own != "alignment":
            line = block.lines.get(own)
            where = "MrBayes' default" if line is None else f"line {line} of {block.file}"
            told.append(f"--{name.replace('_', '-')} of the command line stands before {where}")
        if own != "alignment":
            found[own] = value
    if found.get("chains") == 1:
        found = {
            name: value for name, value in found.items() if name not in ("heating", "swap_every", "swap_seed")
        }
    settings = replace(time_settings(found), of_block=block.file, told=tuple(told))
    return settings, time_command(found)


def time_command(options: Mapping[str, Any]) -> str:
    """The command line with these options."""
    words = ["phloem", "time", shlex.quote(str(options["alignment"]))]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name == "alignment" or value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            text = f"{one:g}" if isinstance(one, float) and float(f"{one:g}") == one else str(one)
            words.append(f"{option} {shlex.quote(text)}")
    return " ".join(words)

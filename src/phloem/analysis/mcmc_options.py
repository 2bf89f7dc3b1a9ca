"""The options of `phloem mcmc` by name: from a command line, a TOML file or a MRBAYES block to settings, and
from settings back to the command line that says the same."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mrbayes import BlockAnalysis
from phloem.analysis.reading import DataOptions
from phloem.analysis.working import WORKING_SHAPE
from phloem.errors import InputError
from phloem.inference.mcmc.settings import (
    LONGEST,
    THRESHOLDS,
    ChainSettings,
    Convergence,
    Priors,
    chain_length,
    length_prior_text,
    parse_length_prior,
)

_LISTS = ("link", "prior", "part", "without", "constraint")
_DATA = tuple(f.name for f in fields(DataOptions))
_OWN = (
    "model", "linkage", "link", "start", "start_tree", "device", "prefix", "redo", "gamma", "without",
    "ordered", "character_states", "asc", "outgroup", "constraint", "consensus", "report",
    "site_table", "ancestral", "predictive", "stones_from",
)  # fmt: skip
_CHAINS = (
    "seed", "generations", "sample_every", "until_converged", "check_every", "burn_in", "heating", "threads",
    "swap_every", "swap_seed", "stone_shape", "stone_burn_in", "stones_from_prior", "usual_weights",
    "fixed_topology", "precision",
)  # fmt: skip
_OF_SWAPS, _OF_TREES = (
    ("heating", "swap_every", "swap_seed"),
    ("outgroup", "consensus", "site_table", "ancestral"),
)
_LENGTH = ("generations", "until_converged")
_RENAMED = {"runs": "n_runs", "chains": "n_chains", "stepping_stone": "stones"}
OPTION_NAMES = (
    *_DATA, *_OWN, *_CHAINS, *_RENAMED, *THRESHOLDS, "branch_prior", "prior", "prior_only",
)  # fmt: skip
"""What a settings file may hold."""


def mcmc_settings(options: Mapping[str, Any]) -> McmcSettings:
    """The settings that some options ask for; what is not among them is as `phloem mcmc` has it.

    options: by the names of the command line, '-' or '_' alike. Errors: InputError for unknown ones and
    values of the wrong kind.
    """
    given = {name.replace("-", "_"): value for name, value in options.items() if value is not None}
    for name in given:
        if name not in OPTION_NAMES:
            raise InputError(f"there is no option '{name}'", hint=f"There are: {', '.join(OPTION_NAMES)}.")
    if not given.get("alignment"):
        raise InputError("there is no alignment", hint="Name its file.")
    for name in _LISTS:
        if name in given:
            given[name] = _texts(name, given[name])
    priors = Priors(others=given.get("prior", ()))
    if "branch_prior" in given:
        priors = Priors(parse_length_prior(str(given["branch_prior"])), others=priors.others)
    convergence = Convergence(**{f: _number(n, given[n]) for n, f in THRESHOLDS.items() if n in given})
    chains: dict[str, Any] = {name: given[name] for name in _CHAINS if name in given}
    chains |= {field: given[name] for name, field in _RENAMED.items() if name in given}
    if "stones_from" in given and chains.get("stones"):
        chains.setdefault("stone_shape", WORKING_SHAPE)
    length = chain_length(chains.get("generations"), chains.get("until_converged"), chains.get("stones", 0))
    chains |= dict(zip(_LENGTH, length))
    for name in ("burn_in", "heating", "stone_shape"):
        if name in chains:
            chains[name] = _number(name, chains[name])
    own = {name: given[name] for name in (*_DATA, *_OWN) if name in given}
    use_data = not given.get("prior_only", False)
    return McmcSettings(
        **own, chains=ChainSettings(**chains, use_data=use_data, priors=priors, convergence=convergence)
    )


def _usual_length(chains: ChainSettings) -> int:
    return LONGEST if chains.until_converged else ChainSettings.generations


def _texts(name: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(text, str) for text in values):
        raise InputError(f"'{name}' is a text or a list of texts, not {value!r}")
    return tuple(values)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"'{name}' is a number, not {value!r}")
    return float(value)


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The options in a TOML file: `generations = 2_000_000`, `part = ["GTR+FO, a = 1-9", …]`.

    Beside those of `mcmc_settings` it may have mrbayes_block, "obey" or "ignore". Raises InputError for what
    is no TOML, and for tables.
    """
    file = os.fspath(path)
    try:
        with open(file, "rb") as opened:
            found = tomllib.load(opened)
    except FileNotFoundError:
        raise InputError("there is no such file", file=file, hint="Check the path.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        hint = "Write lines 'option = value'."
        raise InputError(f"this is no TOML: {error}", file=file, hint=hint) from None
    found = {name.replace("-", "_"): value for name, value in found.items()}
    for name, value in found.items():
        if isinstance(value, dict) or name not in (*OPTION_NAMES, "mrbayes_block"):
            hint = f"There are: {', '.join(OPTION_NAMES)}."
            raise InputError(f"there is no option '{name}'", file=file, hint=hint)
    return found


def merged_options(
    block: BlockAnalysis | None, from_file: Mapping[str, Any], from_line: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The options that hold: those of the command line before those of a settings file before those of a
    MRBAYES block; and, in words, where one stands before another that says otherwise.

    Errors: InputError where one cannot stand before the other, since parts and their models belong together.
    """
    told, found = list[str](), dict(block.options) if block else {}
    for origin, options in (("the settings file", from_file), ("the command line", from_line)):
        for name, value in options.items():
            if block and name in block.options and name != "alignment" and block.options[name] != value:
                line = block.lines.get(name)
                where = "MrBayes' default" if line is None else f"line {line} of {block.file}"
                told.append(f"{_option(name)} of {origin} stands before {where}")
            found[name] = value
    if block:
        found["alignment"] = block.options["alignment"]
        for name in _without_meaning(found, {**from_file, **from_line}):
            del found[name]
        _refuse_contradictions(block, {**from_file, **from_line})
    return found, told


def _without_meaning(found: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """What a MRBAYES block alone says, and MrBayes itself would have no use for."""
    of_swaps = _OF_SWAPS if found.get("chains") == 1 else ()
    of_trees = _OF_TREES if found.get("stepping_stone") else ()
    corrected = any(name in str(found.get("model")).upper() for name in ("+ASC", "MKV"))
    of_asc = ("asc",) if "model" in given and not corrected else ()
    return [name for name in (*of_swaps, *of_trees, *of_asc) if name in found and name not in given]


def _refuse_contradictions(block: BlockAnalysis, given: Mapping[str, Any]) -> None:
    parts = "part" in block.options
    for name in ("partitions", "partition_name", *(("model", "sites", "datatype") if parts else ("part",))):
        if given.get(name) is not None:
            raise InputError(
                f"{_option(name)} contradicts the MRBAYES block, which says what the parts of the data are",
                file=block.file,
                line=block.lines.get("part"),
                hint="Leave the option out, or the block with --mrbayes-block ignore.",
            )


def command_options(settings: McmcSettings) -> dict[str, Any]:
    """The options that make these settings, without those that are as `phloem mcmc` has them."""
    chains, usual = settings.chains, McmcSettings("")
    found = {n: getattr(settings, n) for n in (*_DATA, *_OWN) if getattr(settings, n) != getattr(usual, n)}
    for name, field in {**{n: n for n in _CHAINS}, **_RENAMED}.items():
        if name not in _LENGTH and getattr(chains, field) != getattr(usual.chains, field):
            found[name] = getattr(chains, field)
    if not (chains.stones or chains.until_converged) or chains.generations != _usual_length(chains):
        found["generations"] = chains.generations
    if chains.until_converged and "generations" in found:
        found["until_converged"] = True
    for name, field in THRESHOLDS.items():
        if getattr(chains.convergence, field) != getattr(usual.chains.convergence, field):
            found[name] = getattr(chains.convergence, field)
    if chains.priors.branch_lengths != usual.chains.priors.branch_lengths:
        found["branch_prior"] = length_prior_text(chains.priors.branch_lengths)
    if chains.priors.others:
        found["prior"] = chains.priors.others
    if not chains.use_data:
        found["prior_only"] = True
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def command_line(settings: McmcSettings) -> str:
    """The command that does this analysis, whatever MRBAYES block its file has."""
    options = command_options(settings)
    words = ["phloem", "mcmc", shlex.quote(str(options.pop("alignment")))]
    for name, value in options.items():
        if value is True:
            words.append(_option(name))
            continue
        for one in value if isinstance(value, list) else [value]:
            text = f"{one:g}" if isinstance(one, float) and float(f"{one:g}") == one else str(one)
            words.append(f"{_option(name)} {shlex.quote(text)}")
    return " ".join([*words, "--mrbayes-block ignore"] if settings.of_block is not None else words)


def settings_text(settings: McmcSettings) -> str:
    """The same as a TOML file."""
    lines = ['mrbayes_block = "ignore"'] if settings.of_block is not None else []
    for name, value in command_options(settings).items():
        if isinstance(value, list):
            inner = ",\n".join(f"  {_quoted(one)}" for one in value)
            lines.append(f"{name} = [\n{inner},\n]")
        else:
            text = str(value).lower() if isinstance(value, bool) else value
            lines.append(f"{name} = {_quoted(text) if isinstance(value, str) else text}")
    return "\n".join(lines) + "\n"


def _quoted(text: Any) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"

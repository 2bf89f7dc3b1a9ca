"""PREFIX.model: a model with its numbers, written by `phloem ml`, and read where `--model @FILE` is said."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from phloem import __version__
from phloem.data.alignment import Alignment
from phloem.errors import InputError, in_file
from phloem.io.input_file import read_input
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.autocorrelated_rates import AutocorrelatedGammaRates
from phloem.model.markov_modulated import RatesOfSubstitutions
from phloem.model.model import Model
from phloem.model.site_rates import GammaRates

USUAL_MODEL = {
    "dna": "GTR+F+G4",
    "rna": "GTR+F+G4",
    "protein": "LG+G4",
    "codon": "GY94+F3X4",
    "doublet": "SH94K+FO+G4",
    "binary": "MK+G4",
}
_LONG = re.compile(r"\d+\.\d{5,}(?:e[-+]?\d+)?")
_NAMES = {"model", "family", "counted"}
_HEAD = f"# phloem {__version__}. --model @FILE takes these numbers as they are, and fits none of them.\n"


@dataclass(frozen=True)
class ModelFile:
    """model: a string with all numbers. family: the same without those that were fitted or counted.
    counted: parameters whose values were counted in the data: information criteria count them."""

    model: str
    family: str
    counted: tuple[str, ...] = ()

    def text(self) -> str:
        return _HEAD + self.body()

    def body(self) -> str:
        return (
            f"model = {json.dumps(self.model)}\n"
            f"family = {json.dumps(self.family)}\n"
            f"counted = {json.dumps(list(self.counted))}\n"
        )


def shown_model(text: str) -> str:
    """A model's text with numbers as short as people read them; files have all digits."""
    return _LONG.sub(lambda found: f"{float(found[0]):.5g}", text)


def text_of_parts(files: Mapping[str, ModelFile]) -> str:
    """Of the models of parts, by name. Rates of parts are fitted with the branch lengths, and not in it."""
    tables = (f"\n[[part]]\nname = {json.dumps(name)}\n{one.body()}" for name, one in files.items())
    return _HEAD + "".join(tables)


def holds_parts(given: str | None) -> bool:
    """Whether --model names a file with the models of parts."""
    return given is not None and given.startswith("@") and "part" in _record(given[1:])


def file_of_model(given: str | None) -> list[str]:
    """The file that a --model names, if any."""
    return [given[1:]] if given is not None and given.startswith("@") else []


def require_model_used(given: str | None, own: Sequence[str | None], file: str | None) -> None:
    """InputError for a --model that no part takes, since the partition file has one for each. own: of every
    part what the file says."""
    if given is None or holds_parts(given) or any(text is None for text in own):
        return
    raise InputError(
        f"every part has a model already, and --model {given} is for parts that have none",
        file=file,
        hint="Leave --model out, or the models out of the partition file.",
    )


def require_gamma_used(gamma: Literal["mean", "median"], models: Iterable[Model]) -> None:
    """InputError for medians where no model has a gamma distribution that is represented by them."""
    if gamma == "median" and not any(has_medians(model) for model in models):
        raise InputError(
            "--gamma median is about +G, and no model here has one that leaves it open",
            hint="Add +G4 to the model, or leave --gamma out.",
        )


def has_medians(model: Model) -> bool:
    mixture, categories = model.mixture, model.site_rates.categories
    if isinstance(mixture, RatesOfSubstitutions):
        categories = mixture.categories
    return isinstance(categories, GammaRates | AutocorrelatedGammaRates) and categories.kind == "median"


def model_string(given: str, part: str | None = None) -> str:
    """The one given, or that of the file that @FILE names."""
    return _read(given[1:], part).model if given.startswith("@") else given


def usual_model(kind: str) -> str:
    """Of a kind of data, where nobody names one."""
    return USUAL_MODEL.get(kind, "MK+G4")


def model_of(
    given: str | None,
    alignment: Alignment,
    gamma: Literal["mean", "median"] = "mean",
    part: str | None = None,
) -> Model:
    """The model of a string, of the file that @FILE names, or the usual one of the data. part: name of the
    part that it is for, where there are several.

    Errors: ModelError; InputError with the file.
    """
    if given is None or not given.startswith("@"):
        text = usual_model(alignment.alphabet.kind) if given is None else given
        return model_for_alignment(text, alignment, gamma)
    found = _read(given[1:], part)
    with in_file(given[1:]):
        model = model_for_alignment(found.model, alignment, gamma)
        unknown = [name for name in found.counted if name not in {p.name for p in model.parameters}]
        if unknown:
            raise InputError(f"{model.name} has no parameter '{unknown[0]}'", hint="Mend 'counted'.")
    counted = tuple(replace(p, counted=p.counted or p.name in found.counted) for p in model.parameters)
    return replace(model, parameters=counted)


def model_file_of(model: Model, text: str) -> ModelFile:
    """Of a fitted model. text: with all its numbers."""
    return ModelFile(text, model.name, tuple(p.name for p in model.parameters if p.counted))


def _record(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(bytes(read_input(path)).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"this is no model file: {error}", file=path, hint=_HINT) from None


def _read(path: str, part: str | None = None) -> ModelFile:
    record = _record(path)
    if "part" in record:
        record = _of_part(record, path, part)
    counted = record.get("counted", [])
    if not isinstance(record.get("model"), str) or not _are_names(counted) or set(record) - _NAMES:
        raise InputError("this is no model file", file=path, hint=_HINT)
    return ModelFile(record["model"], str(record.get("family", "")), tuple(counted))


def _of_part(record: dict[str, Any], path: str, part: str | None) -> dict[str, Any]:
    """The table of a part."""
    tables = record["part"]
    if not isinstance(tables, list) or not all(isinstance(t, dict) and "name" in t for t in tables):
        raise InputError("this is no model file", file=path, hint=_HINT)
    names = ", ".join(str(t["name"]) for t in tables)
    if part is None:
        raise InputError(
            f"this file has the models of parts: {names}", file=path, hint="Give the --partitions as well."
        )
    for table in tables:
        if table["name"] == part:
            return {name: value for name, value in table.items() if name != "name"}
    raise InputError(
        f"there is no model of part '{part}'", file=path, hint=f"It has those of {names}: add a [[part]]."
    )


_HINT = 'Name the PREFIX.model that phloem ml wrote: model = "…" and counted = […].'


def _are_names(value: object) -> bool:
    return isinstance(value, Iterable) and all(isinstance(one, str) for one in value)

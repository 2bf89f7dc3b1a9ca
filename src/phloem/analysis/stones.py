"""Marginal likelihoods by stepping stones, and models compared by them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phloem.analysis.json_record import json_text
from phloem.analysis.same_data import (
    are_of_same_data,
    conditioning_of_record,
    data_of_record,
    require_alike_conditioned,
)
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import KEPT, state_path
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.stones import Ladder, MarginalLikelihood, marginal_likelihood, n_guessed
from phloem.io.output_file import write_file


@dataclass(frozen=True)
class PriorConstant:
    """log: of what a prior adds up to, estimated; error: its standard error. file: of the record that says
    so."""

    log: float
    error: float
    file: str


@dataclass(frozen=True, eq=False)
class StonesResult:
    """marginal: the estimate: of the marginal likelihood, of the prior's constant (of_prior), or, where the
    prior has one that is not 1, of both multiplied, constant being that of the prior. prefix: of its files,
    name → what it holds. told: what else its record says: model, data, settings. speed: chain-generations a
    second."""

    marginal: MarginalLikelihood
    prefix: str
    told: Mapping[str, Any]
    seconds: float
    speed: float
    resumed_at: int | None
    files: dict[str, str]
    constant: PriorConstant | None = None
    of_prior: bool = False

    @property
    def log(self) -> float:
        """Of the marginal likelihood, or of the prior's constant."""
        return self.marginal.log - (self.constant.log if self.constant else 0.0)

    @property
    def error(self) -> float:
        """Standard error of log."""
        return math.hypot(self.marginal.error, self.constant.error if self.constant else 0.0)

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries."""
        m = self.marginal
        name = "log_prior_constant" if self.of_prior else "log_marginal_likelihood"
        found: dict[str, object] = {name: self.log, "standard_error": self.error}
        if self.constant is not None:
            found |= {
                "log_of_likelihood_and_prior": m.log,
                "log_of_likelihood_and_prior_standard_error": m.error,
                "prior_constant": asdict(self.constant),
            }
        return {
            "finished": True,
            **self.told,
            **found,
            f"{name}_of_runs": [x - m.log + self.log for x in m.per_run],
            "stones": [asdict(stone) for stone in m.stones],
            "seconds": self.seconds,
            "chain_generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
        }


def finish_stones(
    samples: Sequence[Samples],
    ladder: Ladder,
    prefix: str,
    told: Mapping[str, Any],
    took: tuple[float, int, int | None],
    files: dict[str, str],
    constant: PriorConstant | None = None,
    of_prior: bool = False,
) -> StonesResult:
    """Estimate, and write table and record. took: seconds, chain-generations, where it was resumed; constant,
    of_prior: as of StonesResult."""
    marginal = marginal_likelihood(samples, ladder)
    seconds, done, resumed_at = took
    speed = done / max(seconds, 1e-9)
    result = StonesResult(marginal, prefix, told, seconds, speed, resumed_at, files, constant, of_prior)
    lines = ["stone\tpower\treaches\tlog_ratio\tstandard_error\tmean_log_likelihood\tess"]
    for number, s in enumerate(marginal.stones, 1):
        numbers = (s.power, s.reaches, s.log_ratio, s.error, s.log_likelihood, s.ess)
        lines.append("\t".join([str(number), *(f"{x:.10g}" for x in numbers)]))
    write_file(f"{prefix}.tsv", "\n".join(lines) + "\n", KEPT)
    write_file(Path(f"{prefix}.json"), json_text(result.to_json()), KEPT)
    return result


# Models compared.


@dataclass(frozen=True)
class ComparedModel:
    """log_bayes_factor: natural, of this model against the best; error: of it, by both standard errors (0 for
    the best itself). probability: with equal prior probabilities of all. length_prior: of branch lengths,
    '' of dated trees. guessed: stones with so few effective samples that `error` is a guess."""

    file: str
    model: str
    log: float
    error: float
    log_bayes_factor: float
    factor_error: float
    probability: float
    length_prior: str = ""
    guessed: int = 0


def bayes_factors(files: Sequence[str]) -> list[ComparedModel]:
    """The records of several stepping-stone analyses of the same data, of trees with or without dates, the
    best first. files: PREFIX.ss.json each, or PREFIX.

    Errors: InputError for a file that is none of these or given twice, for analyses of different data, for
    likelihoods that +ASC conditions on different things, and for fewer than two.
    """
    if len(files) < 2:
        raise InputError("one model alone has no Bayes factor", hint="Name two PREFIX.ss.json or more.")
    files = [_file(name) for name in files]
    found = [(file, _record(file)) for file in files]
    first = found[0][1]
    for k, (file, record) in enumerate(found[1:], 1):
        if file in files[:k]:
            raise InputError("this file is given twice", file=file, hint="Name every model once.")
        if not are_of_same_data(first, record):
            raise InputError(
                f"this analysis and that of {files[0]} are of different data",
                file=file,
                hint="Compare models of the same characters: taxa, sites, and kind (nucleotides, codons, …).",
            )
        require_alike_conditioned(first, record, file)
    found.sort(key=lambda one: -one[1]["log_marginal_likelihood"])
    best = found[0][1]
    logs = [record["log_marginal_likelihood"] for _, record in found]
    total = sum(math.exp(x - logs[0]) for x in logs)
    return [
        ComparedModel(
            file,
            record["model"],
            record["log_marginal_likelihood"],
            record["standard_error"],
            record["log_marginal_likelihood"] - logs[0],
            0.0 if record is best else math.hypot(record["standard_error"], best["standard_error"]),
            math.exp(record["log_marginal_likelihood"] - logs[0]) / total,
            _length_prior(record),
            n_guessed([stone["ess"] or 0.0 for stone in record.get("stones", ())]),
        )
        for file, record in found
    ]


def of_same_data(files: Sequence[str]) -> list[list[str]]:
    """Those of the files that are records of stepping-stone analyses, together where `bayes_factors` can
    compare them."""
    groups: dict[str, list[str]] = {}
    for file in files:
        try:
            record = _record(file)
            key = json.dumps([data_of_record(record), conditioning_of_record(record)], sort_keys=True)
            groups.setdefault(key, []).append(file)
        except InputError:
            continue
    return list(groups.values())


def _file(name: str) -> str:
    """That a name or a prefix stands for."""
    own = f"{name.removesuffix('.ss')}.ss.json"
    return own if not Path(name).is_file() and Path(own).is_file() else name


def _length_prior(record: dict[str, Any]) -> str:
    """That of branch lengths, as text; '' of dated trees."""
    chains = record["settings"].get("chains", {})
    return str(chains.get("priors", {}).get("branch_lengths", ""))


def _no_record(name: str) -> InputError:
    """Why a name or a prefix stands for no record."""
    prefix = name.removesuffix(".json").removesuffix(".ss")
    if state_path(f"{prefix}.ss").exists():
        told, hint = "this stepping-stone analysis is not finished", "Give its command again, which goes on."
    elif Path(f"{prefix}.json").exists():
        told = "this analysis has no stepping stones, and so no marginal likelihood"
        hint = "Give its command with --stepping-stone 50; both may have one prefix."
    else:
        told, hint = "there is no such file", "Name PREFIX.ss.json or PREFIX of phloem mcmc or time."
    return InputError(told, file=name, hint=hint)


def _record(file: str) -> dict[str, Any]:
    """The record of a stepping-stone analysis."""
    try:
        record: dict[str, Any] = json.loads(Path(file).read_text())
        if "log_prior_constant" in record:
            raise InputError(
                "this is the constant of a prior, and no marginal likelihood",
                file=file,
                hint="Name the analysis of the data that has it as --prior-constant.",
            )
        _ = data_of_record(record)
        _ = float(record["log_marginal_likelihood"]), float(record["standard_error"]), record["model"]
    except FileNotFoundError:
        raise _no_record(file) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "this file is no record of a stepping-stone analysis",
            file=file,
            hint="Make one with phloem mcmc or phloem time --stepping-stone 50: PREFIX.ss.json.",
        ) from None
    return record

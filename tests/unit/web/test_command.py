"""The questions are those of the commands, and the answers make the command line that is shown."""

from __future__ import annotations

import inspect
import shlex
import typing
from collections import Counter
from importlib import import_module

import pytest

from phloem.cli import COMMANDS
from phloem.errors import InputError
from phloem.web.command import Kind, arguments, shown
from phloem.web.kinds import BY_NAME, KINDS


def options(command: str) -> dict[str, inspect.Parameter]:
    module, function = COMMANDS[command].split(":")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters
    return {name.replace("_", "-"): one for name, one in parameters.items()}


def differences(kind: Kind) -> list[str]:
    """Where a kind asks for what its command does not have, or calls usual what is not its default."""
    known, found = options(kind.command), []
    named = [
        word.removeprefix("--") for word in (*kind.fixed, kind.file_option or "") if word.startswith("--")
    ]
    for option in (*named, *(option for option, _ in kind.outputs)):
        if option not in known:
            found.append(f"{kind.name}: no option {option}")
    for question in kind.questions:
        if question.place != "option":
            continue
        if question.option not in known:
            found.append(f"{kind.name}: no option {question.option}")
            continue
        default = known[question.option].default.default
        if question.kind in ("whole", "number") and question.is_default and question.usual is not None:
            if question.usual != default:
                found.append(f"{kind.name}: {question.option} is {default} by default")
        allowed = typing.get_args(known[question.option].annotation)
        if (question.kind == "lines") != ("list" in str(known[question.option].annotation)):
            found.append(f"{kind.name}: {question.option} is asked once and taken often, or so")
        if question.kind == "choice" and isinstance(next(iter(allowed), None), str):
            wrong = [value for value, _ in question.choices if value and value not in allowed]
            found += [f"{kind.name}: {question.option} cannot be {value}" for value in wrong]
    often = Counter(question.option for question in kind.questions)
    return found + [f"{kind.name}: {option} is asked {n} times" for option, n in often.items() if n > 1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_asked_is_what_the_command_takes(kind):
    assert differences(kind) == []


def test_a_question_that_no_command_answers_is_seen():
    from dataclasses import replace

    mcmc = BY_NAME["mcmc"]
    for planted in (
        replace(mcmc.questions[2], option="generation"),
        replace(mcmc.questions[2], usual=5),
        replace(BY_NAME["nj"].questions[-1], choices=(("tpu", "?"),)),
        replace(mcmc.questions[2], kind="lines"),
    ):
        assert len(differences(replace(mcmc, questions=(planted,)))) == 1
    twice = replace(mcmc, questions=(*mcmc.questions, mcmc.questions[2]))
    assert differences(twice) == [f"mcmc: {mcmc.questions[2].option} is asked 2 times"]


def test_what_is_as_usual_gives_no_option():
    kind = BY_NAME["mcmc"]
    usual = {
        q.option: str(q.usual) if q.kind == "whole" and q.usual is not None else q.usual
        for q in kind.questions
    }
    usual = {option: answer for option, answer in usual.items() if answer is not None}
    words = arguments(kind, "a.nex", usual, "a.mcmc-1/a")
    assert shown(words) == (
        "phloem mcmc a.nex --mrbayes-block ignore --until-converged --check-every 20000 --prefix a.mcmc-1/a "
        "--progress a.mcmc-1/a.progress.json"
    )
    assert arguments(kind, "a.nex", {}, "a.mcmc-1/a") == words
    assert "--seed" in arguments(kind, "a.nex", usual | {"seed": "2"}, "p/a")


def test_names_and_answers_are_never_options():
    words = arguments(BY_NAME["ml"], "-rf.fasta", {"model": "--help"}, "x/a")
    assert "./-rf.fasta" in words and "--model=--help" in words and "--help" not in words
    line = shown(arguments(BY_NAME["ml"], "a b;rm -r $HOME.fasta", {"model": "$(id)"}, "x/a"))
    assert shlex.split(line)[2] == "a b;rm -r $HOME.fasta" and "'$(id)'" in line


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("mcmc", {"generations": "many"}),
        ("mcmc", {"generations": "1.5"}),
        ("mcmc", {"generations": "inf"}),
        ("mcmc", {"generations": True}),
        ("mcmc", {"until-converged": "yes"}),
        ("mcmc", {"prior-only": True}),
        ("nj", {"distance": "miles"}),
        ("fit", {}),
        ("fit", {"model": ""}),
        ("ml", {"model": "GTR\n--redo"}),
        ("ml", {"model": "x" * 3000}),
        ("ml", {"model": ["GTR"]}),
    ],
)
def test_answers_that_do_not_fit_are_refused(name, answers):
    with pytest.raises(InputError):
        arguments(BY_NAME[name], "a.nex", answers, "p/a")


def test_a_tree_to_date_stands_first():
    words = arguments(BY_NAME["date"], "a.fasta", {"tree-file": "t.tre", "dates": "d.tsv"}, "p/a")
    assert words[:4] == ["date", "t.tre", "--alignment", "a.fasta"] and words[4:6] == ["--dates", "d.tsv"]


def test_a_second_argument_stands_after_the_first():
    words = arguments(BY_NAME["tests"], "a.fasta", {"trees": "-t.tre"}, "p/a")
    assert words[:3] == ["test-trees", "a.fasta", "./-t.tre"] and words[-2:] == ["--prefix", "p/a"]
    with pytest.raises(InputError, match="needs an answer"):
        arguments(BY_NAME["tests"], "a.fasta", {}, "p/a")


def test_parts_may_have_all_models():
    fit = BY_NAME["fit"]
    with pytest.raises(InputError, match="needs an answer to: Model"):
        arguments(fit, "a.fasta", {"model": ""}, "x/x")
    words = arguments(fit, "a.fasta", {"model": "", "partitions": "p.parts"}, "x/x")
    assert words[:4] == ["likelihood", "a.fasta", "--optimize", "--partitions"]


def test_several_answers_are_the_option_several_times():
    asked = {"clade": "apes=A,B\n\n  --root=C,D ", "calibrate": ""}
    words = arguments(BY_NAME["time"], "a.fasta", asked, "p/a")
    assert words[words.index("--clade") + 1] == "apes=A,B" and "--clade=--root=C,D" in words
    assert "--calibrate" not in words
    with pytest.raises(InputError):
        arguments(BY_NAME["time"], "a.fasta", {"clade": "a\0b"}, "p/a")

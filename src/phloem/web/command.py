"""An analysis as questions, and the command line that the answers make.

Nothing is computed here and nothing is decided that the command would decide otherwise: a question that is
left as the command has it gives no option.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from typing import Literal

from phloem.errors import InputError

Answer = str | float | bool


@dataclass(frozen=True)
class Question:
    """An option of a command. kind: how it is asked; file: the name of one in the folder; lines: several
    answers, one a line, each of which is the option once more. usual: what the page begins with, None where
    the command decides; is_default: whether the command would do the same without being told. choices:
    (value, what it means). further: asked only of those who want to know. required: the command has no usual
    answer; the page proposes one for the kind of data. unless: but where this option is answered. place: of
    an argument, before or after the file of the analysis. suits: of a file, what it looks like; the page
    proposes what does."""

    option: str
    label: str
    help: str
    kind: Literal["choice", "text", "whole", "number", "switch", "file", "lines"] = "text"
    usual: Answer | None = None
    choices: tuple[tuple[str, str], ...] = ()
    further: bool = False
    is_default: bool = True
    required: bool = False
    unless: str = ""
    place: Literal["option", "before", "after"] = "option"
    suits: Literal["", "tree", "table", "partitions"] = ""


@dataclass(frozen=True)
class Kind:
    """An analysis. takes: what its file holds. outputs: options whose files are named PREFIX plus an ending;
    "prefix" names them all. tree, record: endings of the tree to show and of the record, which is
    written last. resumes: whether the same command goes on with a killed run. samples: whether it writes
    traces. burn_in: share of the samples
    that its summaries leave out besides those of the tuning, where nothing is asked."""

    name: str
    title: str
    plain: str
    command: str
    takes: tuple[Literal["alignment", "matrix", "trees"], ...]
    questions: tuple[Question, ...]
    outputs: tuple[tuple[str, str], ...]
    tree: str
    record: str
    fixed: tuple[str, ...] = ()
    file_option: str | None = None
    resumes: bool = False
    samples: bool = False
    burn_in: float = 0.25


def arguments(
    kind: Kind, file: str, answers: dict[str, Answer], prefix: str, redo: bool = False
) -> list[str]:
    """The command line, without `phloem`. file, and files in answers, relative to the folder.

    Answers that are as the command has it give no option. InputError for what is not asked or does not fit.
    """
    asked = {question.option: question for question in kind.questions}
    for option in answers:
        if option not in asked:
            raise InputError(f"'{option}' is not asked for {kind.title}", hint="Reload the page.")
    given: dict[str, list[str]] = {"before": [], "after": [], "option": []}
    for question in kind.questions:
        answer = answers.get(question.option, question.usual)
        if question.required and not answer and not answers.get(question.unless):
            raise InputError(f"{kind.title} needs an answer to: {question.label}", hint="Choose one.")
        if answer is not None and answer != "":
            words = words_of(question, answer)
            given[question.place] += words if question.place == "option" else words[1:]
    own = [kind.file_option, plain_file(file)] if kind.file_option else [plain_file(file)]
    words = [kind.command, *given["before"], *own, *given["after"], *kind.fixed, *given["option"]]
    for option, ending in kind.outputs:
        words += [f"--{option}", plain_file(prefix + ending)]
    return [*words, "--redo"] if redo else words


def plain_file(name: str) -> str:
    """The name as no command takes it for an option or for standard input."""
    return f"./{name}" if name.startswith("-") else name


def words_of(question: Question, answer: Answer) -> list[str]:
    """An answer as words of the command line, none where a command would do the same without."""
    option = f"--{question.option}"
    if question.kind == "switch":
        if not isinstance(answer, bool):
            raise InputError(f"{question.label} is on or off, not {answer!r}")
        return [option] if answer else []
    if question.kind in ("whole", "number"):
        text = _number(question, answer)
        is_usual = question.usual is not None and text == f"{question.usual:.15g}"
        return [] if is_usual and question.is_default else [option, text]
    if question.kind == "lines" and isinstance(answer, str):
        lines = [line.strip() for line in answer.splitlines() if line.strip()]
        single = replace(question, kind="text")
        return [word for line in lines for word in words_of(single, line)]
    if not isinstance(answer, str) or len(answer) > 2000 or not answer.isprintable():
        raise InputError(f"{question.label} is a line of text", hint="Shorten it.")
    if question.kind == "choice" and answer not in dict(question.choices):
        raise InputError(f"{question.label} cannot be '{answer}'", hint="Choose one of the list.")
    if question.kind == "file":
        return [option, plain_file(answer)]
    return [f"{option}={answer}"] if answer.startswith("-") else [option, answer]


def _number(question: Question, answer: Answer) -> str:
    number = math.nan
    if not isinstance(answer, bool):
        try:
            number = float(answer)
        except ValueError:
            number = math.nan
    if not math.isfinite(number) or (question.kind == "whole" and number != int(number)):
        what = "a whole number" if question.kind == "whole" else "a number"
        raise InputError(f"{question.label} is {what}, not '{answer}'", hint="Write digits.")
    return f"{number:.15g}"


def shown(words: list[str]) -> str:
    """The command line as a shell takes it."""
    return shlex.join(["phloem", *words])

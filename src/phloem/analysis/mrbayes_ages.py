"""Ages of taxa and clades in a MRBAYES block: CALIBRATE, and its densities as --calibrate has them.

MrBayes gives them by their mean and standard deviation (its `help calibrate`), phloem by their usual numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from phloem.io.mrbayes import MrBayesCommand, Value


@dataclass(frozen=True)
class Known:
    """An age: NAME of a taxon or constraint, its density, the command that says so, and its line."""

    name: str
    age: Value
    command: MrBayesCommand
    line: int


def calibrations_of(command: MrBayesCommand) -> list[Known]:
    """CALIBRATE name = density(numbers) name = density(numbers) …"""
    found, words = list[Known](), list(command.words)
    while words:
        texts = [word.text for word in words]
        close = texts.index(")") + 1 if ")" in texts else len(texts)
        if len(texts) > 2 and texts[1] == "=" and texts[2].lower().startswith("unc"):
            close = 3
        own = texts[:close]
        if len(own) < 3 or own[1] != "=" or (len(own) > 3 and (own[3] != "(" or own[-1] != ")")):
            raise command.error("CALIBRATE is 'name = density(numbers)'", "As in apes=uniform(12,18).")
        inside = tuple(text for text in own[4:-1] if text != ",") if len(own) > 3 else None
        found.append(Known(own[0], Value(own[2].lower(), "", inside), command, command.line))
        words = words[close:]
    return found


def age_density(age: Value, refused) -> str:
    """An age's density as --calibrate has it. refused: (what, hint) → the error to raise."""
    kinds = {
        "uniform": 2, "offsetexponential": 2, "truncatednormal": 3, "lognormal": 2, "offsetlognormal": 3,
        "gamma": 2, "offsetgamma": 3, "fixed": 1,
    }  # fmt: skip
    known = [kind for kind in kinds if kind.startswith(age.word.lower())]
    kind = age.word.lower() if age.word.lower() in kinds else known[0] if len(known) == 1 else ""
    try:
        numbers = [float(word) for word in age.arguments or ()]
    except ValueError:
        numbers = []
    if not kind or len(numbers) != kinds[kind]:
        raise refused(f"'{age}' is no density of an age", f"MrBayes has {', '.join(kinds)}.")
    if kind == "fixed":
        return f"fixed({number_text(numbers[0])})"
    if kind == "uniform":
        return f"uniform({number_text(numbers[0])},{number_text(numbers[1])})"
    offset, mean = (
        (numbers[0], numbers[1] - numbers[0]) if kind.startswith(("off", "trunc")) else (0.0, numbers[0])
    )
    sd, least = numbers[-1], f"{number_text(offset)}+" if offset else ""
    if kind == "truncatednormal":
        return f"{least}normal({number_text(mean)},{number_text(sd)})"
    if not mean > 0.0:
        raise refused(f"the mean of {age} is not above its least age", "Correct it.")
    if kind == "offsetexponential":
        return f"{least}exponential({number_text(1.0 / mean)})"
    if kind.endswith("gamma"):
        return f"{least}gamma({number_text((mean / sd) ** 2)},{number_text(mean / sd**2)})"
    spread = math.log1p((sd / mean) ** 2)
    return f"{least}lognormal({number_text(math.log(mean) - spread / 2)},{number_text(math.sqrt(spread))})"


def number_text(x: float) -> str:
    return f"{x:.12g}"

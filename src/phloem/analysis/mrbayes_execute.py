"""The commands of a file with MRBAYES blocks, those of the file that EXECUTE names among them."""

from __future__ import annotations

import os
from pathlib import Path

from phloem.io.mrbayes import MrBayesCommand, read_mrbayes


def executed(file: str, commands: list[MrBayesCommand]) -> tuple[str, list[MrBayesCommand]]:
    """The file of the data, and all commands in order, those of the file that EXECUTE names among them."""
    found, data = list[MrBayesCommand](), file
    for command in commands:
        if command.name != "execute":
            found.append(command)
            continue
        name = " ".join(word.text for word in command.words)
        beside = Path(file).parent / name
        other = name if Path(name).exists() or not beside.exists() else str(beside)
        if os.path.abspath(other) == os.path.abspath(file):
            continue  # itself
        if data != file:
            told = "a second EXECUTE would read other data, and one analysis has one file"
            raise command.error(told, "Split the file, one EXECUTE each.")
        if not Path(other).exists():
            told = f"EXECUTE: there is no file '{name}'"
            raise command.error(told, "Name it from the working directory, or from the folder of this file.")
        data = other
        found += [one for one in read_mrbayes(other) if one.name != "execute"]
    return data, found

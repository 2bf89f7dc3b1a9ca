"""Which analyses may be compared: those of the same characters, whatever file they stood in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.analysis.stones import bayes_factors, of_same_data
from phloem.analysis.time_data import time_input
from phloem.analysis.time_record import TimeTreeSettings
from phloem.errors import InputError

CODONS = {"a": "ATGAAACTGGTTGCT", "b": "ATGAAGCTGGTTTCT", "c": "ATGCGTATTGTCGCT", "d": "ATGCGTATTGTCGTT"}
MORPHOLOGY = {"a": "001102", "b": "010111", "c": "110020", "d": "101021", "e": "110010"}
NEXUS = """begin characters; title {}; dimensions ntax={} nchar={}; format datatype={};
matrix
{}
; end;
"""
SYMBOLS = 'standard symbols="012"'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fasta("d.fasta", CODONS)
    write_fasta("turned.fasta", {t: CODONS[t][::-1] for t in reversed(CODONS)})
    write_fasta("swapped.fasta", dict(zip(CODONS, [CODONS["b"], CODONS["a"], *list(CODONS.values())[2:]])))
    backwards = {taxon: row[::-1] for taxon, row in CODONS.items()}
    backwards["a"] = CODONS["a"]
    Path("d.nex").write_text("#NEXUS\n" + nexus("one", "dna", CODONS) + nexus("two", "dna", backwards))
    Path("m.nex").write_text("#NEXUS\n" + nexus("one", SYMBOLS, MORPHOLOGY))
    return tmp_path


def write_fasta(name: str, rows: dict[str, str]) -> None:
    Path(name).write_text("".join(f">{taxon}\n{row}\n" for taxon, row in rows.items()))


def nexus(title: str, kind: str, rows: dict[str, str]) -> str:
    matrix = "\n".join(f"{taxon} {row}" for taxon, row in rows.items())
    return NEXUS.format(title, len(rows), len(rows["a"]), kind, matrix)


def record(prefix: str, log: float = -10.0, dated: bool = False, **options) -> str:
    """As a stepping-stone analysis of these options would leave behind it."""
    if dated:
        data = time_input(TimeTreeSettings(**options))
        model, settings = "dated", {"sites": None, "ambiguity": "partial"}
    else:
        read = mcmc_settings(options)
        data = chain_input(read)
        model, settings = data.model_text(), {"sites": read.sites, "ambiguity": read.ambiguity}
    n_sites = sum(x.n_sites for x in getattr(data.alignments, "values", lambda: data.alignments)())
    found = {
        "model": model, "settings": settings, "data": {"taxa": len(data.taxa), "sites": n_sites},
        "provenance": {"files": {options["alignment"]: {"sha256": options["alignment"]}}} | data.read,
        "log_marginal_likelihood": log, "standard_error": 0.1,
    }  # fmt: skip
    Path(f"{prefix}.ss.json").write_text(json.dumps(found))
    return f"{prefix}.ss.json"


def comparable(one: dict, other: dict) -> bool:
    files = [record("one", **one), record("other", **other)]
    together = of_same_data(files) == [files]
    try:
        assert len(bayes_factors(files)) == 2 and together
    except InputError as error:
        assert error.file == "other.ss.json" and not together
        assert "different data" in str(error) or "conditioned on different things" in str(error)
        return False
    return True


def dna(**more) -> dict:
    return {"alignment": "d.fasta"} | ({} if "part" in more else {"model": "JC"}) | more


def mk(model: str = "MK", **more) -> dict:
    return {"alignment": "m.nex"} | ({} if "part" in more else {"model": model}) | more


DROP, TRANSLATED = {"unassigned_sites": "drop"}, {"datatype": "translated", "model": "LG"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dna(), dna(alignment="turned.fasta", model="HKY+G4")),  # taxa and characters in another order
        (dna(), dna(alignment="d.nex", block="one")),
        (dna(), dna(part=("JC, a = 1-6", "HKY, b = 7-15"))),
        (dna(sites="1-9"), dna(part=("JC, a = 1-9",), **DROP)),
        (dna(), dna(dated=True)),
        (dna(**TRANSLATED), dna(**TRANSLATED | {"model": "WAG"})),
        (mk(), mk(character_states="all")),
        (mk(), mk(ordered="6")),
        (mk("MK+ASC"), mk(part=("MK+ASC, a = 1-2", "MK+ASC+G4, b = 3-6"))),
    ],
)
def test_the_same_characters_are_compared(folder, one, other):
    assert comparable(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dna(), dna(alignment="swapped.fasta")),  # two taxa have each other's sequence
        (dna(datatype="codon", model="GY94+FQ"), dna(**TRANSLATED)),
        (dna(part=("JC, a = 1-6",), **DROP), dna(part=("JC, a = 7-12",), **DROP)),
        (dna(part=("JC, a = 1-6",), dated=True, **DROP), dna(part=("JC, a = 7-12",), dated=True, **DROP)),
        (dna(alignment="d.nex", block="one"), dna(alignment="d.nex", block="two")),
        (mk("MK+ASC"), mk("MK")),
        (mk("MK+ASC"), mk("MK+ASC", asc="mrbayes")),  # which corrects all as if of two states
        (mk("MK+ASC", sites="informative"), mk("MK+ASC{informative}", sites="informative")),
        (mk(part=("MK+ASC, a = 1-2", "MK, b = 3-6")), mk(part=("MK, a = 1-2", "MK+ASC, b = 3-6"))),
    ],
)
def test_other_characters_and_other_conditions_are_not_compared(folder, one, other):
    assert not comparable(one, other)


def test_older_records_are_compared_by_their_files(folder):
    files = [record("one", **dna()), record("two", **dna(sites="1-9")), record("three", **dna())]
    for file in files[:2]:
        older = json.loads(Path(file).read_text())
        del older["provenance"]["characters"], older["provenance"]["conditioned_on"]
        Path(file).write_text(json.dumps(older))
    assert len(bayes_factors([files[0], files[2]])) == 2
    with pytest.raises(InputError, match="different data"):
        bayes_factors(files[:2])
    with pytest.raises(InputError, match="different data"):
        bayes_factors(files[1:])

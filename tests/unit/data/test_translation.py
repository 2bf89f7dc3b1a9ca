"""Nucleotides read as amino acids: every codon of every code, ambiguous ones, parts, and what is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.reading import DataOptions, parts_of
from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import genetic_code, genetic_code_numbers
from phloem.data.translation import reads_codons
from phloem.errors import InputError
from phloem.io.alignment import read_alignment


def file_of(folder: Path, **rows: str) -> Path:
    path = folder / "x.fasta"
    path.write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
    return path


@pytest.mark.parametrize("number", genetic_code_numbers())
def test_every_codon_is_its_amino_acid(tmp_path, number):
    code = genetic_code(number)
    path = file_of(tmp_path, a="".join(code.sense_codons), b="".join(code.sense_codons[::-1]))
    found = read_alignment(path, datatype="translated", genetic_code=number)
    assert found.alphabet.kind == "protein" and found.settings["translated_by"] == number
    texts = ["".join(found.alphabet.states[k] for k in row) for row in found.codes]
    assert texts[0] == "".join(code.translate(codon) for codon in code.sense_codons)
    assert texts[1] == texts[0][::-1] and reads_codons(found)
    usual = genetic_code(1)
    if any(code.translate(codon) != usual.translate(codon) for codon in code.sense_codons):  # the control
        assert _by_standard(path, texts[0])
    assert read_alignment(path, datatype="NT2AA", genetic_code=number).codes.tolist() == found.codes.tolist()


def _by_standard(path: Path, text: str) -> bool:
    """Whether the standard code reads something else, or meets a stop codon."""
    try:
        found = read_alignment(path, datatype="translated")
    except InputError:
        return True
    return "".join(found.alphabet.states[k] for k in found.codes[0]) != text


def test_an_ambiguous_codon_allows_what_any_of_its_codons_stands_for(tmp_path):
    code, bases = genetic_code(1), {"R": "AG", "Y": "CT", "N": "ACGT", "-": "ACGT", "T": "T", "A": "A"}
    triplets = ["".join(t) for t in product("RYNTA", repeat=3)] + ["---", "T--", "C?G".replace("?", "N")]
    bases |= {"C": "C", "G": "G"}
    kept = []
    for triplet in triplets:
        stands = {code.translate("".join(c)) for c in product(*(bases[x] for x in triplet))} - {"*"}
        if stands:
            kept.append((triplet, stands))
    path = file_of(tmp_path, a="".join(t for t, _ in kept), b="ATG" * len(kept))
    found = read_alignment(path, datatype="translated")
    for (triplet, stands), own in zip(kept, found.codes[0]):
        allowed = {found.alphabet.states[k] for k in np.flatnonzero(found.state_sets[own])}
        assert allowed == stands, triplet
    strict = read_alignment(path, datatype="translated", ambiguity="missing")
    partly = [k for k, (triplet, _) in enumerate(kept) if set(triplet) & set("RYN")]
    assert (strict.codes[0][partly] == 20).all() and (found.codes[0][partly] != 20).any()


def test_stop_codons_and_widths_are_errors_as_of_codons(tmp_path):
    stop = file_of(tmp_path, a="ATGTAAATG", b="ATGATGATG")
    with pytest.raises(InputError, match="stop codon TAA in 'a' at codon 2"):
        read_alignment(stop, datatype="translated")
    assert read_alignment(stop, datatype="translated", stop_codons="mask").codes[0].tolist()[1] == 20
    with pytest.raises(InputError, match="not a multiple of three"):
        read_alignment(file_of(tmp_path, a="ATGT", b="ATGA"), datatype="translated")
    with pytest.raises(InputError, match="genetic code 2"):
        read_alignment(stop, datatype="dna", genetic_code=2)


def test_nothing_is_simulated_as_translated():
    with pytest.raises(InputError, match="how nucleotides are read"):
        alphabet("translated")


def test_parts_are_translated_by_codes_of_their_own(tmp_path):
    path = file_of(tmp_path, a="ATAATGATACCC", b="ATAATGATACCA")
    (tmp_path / "p.txt").write_text("NT2AA2, mito = 1-6\nTRANSLATED, other = 7-9\nDNA, rest = 10-12\n")
    _, parts = parts_of(DataOptions(str(path), partitions=str(tmp_path / "p.txt")))
    kinds = [part.alignment.alphabet.kind for part in parts]
    assert kinds == ["protein", "protein", "dna"]
    amino = ["".join(p.alignment.alphabet.states[k] for k in p.alignment.codes[0]) for p in parts]
    assert amino == ["MM", "I", "CCC"]
    (tmp_path / "p.txt").write_text("NT2AA, a = 1-5\nDNA, b = 6-12\n")
    with pytest.raises(InputError, match="multiple of three"):
        parts_of(DataOptions(str(path), partitions=str(tmp_path / "p.txt")))


def test_sites_of_a_table_are_the_first_columns(tmp_path):
    path = file_of(tmp_path, a="ATAATGATACCC", b="ATAATGATACCA", c="ATAATGATTCCA", d="ATACTGATACCA")
    options = {"alignment": str(path), "datatype": "translated", "model": "WAG"}
    data = chain_input(mcmc_settings(options))
    assert data.sites[0].tolist() == [1, 4, 7, 10]
    plain = chain_input(mcmc_settings({**options, "datatype": None, "model": "JC"}))
    assert plain.sites[0].tolist() == [*range(1, 13)]


def test_a_block_of_one_part_or_of_counted_frequencies(tmp_path):
    rows = "\n".join(f"{name} ATAATGATACCCTGA" for name in "abcd")
    head = "#NEXUS\nbegin data; dimensions ntax=4 nchar=15; format datatype=dna; matrix\n"
    said = "lset nucmodel=protein code=vertmt; prset aamodelpr=fixed(equalin) statefreqpr=fixed(empirical);"
    (tmp_path / "b.nex").write_text(f"{head}{rows}\n; end;\nbegin mrbayes; {said} mcmc; end;\n")
    options = block_analysis(tmp_path / "b.nex").options
    assert (options["datatype"], options["genetic_code"]) == ("translated", 2)
    numbers = [float(x) for x in options["model"].partition("{")[2].partition("}")[0].split(",")]
    expected = dict.fromkeys("ARNDCQEGHILKMFPSTWYV", 0.0) | {"M": 0.6, "P": 0.2, "W": 0.2}
    assert options["model"].startswith("Poisson+F{") and numbers == pytest.approx([*expected.values()])
    assert chain_input(mcmc_settings(options)).alignments["all"].n_sites == 5

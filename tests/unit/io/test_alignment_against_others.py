"""The same files read by phloem, Biopython and DendroPy."""

from pathlib import Path

import dendropy
import numpy as np
import pytest
from Bio import AlignIO

from phloem.data.alignment import alignment_from_sequences
from phloem.io.alignment import read_alignment, write_fasta, write_nexus, write_phylip

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "fixed_trees"
MRBAYES = Path("/usr/share/doc/mrbayes/examples")
KINDS = {"dna": "ACGTRYSWKMBDHVN-", "protein": "ARNDCQEGHILKMFPSTWYVBZX-"}


def same(alignment, sequences):
    expected = alignment_from_sequences(sequences, alignment.alphabet)
    return (
        alignment.taxa == expected.taxa
        and np.array_equal(alignment.codes, expected.codes)
        and np.array_equal(alignment.state_sets, expected.state_sets)
    )


def by_biopython(path, form):
    return {record.id: str(record.seq) for record in AlignIO.read(path, form)}


def by_dendropy(path, schema, kind, **options):
    matrix = {"dna": dendropy.DnaCharacterMatrix, "protein": dendropy.ProteinCharacterMatrix}[kind]
    read = matrix.get(path=str(path), schema=schema, **options)
    return {taxon.label: read[taxon].symbols_as_string() for taxon in read}


def simulated(kind, seed):
    random = np.random.default_rng(seed)
    return {f"taxon{i}": "".join(random.choice(list(KINDS[kind]), 150)) for i in range(7)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "form, schema", [("fasta", "fasta"), ("phylip-relaxed", "phylip"), ("nexus", "nexus")]
)
def test_what_we_write_others_read(tmp_path, kind, form, schema):
    from phloem.data.alphabet import alphabet

    alignment = alignment_from_sequences(simulated(kind, 1), alphabet(kind))
    path = tmp_path / "file"
    {"fasta": write_fasta, "phylip": write_phylip, "nexus": write_nexus}[schema](alignment, path)
    assert same(alignment, by_biopython(path, form))
    assert same(alignment, by_dendropy(path, schema, kind))


@pytest.mark.parametrize("form", ["fasta", "phylip", "phylip-relaxed", "phylip-sequential", "nexus"])
def test_what_biopython_writes_we_read(tmp_path, form):
    from Bio.Align import MultipleSeqAlignment
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    sequences = simulated("dna", 2)
    records = [
        SeqRecord(Seq(s), id=n, description="", annotations={"molecule_type": "DNA"})
        for n, s in sequences.items()
    ]
    AlignIO.write(MultipleSeqAlignment(records), tmp_path / "file", form)
    assert same(read_alignment(tmp_path / "file", datatype="dna"), sequences)


@pytest.mark.parametrize("schema", ["fasta", "phylip", "nexus"])
def test_what_dendropy_writes_we_read(tmp_path, schema):
    sequences = simulated("dna", 3)
    matrix = dendropy.DnaCharacterMatrix.from_dict(sequences)
    matrix.write(path=str(tmp_path / "file"), schema=schema)
    assert same(read_alignment(tmp_path / "file", datatype="dna"), sequences)


@pytest.mark.skipif(not MRBAYES.exists(), reason="Debian's MrBayes examples are not installed")
@pytest.mark.parametrize(
    "name, kind",
    [("primates", "dna"), ("sceloporus", "dna"), ("finch", "dna"), ("avian_ovomucoids", "protein")],
)
def test_mrbayes_examples_by_dendropy(name, kind):
    path = MRBAYES / f"{name}.nex"
    assert same(read_alignment(path), by_dendropy(path, "nexus", kind, preserve_underscores=True))


@pytest.mark.parametrize("name", ["primates", "carnivores13_codon", "carnivores_aa"])
def test_golden_alignments_by_biopython(name):
    path = GOLDEN / f"{name}.fasta"
    assert same(read_alignment(path), by_biopython(path, "fasta"))


def test_one_changed_character_is_noticed():
    from phloem.data.alphabet import alphabet

    sequences = simulated("dna", 4)
    alignment = alignment_from_sequences(sequences, alphabet("dna"))
    name = next(iter(sequences))
    assert same(alignment, sequences)
    other = "A" if sequences[name][7] != "A" else "C"
    assert not same(alignment, sequences | {name: sequences[name][:7] + other + sequences[name][8:]})

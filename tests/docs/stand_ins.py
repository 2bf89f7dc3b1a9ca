"""A folder with the files that pages speak of: the examples, cut down so that a command takes no time, and
small files under the names that pages use for a reader's own."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import phloem
from docs.pages import ROOT
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alphabet import alphabet
from phloem.io.alignment import write_fasta
from phloem.io.distance_matrix import write_distance_matrix
from phloem.io.trees import newick_text, parse_trees
from phloem.likelihood.model_for_alignment import codon_table
from phloem.tree.tree import Tree

EXAMPLES = ROOT / "examples"
CARNIVORES = (
    "Canis_lupus",
    "Vulpes_vulpes",
    "Felis_silvestris",
    "Panthera_tigris",
    "Ursus_arctos",
    "Phoca_vitulina",
)
PRIMATES = ("Lemur_catta", "Homo_sapiens", "Pan", "Gorilla", "Pongo", "Hylobates", "Macaca_fuscata")
VIRUSES = 10
BLOCK = "begin mrbayes;\n lset nst=2 rates=gamma;\n mcmcp ngen=100000;\n mcmc;\nend;\n"


def make_folder(folder: Path) -> Path:
    """Write everything; also `examples/`, with few taxa and columns."""
    _examples(folder)
    _genes(folder)
    _simulated(folder)
    _viruses(folder)
    for name in ("primates.nex", "primates.partitions"):
        shutil.copy(folder / "examples" / name, folder / name)
    fossils = (folder / "primates.nex").read_text().replace("Lemur_catta", "Triassoxyela")
    (folder / "hymenoptera.nex").write_text(fossils.replace("Hylobates", "Xyelotoma"))
    bears = fossils.replace("Triassoxyela", "Kretzoiarctos")
    (folder / "bears.nex").write_text(bears.replace("Hylobates", "Ailuropoda"))
    primates = phloem.read_alignment(folder / "primates.nex", sites="2-151")
    for name in ("alignment", "primates", "data", "genomes", "carnivores"):
        write_fasta(primates, folder / f"{name}.fasta")
    _outbreak(folder)
    write_distance_matrix(phloem.pairwise_distances(primates), folder / "matrix.phy")
    (folder / "primates.toml").write_text('alignment = "primates.nex"\nmodel = "HKY+G4"\n')
    tree = _newick(starting_tree(primates, "bionj").tree)
    for name in ("tree", "primates", "start", "t"):
        (folder / f"{name}.nwk").write_text(tree)
    elsewhere = phloem.read_alignment(folder / "primates.nex", sites="301-360")
    other = _newick(starting_tree(elsewhere, "bionj").tree)
    (folder / "trees.nwk").write_text(tree + other)
    (folder / "gene_trees.nwk").write_text(tree + other)
    (folder / "species.tree").write_text(tree)
    (folder / "genes").mkdir()
    for name, sites in (("one", "2-61"), ("two", "301-360")):
        write_fasta(
            phloem.read_alignment(folder / "primates.nex", sites=sites), folder / "genes" / f"{name}.fasta"
        )
    (folder / "run1.t").write_text(tree * 6 + other * 2)
    (folder / "run2.t").write_text(tree * 5 + other * 3)
    return folder


def prepare_for(page: str, folder: Path) -> None:
    """What a page alone wants otherwise."""
    if page == "docs/mrbayes.md":
        with (folder / "primates.nex").open("a") as file:
            file.write(BLOCK)


def _newick(tree: Tree) -> str:
    return newick_text([tree])


def _genes(folder: Path) -> None:
    """An alignment whose file names its parts, and the same parts in a file of their own."""
    text = (folder / "examples" / "primates.nex").read_text()
    sets = "begin sets;\n charset nd4 = 1-457;\n charset nd5 = 660-898;\n charset trna = 458-659;\n"
    sets += " charpartition genes = 1:nd4, 2:nd5, 3:trna;\nend;\n"
    (folder / "genes.nex").write_text(text + "\n" + sets)
    sets = "#nexus\nbegin sets;\n charset one = 1-457;\n charset two = 458-898;\n"
    (folder / "parts.nex").write_text(sets + " charpartition p = HKY+G4:one, HKY+G4:two;\nend;\n")
    (folder / "four.partitions").write_text("DNA, nd4 = 1-457\nDNA, nd5 = 660-898\nDNA, trna = 458-659\n")
    (folder / "genes.partitions").write_text("GTR+G4, nd4 = 1-457\nHKY, nd5 = 660-898\nJC, trna = 458-659\n")


def _taxa(path: Path, keep) -> list[tuple[str, str]]:
    with gzip.open(path, "rt") as file:
        parts = file.read().split(">")[1:]
    rows = [(part.split("\n", 1)[0].split()[0], "".join(part.split("\n")[1:])) for part in parts]
    return [row for i, row in enumerate(rows) if keep(i, row[0])]


def _fasta(rows: list[tuple[str, str]]) -> str:
    return "".join(f">{name}\n{sequence}\n" for name, sequence in rows)


def _examples(folder: Path) -> None:
    place = folder / "examples"
    place.mkdir()
    for file in EXAMPLES.iterdir():
        if file.is_file() and file.suffix != ".gz":  # what ran there before left compiled code
            shutil.copy(file, place / file.name)
    (place / "primates.nex").write_text(_few_primates((EXAMPLES / "primates.nex").read_text()))
    carnivores = _taxa(EXAMPLES / "carnivores.fasta.gz", lambda i, name: name in CARNIVORES)
    _packed(place / "carnivores.fasta.gz", _fasta([(name, row[:600]) for name, row in carnivores]))
    (place / "carnivores.nwk").write_text(
        "(((Canis_lupus:0.1,Vulpes_vulpes:0.1):0.1,(Ursus_arctos:0.1,Phoca_vitulina:0.1):0.1):0.1,"
        "(Felis_silvestris:0.2,Panthera_tigris:0.2):0.1);\n"
    )
    viruses = _taxa(EXAMPLES / "west_nile.fasta.gz", lambda i, name: i % (104 // VIRUSES) == 0)
    _packed(place / "west_nile.fasta.gz", _fasta(viruses))
    names = {name for name, _ in viruses}
    for table in ("west_nile.dates.tsv", "west_nile.regions.tsv"):
        rows = (EXAMPLES / table).read_text().splitlines()
        kept = [rows[0], *(row for row in rows[1:] if row.split("\t")[0] in names)]
        (place / table).write_text("\n".join(kept) + "\n")
    whole = phloem.read_alignment(place / "west_nile.fasta.gz")
    (place / "west_nile.nwk").write_text(_newick(starting_tree(whole, "upgma").tree))


def _few_primates(text: str) -> str:
    rows = text.splitlines()
    first = next(i for i, row in enumerate(rows) if row.strip() == "matrix") + 1
    kept = [row for row in rows[first:] if not re.match(r"\w+ +[A-Z]", row) or row.split()[0] in PRIMATES]
    return "\n".join([*rows[:first], *kept]).replace("ntax=12", f"ntax={len(PRIMATES)}") + "\n"


def _packed(path: Path, text: str) -> None:
    with gzip.open(path, "wt") as file:
        file.write(text)


def _viruses(folder: Path) -> None:
    viruses = phloem.read_alignment(folder / "examples" / "west_nile.fasta.gz", sites="1-3000")
    for name in ("viruses", "dengue"):
        write_fasta(viruses, folder / f"{name}.fasta")
    shutil.copy(folder / "examples" / "west_nile.dates.tsv", folder / "dates.tsv")
    # What `phloem time` writes, which is only begun.
    shutil.copy(folder / "examples" / "west_nile.nwk", folder / "west_nile.mcc.tre")


def _simulated(folder: Path) -> None:
    tree = parse_trees("((a:0.1,b:0.2):0.1,(c:0.1,d:0.3):0.1,e:0.2);")[0]
    (folder / "codons.nwk").write_text(_newick(tree))
    proteins = phloem.simulate_alignment(tree, phloem.parse_model("LG", datatype="protein"), 60, seed=1)
    write_fasta(proteins, folder / "proteins.fasta")
    table = codon_table(alphabet("codon"))
    model = phloem.parse_model("GY94{0.3,3}+FQ", datatype="codon", codon_table=table)
    write_fasta(phloem.simulate_alignment(tree, model, 40, seed=1), folder / "coding.fasta")
    model = phloem.parse_model("HKY{3}+FQ+ASC", datatype="dna")
    write_fasta(phloem.simulate_alignment(tree, model, 80, seed=1), folder / "snps.fasta")
    model = phloem.parse_model("MK+ASC{informative}", datatype="standard", n_states=3)
    write_fasta(phloem.simulate_alignment(tree, model, 40, seed=1), folder / "morphology.fasta")


def _outbreak(folder: Path) -> None:
    """Nearly equal genomes: each has the changes of one before it, and one of its own."""
    genome, rows = "ACGT" * 75, dict[str, str]()
    for k in range(12):
        if k % 3 == 0:
            genome = genome[: 20 * k] + "TTCA" + genome[20 * k + 4 :]
        rows[f"genome{k}"] = genome[: 7 * k] + "G" + genome[7 * k + 1 :]
    (folder / "outbreak.fasta").write_text("".join(f">{name}\n{text}\n" for name, text in rows.items()))

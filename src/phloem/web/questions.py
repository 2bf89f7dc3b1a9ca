"""What is asked of an analysis, in plain words; kinds.py says which asks what."""

from __future__ import annotations

from phloem.web.command import Question


def whole(option: str, label: str, text: str, usual: int | None, further: bool = False) -> Question:
    return Question(option, label, text, "whole", usual, further=further)


def line(option: str, label: str, text: str, none: str) -> Question:
    """A line of text that few write. none: what happens without."""
    return Question(option, label, text, "text", "", (("", none),), further=True)


def lines(option: str, label: str, text: str, further: bool = True) -> Question:
    return Question(option, label, text, "lines", "", further=further)


def choice(option: str, label: str, text: str, *choices: tuple[str, str], further: bool = True) -> Question:
    return Question(option, label, text, "choice", "", choices, further=further)


SEED = Question("seed", "Seed", "The same seed gives the same numbers.", "whole", 1, further=True)
DATATYPE = Question(
    "datatype",
    "Kind of data",
    "What the letters are; the file says it, or it is guessed.",
    "choice",
    "",
    (
        ("", "as the file says, else guessed"),
        ("dna", "DNA"),
        ("rna", "RNA"),
        ("protein", "amino acids"),
        ("codon", "DNA that codes for proteins, read in codons"),
        ("translated", "DNA that codes for proteins, read as their amino acids"),
        ("doublet", "RNA stems: columns that pair, as in Sites 5-9:70-66"),
        ("binary", "absent or present (0, 1)"),
        ("standard", "characters with a few states (morphology)"),
    ),
    further=True,
)
CODE = Question(
    "genetic-code",
    "Genetic code",
    "NCBI's number, for codons: 1 standard, 2 vertebrate mitochondria.",
    "whole",
    further=True,
)
DISTANCE = Question(
    "distance",
    "Distance",
    "How differences are turned into expected substitutions.",
    "choice",
    "",
    (
        ("", "usual for the kind of data"),
        ("p", "p: share of sites that differ, uncorrected"),
        ("jc69", "JC69: every substitution equally likely"),
        ("k80", "K80: transitions apart from transversions"),
        ("f84", "F84: also unequal base frequencies"),
        ("tn93", "TN93: two kinds of transitions, unequal frequencies"),
        ("logdet", "LogDet: frequencies that drift apart"),
        ("poisson", "Poisson: for proteins, all changes alike"),
        ("kimura", "Kimura: for proteins, from observed changes"),
    ),
)
BOOTSTRAP = Question(
    "bootstrap",
    "Bootstrap replicates",
    "Resamples the sites to say how firm each clade is. 0: none.",
    "whole",
    0,
)
MODELS = (
    ("", "usual for the kind of data"),
    ("JC", "JC: all changes alike, equal frequencies (DNA)"),
    ("HKY+F+G4", "HKY+F+G4: transitions apart, frequencies of the data, sites of four speeds (DNA)"),
    ("GTR+F+G4", "GTR+F+G4: six rates, frequencies of the data, sites of four speeds (DNA)"),
    ("GTR+F+I+G4", "GTR+F+I+G4: the same with sites that never change (DNA)"),
    ("LG+G4", "LG+G4: exchange of amino acids as seen in many proteins, four speeds"),
    ("WAG+G4", "WAG+G4: the same from globular proteins"),
    ("GY94+F3X4", "GY94+F3X4: codons; ω tells selection on amino acids"),
    ("MK+G4", "MK+G4: any characters, all changes alike"),
)
SAMPLED = (
    ("", "usual for the kind of data"),
    ("JC", "JC: all changes alike, equal frequencies (DNA)"),
    ("HKY+G4", "HKY+G4: transitions apart, frequencies estimated, sites of four speeds (DNA)"),
    ("GTR+G4", "GTR+G4: six rates, frequencies estimated, sites of four speeds (DNA)"),
    ("GTR+I+G4", "GTR+I+G4: the same with sites that never change (DNA)"),
    ("LG+G4", "LG+G4: exchange of amino acids as seen in many proteins, four speeds"),
    ("GY94+F3X4", "GY94+F3X4: codons; ω tells selection on amino acids"),
    ("MK+G4", "MK+G4: any characters, all changes alike"),
)
MODEL_HELP = (
    "How letters change along a branch. Choose one, or write any model string of docs/models.md. None "
    "where a partition file has one for every part."
)


def model(choices: tuple[tuple[str, str], ...], required: bool = False) -> Question:
    return Question("model", "Model", MODEL_HELP, "text", "", choices, required=required, unless="partitions")


CONVERGED = Question(
    "until-converged",
    "Stop when converged",
    "Ends when independent runs agree: ASDSF < 0.01, every ESS > 200, every R-hat < 1.01.",
    "switch",
    True,
)
GENERATIONS = Question(
    "generations", "Generations", "At most so many, if it stops when converged; none: no limit.", "whole"
)
RUNS = Question("runs", "Independent runs", "Two or more, or nothing tells whether they agree.", "whole", 2)
CHECK = Question(
    "check-every",
    "Generations between looks",
    "How often files, checkpoint and this page are brought up to date.",
    "whole",
    20_000,
    further=True,
    is_default=False,
)
DEVICE = Question(
    "device",
    "Device",
    "Where the work is done; auto asks forecasts.",
    "choice",
    "",
    (("", "auto"), ("cpu", "processor"), ("gpu", "graphics card")),
    further=True,
)
SITES = Question(
    "sites",
    "Sites",
    "Only some of them, such as 1-900, or every third: 1-900\\3. None given: all.",
    "text",
    "",
    (("", "all"),),
    further=True,
)
TREE = Question("tree", "Tree", "None: BIONJ of the alignment.", "file", "", suits="tree")
FIXED_TREE = Question(
    "fixed-tree",
    "Tree that is held",
    "No search: lengths, model and supports on this tree. None: search.",
    "file",
    "",
    further=True,
    suits="tree",
)
PARTITIONS = Question(
    "partitions",
    "Partition file",
    "Which columns are which gene or codon position, each with its model: a list as of RAxML-NG or IQ-TREE, "
    "NEXUS sets, or 'declared' in the data file itself.",
    "file",
    "",
    (("declared", "declared in the data file"),),
    further=True,
    suits="partitions",
)
PARTITION_NAME = line(
    "partition-name",
    "Partition",
    "Which one, where a NEXUS file has several.",
    "the one it chooses, or its only one",
)
LINKAGE = Question(
    "linkage",
    "Branch lengths of parts",
    "With a partition file: what the parts' trees have in common besides their shape.",
    "choice",
    "",
    (
        ("", "as usual"),
        ("linked", "the same"),
        ("proportional", "the same, times a rate for every part"),
        ("unlinked", "every part its own"),
    ),
    further=True,
)
LINK = lines(
    "link",
    "Linked parameters",
    "With a partition file: what parts share, one a line, such as alpha, or alpha:gene1,gene2.",
)
STONES = whole(
    "stepping-stone",
    "Stepping stones",
    "Such as 50: the marginal likelihood, to compare models by. None: a posterior.",
    None,
    True,
)
SITE_TABLE = Question(
    "site-table",
    "Sites",
    "Log-likelihood, rate and leave-one-out density of every site, in a table.",
    "switch",
    False,
    further=True,
)
ANCESTRAL = Question(
    "ancestral",
    "States of ancestors",
    "What every inner node of the tree had, with probabilities, in a table.",
    "switch",
    False,
    further=True,
)
PREDICTIVE = whole(
    "predictive", "Data sets to check by", "Simulated from the draws and held against the data.", 0, True
)
PRIORS = lines("prior", "Priors", "Other than the usual ones, one a line, such as kappa=lognormal(1,1.25).")

"""What the page can start, in plain words: every analysis with its questions."""

from __future__ import annotations

from typing import Literal

from phloem.web.command import Kind, Question

_SEED = Question("seed", "Seed", "The same seed gives the same numbers.", "whole", 1, further=True)
_DATATYPE = Question(
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
        ("binary", "absent or present (0, 1)"),
        ("standard", "characters with a few states (morphology)"),
    ),
    further=True,
)
_CODE = Question(
    "genetic-code",
    "Genetic code",
    "NCBI's number, for codons: 1 standard, 2 vertebrate mitochondria.",
    "whole",
    further=True,
)
_DISTANCE = Question(
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
_BOOTSTRAP = Question(
    "bootstrap",
    "Bootstrap replicates",
    "Resamples the sites to say how firm each clade is. 0: none.",
    "whole",
    0,
)
_MODELS = (
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
_SAMPLED = (
    ("", "usual for the kind of data"),
    ("JC", "JC: all changes alike, equal frequencies (DNA)"),
    ("HKY+G4", "HKY+G4: transitions apart, frequencies estimated, sites of four speeds (DNA)"),
    ("GTR+G4", "GTR+G4: six rates, frequencies estimated, sites of four speeds (DNA)"),
    ("GTR+I+G4", "GTR+I+G4: the same with sites that never change (DNA)"),
    ("LG+G4", "LG+G4: exchange of amino acids as seen in many proteins, four speeds"),
    ("GY94+F3X4", "GY94+F3X4: codons; ω tells selection on amino acids"),
    ("MK+G4", "MK+G4: any characters, all changes alike"),
)
_MODEL_HELP = "How letters change along a branch. Choose one, or write any model string of docs/models.md."


def _model(choices: tuple[tuple[str, str], ...], required: bool = False) -> Question:
    return Question("model", "Model", _MODEL_HELP, "text", "", choices, required=required)


_CONVERGED = Question(
    "until-converged",
    "Stop when converged",
    "Ends when independent runs agree: ASDSF < 0.01, every ESS > 200, every R-hat < 1.01.",
    "switch",
    True,
)
_GENERATIONS = Question(
    "generations", "Generations", "At most so many, if it stops when converged.", "whole", 1_000_000
)
_RUNS = Question("runs", "Independent runs", "Two or more, or nothing tells whether they agree.", "whole", 2)
_CHECK = Question(
    "check-every",
    "Generations between looks",
    "How often files, checkpoint and this page are brought up to date.",
    "whole",
    20_000,
    further=True,
    is_default=False,
)
_DEVICE = Question(
    "device",
    "Device",
    "Where the work is done; auto asks forecasts.",
    "choice",
    "",
    (("", "auto"), ("cpu", "processor"), ("gpu", "graphics card")),
    further=True,
)
_DATES = Question(
    "dates",
    "Table of dates",
    "A file of names and sampling dates. None: dates come from the names.",
    "file",
    "",
)

_TREE_OUT = (("out", ".tre"), ("json", ".json"))
_BOTH: tuple[Literal["alignment", "matrix"], ...] = ("alignment", "matrix")

KINDS: tuple[Kind, ...] = (
    Kind(
        "nj",
        "Neighbour joining",
        "A quick tree from pairwise distances, without a molecular clock. Seconds.",
        "nj",
        _BOTH,
        (_DISTANCE, _BOOTSTRAP, _SEED, _DATATYPE, _DEVICE),
        _TREE_OUT,
        ".tre",
        ".json",
    ),
    Kind(
        "upgma",
        "UPGMA",
        "A tree whose tips are equally far from the root. Right only where all lineages change at one rate.",
        "upgma",
        _BOTH,
        (_DISTANCE, _BOOTSTRAP, _SEED, _DATATYPE, _DEVICE),
        _TREE_OUT,
        ".tre",
        ".json",
    ),
    Kind(
        "ml",
        "Maximum likelihood",
        "The tree under which the data are most probable: the usual choice for one tree.",
        "ml",
        ("alignment",),
        (
            _model((*_MODELS, ("auto", "auto: compare many models and take the best by BIC; takes longer"))),
            Question(
                "alrt",
                "SH-aLRT replicates",
                "A quick test of every branch, 1000 is usual; 80 % and more is firm. 0: none.",
                "whole",
                0,
            ),
            Question(
                "ufboot",
                "Ultrafast bootstrap replicates",
                "1000 or more; 95 % and more is firm. 0: none.",
                "whole",
                0,
            ),
            _SEED,
            Question(
                "patience",
                "Patience",
                "Tries without a better tree that end the search.",
                "whole",
                10,
                further=True,
            ),
            _DATATYPE,
            _CODE,
        ),
        (("prefix", ""),),
        ".tree",
        ".report",
        resumes=True,
    ),
    Kind(
        "fit",
        "Fit on a given tree",
        "Branch lengths and model parameters at their likeliest, the topology kept.",
        "likelihood",
        ("alignment",),
        (
            Question("tree", "Tree", "None: BIONJ of the alignment.", "file", ""),
            _model(_MODELS[1:], required=True),
            _DATATYPE,
            _CODE,
        ),
        (("out-tree", ".tre"), ("json", ".json")),
        ".tre",
        ".json",
        fixed=("--optimize",),
    ),
    Kind(
        "mcmc",
        "Bayesian (MC³)",
        "Trees and parameters as often as they are probable, so that every clade gets a probability.",
        "mcmc",
        ("alignment",),
        (
            _model(_SAMPLED),
            _CONVERGED,
            _GENERATIONS,
            _RUNS,
            Question(
                "chains", "Chains a run", "One samples; the others, heated, help it across.", "whole", 4
            ),
            _SEED,
            Question(
                "sample-every",
                "Generations between samples",
                "Of trees and parameters.",
                "whole",
                500,
                further=True,
            ),
            Question(
                "burn-in",
                "Burn-in",
                "Share of the first samples that summaries leave out.",
                "number",
                0.25,
                further=True,
            ),
            _CHECK,
            _DATATYPE,
            _CODE,
            _DEVICE,
        ),
        (("prefix", ""), ("progress", ".progress.json")),
        ".con.tre",
        ".json",
        fixed=("--mrbayes-block", "ignore"),
        resumes=True,
        samples=True,
    ),
    Kind(
        "signal",
        "Is there a clock?",
        "Distances from the root against sampling dates: look at this before a time tree is made.",
        "temporal-signal",
        ("alignment",),
        (
            _DATES,
            Question(
                "permutations",
                "Permutations",
                "Of the dates, to test whether the slope is chance.",
                "whole",
                1000,
                further=True,
            ),
            _DATATYPE,
        ),
        (("out-tree", ".tre"), ("table", ".tsv"), ("picture", ".svg"), ("json", ".json")),
        ".tre",
        ".json",
        file_option="--alignment",
    ),
    Kind(
        "date",
        "Time tree, quick",
        "Dates of all nodes by least squares on one tree, with intervals. Seconds.",
        "date",
        ("alignment",),
        (Question("tree-file", "Tree", "None: BIONJ of the alignment.", "file", ""), _DATES, _DATATYPE),
        (("out", ".tre"), ("table", ".tsv"), ("json", ".json")),
        ".tre",
        ".json",
        file_option="--alignment",
    ),
    Kind(
        "time",
        "Time tree, Bayesian",
        "Dated trees in proportion to how probable they are: ages with intervals, rates, population sizes.",
        "time",
        ("alignment",),
        (
            Question(
                "dates",
                "Table of dates",
                "A file of names and sampling dates. None: all of one time.",
                "file",
                "",
            ),
            _model(_SAMPLED),
            Question(
                "clock",
                "Clock",
                "Whether all branches change at one rate.",
                "choice",
                "strict",
                (
                    ("strict", "strict: one rate"),
                    ("ucln", "relaxed: every branch its own, log-normal"),
                    ("ucgd", "relaxed: every branch its own, gamma"),
                ),
            ),
            Question(
                "tree-prior",
                "Tree prior",
                "What trees are expected before the data are seen.",
                "choice",
                "constant",
                (
                    ("constant", "one population of constant size"),
                    ("exponential", "a growing population"),
                    ("skyline", "a population whose size changes in steps"),
                    ("yule", "species that only split"),
                    ("bd", "species that split and die out"),
                ),
            ),
            _CONVERGED,
            _GENERATIONS,
            _RUNS,
            _SEED,
            _CHECK,
            _DATATYPE,
            _CODE,
        ),
        (("prefix", ""), ("progress", ".progress.json")),
        ".mcc.tre",
        ".json",
        resumes=True,
        samples=True,
        burn_in=0.2,
    ),
)

BY_NAME = {kind.name: kind for kind in KINDS}

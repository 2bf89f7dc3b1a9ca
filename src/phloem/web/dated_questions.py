"""What is asked where dates are: of names and tables, clocks, calibrations and priors of trees."""

from __future__ import annotations

from dataclasses import replace

from phloem.web import questions as q
from phloem.web.command import Question
from phloem.web.questions import choice, line, lines, whole

DATES = Question(
    "dates",
    "Table of dates",
    "A file of names and sampling dates. None: dates come from the names.",
    "file",
    "",
    suits="table",
)
OF_DATES = (
    line(
        "date-pattern", "Dates in names", "A regular expression that finds them.", "after the last | _ / or @"
    ),
    choice(
        "whole-years",
        "A year without a day",
        "Whether 1982 is its first day, or any time in it.",
        ("", "auto: its first day if all dates are numbers"),
        ("exact", "its first day"),
        ("range", "any time in it"),
    ),
    Question("ages", "Dates are ages", "Years before the present.", "switch", False, further=True),
    choice(
        "undated",
        "Tips without a date",
        "An error, or of unknown age.",
        ("", "are an error"),
        ("unknown", "are of unknown age"),
    ),
)
SIGNAL = (
    DATES,
    choice(
        "root", "Root", "Where the tree is rooted.", ("", "at the best place"), ("file", "as in the file")
    ),
    whole("permutations", "Permutations", "Of the dates, to test whether the slope is chance.", 1000, True),
    *OF_DATES,
)
DATE = (
    DATES,
    choice(
        "root",
        "Root",
        "Where the root may be.",
        ("", "anywhere"),
        ("branch", "on its branch"),
        ("keep", "where it is"),
    ),
    Question("rate", "Rate", "Substitutions per site and year, if known.", "number", further=True),
    line("rate-range", "Bounds of the rate", "As in 1e-4,1e-2.", "none"),
    whole("intervals", "Trees for the intervals", "With resampled lengths; 0: no intervals.", 100, True),
    q.SEED,
    *OF_DATES,
)
_CLOCK = Question(
    "clock",
    "Clock",
    "Whether all branches change at one rate.",
    "choice",
    "strict",
    (
        ("strict", "strict: one rate"),
        ("ucln", "relaxed: every branch its own, log-normal"),
        ("ucgd", "relaxed: every branch its own, gamma"),
        ("local", "local: clades that you name have their own"),
        ("local-crown", "local crown: the same, without the branch above them"),
        ("random", "random local: few changes, where the data want them"),
        ("shrinkage", "shrinkage: rates change along the tree, most very little"),
        ("white-noise", "white noise: every branch its own, long ones nearer the mean"),
        ("autocorrelated", "autocorrelated: rates drawn about those of parents"),
    ),
)
_TREE_PRIOR = Question(
    "tree-prior",
    "Tree prior",
    "What trees are expected before the data are seen.",
    "choice",
    "constant",
    (
        ("constant", "one population of constant size"),
        ("exponential", "a growing population"),
        ("skyline", "a population whose size changes in steps"),
        ("skyride", "a population whose size changes, smoothed"),
        ("skygrid", "the same on a grid of times"),
        ("skygrid-linear", "the same, in straight lines between them"),
        ("yule", "species that only split"),
        ("bd", "species that split and die out"),
        ("bd-root", "the same, given the root's age"),
        ("uniform", "ages uniform below the root's"),
        ("bdss", "births and deaths, with dated samples"),
        ("bdsky", "an epidemic: its reproductive number through time"),
        ("fbd", "births, deaths and fossils, which may be ancestors"),
        ("fbd-root", "the same, given the root's age"),
    ),
)
TIME = (
    replace(DATES, help="A file of names and sampling dates. None: all of one time, with calibrations."),
    q.model(q.SAMPLED),
    _CLOCK,
    _TREE_PRIOR,
    lines(
        "clade",
        "Clades",
        "Sets of taxa that calibrations and clocks name, one a line: apes=Homo_sapiens,Pan,Gorilla.",
        further=False,
    ),
    lines(
        "calibrate",
        "Calibrations",
        "What is known of ages, one a line: apes=normal(15,2), or root=uniform(40,60); root=50 holds it.",
        further=False,
    ),
    q.CONVERGED,
    q.GENERATIONS,
    q.RUNS,
    q.SEED,
    lines("monophyletic", "Clades that hold together", "Names of the clades above, one a line."),
    lines("constraint", "Constraints", "One a line: 'apes: Homo, Pan', 'x negative: …', 'x partial: … | …'."),
    lines("clock-clade", "Clades with their own clock", "Of a local clock, one a line."),
    whole(
        "chains",
        "Chains a run",
        "One samples; others, heated, help it across where trees of different shapes fit the data.",
        1,
        True,
    ),
    q.PRIORS,
    whole(
        "pieces",
        "Pieces of time",
        "Sizes of a skyline or skygrid, reproductive numbers of an epidemic; 10 if not given.",
        None,
        True,
    ),
    lines(
        "shift",
        "Numbers that change",
        "Of epidemics and fossils, and when, one a line: sampling_proportion=2014.3.",
    ),
    Question("sampled", "Share that is sampled", "Of species, of births and deaths.", "number", further=True),
    lines(
        "tip-age",
        "Ages of tips",
        "Of fossils, instead of a file of dates, one a line: Xyelotoma=152,163.",
    ),
    choice(
        "fossils",
        "Fossils",
        "Under births, deaths and fossils.",
        ("", "may be ancestors of other samples"),
        ("tips", "are tips: the posterior given that none is an ancestor"),
        ("ends", "end their lineages, given the root's age"),
    ),
    choice(
        "sampling",
        "The living were sampled",
        "Under births, deaths and fossils, given the root's age.",
        ("", "at random"),
        ("diversified", "to be as different as can be"),
    ),
    choice(
        "start",
        "Begin from",
        "Where the chains start.",
        ("", "random trees"),
        ("lsd", "a neighbour-joining tree dated by least squares"),
    ),
    choice(
        "summary-tree",
        "Tree that is shown",
        "How the sampled trees become one.",
        ("", "the sampled tree of maximum clade credibility"),
        ("hipstr", "the best one of sampled clades, in sampled pairs"),
        ("ccd", "the best one of sampled clades, in any pairs"),
    ),
    whole("sample-every", "Generations between samples", "200; of 200 taxa and more 2 for each.", None, True),
    q.PARTITIONS,
    q.PARTITION_NAME,
    choice(
        "linkage",
        "Clocks of parts",
        "With a partition file: what the parts' clocks have in common.",
        ("", "one clock, a rate for each part"),
        ("linked", "one clock and one rate"),
        ("unlinked", "a clock for each part"),
    ),
    q.STONES,
    q.SITE_TABLE,
    q.ANCESTRAL,
    q.PREDICTIVE,
    q.CHECK,
    choice(
        "engine",
        "Sequences of ancestors",
        "Sampled, moves of many nearly equal genomes are ten times as fast.",
        ("", "sampled where genomes are many and nearly equal"),
        ("patterns", "summed over"),
        ("ancestors", "sampled"),
    ),
    q.DEVICE,
)

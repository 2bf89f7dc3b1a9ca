"""The commands of MRBAYES blocks: names and options spelled out as MrBayes 3.2.7a has them, with their lines.

    for command in read_mrbayes("primates.nex"):
        command.name                    # "lset", whatever abbreviation and case the file has
        command.options                 # Option("rates", Value("invgamma")), …; of commands that have options
        command.words                   # tokens of commands that have none: charset, exclude, outgroup, …

Names of commands, of options and of the keywords among their values may be shortened to what only one of them
begins with. What a command means is phloem.analysis.mrbayes' business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

from phloem.errors import InputError
from phloem.io.nexus import Command, Token, is_nexus, read_blocks
from phloem.io.source_text import SourceText, read_source

_COMMANDS = [
    "about",
    "acknowledgments",
    "calibrate",
    "charset",
    "charstat",
    "citations",
    "comparetree",
    "compareref",
    "constraint",
    "ctype",
    "databreaks",
    "delete",
    "disclaimer",
    "exclude",
    "execute",
    "help",
    "include",
    "link",
    "log",
    "lset",
    "manual",
    "mcmc",
    "mcmcp",
    "outgroup",
    "pairs",
    "partition",
    "plot",
    "prset",
    "propset",
    "quit",
    "report",
    "restore",
    "set",
    "showbeagle",
    "showmatrix",
    "showmcmctrees",
    "showmodel",
    "showmoves",
    "showparams",
    "showusertrees",
    "speciespartition",
    "ss",
    "ssp",
    "startvals",
    "sump",
    "sumss",
    "sumt",
    "taxastat",
    "taxset",
    "unlink",
    "usertree",
    "version",
]  # taxset last of those that begin with it, as there

_CHAINS = """
seed ngen samplefreq printfreq nchains temp filename burnin starttree nperts savebrlens swapfreq reweight noop
pbf pbfinitburnin pbfsamplefreq pbfsampletime pbfsampleburnin swapadjacent redirect swapseed runidseed
minpartfreq allchains mcmcdiagn diagnfreq nruns stoprule stopval relburnin burninfrac allcomps printall
printmax data ordertaxa nswaps checkpoint checkfreq savetrees diagnstat startparams startingtrees append
autotune tunefreq
"""
_LINKED = """
tratio revmat omega statefreq shape pinvar correlation ratemultiplier switchrates topology brlens
speciationrate extinctionrate popsize aamodel growthrate cpprate cppmultdev cppevents tk02var tk02branchrates
igrvar igrbranchrates wnvar wnbranchrates ilnvar ilnbranchlens browncorr mixedvar mixedbrchrates
"""
_OPTIONS = {
    "lset": """nucmodel nst aamodel parsmodel omegavar code coding ngammacat applyto rates covarion nbetacat
        augment ploidy usegibbs gibbsfreq nlnormcat nmixtcat statefreqmodel statefrmod""",
    "prset": """seqerror tratiopr revmatpr omegapr statefreqpr shapepr ratecorrpr pinvarpr covswitchpr applyto
        symdirihyperpr topologypr brlenspr speciationpr extinctionpr popsizepr ratepr ny98omega1pr
        ny98omega3pr codoncatfreqs sampleprob aamodelpr brownscalepr browncorrpr growthpr calwaitpr m3omegapr
        treeagepr aarevmatpr cppratepr cppmultdevpr tk02varpr clockratepr nodeagepr clockvarpr igrvarpr
        popvarpr revratepr samplestrat wnvarpr ilnvarpr fossilizationpr generatepr mixedvarpr rootfreqpr""",
    "mcmc": _CHAINS,
    "mcmcp": _CHAINS,
    "ss": _CHAINS + "burninss nsteps alpha fromprior",
    "ssp": _CHAINS + "burninss nsteps alpha fromprior",
    "link": _LINKED,
    "unlink": _LINKED,
    "set": """autoclose partition nowarnings quitonerror autoreplace npthreads userlevel seed swapseed
        scientific dir usebeagle beagledevice beagleprecision beaglesse beagleopenmp beaglethreads
        beaglescaling beaglefreq speciespartition precision beagleresource beaglethreadcount
        beaglefloattips""",
    "log": "start stop filename append replace",
    "sump": """filename burnin plot table minprob printtofile outputname nruns allruns pfile autocomplete
        relburnin burninfrac hpd""",
    "sumt": """filename burnin contype showtreeprobs savebrparams minbrparamfreq nruns ntrees calctreeprobs
        ordertaxa tfile autocomplete outputname table summary consensus minpartfreq relburnin burninfrac
        conformat hpd displaygeq""",
    "sumss": """filename burnin nruns allruns askmore relburnin burninfrac discardfrac smoothing
        steptoplot""",
    "report": "applyto tratio revmat ratemult ancstates siterates possel tree siteomega",
    "plot": "filename parameter match burnin relburnin burninfrac",
    "comparetree": "filename1 filename2 outputname burnin relburnin burninfrac minpartfreq",
    "compareref": "filename1 filename2 outputname burnin relburnin burninfrac minpartfreq",
    "showmoves": "allavailable",
    "manual": "filename",
}
OPTIONS = {command: tuple(names.split()) for command, names in _OPTIONS.items()}
"""Command → the full names of its options."""

_YES_NO = "yes no"
_KEYWORDS = {
    "nucmodel": "4by4 doublet codon protein",
    "nst": "1 2 6 mixed",
    "aamodel": "poisson equalin jones dayhoff mtrev mtmam wag rtrev cprev vt blosum lg gtr",
    "parsmodel": _YES_NO, "covarion": _YES_NO, "data": _YES_NO, "relburnin": _YES_NO, "stoprule": _YES_NO,
    "append": _YES_NO, "mcmcdiagn": _YES_NO, "swapadjacent": _YES_NO, "autotune": _YES_NO,
    "autoclose": _YES_NO, "nowarnings": _YES_NO, "autoreplace": _YES_NO, "redirect": _YES_NO,
    "fromprior": _YES_NO,
    "omegavar": "equal ny98 m3 m10",
    "code": "universal vertmt invermt mycoplasma yeast ciliate echinoderm euplotid metmt",
    "coding": """all variable informative nosingletons noabsencesites nopresencesites nosingletonpresence
        nosingletonabsence""",
    "rates": "equal gamma lnorm propinv invgamma adgamma kmixture",
    "statefreqmodel": "stationary directional mixed", "statefrmod": "stationary directional mixed",
    "tratiopr": "beta fixed", "revmatpr": "dirichlet fixed", "aarevmatpr": "dirichlet fixed",
    "ny98omega1pr": "beta fixed", "ny98omega3pr": "uniform exponential fixed",
    "m3omegapr": "exponential fixed", "codoncatfreqs": "dirichlet fixed",
    "omegapr": "dirichlet fixed", "statefreqpr": "dirichlet fixed", "rootfreqpr": "dirichlet fixed",
    "shapepr": "uniform exponential fixed", "pinvarpr": "uniform fixed", "ratecorrpr": "uniform fixed",
    "covswitchpr": "uniform exponential fixed", "symdirihyperpr": "uniform exponential fixed",
    "topologypr": "uniform constraints fixed speciestree",
    "brlenspr": "unconstrained clock relaxedclock fixed", "ratepr": "variable dirichlet fixed",
    "nodeagepr": "unconstrained calibrated", "ploidy": "haploid diploid zlinked",
    "treeagepr":
        "fixed uniform offsetexponential truncatednormal lognormal offsetlognormal gamma offsetgamma",
    "clockratepr": "fixed normal lognormal exponential gamma",
    "popsizepr": "fixed uniform lognormal normal gamma",
    "growthpr": "fixed uniform exponential normal", "speciationpr": "fixed uniform exponential",
    "extinctionpr": "fixed beta", "samplestrat": "random diversity cluster fossiltip",
    "aamodelpr": "fixed mixed", "clockvarpr": "strict cpp tk02 bm igr ibr mixed",
    "starttree": "random current user parsimony nj", "diagnstat": "avgstddev maxstddev",
    "startparams": "reset current", "contype": "halfcompat allcompat", "conformat": "figtree simple",
    "beagledevice": "cpu gpu", "beagleprecision": "single double",
}  # fmt: skip
_SECOND = {  # what follows the colon of a value
    ("brlenspr", "unconstrained"): "uniform exponential twoexponential gammadirichlet invgamdirichlet",
    ("brlenspr", "clock"): "uniform birthdeath coalescence fossilization speciestree fixed",
}
_UNSEEN = {  # what cannot have been seen under CODING: constant columns, and ones with a single taxon apart
    "all": 0, "noabsencesites": 1, "nopresencesites": 2, "variable": 3, "nosingletonpresence": 4,
    "nosingletonabsence": 8, "nosingletons": 12, "informative": 15,
}  # fmt: skip
_PUNCTUATION = "(){},;:=*"


@dataclass(frozen=True)
class Value:
    """A value such as yes, fixed(0.5), unconstrained:exponential(10), (1,2): what stands before the
    parentheses, in the file's case unless it is a keyword; after a colon; inside the parentheses, None
    without any. word is '' where the parentheses come first."""

    word: str
    second: str = ""
    arguments: tuple[str, ...] | None = None

    def __str__(self) -> str:
        inside = "" if self.arguments is None else f"({','.join(self.arguments)})"
        return f"{self.word}{':' if self.second else ''}{self.second}{inside}"


def rate_shifts(value: Value) -> list[tuple[str, ...]] | None:
    """Of samplestrat the ages at which fossils', birth and death rates shift, as far as it names them: how
    many, and they, the oldest first; None where its numbers are not that."""
    left, found = list(value.arguments or ()), list[tuple[str, ...]]()
    while left and len(found) < 3:
        count = left.pop(0)
        if not count.isdigit() or int(count) > len(left):
            return None
        found.append(tuple(left[: int(count)]))
        del left[: int(count)]
    try:
        ages = [[float(age) for age in own] for own in found]
    except ValueError:
        return None
    falling = all(older > younger for own in ages for older, younger in pairwise([*own, 0.0]))
    return found if falling and not left else None


@dataclass(frozen=True)
class Option:
    """name: in full, lower case. value: None of a flag (log start). line: where it stands."""

    name: str
    value: Value | None
    line: int


@dataclass(frozen=True)
class MrBayesCommand:
    """name: in full, lower case. options: of commands that have options, in their order, else empty; words:
    the tokens of the others. text: the arguments as the file has them. file, line: where it stands."""

    name: str
    options: tuple[Option, ...]
    words: tuple[Token, ...]
    text: str
    file: str | None
    line: int

    def error(self, message: str, hint: str | None = None, line: int | None = None) -> InputError:
        """An error that points at the command, or at one of its lines."""
        return InputError(message, file=self.file, line=line or self.line, hint=hint)


def read_mrbayes(path: str | os.PathLike[str]) -> list[MrBayesCommand]:
    """The commands of all MRBAYES blocks of a NEXUS file and those between blocks, in their order, as MrBayes
    obeys both; those of a file of commands alone. [] for a file of another format, or with other blocks.

    Raises InputError with file and line for commands, options and keywords that MrBayes does not have, that
    are shortened to what several begin with, and for what cannot be read.
    """
    source = read_source(path)
    if not is_nexus(source.text):
        return []
    between = list[Command]()
    blocks = read_blocks(source, between=between)
    found = [one for one in blocks if one.name == "mrbayes"]
    if blocks and not found:
        return []
    commands = [*between, *(one for block in found for one in block.commands if one.name)]
    return [_command(source, one) for one in sorted(commands, key=lambda one: one.begin)]


def _command(source: SourceText, command: Command) -> MrBayesCommand:
    name = _completed(source, command.begin, command.name, _COMMANDS, "command")
    words = tuple(command.tokens(_PUNCTUATION))
    text = " ".join(command.arguments.split())
    if name not in OPTIONS:
        return MrBayesCommand(name, (), words, text, source.file, command.line)
    options = tuple(_options(source, name, words))
    return MrBayesCommand(name, options, (), text, source.file, command.line)


def _completed(source: SourceText, start: int, word: str, known: Sequence[str], what: str) -> str:
    """The known name that a word is, or that it alone begins; InputError else."""
    lower = word.lower()
    found = [name for name in known if name == lower] or [name for name in known if name.startswith(lower)]
    if len(found) != 1:
        listed = ", ".join(found or known)
        told = "could be several" if found else "is not known"
        raise source.error(f"{what} '{word[:40]}' {told}", start, hint=f"MrBayes 3.2.7a has {listed[:420]}.")
    return found[0]


def _options(source: SourceText, command: str, words: Sequence[Token]) -> Iterator[Option]:
    """name=value, name=word(number,…), name=word:word(number,…), name=(…) and bare names."""
    at = 0
    while at < len(words):
        word = words[at]
        if word.text in _PUNCTUATION and not word.quoted:
            raise source.error(
                f"'{word.text}' stands where an option of {command.upper()} is expected",
                word.start,
                hint="Write 'option=value', blanks between options.",
            )
        name = _completed(source, word.start, word.text, OPTIONS[command], f"{command.upper()}: option")
        line = source.locate(word.start)[0]
        at += 1
        if at == len(words) or words[at].text != "=":
            yield Option(name, None, line)
            continue
        value, at = _value(source, name, words, at + 1)
        yield Option(name, value, line)


def _value(source: SourceText, option: str, words: Sequence[Token], at: int) -> tuple[Value, int]:
    """The value that starts at a token, and the number of the token behind it."""
    if at == len(words):
        raise source.error(f"{option} has no value", words[-1].start, hint="Write 'option=value'.")
    word, second = "", ""
    if words[at].text != "(":
        word = _keyword(source, option, words[at], _KEYWORDS.get(option, ""))
        at += 1
        if at + 1 < len(words) and words[at].text == ":":
            second = _keyword(source, option, words[at + 1], _SECOND.get((option, word), ""))
            at += 2
    if option == "samplestrat":  # random 2: time rate, time rate
        end = at
        while end < len(words) and (words[end].text in (":", ",") or words[end].text[0] in "0123456789."):
            end += 1
        numbers = tuple(token.text for token in words[at:end] if token.text not in (":", ","))
        return Value(word, second, numbers or None), end
    if at == len(words) or words[at].text != "(":
        return Value(word, second), at
    close = next((i for i in range(at, len(words)) if words[i].text == ")" and not words[i].quoted), None)
    if close is None:
        raise source.error("this parenthesis is never closed", words[at].start, hint="Add ')'.")
    inside = tuple(token.text for token in words[at + 1 : close] if token.text != "," or token.quoted)
    return Value(word, second, inside), close + 1


def _keyword(source: SourceText, option: str, token: Token, known: str) -> str:
    if not known or token.quoted:
        return token.text
    if option == "clockvarpr" and token.text.lower() == "wn":
        hint = "MrBayes 3.2.7a calls this clock igr, and what says its variance igrvarpr."
        raise source.error("clockvarpr: value 'wn' is of later versions", token.start, hint=hint)
    what, words = f"{option}: value", token.text.split("|") if option == "coding" else [token.text]
    found = [_completed(source, token.start, word, known.split(), what) for word in words]
    return found[0] if len(found) == 1 else _all_unseen(source, token, found)


def _all_unseen(source: SourceText, token: Token, words: Sequence[str]) -> str:
    """The word for all that several words of CODING leave out, noabsencesites|nopresencesites as variable."""
    together = reduce(or_, [_UNSEEN[word] for word in words])
    for word, unseen in _UNSEEN.items():
        if unseen == together:
            return word
    hint = "Choose coding=variable, coding=informative or coding=all."
    raise source.error(f"coding={token.text} is not supported", token.start, hint=hint)

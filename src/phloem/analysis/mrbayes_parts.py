"""What the divisions of a MRBAYES block share: parameters, priors, branch lengths, rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phloem.analysis.mrbayes_divisions import Division
from phloem.analysis.mrbayes_models import CLASSES_OF_OMEGA, LINKED, DivisionModel, counts_digits

_OF_NUMBER = {name: number for number, names in LINKED.items() for name in names}
_OF_NUMBER |= dict.fromkeys(CLASSES_OF_OMEGA, "omega")
_LENGTH_PRIORS = {
    "uniform": ("uniform", 2), "exponential": ("exponential", 1), "twoexponential": ("twoexp", 2),
    "gammadirichlet": ("gammadir", 4), "invgamdirichlet": ("invgamdir", 4),
}  # fmt: skip
_TYPES = {"dna": "DNA", "rna": "RNA", "protein": "AA", "binary": "BIN", "standard": "STANDARD"}
Groups = dict[str, list[tuple[int, ...]]]


def linked_groups(divisions: Sequence[Division], models: Sequence[DivisionModel]) -> Groups:
    """MrBayes' parameter → numbers of the divisions that share it: those that are linked and have the same
    kind of data, the same form of the model and the same prior."""
    found: Groups = {}
    for kind in LINKED:
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, (division, model) in enumerate(zip(divisions, models)):
            if kind in model.kinds:
                matrix = model.kinds.get("aamodel", ()) if kind in ("statefreq", "revmat") else ()
                linked = "shape" if kind == "sigma" else kind  # one parameter there
                key = (division.links.get(linked, 0), *model.kinds[kind], *matrix)
                groups.setdefault(key, []).append(i)
        found[kind] = [tuple(group) for group in groups.values()]
    return found


def options_of_characters(
    divisions: Sequence[Division], models: Sequence[DivisionModel], symbols: str | None
) -> dict[str, str]:
    """How standard characters are taken, where MrBayes does it otherwise than phloem usually. symbols: those
    that the file lists."""
    found = {"asc": "mrbayes"} if any("+ASC" in model.text for model in models) else {}
    return found | ({"character_states": "digits"} if counts_digits(divisions, symbols) else {})


def priors_of(divisions: Sequence[Division], models: Sequence[DivisionModel], groups: Groups) -> list[str]:
    """Texts for --prior: of all parts where all that have the parameter agree, else of every group."""
    texts = []
    for name in dict.fromkeys(name for model in models for name in model.priors):
        kind = _OF_NUMBER.get(name, "revmat")
        own = [group for group in groups[kind] if kind in models[group[0]].free]
        densities = {models[group[0]].priors.get(name) for group in own}
        if len(densities) == 1 and name != "exchangeabilities":
            texts.append(f"{name}={densities.pop()}")
            continue
        for group in own:
            density = models[group[0]].priors.get(name)
            if density is not None:
                target = "rates" if name == "exchangeabilities" else name
                texts.append(f"{target}{{{divisions[group[0]].name}}}={density}")
    return texts


def link_texts(divisions: Sequence[Division], models: Sequence[DivisionModel], groups: Groups) -> list[str]:
    """--link of every parameter that several parts share and that is free."""
    texts = []
    for kind, members in groups.items():
        for group in members:
            if len(group) > 1 and kind in models[group[0]].free:
                if kind == "omega" and "omegavar" in (d := divisions[group[0]]).settings:
                    if d.value("omegavar").word.lower() != "equal":
                        told = "classes of omega that parts share are not supported"
                        raise d.refuse("omegavar", told, "Add 'unlink omega=(all);'.")
                names = ",".join(divisions[i].name for i in group)
                texts += [f"{name}:{names}" for name in LINKED[kind]]
    return texts


def part_line(division: Division, model: str) -> str:
    """A line of a partition list, with the data type before the columns."""
    word, of_columns = _TYPES[division.datatype], division.of_columns()
    if "genetic_code" in of_columns:
        word = f"{'CODON' if division.codon else 'NT2AA'}{of_columns['genetic_code']}"
    word = "DOUBLET" if division.doublet else word
    return f"{model}, {division.name} = {word}, {division.columns}"


def length_options(divisions: Sequence[Division]) -> tuple[str, list[str], list[str]]:
    """How the parts' branch lengths hang together: --linkage, more --link, and the prior of the rates."""
    varies = [d.value("ratepr").word != "fixed" for d in divisions]
    own = [d.links.get("brlens", 0) for d in divisions]
    if len(set(own)) > 1:
        if any(varies):
            setting = next(d.settings["ratepr"] for d in divisions if "ratepr" in d.settings)
            raise setting.command.error(
                "ratepr=variable and unlinked branch lengths say the same thing twice",
                "Leave ratepr out, or link the branch lengths.",
                setting.option.line,
            )
        groups = [[d.name for d, link in zip(divisions, own) if link == one] for one in dict.fromkeys(own)]
        return "unlinked", [f"lengths:{','.join(group)}" for group in groups if len(group) > 1], []
    if sum(varies) < 2:
        return "linked", [], []
    fixed = [d.name for d, free in zip(divisions, varies) if not free]
    numbers = [_rate_number(d, divisions) for d, free in zip(divisions, varies) if free]
    prior = []
    if set(numbers) != {1.0}:
        prior.append(f"partition_rates=dirichlet({','.join(f'{x:g}' for x in numbers)})")
    return "proportional", [f"rate=1:{','.join(fixed)}"] if fixed else [], prior


def counted_again(divisions: Sequence[Division]) -> list[str]:
    """Notes: of parts whose rates vary MrBayes takes the mean over columns, those of codons times three."""
    if length_options(divisions)[0] != "proportional":
        return []
    free = [d for d in divisions if d.value("ratepr").word != "fixed"]
    kinds = {"codons three times": [d.codon for d in free], "doublets twice": [d.doublet for d in free]}
    return [
        f"ratepr: in the mean of rates, which is 1, MrBayes counts columns of {kind}, phloem once: "
        "rates and TL have another scale"
        for kind, own in kinds.items()
        if any(own) and not all(own)
    ]


def _rate_number(division: Division, divisions: Sequence[Division]) -> float:
    value = division.value("ratepr")
    if value.word != "dirichlet":
        return 1.0
    mates = [d.name for d in divisions if d.settings.get("ratepr") is division.settings["ratepr"]]
    return division.numbers("ratepr")[mates.index(division.name)]


def branch_prior(divisions: Sequence[Division]) -> tuple[str, int] | None:
    """--branch-prior, and the line that says so; None where nothing does."""
    chosen = [d.settings["brlenspr"] for d in divisions if "brlenspr" in d.settings]
    if not chosen:
        return None
    setting, first = chosen[0], divisions[0]
    if len({str(d.value("brlenspr")).lower() for d in divisions}) > 1:
        told = "parts have different priors of branch lengths"
        raise setting.command.error(told, "Give one to all.", setting.option.line)
    name, count = _LENGTH_PRIORS.get(first.value("brlenspr").second, ("", 0))
    if not name:
        told = f"brlenspr={first.value('brlenspr')} is not supported"
        raise setting.command.error(told, "Choose unconstrained:exponential(10).", setting.option.line)
    numbers = ",".join(f"{x:g}" for x in first.numbers("brlenspr", count))
    return f"{name}({numbers})", setting.option.line


def options_of_parts(
    divisions: Sequence[Division], models: Sequence[DivisionModel], groups: Groups
) -> dict[str, Any]:
    """Options of `phloem mcmc` where there are several parts."""
    linkage, links, prior = length_options(divisions)
    return {
        "part": [part_line(d, m.text) for d, m in zip(divisions, models)],
        "linkage": linkage,
        "link": [*link_texts(divisions, models, groups), *links],
        "prior": [*priors_of(divisions, models, groups), *prior],
    }

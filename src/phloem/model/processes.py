"""The processes that a model string names: one family, MIX{…}, profiles, fused matrices, copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from phloem.errors import ModelError
from phloem.model.amino_acid import FUSED_MATRICES, empirical_matrices, profile_mixtures
from phloem.model.character_frequencies import BetaFrequencies
from phloem.model.codon_sites import CodonSites
from phloem.model.families import (
    CODON_SITE_NAMES,
    Family,
    codon_site_family,
    datatypes_of,
    families,
    named_code,
)
from phloem.model.frequencies import BuiltInFrequencies, CodonTable
from phloem.model.markov_modulated import MarkovModulated, RatesOfSubstitutions
from phloem.model.mixture import (
    Component,
    Mixture,
    MixtureTerm,
    ProcessMixture,
    apart,
    mixture_weights,
    renamed,
)
from phloem.model.model_string import (
    ComponentText,
    Piece,
    number,
    split_components,
    unknown_name,
    with_piece_values,
)
from phloem.model.record import Parameter
from phloem.model.site_rates import GammaCategories
from phloem.model.substitution import SubstitutionFamily, Term
from phloem.model.suffixes import (
    FrequencyData,
    beta_classes,
    frequency_model,
    hidden_classes,
    rate_categories,
    roles,
)

Roles = Mapping[str, Piece]


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that parse_model was told about the data."""

    datatype: str
    states: tuple[str, ...]
    codon_table: CodonTable | None
    data: FrequencyData
    gamma: GammaCategories


@dataclass(frozen=True, eq=False)
class Processes:
    """parameters: the mixture's, with the values of the string and the counts of the data. observed_state,
    fused: as Model's. ascertained: the name implies +ASC. star: whether the string says '*'."""

    mixture: Mixture
    parameters: list[Parameter]
    observed_state: np.ndarray
    ascertained: bool
    fused: bool = False
    star: bool = False


_RAXML8 = re.compile(r"(?P<data>GTR|BIN|MULTI|PROT)(?:GAMMA|CAT)(?P<invariable>I?)(?P<rest>[A-Z0-9]*)")


def read_processes(head: Piece, by_role: Roles, request: Request) -> tuple[Processes, Roles]:
    """The processes, and the roles of the suffixes with those that the name implies."""
    name, protein = head.name.upper(), request.datatype == "protein"
    categories = by_role.get("rate categories")
    star = categories is not None and categories.fused
    if name == "MIX":
        _refuse(by_role, head, ("frequencies", "hidden classes", "profiles"))
        found = _mixture(head, split_components(head), request, star)
        return found, by_role
    if protein and name in FUSED_MATRICES:
        _refuse(by_role, head, ("frequencies", "hidden classes", "profiles"))
        matrices, usual = FUSED_MATRICES[name]
        if head.has_values:
            raise ModelError(f"'{head.name}' takes no values", column=head.column, hint="Give +G4 its shape.")
        if categories is None:
            by_role = {**by_role, "rate categories": Piece(usual, head.column)}
        return _fused_matrices(name, matrices, request), by_role
    if protein and name in {n + end for n in profile_mixtures() for end in ("", "OPT")}:
        if "profiles" in by_role:
            both = f"{head.name} and {by_role['profiles'].name}"
            raise ModelError(f"{both} both set the profiles", column=head.column, hint="Keep one of them.")
        head, by_role = Piece("Poisson", head.column), {**by_role, "profiles": head}
    if "profiles" in by_role:
        _refuse(by_role, by_role["profiles"], ("hidden classes",))
        if not protein:
            raise ModelError(
                f"+{by_role['profiles'].name} is a mixture of amino-acid profiles, and these are "
                f"{request.datatype} data",
                column=by_role["profiles"].column,
                hint="Leave it out, or --datatype protein.",
            )
        if categories is None:
            by_role = {**by_role, "rate categories": Piece("G4", by_role["profiles"].column)}
        return _profiles(head, by_role, request), by_role
    family = _family(head, request)
    if beta_classes(by_role.get("frequencies")):
        return _frequencies_of_characters(head, family, by_role, request), by_role
    if star and rate_categories(by_role["rate categories"], request.gamma).own_lengths:
        return _copies(head, by_role, request), by_role
    built, parameters = _substitution(head, family, by_role, request)
    if star and isinstance(built, MarkovModulated):
        return _rates_of_substitutions(built, parameters, by_role, request)
    if isinstance(built, CodonSites):
        _refuse(by_role, head, ("hidden classes",))
        return Processes(built, parameters, np.arange(built.n_states), False, star, star), by_role
    mixture = ProcessMixture.single(built)
    return Processes(mixture, parameters, _observed_state(built), family.ascertained, star, star), by_role


def _refuse(by_role: Roles, head: Piece, refused: tuple[str, ...]) -> None:
    for role in refused:
        if role in by_role:
            piece = by_role[role]
            inside = head.name.upper() == "MIX"
            raise ModelError(
                f"+{piece.name} cannot be combined with {head.name}",
                column=piece.column,
                hint="Write it inside of MIX{…}, behind each component." if inside else "Leave it out.",
            )


def _mixture(head: Piece, components: list[ComponentText], request: Request, star: bool) -> Processes:
    """MIX{…}: the k-th component's parameters are called kappa.k and so on."""
    built, terms, parameters, shown = [], [], [], []
    ascertained, labels = False, [c.pieces[0].name.upper() for c in components]
    for k, component in enumerate(components, 1):
        first, *suffixes = component.pieces
        by_role = roles(suffixes)
        outside = set(by_role) - {"frequencies", "hidden classes"}
        if outside:
            piece = by_role[min(outside)]
            raise ModelError(
                f"+{piece.name} holds for the whole mixture",
                column=piece.column,
                hint=f"Write it behind the closing brace: MIX{{…}}+{piece.name}.",
            )
        family = _family(first, request)
        substitution, own = _substitution(first, family, by_role, request)
        if isinstance(substitution, CodonSites):
            raise ModelError(f"{first.name} is a mixture of its own", column=first.column, hint="Use GY94.")
        if any(p.averaged for p in own):
            told = f"{first.name} stands for many models, and cannot be one of several processes"
            raise ModelError(told, column=first.column, hint="Choose one of them.")
        built.append(Component.of(substitution, f".{k}"))
        terms.append(substitution.terms)
        n_before, n_alike = labels[: k - 1].count(labels[k - 1]), labels.count(labels[k - 1])
        own = [apart(p, n_before + 1, n_alike) for p in own] if n_alike > 1 else own
        parameters += [renamed(p, f".{k}") for p in own]
        shown.append(_observed_state(substitution))
        ascertained |= family.ascertained
    if any(not np.array_equal(shown[0], other) for other in shown[1:]):
        raise ModelError(
            "the components of MIX have different hidden classes",
            column=head.column,
            hint="Give all of them the same +COV or +MM.",
        )
    weights, rates = _given_weights(head, components, star)
    own_weights = [] if star else [weights]
    term = MixtureTerm(
        "MIX",
        tuple([*parameters, *own_weights]),
        parts=tuple(terms),
        suffixes=tuple(f".{k}" for k in range(1, len(terms) + 1)),
        rates=rates,
    )
    n = len(built)
    mixture = ProcessMixture(
        tuple(built), (term,), np.full(n, 1.0 / n) if star else None, np.ones(n) if rates is None else rates
    )
    return Processes(mixture, list(term.parameters), shown[0], ascertained, star, star)


def _given_weights(
    head: Piece, components: list[ComponentText], star: bool
) -> tuple[Parameter, np.ndarray | None]:
    """The parameter of the weights, fixed where they are written, and the rates (M,) or None."""
    given = [c for c in components if c.weight is not None and c.rate is not None]
    parameter = mixture_weights(len(components))
    if not given:
        return parameter, None
    if star or len(given) < len(components):
        raise ModelError(
            "the categories behind * have the rates and weights"
            if star
            else "some components have no weight",
            column=head.column,
            hint="Leave them out of MIX{…}."
            if star
            else "Write model:rate:weight for all of them or for none.",
        )
    rates = np.array([number(c.rate[1], c.rate[0]) for c in given if c.rate])
    weights = np.array([number(c.weight[1], c.weight[0]) for c in given if c.weight])
    if not (np.isfinite(rates).all() and (rates > 0).all()):
        raise ModelError("the rates of MIX must be above 0", column=head.column, hint="+I has rate 0.")
    try:
        return replace(parameter, value=parameter.checked(weights)), rates
    except ModelError as error:
        raise ModelError(error.message, column=head.column, hint=error.hint) from None


def _fused_matrices(name: str, matrices: tuple[str, ...], request: Request) -> Processes:
    """LG4M, LG4X: a published matrix for every category of the site rates."""
    known = families(request.datatype, request.states, None)
    built = [known[m].build(BuiltInFrequencies(empirical_matrices()[m].frequencies)) for m in matrices]
    components = tuple(Component.of(b) for b in built if not isinstance(b, CodonSites))
    n = len(components)
    mixture = ProcessMixture(components, (Term(name),), np.full(n, 1.0 / n), np.ones(n))
    return Processes(mixture, [], np.arange(mixture.n_states), False, fused=True)


def _profiles(head: Piece, by_role: Roles, request: Request) -> Processes:
    """One set of exchangeabilities with the profiles of +C20, and with +F or +FO a class more.

    The published weights hold, unless others are given; they are free with +C20Opt and with a class more.
    """
    piece, extra = by_role["profiles"], by_role.get("frequencies")
    wanted = piece.name.upper().removesuffix("OPT")
    profiles, family = profile_mixtures()[wanted], _family(head, request)
    own = [family.build(BuiltInFrequencies(f)) for f in profiles.frequencies]
    built = [b for b in own if not isinstance(b, CodonSites)]
    if not family.allowed_frequencies:
        raise ModelError(f"{head.name} has no frequencies to replace by profiles", column=head.column)
    head_term, start = built[0].terms[0], profiles.weights
    parameters, terms = list(with_piece_values(head_term, head)), [head_term]
    frequencies: list[Parameter] = []
    if extra is not None:
        another, frequencies = _substitution(head, family, {"frequencies": extra}, request)
        assert not isinstance(another, CodonSites)
        frequencies = frequencies[len(parameters) :]
        built.append(another)
        start = np.append(start * (len(start) / len(built)), 1.0 / len(built))
    n, weights = len(built), None
    free = piece.name.upper().endswith("OPT") or extra is not None or piece.has_values
    if free:
        opt = f"+{wanted}Opt" if extra is None else f"+{wanted}"
        term = Term(opt, (mixture_weights(n, start),), label_with_values=f"+{wanted}")
        parameters += with_piece_values(term, piece)
    else:
        term, weights = Term(f"+{wanted}"), start
    terms.append(term)
    if extra is not None:
        terms += built[-1].terms[1:]
    mixture = ProcessMixture(tuple(map(Component.of, built)), tuple(terms), weights, np.ones(n))
    return Processes(mixture, [*parameters, *frequencies], np.arange(20), False)


def _frequencies_of_characters(head: Piece, family: Family, by_role: Roles, request: Request) -> Processes:
    """MK+FB5: classes of characters that differ in the frequencies of their two states."""
    piece, n = by_role["frequencies"], len(request.states)
    if n != 2 or "FO" not in family.allowed_frequencies:
        what = f"and these have {n}" if n != 2 else f"under MK, and this is {head.name}"
        raise ModelError(
            f"+{piece.name} is of characters of two states, {what}",
            column=piece.column,
            hint="Write +FQ, +F or +FO, or put characters of two states into a part of their own.",
        )
    _refuse(by_role, head, ("hidden classes",))
    if head.has_values:
        raise ModelError(f"'{head.name}' takes no values", column=head.column, hint="Remove the braces.")
    categories = by_role.get("rate categories")
    star = categories is not None and categories.fused
    mixture = BetaFrequencies("MK", beta_classes(piece))
    values = with_piece_values(mixture.terms[1], piece)
    return Processes(mixture, list(values), np.arange(2), family.ascertained, star, star)


def _copies(head: Piece, by_role: Roles, request: Request) -> Processes:
    """GTR*H4: a copy of the model for every set of branch lengths, that is MIX{GTR,GTR,GTR,GTR}*H4."""
    n = rate_categories(by_role["rate categories"], request.gamma).n_categories
    parts = [piece for role in ("frequencies", "hidden classes") if (piece := by_role.get(role)) is not None]
    return _mixture(head, [ComponentText([head, *parts], None, None)] * n, request, True)


def _rates_of_substitutions(
    family: MarkovModulated, parameters: list[Parameter], by_role: Roles, request: Request
) -> tuple[Processes, Roles]:
    """GTR+COV*G4: categories that are processes of their own, and no rate categories beside them."""
    piece = by_role["rate categories"]
    if (invariable := by_role.get("invariable sites")) is not None:
        raise ModelError(
            f"+{invariable.name} cannot be combined with *{piece.name}, rates of classes that are on",
            column=invariable.column,
            hint=f"Leave it out, or write +{piece.name}.",
        )
    mixture = RatesOfSubstitutions(family, rate_categories(piece, request.gamma))
    own = [*parameters, *with_piece_values(mixture.rates_term, piece)]
    rest = {role: one for role, one in by_role.items() if role != "rate categories"}
    return Processes(mixture, own, family.observed_state, False), rest


def _family(head: Piece, request: Request) -> Family:
    known = families(request.datatype, request.states, request.codon_table)
    family = known.get(head.name.upper())
    if family is None and request.datatype in ("dna", "rna"):
        family = named_code(head.name)
    if family is None and request.codon_table is not None:
        family = codon_site_family(head.name, request.codon_table)
    if family is None:
        names = {f.canonical for f in known.values()} | {"MKV"} & set(known) | {"MIX"}
        if request.datatype == "protein":
            names |= {*FUSED_MATRICES, *profile_mixtures()}
        raise _unknown_model(head, names | set(CODON_SITE_NAMES if request.codon_table else ()), request)
    return family


def _unknown_model(head: Piece, names: set[str], request: Request) -> ModelError:
    """Says, where other data have a model of that name, how to read the alignment as such data."""
    error = unknown_name(f"{request.datatype} model", head.name, names, head.column)
    homes, meant = datatypes_of(head.name), _of_raxml8(head.name)
    if meant:
        error.hint = f"RAxML 8's {head.name} is about --model {meant} here."
    if homes:
        error.hint = (
            f"{head.name} is a model of {' and '.join(homes)} data, these are read as {request.datatype}: "
            f"--datatype {homes[0]}, or one of {', '.join(sorted(names, key=str.upper))}."
        )
    return error


def _of_raxml8(name: str) -> str | None:
    """What says nearly the same as a name of RAxML 8, such as PROTGAMMAILGF; its CAT is an approximation of
    rates that differ by site."""
    found = _RAXML8.fullmatch(name.upper())
    if found is None:
        return None
    data, invariable, rest = found["data"], "+I" if found["invariable"] else "", found["rest"]
    if data == "PROT" and rest.startswith("AUTO"):
        return "auto"
    if data == "PROT":
        last = "" if "protein" in datatypes_of(rest) else rest[-1:]
        base, usual = rest.removesuffix(last), ""
        if "protein" not in datatypes_of(base):
            return None
    else:
        base, usual, last = "GTR" if data == "GTR" else "MK", "+F", rest
    frequencies = {"": usual, "F": "+F", "X": "+FO"}.get(last)
    return None if frequencies is None else f"{base}{frequencies}{invariable}+G4"


def _substitution(
    head: Piece, family: Family, by_role: Roles, request: Request
) -> tuple[SubstitutionFamily | CodonSites, list[Parameter]]:
    """The substitution model and its parameters, with the values of the string and the counts of the data."""
    piece, classes = by_role.get("frequencies"), by_role.get("hidden classes")
    if piece is not None and beta_classes(piece):
        told = f"+{piece.name} makes {head.name} a mixture of its own"
        raise ModelError(told, column=piece.column, hint="Write +FQ, +F or +FO.")
    frequencies, counted = frequency_model(piece, family, request.states, request.codon_table, request.data)
    base = family.build(frequencies)
    parameters = list(with_piece_values(base.terms[0], head))
    if len(base.terms) > 1:
        own = with_piece_values(base.terms[1], piece)
        parameters += [
            replace(p, value=counted[p.name], counted=True) if p.name in counted else p for p in own
        ]
    if classes is None:
        return base, parameters
    if isinstance(base, CodonSites):
        raise ModelError(f"+{classes.name} cannot be combined with {head.name}", column=classes.column)
    modulated = MarkovModulated(base, hidden_classes(classes))
    return modulated, [*parameters, *with_piece_values(modulated.switching.term, classes)]


def _observed_state(substitution: SubstitutionFamily) -> np.ndarray:
    if isinstance(substitution, MarkovModulated):
        return substitution.observed_state
    return np.arange(substitution.n_states)

"""Standard characters by their number of states: parts that are made inside of `phloem mcmc`.

Under Mk a character with k states is a process on k states, so that one on the largest number in the matrix
says something else. As in MrBayes 3.2.7a, k is the highest state that the character shows in the file, at
least 2. The pieces of a part are one in their lengths and share its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.data.unseen import Unseen, could_be_unseen, partly_known
from phloem.errors import InputError
from phloem.model.grammar import leaves_uninformative
from phloem.model.model_string import split_model
from phloem.model.suffixes import FREQUENCY_SUFFIXES, beta_classes, roles

_MK = ("MK", "MKV", "ORDERED")
_ASC = re.compile(r"\+ASC(_LEWIS)?(\{[^{}]*\})?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Piece:
    """part: the part it is of. unrecorded: as in inference.mcmc.recipes.observations. left_out: columns that
    could be ones that +ASC says are never seen, and were left out. columns: (L,) those of the part's
    alignment that it has; None where all."""

    name: str
    part: str
    alignment: Alignment
    model_text: str
    unrecorded: int = 0
    left_out: int = 0
    columns: np.ndarray | None = None


@dataclass(frozen=True)
class Characters:
    """How characters of a part are taken. ordered: (L,) bool, those with ordered states. own_states: each has
    its own number of states. mrbayes: under +ASC as MrBayes does it: characters that could be ones never
    seen are left out, and the probability of those is that of two states, whatever the character. without:
    names of taxa that are left out; which states there are is told with them."""

    ordered: np.ndarray
    own_states: bool = True
    mrbayes: bool = False
    without: frozenset[str] = frozenset()


def pieces_of(part: str, alignment: Alignment, model_text: str, how: Characters) -> list[Piece]:
    """A part as pieces of characters with one number of states; most parts are one piece.

    Errors: InputError for ordered characters of a model that has none.
    """
    head, *suffixes = split_model(model_text)
    frequencies = roles(suffixes).get("frequencies")
    equal = frequencies is None or FREQUENCY_SUFFIXES.get(frequencies.name.upper()) == "FQ"
    symmetric = equal or beta_classes(frequencies) > 0  # of two states, which order tells nothing about
    splits = alignment.alphabet.kind == "standard" and head.name.upper() in _MK and symmetric
    if how.ordered.any() and not splits:
        raise InputError(
            f"ordered characters are asked for, and part '{part}' is {alignment.alphabet.kind} under "
            f"{model_text}",
            hint="Ordered are standard characters under MK with equal frequencies.",
        )
    if not splits or not (how.own_states or how.ordered.any()):
        kept = without_taxa(alignment, how.without)
        return _some(part, [_seen(Piece(part, part, kept, model_text), how)])
    states = numbers_of_states(alignment) if how.own_states else None
    if states is None:
        states = np.full(alignment.n_sites, alignment.alphabet.n_states)
    ordered = (how.ordered | (head.name.upper() == "ORDERED")) & (states > 2)
    found = []
    for k, in_order in sorted({(int(k), bool(o)) for k, o in zip(states, ordered)}):
        columns = np.flatnonzero((states == k) & (ordered == in_order))
        own = without_taxa(_with_states(alignment, columns, k), how.without)
        name = f"{part}_{k}{'_ordered' if in_order else ''}"
        found.append(_seen(Piece(name, part, own, _text_of(model_text, in_order), columns=columns), how))
    if how.mrbayes and _ASC.search(_text_of(model_text, False)):
        found = _as_mrbayes(part, found)
    found = _some(part, found)
    categories = roles(suffixes).get("rate categories")
    if len(found) > 1 and categories is not None and categories.name.upper().startswith("AG"):
        raise InputError(
            f"characters of part '{part}' have several numbers of states: inside they are {len(found)} "
            f"parts, and no neighbours as +{categories.name} has them",
            hint="Say --character-states all, which gives all of them the largest number, or write +G.",
        )
    return [replace(found[0], name=part)] if len(found) == 1 else found


def _some(part: str, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that have characters; InputError where none has."""
    found = [piece for piece in pieces if piece.alignment.n_sites or piece.unrecorded]
    if not found:
        hint = "Leave the part out, or take +ASC away; in a MRBAYES block: lset coding=all."
        raise InputError(f"no character of part '{part}' is one that +ASC says can be seen", hint=hint)
    return found


def without_taxa(alignment: Alignment, names: frozenset[str]) -> Alignment:
    """The alignment without some taxa."""
    rows = [i for i, taxon in enumerate(alignment.taxa) if taxon not in names]
    if len(rows) == alignment.n_taxa:
        return alignment
    codes = np.ascontiguousarray(alignment.codes[rows])
    return replace(alignment, taxa=tuple(alignment.taxa[i] for i in rows), codes=codes)


def numbers_of_states(alignment: Alignment) -> np.ndarray:
    """(L,) the highest state that every character shows, missing data aside, plus one; at least 2."""
    n = alignment.alphabet.n_states
    highest = n - 1 - np.argmax(alignment.state_sets[:, ::-1], axis=1)
    highest[n] = -1  # wholly missing
    return np.maximum(highest[alignment.codes].max(axis=0) + 1, 2)


def _with_states(alignment: Alignment, columns: np.ndarray, k: int) -> Alignment:
    """Some columns over the first k states."""
    n, codes = alignment.alphabet.n_states, alignment.codes[:, columns]
    places = np.arange(alignment.n_sites)[columns] if alignment.places is None else alignment.places[columns]
    if k == n:
        return replace(alignment, codes=np.ascontiguousarray(codes), places=places)
    table = [*np.eye(k, dtype=bool), np.ones(k, bool)]
    number = np.zeros(len(alignment.state_sets), codes.dtype)
    number[:k], number[n] = np.arange(k), k
    for code in np.unique(codes):
        if code > n:
            allowed = alignment.state_sets[code, :k]
            number[code] = k if allowed.all() else len(table)
            table += [] if allowed.all() else [allowed]
    states = alphabet("standard", symbols="".join(alignment.alphabet.states[:k]))
    return replace(
        alignment,
        alphabet=states,
        codes=np.ascontiguousarray(number[codes]),
        state_sets=np.array(table),
        places=places,
    )


def _text_of(model_text: str, ordered: bool) -> str:
    """The model with ordered states or not; MKV spelled out."""
    head = split_model(model_text)[0].name
    rest = model_text.strip()[len(head) :]
    if head.upper() == "MKV" and not _ASC.search(rest):
        rest += "+ASC"
    return ("ORDERED" if ordered else "MK") + rest


def _seen(piece: Piece, how: Characters) -> Piece:
    """As MrBayes does it: without characters that the model says are never seen."""
    match = _ASC.search(_text_of(piece.model_text, False))
    if not how.mrbayes or match is None:
        return piece
    alignment = piece.alignment
    codes, sets, states = alignment.codes, alignment.state_sets, alignment.alphabet.states
    symbols = (match.group(2) or "{}")[1:-1].split(",")
    named = tuple(states.index(s) for s in symbols if s in states)
    unseen: Unseen = named or tuple(range(len(states)))
    if leaves_uninformative(piece.model_text):
        unseen = "uninformative"
    hidden = could_be_unseen(codes, sets, unseen)
    if unseen == "uninformative":  # MrBayes 3.2.7a keeps those of which a taxon is known in part
        hidden &= ~partly_known(codes, sets)
    codes = np.ascontiguousarray(alignment.codes[:, ~hidden])
    columns = np.arange(alignment.n_sites) if piece.columns is None else piece.columns
    seen = replace(alignment, codes=codes, places=None)  # +ASC has no neighbours
    return replace(piece, alignment=seen, left_out=int(hidden.sum()), columns=columns[~hidden])


def _as_mrbayes(part: str, pieces: list[Piece]) -> list[Piece]:
    """The correction of all characters by the probability that one of two states is constant: it stands with
    the piece of two states, which counts the others as characters of which nothing else is known."""
    binary = [p for p in pieces if p.alignment.alphabet.n_states == 2]
    others = [replace(p, model_text=_ASC.sub("", p.model_text)) for p in pieces if p not in binary]
    n_others = sum(p.alignment.n_sites for p in others)
    if not binary:
        first = pieces[0]
        none = _with_states(first.alignment, np.empty(0, np.int64), 2)
        text = _text_of(first.model_text, False)
        asc = "+ASC{informative}" if leaves_uninformative(text) else "+ASC"
        binary = [Piece(f"{part}_2", part, none, _ASC.sub("", text) + asc)]
    return [replace(binary[0], unrecorded=n_others), *others]


def corrected_together(pieces: Sequence[Piece]) -> list[str]:
    """In words, what _as_mrbayes did to the pieces of a part: their models do not show it."""
    others = ", ".join(f"'{p.name}'" for p in pieces if not p.unrecorded)
    return [
        f"+ASC of '{p.name}' divides the {p.unrecorded} characters of {others} too, as if of two states, "
        "as in MrBayes; --asc lewis: by their own"
        for p in pieces
        if p.unrecorded
    ]


def expanded_links(
    links: Sequence[str], members: Mapping[str, Sequence[str]], shared: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Texts for --link with the pieces of parts in the place of the parts, and what joins the pieces.

    members: pieces of every part. shared: of every part what its pieces have in common, free parameters and
    "lengths".
    """
    texts: list[str] = []
    joined: set[tuple[str, str]] = set()
    for text in links:
        name, colon, named = text.partition(":")
        parts = [part.strip() for part in named.split(",")] if colon else list(members)
        pieces = [piece for part in parts for piece in members.get(part, [part])]
        texts.append(f"{name}:{','.join(pieces)}" if colon else text)
        joined |= {(name.strip(), part) for part in parts}
    for part, own in members.items():
        if len(own) > 1:
            for name in shared[part]:
                if (name, part) not in joined:
                    texts.append(f"{name}:{','.join(own)}")
    return tuple(texts)


def expanded_prior(text: str, members: Mapping[str, Sequence[str]]) -> str:
    """A prior of a part as one of its first piece, with which the others share their parameters."""
    head, equals, density = text.partition("=")
    name, brace, part = head.strip().partition("{")
    pieces = members.get(part.removesuffix("}"))
    return f"{name}{{{pieces[0]}}}{equals}{density}" if brace and pieces else text

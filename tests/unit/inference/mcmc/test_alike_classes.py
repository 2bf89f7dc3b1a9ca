"""Classes of sites that chains exchange are printed in an order, whatever their numbers in a chain."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import genetic_code
from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.samples import TraceColumns, alike_classes, trace_columns
from phloem.inference.mcmc.settings import Priors
from phloem.inference.mcmc.structure import ChainModel, structure_of_model, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment

PARENT = np.array([5, 5, 6, 6, 7, 7, 7, -1])  # five taxa, the basal node of three branches last
LETTERS = {"dna": "ACGT", "codon": genetic_code(1).sense_codons}


def alignment(kind: str = "dna"):
    rng = np.random.default_rng(1)
    rows = {f"t{i}": "".join(rng.choice(list(LETTERS[kind]), 12)) for i in range(5)}
    return alignment_from_sequences(rows, alphabet(kind))


def structure_for(text: str, kind: str = "dna") -> ChainModel:
    return structure_of_model(model_for_alignment(text, alignment(kind)), 12)


def drawn(structure: ChainModel, rng) -> tuple[np.ndarray, np.ndarray]:
    """Sets of lengths and numbers at random."""
    lengths = rng.exponential(0.2, (structure.n_sets, len(PARENT)))
    lengths[:, -1] = 0.0
    values = rng.gamma(2.0, 0.5, structure.space.size)
    for block in structure.space.blocks:
        own = structure.space.place(block.name)
        values[own] = values[own] / values[own].sum() if block.support == "simplex" else values[own]
    return lengths, values


def density(structure: ChainModel, columns: TraceColumns, plain, lengths, values) -> float:
    """Log-likelihood by the reference and log prior of the numbers, from what a trace would print."""
    names, priors = columns.names, number_priors(structure, Priors())
    prior = sum(p.family.log_density(values[structure.space.place(p.block)]) for p in priors)
    row = dict(zip(names, columns.values(structure.mean_lengths(lengths, values), lengths, values)))
    return plain(PARENT, lengths if structure.n_sets > 1 else lengths[0], row) + float(prior)


@pytest.mark.parametrize(
    ("text", "kind", "name", "sign"),
    [
        ("HKY+FO+H2", "dna", "weight", -1),
        ("JC+H3+I", "dna", "weight", -1),
        ("HKY+FO*H2", "dna", "weight", -1),
        ("MIX{GTR,GTR}*H2", "dna", "weight", -1),
        ("JC+H2{0.5,0.5}", "dna", "TL{", -1),
        ("HKY+R3", "dna", "rate", 1),
        ("JC+MM2", "dna", "class_rate", 1),
        ("M3K3+F1X4", "codon", "omega", 1),
    ],
)
def test_an_exchange_changes_no_density_and_no_row_of_a_trace(text, kind, name, sign):
    structure, rng = structure_for(text, kind), np.random.default_rng(7)
    columns = trace_columns(structure, Priors())
    plain = plain_likelihood([alignment(kind)], structure)
    (classes,) = columns.alike
    lengths, values = drawn(structure, rng)
    expected, rows = density(structure, columns, plain, lengths, values), []
    for order in permutations(range(len(classes.entries))):
        other_lengths, other = lengths.copy(), values.copy()
        other[classes.entries] = values[classes.entries[list(order)]]
        if len(classes.sets):
            other_lengths[classes.sets] = lengths[classes.sets[list(order)]]
        assert density(structure, columns, plain, other_lengths, other) == pytest.approx(expected, rel=1e-10)
        classes.put_in_order(other_lengths, other)
        rows.append(columns.values(structure.mean_lengths(other_lengths, other), other_lengths, other))
    assert np.ptp(rows, axis=0).max() == 0.0
    printed = [x for n, x in zip(columns.names, rows[0]) if n.startswith(name)]
    assert len(printed) == len(classes.entries) and (np.diff(printed) * sign >= 0).all()


@pytest.mark.parametrize(
    ("text", "priors"),
    [
        ("MIX{JC,HKY}*H2", ()),
        ("MIX{HKY{2},HKY{3}}*H2", ()),
        ("GTR+FO+G4", ()),
        ("JC+H2", ("weights=dirichlet(1,2)",)),
        ("HKY+R2", ("rates=dirichlet(3,1)",)),
    ],
)
def test_classes_that_differ_keep_their_numbers(text, priors):
    structure = structure_for(text)
    chosen = Priors(others=priors)
    if "HKY+R2" in text:  # "rates" is what a prior calls the exchangeabilities
        chosen = Priors(others=("weights=dirichlet(3,1)",))
    assert alike_classes(structure, chosen) == ()


def test_only_classes_of_equal_given_weights_are_exchanged():
    structure = structure_for("JC+H3{0.2,0.4,0.4}")
    (classes,) = alike_classes(structure, Priors())
    lengths = np.array([[1.0], [2.0], [3.0]])
    classes.put_in_order(lengths, np.zeros(0))
    assert lengths.ravel().tolist() == [1.0, 3.0, 2.0]


def test_parts_have_an_order_each():
    parts = [
        PartModel(name, model_for_alignment(text, alignment()), 12)
        for name, text in (("a", "JC+H2"), ("b", "HKY+R2"), ("c", "JC+R2"))
    ]
    structure = structure_of_parts(parts, Linkage("unlinked"))
    first, second, third = alike_classes(structure, Priors())
    assert first.sets.tolist() == [0, 1] and not len(second.sets) and not len(third.sets)
    everything = np.concatenate([x.entries.ravel() for x in (first, second, third)])
    assert len(set(everything.tolist())) == len(everything) == 10


def test_numbers_of_classes_that_two_parts_share_in_part_keep_their_places():
    """Weights in common, rates of their own: an exchange in one part would change the other."""
    parts = [PartModel(name, model_for_alignment("JC+R2", alignment()), 12) for name in "ab"]
    structure = structure_of_parts(parts, Linkage("unlinked", {"weights": (("a", "b"),)}))
    assert alike_classes(structure, Priors()) == ()
    linked = {"weights": (("a", "b"),), "rates": (("a", "b"),)}
    assert len(alike_classes(structure_of_parts(parts, Linkage("unlinked", linked)), Priors())) == 1


def test_lengths_exchanged_without_their_weights_are_seen():
    """The control: what the first test compares is not the same for any exchange."""
    structure, rng = structure_for("HKY+FO+H2"), np.random.default_rng(7)
    columns = trace_columns(structure, Priors())
    plain = plain_likelihood([alignment()], structure)
    lengths, values = drawn(structure, rng)
    whole = density(structure, columns, plain, lengths, values)
    assert abs(density(structure, columns, plain, lengths[::-1].copy(), values) - whole) > 1e-3

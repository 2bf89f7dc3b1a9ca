"""Lists of differences against the reference, the exact engine, and from-scratch evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.differences.outbreaks import outbreak, with_mutations

from phloem.differences.cpu.joining import Columns, best_length, value_at
from phloem.differences.cpu.placement import Reach, graft, look, share_root
from phloem.differences.cpu.records import same
from phloem.differences.cpu.regrafts import cut
from phloem.differences.cpu.storage import way_down
from phloem.differences.engine import Engine
from phloem.differences.reference.recursion import log_likelihood
from phloem.differences.trees import tree_of
from phloem.inference.ml.differences_search import counted_frequencies, next_rates, order_of
from phloem.io.genomes import genomes_of
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model

REACH = Reach(25.0, 1 / 600, 1000, 1000)
MODEL = "GTR{1,4,0.5,0.7,6}+F"


def placed(seed, tips=14, negligible=0.0, shortest=0.0, mutations=1.0, gaps=True):
    """An engine with all genomes placed, the alignment, and the model."""
    alignment, _ = outbreak(tips, seed, mutations, gaps)
    genomes = genomes_of(alignment)
    model = parse_model(MODEL, datatype="dna", empirical_frequencies=counted_frequencies(genomes))
    engine = Engine(genomes, order_of(genomes, 1), 1, negligible, shortest)
    process = model.evaluate().processes[0]
    engine.set_rates(process.rate_matrix, process.frequencies)
    engine.add(engine.tips, REACH)
    return engine, alignment, model


def cells(engine):
    """The tips' genomes as the reference has them."""
    found = []
    for genome in engine.order:
        row = [(int(s), 0.0) for s in engine.genomes.reference]
        begin, end = engine.genomes.offsets[genome], engine.genomes.offsets[genome + 1]
        for (first, last), states in zip(engine.genomes.span[begin:end], engine.genomes.states[begin:end]):
            bits = [s for s in range(4) if states >> s & 1]
            for k in range(first, last):
                row[k] = None if len(bits) == 4 else np.isin(range(4), bits).astype(float)
                row[k] = (bits[0], 0.0) if len(bits) == 1 else row[k]
        found.append(row)
    return found


def by_reference(engine, model, scale=1.0):
    process = model.evaluate().processes[0]
    q, pi = process.rate_matrix * scale, process.frequencies
    return log_likelihood(q, pi, engine.tree.children, engine.tree.length, cells(engine))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lists_say_what_the_reference_says(seed):
    engine, _, model = placed(seed)
    rng = np.random.default_rng(seed)
    for scale in (1e-4, 1e-2):
        engine.tree.length[1:] = rng.exponential(scale, engine.nodes - 1)
        engine.make_lists()
        assert engine.log_likelihood() == pytest.approx(by_reference(engine, model), rel=1e-11)
    assert engine.log_likelihood() != pytest.approx(by_reference(engine, model, 1.001), rel=1e-7)


def test_the_error_beside_the_exact_likelihood_goes_with_the_lengths():
    """Where there was a substitution, log (q t) has an error of the order of t."""
    engine, alignment, model = placed(4)
    lengths = np.random.default_rng(4).exponential(4e-3, engine.nodes - 1)
    errors = []
    for scale in (1.0, 0.1, 0.01):
        engine.tree.length[1:] = lengths * scale
        engine.make_lists()
        tree = tree_of(engine.genomes, engine.order, engine.tree, way_down(engine.tree))
        exact = TreeLikelihood(alignment, tree, model.text(), engine="reference").log_likelihood()
        errors.append(abs(engine.log_likelihood() - exact))
    assert errors[0] < 1.0
    assert errors[1] < errors[0] / 8
    assert errors[2] < min(errors[1] / 8, 1e-3)


def test_lengths_end_where_no_other_is_better():
    engine, _, _ = placed(6)
    engine.fit_lengths(20)
    value = engine.log_likelihood()
    for x in range(1, engine.nodes):
        kept = engine.tree.length[x]
        for other in (kept * 1.05, kept * 0.95, kept + 1e-5):
            engine.tree.length[x] = other
            engine.make_lists()
            assert engine.log_likelihood() < value + 1e-4
        engine.tree.length[x] = kept


def test_the_best_length_is_the_zero_of_the_slope():
    columns = Columns(np.zeros((10, 2)), np.zeros((2, 4)))
    columns.likelihood[:3] = [[0.0, 0.3], [1e-6, 0.2], [0.5, -0.1]]
    t = best_length(columns, 3, -2000.0)
    step = 1e-7
    slope = (value_at(columns, 3, -2000.0, 0.0, t + step) - value_at(columns, 3, -2000.0, 0.0, t - step)) / 2
    assert abs(slope / step) < 1e-2
    assert best_length(columns, 0, -2000.0) == 0.0
    columns.likelihood[0] = 0.5, 0.3
    assert best_length(columns, 1, -2000.0) == 0.0  # nothing that a length would explain
    columns.likelihood[0] = 0.0, 0.3
    assert best_length(columns, 1, 0.0) > 0.05  # nothing else in common


def test_lists_follow_as_if_made_anew():
    """After every placement, up to the tolerance; a length that nobody told of is noticed."""
    engine, _, _ = placed(7, tips=30, negligible=1e-8, shortest=1e-6)
    held = engine._lists._replace(**{k: v.copy() for k, v in engine._lists._asdict().items()})
    before, own = engine.log_likelihood(), engine._lists
    engine.make_lists()
    fresh, differ = engine._lists, 0
    n_lists = 2 * engine.nodes
    both = held._replace(
        place=np.vstack([held.place, fresh.place + [len(held.kind), 0, 0, len(held.vector), 0, 0]]),
        span=np.vstack([held.span, fresh.span]),
        kind=np.concatenate([held.kind, fresh.kind]),
        distance=np.concatenate([held.distance, fresh.distance]),
        vector=np.vstack([held.vector, fresh.vector]),
    )
    for k in range(n_lists):
        if engine.tree.parent[k % engine.nodes] > 0:
            differ += not same(both, k, k + len(held.place), 0.02)
    assert differ == 0 and own is fresh
    assert engine.log_likelihood() == pytest.approx(before, abs=0.1)
    tip = int(np.argmax(engine.tree.length[: engine.tips]))
    engine.tree.length[tip] *= 3
    assert engine.log_likelihood() == pytest.approx(before, abs=0.1)
    engine.make_lists()
    assert engine.log_likelihood() < before - 0.5


def test_a_genome_goes_to_the_best_of_all_branches():
    engine, _, _ = placed(8, tips=40, negligible=1e-8, shortest=1e-6)
    found = []
    for left_out in range(30, 40):
        alignment, _ = outbreak(40, 8)
        genomes = genomes_of(alignment)
        other = Engine(genomes, order_of(genomes, 1))
        other.rates = engine.rates
        other.add(left_out, REACH)
        other.make_lists()
        columns, _, walk = other._rooms[0]
        n, lengths, values = other.nodes, np.zeros(3), {}
        for x in np.flatnonzero(other.tree.parent >= 0):
            if other.tree.length[x] > 0:
                ends = (x, n + x, left_out)
                arguments = other._lists, other.rates, columns, ends, other.tree.length[x], lengths
                values[x] = look(*arguments, walk.lists[0])
        before = other.log_likelihood()
        other.add(left_out + 1, REACH)
        other.make_lists()
        found.append(other.log_likelihood() - before - max(values.values()))
    assert min(found) > -0.05  # a branch of no length may be better still


def test_rates_from_expected_numbers_are_the_likeliest():
    engine, _, _ = placed(9, tips=40, mutations=3.0)
    model = parse_model("HKY+F", datatype="dna", empirical_frequencies=counted_frequencies(engine.genomes))
    values, last = dict(model.start_values()), -np.inf
    for _ in range(25):
        process = model.evaluate(values).processes[0]
        engine.set_rates(process.rate_matrix, process.frequencies)
        engine.fit_lengths(2)
        assert engine.log_likelihood() > last - 1e-3
        last = engine.log_likelihood()
        values |= next_rates(model, process.frequencies, *engine.substitutions())
    for factor in (0.9, 1.1):
        process = model.evaluate(values | {"kappa": values["kappa"] * factor}).processes[0]
        engine.set_rates(process.rate_matrix, process.frequencies)
        engine.fit_lengths(5)
        assert engine.log_likelihood() < last + 1e-3


def restore(engine, arrays):
    for own, kept in zip(engine.tree, arrays):
        own[:] = kept
    share_root(engine._lists, engine.tree)
    engine.make_lists()


def splits_of(engine):
    return with_mutations(tree_of(engine.genomes, engine.order, engine.tree, way_down(engine.tree)))


def test_supports_are_shares_of_all_places():
    """Every subtree put on every branch, lengths fitted; what makes the same tree is the present one."""
    engine, _, _ = placed(12, tips=16, negligible=1e-8, shortest=1e-6, mutations=0.7)
    engine.fit_lengths(5)
    columns, _, walk = engine._rooms[0]
    n, compared = engine.nodes, []
    wide = Reach(60.0, 1 / 600, 10_000, 1000)
    inner = [x for x in range(engine.tips, n) if engine.tree.parent[x] > 0 and engine.tree.length[x] > 0]
    shares = engine.supports(np.array(inner), wide)
    kept = [a.copy() for a in engine.tree]
    for x, share in zip(inner, shares):
        present, before = splits_of(engine), engine.log_likelihood()
        p, gains = int(engine.tree.parent[x]), []
        y = int(cut(engine._lists, engine.tree, engine._queue, x))
        gone = [a.copy() for a in engine.tree]
        for z in np.flatnonzero((gone[0] >= 0) & (gone[2] > 0)):
            above = int(z)
            while above > 0 and above != x:
                above = int(gone[0][above])
            if above != 0:
                continue
            restore(engine, gone)
            lengths = np.zeros(3)
            look(engine._lists, engine.rates, columns, (z, n + z, x), gone[2][z], lengths, walk.lists[0])
            graft(engine._lists, engine.tree, (x, p, int(z)), lengths)
            engine.make_lists()
            if splits_of(engine) != present:
                gains.append(engine.log_likelihood() - before)
        restore(engine, kept)
        compared.append((share, 1 / (1 + np.exp(np.minimum(gains, 50)).sum()), y))
    mine, every, _ = np.array(compared).T
    assert len(mine) > 4
    assert np.abs(mine - every).max() < 0.1
    assert every.min() < 0.9

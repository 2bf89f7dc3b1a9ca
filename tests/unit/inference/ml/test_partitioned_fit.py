"""Fits of several parts at once: against separate ones where nothing is shared, and numbers counted once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences, taxa_with_data
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage
from phloem.inference.ml.criteria import free_numbers
from phloem.inference.ml.optimize import _Search, fit_parameterisation, optimize
from phloem.inference.ml.optimum import Run
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood

TREE = parse_trees("((a:0.1,b:0.12):0.05,c:0.2,(d:0.08,e:0.25):0.11);")[0]
FREE = {"one": "HKY+FO+G4", "two": "TN93+FO+R2", "shape": "MK"}


def data(n_sites: int = 500) -> dict:
    """The second part evolves at twice the rate."""
    stretched, three = replace(TREE, lengths=2 * TREE.lengths), alphabet("standard", symbols="012")

    def simulated(text: str, letters, tree, n: int, seed: int):
        return simulate_alignment(tree, model_for_alphabet(text, letters), n, seed, letters)

    dna = alphabet("dna")
    return {
        "one": simulated("HKY{3}+F{0.3,0.2,0.3,0.2}+G4{0.7}", dna, TREE, n_sites, 1),
        "two": simulated("TN93{2,4}+F{0.3,0.2,0.3,0.2}+R2{0.5,0.4,0.5,1.6}", dna, stretched, n_sites, 2),
        "shape": simulated("MK", three, TREE, 100, 3),
    }


def partitioned(linkage: Linkage, names=tuple(FREE)) -> PartitionedLikelihood:
    alignments = data()
    parts = {name: (alignments[name], FREE[name]) for name in names}
    return PartitionedLikelihood(parts, TREE, linkage, engine="cpu", threads=1)


def test_where_nothing_is_shared_the_optimum_is_the_sum_of_separate_ones():
    l, seen = partitioned(Linkage("unlinked")), []
    found = optimize(l, progress=lambda n, value: seen.append((n, value)))
    assert [n for n, _ in seen] == list(range(1, found.evaluations + 1))
    assert seen[-1][1] == pytest.approx(found.log_likelihood, abs=1e-6)
    alone = [
        optimize(TreeLikelihood(part.alignment, TREE, FREE[part.name], engine="cpu", threads=1))
        for part in l.parts
    ]
    np.testing.assert_allclose(
        found.part_log_likelihoods, [a.log_likelihood for a in alone], rtol=0, atol=2e-3
    )
    assert found.converged and found.n_free == sum(a.n_free for a in alone)
    for a, (name, tree) in zip(alone, found.part_trees.items()):
        np.testing.assert_allclose(tree.lengths, a.tree.lengths, rtol=0.02, atol=2e-3)
        again = TreeLikelihood(data()[name], tree, found.model_texts[name], engine="cpu", threads=1)
        assert again.log_likelihood() == pytest.approx(a.log_likelihood, abs=2e-3)
    rates, weights = found.parameters["two"]["rates"], found.parameters["two"]["weights"]
    assert weights @ rates == pytest.approx(1.0) and rates[0] < rates[1]


def test_steps_are_scaled_by_the_changes_in_the_parts_that_have_a_number():
    parts = {"one": (data()["one"], FREE["one"]), "two": (data(100)["two"], FREE["two"])}
    for linkage in (Linkage("proportional"), Linkage("unlinked")):
        search = _Search(PartitionedLikelihood(parts, TREE, linkage, engine="cpu", threads=1), 1e-4, None)
        vector = search.coordinates(search.parameterisation.block_values([]))
        names = [block.name for block in search.space.blocks for _ in range(block.n_coordinates)]
        scale = dict(zip(names, search._changes(vector)))
        for of_one, of_two in (("kappa", "kappa_R"), ("alpha", "rates"), ("frequencies{one}", "weights")):
            assert scale[of_one] == pytest.approx(5 * scale[of_two])


def test_more_freedom_fits_better_and_is_counted():
    fits = {kind: optimize(partitioned(Linkage(kind))) for kind in ("linked", "proportional", "unlinked")}
    assert {k: f.n_free for k, f in fits.items()} == {
        "linked": 7 + 5 + 7,  # HKY+FO+G4: κ, 3 frequencies, α; TN93+FO+R2: 2 + 3 + 2; MK: none
        "proportional": 7 + 5 + 7 + 2,
        "unlinked": 21 + 5 + 7,
    }
    values = [f.log_likelihood for f in fits.values()]
    assert values[0] + 20 < values[1] < values[2] + 1e-3
    rates = fits["proportional"].partition_rates
    assert rates[1] / rates[0] == pytest.approx(2.0, rel=0.25)
    assert np.array([500, 500, 100]) @ rates / 1100 == pytest.approx(1.0)


def test_shared_parameters_are_counted_once_and_are_equal():
    names = ("one", "two")
    both = (names,)
    own = optimize(partitioned(Linkage("proportional"), names))
    shared = optimize(partitioned(Linkage("proportional", {"frequencies": both}), names))
    assert shared.n_free == own.n_free - 3
    np.testing.assert_array_equal(*[shared.parameters[n]["frequencies"] for n in names])
    assert own.log_likelihood - 15 < shared.log_likelihood < own.log_likelihood + 1e-3
    assert not np.array_equal(*[own.parameters[n]["frequencies"] for n in names])


def test_a_last_climb_begins_where_each_part_fitted_best():
    """Of two runs each is wrong in one part; put together, what was right in both is better than either."""
    search = _Search(partitioned(Linkage("linked"), ("one", "two")), 1e-4, None)
    space = search.space
    start = space.pack(search.parameterisation.block_values([]) | search.first_lengths())
    runs = []
    for alpha, kappas in ((0.7, (0.01, 50.0)), (0.05, (2.0, 4.0))):
        values = space.unpack(start) | dict(zip(("alpha", "kappa_R", "kappa_Y"), (alpha, *kappas)))
        vector = search.coordinates({name: np.atleast_1d(x) for name, x in values.items()})
        runs.append(Run(-search.objective(vector)[0], vector, True))
    vector = search.best_of_parts(runs)
    mixed = space.unpack(space.from_coordinates(vector))
    assert mixed["alpha"] == pytest.approx(0.7) and mixed["kappa_R"] == pytest.approx(2.0)
    assert -search.objective(vector)[0] > max(r.log_likelihood for r in runs) + 1


def test_two_parts_can_share_a_set_of_lengths_that_the_third_does_not():
    apart = optimize(partitioned(Linkage("unlinked")))
    shared = optimize(partitioned(Linkage("unlinked", together=(("one", "shape"),))))
    linked = optimize(partitioned(Linkage("linked")))
    assert shared.n_free == apart.n_free - 7 == linked.n_free + 7
    assert linked.log_likelihood < shared.log_likelihood < apart.log_likelihood
    lengths = {name: tree.lengths.tolist() for name, tree in shared.part_trees.items()}
    assert lengths["one"] == lengths["shape"] != lengths["two"]


@pytest.mark.parametrize(("lengths", "fewer"), [("unlinked", 2 + 4), ("proportional", 0), ("linked", 0)])
def test_branches_of_taxa_without_data_are_not_counted(lengths, fewer):
    """One taxon is missing in a part, two in the other; together they are all there. So counts IQ-TREE 2."""
    whole = {name: "ACGTACGTAAGGTTCCAAGTGA" for name in "abcdef"}
    tree = parse_trees("(a:0.1,b:0.1,(c:0.1,(d:0.1,(e:0.1,f:0.1):0.1):0.1):0.1);")[0]

    def counted(missing: tuple[str, str]) -> int:
        parts = {
            part: (
                alignment_from_sequences(
                    {n: "-" * 22 if n in gone else row for n, row in whole.items()}, alphabet("dna")
                ),
                "JC",
            )
            for part, gone in zip(("x", "y"), missing)
        }
        likelihood = PartitionedLikelihood(parts, tree, Linkage(lengths), "cpu", threads=1)
        return free_numbers(likelihood, fit_parameterisation(likelihood))

    assert counted(("", "")) - counted(("c", "ef")) == fewer
    assert counted(("", "")) - counted(("c", "ce")) == fewer + (2 if lengths != "unlinked" else 0)


def test_a_set_of_one_taxon_has_no_branch():
    rows = {"a": "ACGT", "b": "----", "c": "NNNN", "d": "????"}
    data = alignment_from_sequences(rows, alphabet("dna"))
    tree = parse_trees("(a:0.1,b:0.1,(c:0.1,d:0.1):0.1);")[0]
    likelihood = TreeLikelihood(data, tree, "JC", "cpu", threads=1)
    assert free_numbers(likelihood, fit_parameterisation(likelihood)) == 0
    assert taxa_with_data(data).tolist() == [True, False, False, False]

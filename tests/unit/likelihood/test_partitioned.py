"""The partitioned likelihood against separate ones, and its derivatives against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.translation import translated
from phloem.density.parts import Linkage
from phloem.errors import InputError, ModelError, NumericalError
from phloem.io.trees import parse_trees
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.pruning import parts
from phloem.pruning.cpu import part_cells
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.grid import OnRanks
from phloem.pruning.select import entries_at_tips
from unit.inference.mcmc.ranks_in_threads import led

TREE = parse_trees("((a:0.1,b:0.12):0.05,(c:0.2,(d:0.08,e:0.25):0.11):0.03);")[0]
UNROOTED = parse_trees("((a:0.1,b:0.12):0.05,c:0.2,(d:0.08,e:0.25):0.11);")[0]
DNA = {
    "a": "ACGTACGTAAGGTTCCAAGT-A",
    "b": "ACGTACGAAAGGTTCCAACTRA",
    "c": "ACTTACGAAAGCTTCCATCTAG",
    "d": "GCTTACCAAAGCTTCGATCTAG",
    "e": "GCTTATCAACGCTACGTTCTNG",
}


def dna(first: int = 0, last: int = 22) -> Alignment:
    return alignment_from_sequences({k: s[first:last] for k, s in DNA.items()}, alphabet("dna"))


def codons() -> Alignment:
    return alignment_from_sequences({k: s[:18] for k, s in DNA.items()}, alphabet("codon"))


def protein() -> Alignment:
    rows = {"a": "ARNDCQEG", "b": "ARNDCQKG", "c": "ARNECHKG", "d": "AKNEC-KG", "e": "AKSECHRG"}
    return alignment_from_sequences(rows, alphabet("protein"))


def morphology() -> Alignment:
    rows = {
        "e": "10121",
        "a": "00120",
        "b": "00021",
        "c": "01011",
        "d": "11?10",
    }  # rows in an order of its own
    return alignment_from_sequences(rows, alphabet("standard", symbols="012"))


MIXED = {
    "genes": (dna(), "HKY{2.5}+F+I{0.1}+G4{0.6}"),
    "acids": (protein(), "LG+G4{0.9}"),
    "codons": (codons(), "GY94{omega=0.4,kappa=2.2}+F3X4"),
    "shape": (morphology(), "MKV+G4{0.9}"),
}
FREE = {
    "genes": (dna(0, 12), "HKY+FO+I+G4"),
    "more": (dna(12), "TN93+FO+R2"),
    "codons": (codons(), "MG94K+FO1X4+G4"),
    "shape": (morphology(), "MK+G4"),
}
ALPHAS = {"alpha": (("genes", "shape"),), "frequencies": (("genes", "more"),)}
VALUES = {
    "genes": {"kappa": 2.5, "frequencies": [0.1, 0.2, 0.3, 0.4], "p_invariable": 0.1, "alpha": 0.7},
    "more": {"kappa_R": 1.5, "kappa_Y": 3.0, "rates": [0.3, 1.4], "weights": [0.4, 0.6]},
    "codons": {"omega": 0.4, "kappa": 2.0, "frequencies": [0.2, 0.2, 0.3, 0.3], "alpha": 1.3},
}


def separate(parts, name: str, factor: float = 1.0, tree=TREE) -> TreeLikelihood:
    data, model = parts[name]
    return TreeLikelihood(data, replace(tree, lengths=tree.lengths * factor), model, engine="reference")


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_sum_over_dna_protein_codons_and_morphology(engine):
    l = PartitionedLikelihood(MIXED, TREE, engine=engine)
    expected = [separate(MIXED, name, 3.0 if name == "codons" else 1.0).log_likelihood() for name in MIXED]
    np.testing.assert_allclose(l.part_log_likelihoods(), expected, rtol=1e-11)
    assert l.log_likelihood() == pytest.approx(sum(expected), rel=1e-12)
    assert l.log_likelihood() != pytest.approx(
        sum(separate(MIXED, name).log_likelihood() for name in MIXED), abs=1e-3
    )  # were a codon one site long
    sites = l.site_log_likelihoods()
    assert [len(s) for s in sites.values()] == [22, 8, 6, 5] and l.n_sites == 41
    np.testing.assert_allclose([s.sum() for s in sites.values()], expected, rtol=1e-11)
    assert l.model_texts["acids"] == "LG+G4{0.9}" and l.selections["genes"].engine == engine


def test_codons_alone_are_one_site_each():
    only = {"codons": MIXED["codons"]}
    assert PartitionedLikelihood(only, TREE).log_likelihood() == pytest.approx(
        separate(MIXED, "codons").log_likelihood(), rel=1e-12
    )


def test_rates_of_parts_stretch_their_branches():
    l = PartitionedLikelihood(MIXED, TREE, Linkage("proportional"), engine="reference")
    shares = np.array([22, 8, 18, 5]) / 53
    rates = np.array([0.5, 1.0, 1.4, 2.0])
    rates /= shares @ rates
    l.set(partition_rates=rates)
    units = [1.0, 1.0, 3.0, 1.0]
    expected = [separate(MIXED, n, r * u).log_likelihood() for n, r, u in zip(MIXED, rates, units)]
    np.testing.assert_allclose(l.part_log_likelihoods(), expected, rtol=1e-11)
    np.testing.assert_allclose(l.part_trees["acids"].lengths[:-1], TREE.lengths[:-1] * rates[1])
    with pytest.raises(InputError, match="have mean 2 over characters"):
        l.set(partition_rates=2 * rates)


def free(linkage: Linkage, engine: str = "reference") -> PartitionedLikelihood:
    l = PartitionedLikelihood(FREE, TREE, linkage, engine=engine, threads=1)
    l.set(parameters=VALUES)
    return l


def test_linked_parameters_change_together():
    l = free(Linkage("linked", ALPHAS))
    assert l.parameters["shape"]["alpha"] == 0.7
    np.testing.assert_array_equal(l.parameters["more"]["frequencies"], [0.1, 0.2, 0.3, 0.4])
    l.set(parameters={"shape": {"alpha": 0.9}})
    assert l.parameters["genes"]["alpha"] == 0.9 and l.parameters["codons"]["alpha"] == 1.3
    names = l.parameters_by_element
    assert names["alpha{genes,shape}"] == 0.9 and names["alpha{codons}"] == 1.3 and names["rate_2"] == 1.4
    assert names["frequency_A{genes,more}"] == 0.1 and names["frequency_A{codons}"] == 0.2
    with pytest.raises(InputError, match="shared by 'genes' and 'shape'"):
        l.set(parameters={"genes": {"alpha": 0.1}, "shape": {"alpha": 0.2}})


def moved(l: PartitionedLikelihood, part: str, name: str, i: int, step: float) -> float:
    """The log-likelihood with an entry (of a simplex: of its softmax coordinates) moved."""
    old = l.parameters[part][name]
    x = np.atleast_1d(np.array(old, float))
    if l.parts[l.part_names.index(part)].model.parameter(name).kind == "simplex":
        x = x * np.exp(step * (np.arange(len(x)) == i))
        x /= x.sum()
    else:
        x[i] += step
    l.set(parameters={part: {name: x if np.ndim(old) else float(x[0])}})
    value = l.log_likelihood()
    l.set(parameters={part: {name: old}})
    return value


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("lengths", ["linked", "proportional", "unlinked"])
def test_derivatives_through_links_and_rates(lengths, engine):
    l = free(Linkage(lengths, ALPHAS), engine)
    if lengths == "proportional":
        rates = np.array([0.5, 1.5, 0.8, 2.0])
        l.set(partition_rates=rates / (l._names.site_shares @ rates))
    found, h, seen = l.gradient(), 1e-5, set()
    assert found.log_likelihood == pytest.approx(l.log_likelihood(), rel=1e-12)
    for part, readings in zip(l.parts, l._names.readings):
        for r in readings:
            for i, element in enumerate(l._names.space.block(r.block).elements):
                ends = [moved(l, part.name, r.parameter.name, i, s) for s in (h, -h)]
                numeric = (ends[0] - ends[1]) / (2 * h)
                assert found.parameters[element] == pytest.approx(numeric, rel=1e-4, abs=2e-5), element
                seen.add(element)
    assert seen == set(found.parameters) == set(l.parameters_by_element)
    lengths_now = l.branch_lengths
    assert found.branch_lengths.shape == lengths_now.shape == ((4, 8) if lengths == "unlinked" else (8,))
    for at in np.ndindex(lengths_now.shape):
        ends = []
        for step in (h, -h):
            new = lengths_now.copy()
            new[at] += step
            l.set(branch_lengths=dict(zip(l.part_names, new)) if lengths == "unlinked" else new)
            ends.append(l.log_likelihood())
        assert found.branch_lengths[at] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4, abs=2e-5)
    alone = l.gradient(parameters=False)
    assert alone.parameters == {}


def test_derivatives_by_the_rates_of_parts():
    l = free(Linkage("proportional"))
    l.set(parameters={"shape": {"alpha": 0.7}, "more": {"frequencies": [0.1, 0.2, 0.3, 0.4]}})
    found, h = l.gradient().partition_rates, 1e-5
    shares = l._names.site_shares
    for i in range(3):  # along changes that keep the mean
        direction = np.zeros(4)
        direction[i], direction[3] = 1.0, -shares[i] / shares[3]
        ends = []
        for step in (h, -h):
            l.set(partition_rates=1 + step * direction)
            ends.append(l.log_likelihood())
        assert found @ direction == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_translated_amino_acids_count_as_their_nucleotides_in_the_mean_of_rates():
    parts = {"genes": (dna(0, 18), "JC"), "acids": (translated(codons()), "Poisson")}
    l = PartitionedLikelihood(parts, TREE, Linkage("proportional"))
    l.set(partition_rates=[0.5, 1.5])
    assert [part.site_length for part in l.part_models] == [1, 1]  # lengths are per amino acid
    with pytest.raises(InputError, match=r"have mean 1\.125 over"):
        l.set(partition_rates=[0.75, 1.5])


def test_the_tree_of_unlinked_lengths_has_their_mean():
    l = free(Linkage("unlinked"))
    l.set(branch_lengths={"genes": {"a": 0.9}})
    at = l.branch_names.index("a")
    share = 12 / (12 + 10 + 18 + 5)
    assert l.tree.lengths[at] == pytest.approx(0.9 * share + 0.1 * (1 - share))
    assert l.part_trees["genes"].lengths[at] == 0.9


SHARED = Linkage("linked", ALPHAS)
CIRCULAR = "UNREST{1,0.1,0.1,0.1,0.1,1,1,0.1,0.1,0.1,0.1}"  # A -> C -> T -> G -> A: complex eigenvalues


def close(found, wanted) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("threads", [1, 3])
def test_cells_follow_lengths_and_models(threads):
    """One compiled call for all parts gives what the reference gives, part by part, after every change."""
    cells = PartitionedLikelihood(FREE, TREE, SHARED, engine="cpu", threads=threads)
    plain = PartitionedLikelihood(FREE, TREE, SHARED, engine="reference")
    for step in range(3):
        for l in (cells, plain):
            l.set(parameters=VALUES | {"more": VALUES["more"] | {"kappa_R": 1.5 + step}})
            l.set(branch_lengths=TREE.lengths[:-1] * (1 + step / 2))
        np.testing.assert_allclose(cells.part_log_likelihoods(), plain.part_log_likelihoods(), rtol=1e-9)
        for parameters in (False, True):
            found, wanted = cells.gradient(parameters), plain.gradient(parameters)
            close(found.branch_lengths, wanted.branch_lengths)
            assert found.parameters.keys() == wanted.parameters.keys()
            close(np.array([*found.parameters.values(), 0.0]), np.array([*wanted.parameters.values(), 0.0]))
    one = free(SHARED, "cpu").gradient()
    again = PartitionedLikelihood(FREE, TREE, SHARED, engine="cpu", threads=threads)
    again.set(parameters=VALUES)
    assert np.array_equal(again.gradient().branch_lengths, one.branch_lengths)


def test_a_cell_that_keeps_an_old_model_is_seen(monkeypatch):
    """Negative control: the numbers of a model that changed are not written."""
    cells, plain = free(SHARED, "cpu"), free(SHARED)
    cells.gradient()
    monkeypatch.setattr(Forest, "propose_model", lambda *_: None)
    for l in (cells, plain):
        l.set(parameters={"more": {"kappa_R": 1.5001}})
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(cells.part_log_likelihoods(), plain.part_log_likelihoods(), rtol=1e-9)


def test_parts_that_no_cell_can_have():
    """An irreversible part with complex eigenvalues, beside two cells."""
    parts = {"a": (dna(0, 8), "HKY{2}+FO{0.1,0.2,0.3,0.4}"), "b": (dna(8, 14), "JC+G4{0.5}")}
    parts["turning"] = (dna(14), CIRCULAR)
    found = PartitionedLikelihood(parts, TREE, engine="cpu", threads=1)
    wanted = PartitionedLikelihood(parts, TREE, engine="reference")
    assert np.iscomplexobj(found._points[2].site_model.processes[0].eigen.values)
    np.testing.assert_allclose(found.part_log_likelihoods(), wanted.part_log_likelihoods(), rtol=1e-9)
    close(found.gradient().branch_lengths, wanted.gradient().branch_lengths)
    for name, sites in wanted.site_log_likelihoods().items():
        np.testing.assert_allclose(found.site_log_likelihoods()[name], sites, rtol=1e-9)


def on_processes(size: int, named: dict) -> list[np.ndarray]:
    """Values, slopes and sites of these parts on so many processes, twice."""

    def work(here):
        found, numbers = PartitionedLikelihood(named, TREE, engine=OnRanks("cpu", here), threads=1), []
        for factor in (1.0, 1.5):
            found.set(branch_lengths=TREE.lengths[:-1] * factor)
            slopes = found.gradient()
            numbers += [found.part_log_likelihoods(), slopes.branch_lengths, slopes.part_log_likelihoods]
            numbers += [*found.site_log_likelihoods().values(), np.array([*slopes.parameters.values()])]
        told = found.selections["a"].reason
        assert size == 1 or "2 share the parts" in told, told
        return numbers

    return led(size, work)


def test_processes_share_parts(monkeypatch):
    """The same bits on any number of them, whoever has what beside whom: two cells, and one that is none."""
    named = {"a": (dna(0, 8), "HKY{2}+FO{0.1,0.2,0.3,0.4}"), "b": (dna(8, 14), "JC+G4{0.5}")}
    named["turning"] = (dna(14), CIRCULAR)
    monkeypatch.setattr(parts.PartsAmongRanks, "_measured", lambda *_: (1.0, 0.0))
    alone = on_processes(1, named)
    for size in (2, 3, 5):
        assert all(map(np.array_equal, alone, on_processes(size, named))), size
    right = parts.PartsEvaluator.log_likelihoods  # planted: a process gives its answers in another order
    monkeypatch.setattr(parts.PartsEvaluator, "log_likelihoods", lambda self, *a: right(self, *a)[::-1])
    assert not all(map(np.array_equal, alone, on_processes(2, named)))


def test_who_has_which_parts():
    assert parts.useful_deal([1.0, 5.0, 2.0, 2.0], 2, 1.0, 0.0) == [[1], [0, 2, 3]]
    assert parts.useful_deal([1.0, 5.0, 2.0, 2.0], 4, 1.0, 0.1) == [[1], [0, 2, 3]]  # a third saves nothing
    assert parts.useful_deal([1.0, 1.0], 2, 1e-4, 1e-4) == [[0, 1]]


def test_a_large_part_has_an_evaluator_of_its_own(monkeypatch):
    """Results are the same; which one it is, is a matter of size alone."""
    l, plain = free(SHARED, "cpu"), free(SHARED)
    sizes = [entries_at_tips(part.problem) for part in l.parts]
    monkeypatch.setattr(part_cells, "LARGEST_CELL", max(sizes) - 1)
    close(l.gradient().branch_lengths, plain.gradient().branch_lengths)
    assert list(l._evaluator._evaluators) == [int(np.argmax(sizes))]


def test_an_impossible_site_is_named_with_its_part():
    parts = {"x": (dna(), "JC"), "y": (morphology(), "MK")}
    star = replace(TREE, lengths=np.zeros_like(TREE.lengths))
    l = PartitionedLikelihood(parts, star, engine="reference")
    with np.errstate(all="ignore"), pytest.raises(NumericalError, match="part 'x': site 1 "):
        l.log_likelihood()


@pytest.mark.parametrize(
    "parts, error, message",
    [
        ({}, InputError, "there are no parts"),
        ({"x": (dna(), "LG")}, ModelError, "part 'x': "),
        ({"x": (dna(), "JC+H2")}, ModelError, "part 'x': JC[+]H2 has 2 sets of branch lengths"),
        (
            {
                "x": (dna(), "JC"),
                "y": (alignment_from_sequences({"a": "A", "z": "A"}, alphabet("dna")), "JC"),
            },
            InputError,
            "part 'y': taxon 'b' is in other parts",
        ),
    ],
)
def test_wrong_parts(parts, error, message):
    with pytest.raises(error, match=message):
        PartitionedLikelihood(parts, TREE)


def test_what_has_no_value_and_what_needs_a_root_is_named():
    l = PartitionedLikelihood({"x": (dna(), "HKY+F"), "y": (dna(), "JC")}, UNROOTED)
    with pytest.raises(ModelError, match="part 'x': parameter 'kappa'"):
        l.log_likelihood()
    rooted = PartitionedLikelihood({"y": (dna(), "UNREST{1,2,3,1,2,3,1,2,3,1,2}")}, UNROOTED)
    with pytest.raises(InputError, match=r"part 'y': .* is not reversible"):
        rooted.log_likelihood()
    with pytest.raises(InputError, match="no part 'z'"):
        l.set(parameters={"z": {"kappa": 1.0}})
    with pytest.raises(InputError, match="linked: parts have no rates"):
        l.set(partition_rates=[1.0, 1.0])
    unlinked = PartitionedLikelihood({"x": (dna(), "JC"), "y": (dna(), "JC")}, UNROOTED, Linkage("unlinked"))
    with pytest.raises(InputError, match="without their part"):
        unlinked.set(branch_lengths=np.ones(7))

"""Directed messages on the GPU: values, scores, looks, quartets and lengths against those of the CPU, which
tests/unit/inference/ml/test_directed_messages.py holds against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.conftest import INTERPRETED, LATER
from gpu.directed_checks import close, lengths_end_alike, quartets_agree
from gpu.random_problems import random_case, random_model
from phloem.pruning.cpu.directed_lengths import FIT, LEAVE, PASS
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import half_edges, nexts, preorder
from phloem.tree.random import taxon_names, uniform_unrooted

TABLE = {  # tips, patterns, states, categories, share of invariable sites, mean length
    "small": (5, 9, 4, 2, 0.2, 0.2),
    "nucleotides": (9, 70, 4, 3, 0.0, 0.2),
    "invariable": (6, 41, 4, 1, 0.3, 0.2),
    "binary": (5, 17, 2, 2, 0.0, 0.2),
    "proteins": (5, 33, 20, 2, 0.1, 0.3),
    "codons": (4, 10, 61, 1, 0.0, 0.3),
    "scaled": (60, 5, 4, 1, 0.0, 0.6),
}


class Case:
    """Random data on a random tree, on both engines."""

    def __init__(self, tips, patterns, states, categories, invariant, mean, radius=3):
        from phloem.pruning.gpu.directed import GpuMessages

        rng = np.random.default_rng(tips)
        problem = random_case(tips, patterns, states, categories).problem
        model = random_model(states, categories, rng, invariant)
        self.cpu, self.gpu = DirectedMessages([problem], radius), GpuMessages([problem], radius)
        for engine in (self.cpu, self.gpu):
            engine.set_models([model], [0.8])
        tree = uniform_unrooted(tips, rng, mean)
        self.back, self.lengths = half_edges(tree, taxon_names(tips))
        self.order, self.radius = preorder(self.back), radius
        self.tree = self.back, self.lengths, self.order

    @property
    def inner(self) -> np.ndarray:
        n = (len(self.back) + 6) // 4
        return self.order[(self.order >= n) & (self.back[self.order] >= n)]


EVERY = ["small", *(pytest.param(name, marks=LATER) for name in TABLE if name != "small")]


@pytest.fixture(scope="module", params=EVERY)
def case(request):
    return Case(*TABLE[request.param])


def test_values_and_sites(case):
    close(case.gpu.fill(*case.tree), case.cpu.fill(*case.tree), 1e-12)
    close(case.gpu.sites(), case.cpu.sites(), 1e-11)


def test_scores_of_regrafts(case):
    pruned = np.arange(len(case.back) - 6, len(case.back))
    found, wanted = (one.regrafts(*case.tree, pruned, case.radius) for one in (case.gpu, case.cpu))
    np.testing.assert_array_equal(found.steps, wanted.steps)
    close(found.scores, wanted.scores, 1e-11)


def test_second_looks(case):
    pruned = np.arange(len(case.back) - 6, len(case.back))
    wanted = case.cpu.regrafts(*case.tree, pruned, case.radius)
    case.gpu.fill(*case.tree)
    rows = np.arange(len(wanted.scores))[:: max(1, len(wanted.scores) // 5)]
    arguments = rows, wanted, case.back, case.lengths
    found, looks = case.gpu.fitted(*arguments, sites=True), case.cpu.fitted(*arguments, sites=True)
    close(found.found, looks.found)
    close(found.sites, looks.sites)


def test_quartets(case):
    quartets_agree(case)


@pytest.mark.parametrize("name", [pytest.param(name, marks=LATER) for name in TABLE])
def test_lengths_end_where_the_cpu_ends(name):
    case = Case(*TABLE[name])
    if INTERPRETED and len(case.lengths) > 60:
        pytest.skip("takes minutes in the interpreter, and says nothing of scaling")
    lengths_end_alike(case)


def test_only_lengths_that_are_asked_for_are_fitted():
    case = Case(*TABLE["small"])
    todo = np.full(len(case.back), LEAVE, np.int8)
    todo[case.order[2]] = FIT
    ends = []
    for engine in (case.gpu, case.cpu):
        before, lengths = engine.fill(*case.tree), case.lengths.copy()
        own = todo if engine is case.gpu else np.where(todo == FIT, FIT, PASS).astype(np.int8)
        ends.append(engine.sweep(case.back, lengths, case.order, own))
        assert ends[-1] > before
        assert set(np.flatnonzero(lengths != case.lengths)) == {case.order[2], case.back[case.order[2]]}
    assert ends[0] == pytest.approx(ends[1], abs=1e-3)


def test_a_message_of_the_wrong_branch_is_seen():
    """The errors that these tests are about: a neighbour's message, a matrix of another branch."""
    case = Case(*TABLE["small"])
    wanted = case.cpu.fill(*case.tree)
    inner = int(case.inner[0])
    for planted in ("message", "matrix"):
        assert case.gpu.fill(*case.tree) == pytest.approx(wanted, rel=1e-12)
        tree, engine = case.gpu._tree, case.gpu._engine
        assert tree is not None
        tasks = tree.tasks()
        row = int(np.flatnonzero(tasks[:, 0] == inner)[0])
        if planted == "message":
            tasks[row, 1] = tasks[row, 2]
        else:
            tasks[row, 3] = (tasks[row, 3] + 1) % len(case.order)
        engine._on.put_tree(0, tasks, tree.end())
        assert abs(case.gpu.fill(*case.tree) - wanted) > 1e-6 * abs(wanted)
        engine._on.put_tree(0, tree.tasks(), tree.end())


def test_a_changed_tree_and_changed_weights():
    case = Case(*TABLE["small"])
    case.gpu.fill(*case.tree)
    back = case.back.copy()
    h = int(case.inner[1])
    mine, other = nexts(h, 5)[1], nexts(int(back[h]), 5)[0]
    x, y = int(back[mine]), int(back[other])
    for one, two in ((mine, y), (other, x)):
        back[one], back[two] = two, one
    weights = np.random.default_rng(1).integers(0, 4, case.cpu.n_patterns).astype(float)
    tree = back, np.full(len(back), 0.13), preorder(back)
    for engine in (case.cpu, case.gpu):
        engine.set_weights(weights)
    close(case.gpu.fill(*tree), case.cpu.fill(*tree), 1e-12)
    assert case.gpu.n_sites == case.cpu.n_sites


def test_what_is_not_on_a_gpu_and_what_has_no_room():
    from dataclasses import replace

    from phloem.errors import DeviceError
    from phloem.pruning.gpu.directed_memory import require_search

    problem = random_case(5, 9, 4, 2).problem
    (sizes,) = require_search([[problem]])
    for free, fits in ((int(sizes.bytes + sizes.room), True), (int(sizes.bytes), False)):
        if fits:
            require_search([[problem]], free)
        else:
            with pytest.raises(DeviceError, match=r"the messages of 5 taxa and .* are free") as caught:
                require_search([[problem]], free)
            assert "--device cpu" in caught.value.hint
    many = replace(problem, state_sets=np.eye(65, dtype=bool))
    with pytest.raises(DeviceError, match="65 states is not on a GPU yet"):
        require_search([[many]])


def test_what_the_arrays_take_is_forecast():
    import torch

    from phloem.pruning.gpu.directed_memory import DirectedArrays, sizes_of

    problem = random_case(9, 70, 20, 2).problem
    sizes = sizes_of([problem])
    arrays = DirectedArrays(sizes, torch.device("cpu"))
    taken = sum(x.numel() * x.element_size() for x in vars(arrays).values() if isinstance(x, torch.Tensor))
    assert sizes.bytes == pytest.approx(taken, rel=0.1)


@pytest.mark.parametrize("constrained", [pytest.param(x, marks=LATER) for x in (False, True)])
def test_a_search_ends_where_the_cpus_ends(constrained):
    """From a tree with two taxa in each other's place; the value is the reference's, and again the same."""
    from phloem.data.alignment import alignment_from_sequences
    from phloem.data.alphabet import alphabet
    from phloem.inference.ml.constrained import data_of
    from phloem.inference.ml.place import Place
    from phloem.inference.ml.searched import SearchedPart
    from phloem.inference.ml.tree_search import SearchSettings, search
    from phloem.inference.ml.tree_starts import Start
    from phloem.io.trees import parse_trees
    from phloem.likelihood.model_for_alignment import model_for_alignment
    from phloem.likelihood.tree_likelihood import TreeLikelihood
    from phloem.tree.constraint import Constraint

    rows = {"a": "AAAACCCCGT", "b": "AAAACCCCGT", "c": "AATTCCGGGA", "d": "AATTCCGGCA", "e": "GGTTTTGGCA"}
    rows = {name: row + "ACGT" for name, row in rows.items()}
    data = alignment_from_sequences(rows, alphabet("dna"))
    part = SearchedPart("", data, model_for_alignment("JC", data))
    wrong = parse_trees("(a:0.1,c:0.1,(b:0.1,(d:0.1,e:0.1):0.1):0.1);")[0]  # d and e are together
    constraint = Constraint(parse_trees("((d,e),a,b,c);")[0], data.taxa) if constrained else None
    ends = []
    for device in ("gpu", "gpu", "cpu"):
        found = search(
            data_of([part], None, constraint, Place(device)),
            Start(wrong),
            SearchSettings(patience=0, threads=1),
        )
        ends.append(found.optimum)
    assert ends[0].log_likelihood == ends[1].log_likelihood
    assert ends[0].log_likelihood == pytest.approx(ends[2].log_likelihood, abs=1e-4)
    again = TreeLikelihood(data, ends[0].tree, "JC", engine="reference").log_likelihood()
    assert again == pytest.approx(ends[0].log_likelihood, rel=1e-10)

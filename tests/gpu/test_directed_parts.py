"""Messages of parts, of unseen characters, and of many trees at once on a GPU, against those of the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER
from gpu.directed_checks import close, lengths_end_alike, quartets_agree
from gpu.random_problems import random_case, random_model
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import half_edges, nexts, preorder
from phloem.tree.random import taxon_names, uniform_unrooted

PARTS = {  # of every part: patterns, states, categories, share of invariable sites, unseen characters
    "unseen": [(23, 4, 2, 0.0, 4)],
    "two": [(40, 4, 2, 0.0, 0), (9, 4, 1, 0.2, 0)],
    "of two kinds": [(33, 20, 1, 0.0, 0), (12, 4, 2, 0.0, 0)],
    "morphology": [(11, 2, 2, 0.0, 2), (37, 4, 1, 0.0, 0), (70, 4, 2, 0.1, 0)],
}
EVERY = [name if name == "unseen" else pytest.param(name, marks=LATER) for name in PARTS]
RATES = (0.8, 1.7, 0.3)


def problem_of(tips, patterns, states, categories, hidden):
    problem = random_case(tips, patterns, states, categories).problem
    if not hidden:
        return problem
    n = len(problem.pattern_weights)
    last, weights = np.arange(n) >= n - hidden, problem.pattern_weights.copy()
    weights[last] = 0.0
    codes = problem.tip_codes.copy()
    codes[0, ~last], codes[1, ~last] = 0, 1  # no character that is seen is constant
    codes[:, last] = np.arange(hidden)
    alone = np.eye(states, dtype=bool)
    sets = np.concatenate([alone, problem.state_sets[states:]])
    return replace(problem, ascertained=last, pattern_weights=weights, tip_codes=codes, state_sets=sets)


class Case:
    def __init__(self, parts, tips=5, radius=3):
        from phloem.pruning.gpu.directed import GpuMessages

        rng, self.radius = np.random.default_rng(tips), radius
        self.problems = [problem_of(tips, *part[:3], part[4]) for part in parts]
        self.models = [random_model(part[1], part[2], rng, part[3]) for part in parts]
        self.cpu = DirectedMessages(self.problems, radius)
        self.gpu = GpuMessages(self.problems, radius)
        for engine in (self.cpu, self.gpu):
            engine.set_models(self.models, RATES[: len(parts)])
        tree = uniform_unrooted(tips, rng, 0.2)
        self.back, self.lengths = half_edges(tree, taxon_names(tips))
        self.order = preorder(self.back)
        self.tree = self.back, self.lengths, self.order
        self.pruned = np.arange(len(self.back) - 6, len(self.back))

    @property
    def inner(self):
        n = (len(self.back) + 6) // 4
        return self.order[(self.order >= n) & (self.back[self.order] >= n)]


@pytest.fixture(scope="module", params=EVERY)
def case(request):
    return Case(PARTS[request.param])


def test_values_scores_and_second_looks(case):
    both = case.gpu, case.cpu
    close(*(one.fill(*case.tree) for one in both), 1e-12)
    close(*(one.sites() for one in both), 1e-11)
    found, wanted = (one.regrafts(*case.tree, case.pruned, case.radius) for one in both)
    np.testing.assert_array_equal(found.steps, wanted.steps)
    close(found.scores, wanted.scores, 1e-11)
    rows = np.arange(len(wanted.scores))[:: max(1, len(wanted.scores) // 4)]
    found, wanted = (one.fitted(rows, wanted, case.back, case.lengths, sites=True) for one in both)
    close(found.found, wanted.found)
    close(found.sites, wanted.sites)


def test_quartets(case):
    quartets_agree(case)


def test_lengths_end_where_the_cpu_ends(case):
    lengths_end_alike(case)


def test_a_pattern_under_the_model_of_another_part_is_seen():
    """The error that these tests are about."""
    case = Case(PARTS["two"])
    wanted = case.cpu.fill(*case.tree)
    models = case.gpu._engine._on.models
    assert models.unique().numel() == 2
    models[:] = models[0, 0]
    assert abs(case.gpu.fill(*case.tree) - wanted) > 1e-6 * abs(wanted)


def test_unseen_characters_that_are_left_out_are_seen():
    case = Case(PARTS["unseen"])
    wanted = case.cpu.fill(*case.tree)
    case.gpu._own.unseen._parts = ()
    assert abs(case.gpu.fill(*case.tree) - wanted) > 1e-6 * abs(wanted)


def walked(messages, case, back, everything):
    """What a search asks, on a topology of its own: every kind of question, or the first."""
    order, lengths = preorder(back), case.lengths.copy()
    if not everything:
        return [messages.fill(back, lengths, order), messages.sites()]
    said = [messages.fill(back, lengths, order), messages.sweep(back, lengths, order), lengths]
    found = messages.regrafts(back, lengths, order, case.pruned, case.radius)
    said += [found.scores, messages.fitted(np.arange(3), found, back, lengths).found, messages.sites()]
    return said


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=LATER)])
def test_trees_abreast_are_those_alone_bit_for_bit(everything):
    """Three trees, data and models at seats of one engine; one of them has more to do than the others."""
    from phloem.inference.ml.lockstep import Lockstep
    from phloem.pruning.gpu.directed import GpuMessages
    from phloem.pruning.gpu.directed_engine import DirectedEngine
    from phloem.pruning.gpu.directed_memory import find_device, sizes_of

    cases = [Case([(patterns, 4, 2, 0.1 * k, 0)], 5) for k, patterns in enumerate((40, 33, 21))]
    backs = [case.back.copy() for case in cases]
    back, h = backs[1], int(cases[1].inner[1])
    mine, other = nexts(h, 5)[1], nexts(int(back[h]), 5)[0]
    x, y = int(back[mine]), int(back[other])
    for one, two in ((mine, y), (other, x)):
        back[one], back[two] = two, one
    engine = DirectedEngine(sizes_of(cases[0].problems, 2), find_device())

    def work(k):
        def run(seat, ask):
            messages = GpuMessages(cases[k].problems, 3, (engine, seat, lambda *what: ask(0, *what)))
            messages.set_models(cases[k].models, RATES[:1])
            return [x for _ in range(1 + (k > 0)) for x in walked(messages, cases[k], backs[k], everything)]

        return run

    asked = []

    def answered(_, kind, questions):
        asked.append(len(questions))
        return getattr(engine, kind)(questions)

    for own, k in zip(Lockstep(2, answered).run([work(k) for k in range(3)]), range(3)):
        alone = walked(cases[k].gpu, cases[k], backs[k], everything)
        for found, wanted in zip(own, alone):
            np.testing.assert_array_equal(found, wanted)
    assert 2 in asked and max(asked) == 2


@pytest.mark.parametrize(
    "linkage", [pytest.param(x, marks=LATER) for x in ("linked", "proportional", "unlinked")]
)
def test_a_search_of_parts_ends_where_the_cpus_ends(linkage):
    """One part of nucleotides, one of characters that vary (+ASC), from a tree with two taxa misplaced.

    Fits are on the CPU: what they are on a GPU is for test_parts_together.py, and takes the interpreter
    minutes."""
    from phloem.data.alignment import alignment_from_sequences
    from phloem.data.alphabet import alphabet
    from phloem.density.parts import Linkage
    from phloem.inference.ml.constrained import data_of
    from phloem.inference.ml.place import Place
    from phloem.inference.ml.searched import SearchedPart
    from phloem.inference.ml.tree_search import SearchSettings, search
    from phloem.inference.ml.tree_starts import Start
    from phloem.io.trees import parse_trees
    from phloem.likelihood.model_for_alignment import model_for_alignment
    from phloem.pruning.gpu.directed import GpuMessages

    first = {"a": "AAAACCCCGT", "b": "AAAACCCCGA", "c": "AATTCCGGGA", "d": "AATTCCGGCA", "e": "GGTTTTGGCA"}
    second = {"a": "00010", "b": "00011", "c": "01100", "d": "11101", "e": "11101"}
    parts = []
    for name, rows, kind, text in (("one", first, "dna", "JC"), ("two", second, "binary", "MK+ASC")):
        data = alignment_from_sequences(rows, alphabet(kind))
        parts.append(SearchedPart(name, data, model_for_alignment(text, data)))
    wrong = parse_trees("(a:0.1,c:0.1,(b:0.1,(d:0.1,e:0.1):0.1):0.1);")[0]
    ends = []
    for place in (Place("cpu", GpuMessages), Place("cpu")):
        data = data_of(parts, Linkage(linkage), None, place)
        found = search(data, Start(wrong), SearchSettings(patience=0, threads=1))
        ends.append(found.optimum.log_likelihood)
    assert ends[0] == pytest.approx(ends[1], abs=2e-3)


@pytest.mark.parametrize("seats", [pytest.param(2, marks=LATER)])
def test_replicates_abreast_are_those_alone(seats):
    """Trees of the standard bootstrap are the same at any number of seats."""
    from phloem.data.alignment import alignment_from_sequences
    from phloem.data.alphabet import alphabet
    from phloem.inference.ml import replicates_on_gpu
    from phloem.inference.ml.bootstrap import Resampling, bootstrap_trees
    from phloem.inference.ml.identical import distinct
    from phloem.inference.ml.tree_search import SearchSettings
    from phloem.io.trees import newick_text

    rows = {"a": "AAAACCCCGT", "b": "AAAACCCCGA", "c": "AATTCCGGGA", "d": "AATTCCGGCA", "e": "GGTTTTGGCA"}
    data = alignment_from_sequences(rows, alphabet("dna"))
    resampling = Resampling([("", data, "JC")], None, distinct(data), device="gpu")
    most, texts = replicates_on_gpu._MOST, []
    try:
        for replicates_on_gpu._MOST in (seats, 1):
            trees = bootstrap_trees(resampling, {}, 3, SearchSettings(threads=1))
            texts.append([newick_text([tree]) for tree in trees])
    finally:
        replicates_on_gpu._MOST = most
    assert texts[0] == texts[1] and len(set(texts[0])) > 1

"""Clades that must be, may not be, or must be but for some taxa: what compiled code says of trees."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest

from phloem.density.calibrations import set_ancestors
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.calibrated_start import ancestor_of, starting_tree
from phloem.inference.time.clades import calibrations
from phloem.inference.time.compiled import density
from phloem.inference.time.settings import Clade, TreeModel
from phloem.inference.time.structure import TimeModel, time_model
from phloem.model.grammar import parse_model
from phloem.tree.dated import DatedTree, random_dated_tree

TAXA = tuple("abcdefg")
HARD = Clade("hard", ("a", "b", "c"), together=True)
PARTIAL = Clade("partial", ("a", "d"), together=True, outside=("f", "g"))
NEGATIVE = Clade("negative", ("e", "f"), apart=True)


def model_of(*clades: Clade) -> TimeModel:
    structure = structure_of_model(parse_model("JC", datatype="dna"), 10)
    return time_model(structure, TreeModel(clades=clades), TAXA, np.zeros((7, 2)), float("nan"))


def groups(tree: DatedTree) -> list[set[str]]:
    below: dict[int, set[str]] = {}
    for x in tree.order.tolist():
        below[x] = {TAXA[x]} if x < 7 else below[int(tree.left[x])] | below[int(tree.right[x])]
    return list(below.values())


def obeys(tree: DatedTree, clade: Clade) -> bool:
    """Said another way than compiled code: some node, or none, has such a group below it."""
    wanted, banned = set(clade.taxa), set(clade.outside or (set(TAXA) - set(clade.taxa)))
    return any(wanted <= group and not banned & group for group in groups(tree)) != clade.apart


@pytest.mark.parametrize("clade", [HARD, PARTIAL, NEGATIVE], ids=lambda clade: clade.name)
def test_trees_that_obey_are_told_from_others(clade):
    rng, model, seen = np.random.default_rng(1), model_of(clade), []
    known = calibrations(model)[0]
    planted = known._replace(member=np.where(known.member == 2, 0, known.member).astype(np.uint8))
    wrong = 0
    for _ in range(300):
        tree = random_dated_tree(np.zeros(7), rng, lambda t, pairs: rng.exponential(1 / pairs))
        told = [
            function(
                tree.left,
                tree.right,
                tree.order,
                record,
                7,
                np.zeros((2, 13), np.int64),
                np.zeros(1, np.int64),
            )
            for function, record in (
                (set_ancestors, known),
                (density.set_ancestors, known),
                (set_ancestors, planted),
            )
        ]
        seen.append(obeys(tree, clade))
        assert told[0] == told[1] == seen[-1]
        wrong += told[2] != seen[-1]
    assert 0 < sum(seen) < 300 and wrong > 0


def test_chains_start_from_trees_that_obey_all():
    model, rng, sizes = model_of(HARD, PARTIAL, NEGATIVE), np.random.default_rng(2), set()
    for _ in range(40):
        tree = starting_tree(model, rng)
        assert all(obeys(tree, clade) for clade in model.clades)
        sizes |= {len(group) for group in groups(tree) if {"a", "d"} <= group and not {"f", "g"} & group}
    assert sizes == {4, 5}  # a's clade with d, and with e or without


def test_constraints_that_no_tree_obeys():
    with pytest.raises(InputError, match=r"no tree was found .*\n?.*hard monophyletic, other"):
        starting_tree(model_of(HARD, Clade("other", ("c", "d"), together=True)), np.random.default_rng(1))
    for clade, told in (
        (replace(PARTIAL, outside=("d",)), "both sides: 'd'"),
        (replace(PARTIAL, outside=("z",)), "lack: 'z'"),
        (replace(NEGATIVE, taxa=TAXA), "all taxa"),
        (replace(PARTIAL, clock=True), "need not be a clade"),
    ):
        with pytest.raises(InputError, match=told):
            model_of(clade)


def test_the_stem_of_a_clade_begins_at_the_node_above():
    rng, clade = np.random.default_rng(1), Clade("abc", ("a", "b", "c"))
    stem = replace(clade, name="stem(abc)", stem=True)
    known = calibrations(model_of(clade, stem))[0]
    for function in (set_ancestors, density.set_ancestors):
        seen = set()
        for _ in range(40):
            tree = random_dated_tree(np.zeros(7), rng, lambda t, pairs: rng.exponential(1 / pairs))
            found = np.zeros(2, np.int64)
            function(tree.left, tree.right, tree.order, known, 7, np.zeros((2, 13), np.int64), found)
            at_root = tree.parent[found[0]] < 0
            assert found[1] == (found[0] if at_root else tree.parent[found[0]])
            assert [ancestor_of(tree, own, TAXA) for own in (clade, stem)] == found.tolist()
            seen.add(bool(at_root))
        assert seen == {True, False}
    with pytest.raises(InputError, match="no stem above all taxa"):
        model_of(Clade("stem(all)", TAXA, stem=True, age=Uniform(0.0, 1.0)))
    with pytest.raises(InputError, match="needs a density"):
        model_of(replace(stem, age=3.0))


def test_the_record_is_of_one_type_however_many_there_are():
    """An array whose numbers lie apart is another type to Numba, for which the loop of the sampler would be
    compiled anew: a minute of a slow processor. Negative control: columns of a table are such."""
    two = (
        Clade("own", ("a", "b"), age=Uniform(1.0, 2.0)),
        Clade("wider", ("a", "b", "c"), age=3.0, together=True),
    )
    none, one, several = (calibrations(model_of(*two[:n]))[0] for n in range(3))
    assert several.least.tolist() == [1.0, 3.0] and several.most.tolist() == [2.0, 3.0]
    assert numba.typeof(none) == numba.typeof(one) == numba.typeof(several)
    apart = several._replace(least=np.stack([several.least, several.most], axis=1)[:, 0])
    assert numba.typeof(apart) != numba.typeof(several)

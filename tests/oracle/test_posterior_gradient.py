"""What a fit can free, a sampler can sample: the posterior density of every kind of model by coordinates.

Shares instead of ratios, priors on every block, the Jacobian included; gradient against finite differences.
"""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parameterisation import LENGTHS, parameterise
from phloem.density.parts import Linkage
from phloem.density.space import Block
from phloem.density.target import Target
from phloem.density.terms.beta import Beta
from phloem.density.terms.compiled.dispatch import block_table, length_table, log_prior
from phloem.density.terms.compound_dirichlet import GammaDirichlet
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.term import TOPOLOGY, BlockPrior, LengthPrior
from phloem.io.trees import parse_trees
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.term import LikelihoodTerm
from phloem.likelihood.tree_likelihood import TreeLikelihood

TREE = parse_trees("((a:0.1,b:0.12):0.05,(c:0.2,(d:0.08,e:0.25):0.11):0.03);")[0]
ROWS = {
    "a": "ACGTACGTAAGGTTCCAAGT-A",
    "b": "ACGTACGAAAGGTTCCAACTRA",
    "c": "ACTTACGAAAGCTTCCATCTAG",
    "d": "GCTTACCAAAGCTTCGATCTAG",
    "e": "GCTTATCAACGCTACGTTCTNG",
}
MODELS = {
    "irreversible": ("dna", "UNREST+FROOT"),
    "exchangeabilities, frequencies, invariable sites": ("dna", "GTR+FO+I+G4"),
    "free rates of sites": ("dna", "TN93+FO+R3"),
    "hidden classes": ("dna", "HKY+FO+MM2"),
    "covarion": ("dna", "JC+COV+G2"),
    "covarion with rates": ("dna", "JC+COV*G2"),
    "frequencies at codon positions": ("codon", "GY94+FO3X4"),
    "a mixture": ("dna", "MIX{HKY+FO,JC}+G2"),
}


def prior_of(block: Block) -> BlockPrior:
    by_support = {"simplex": Dirichlet(1.7), "positive": Exponential(0.8), "unit": Beta(1.5, 3.0)}
    return BlockPrior(block.name, by_support[block.support])


def priors_of(parameterisation) -> list:
    lengths = set(parameterisation.lengths)
    own = [prior_of(b) for b in parameterisation.free_space.blocks if b.name not in lengths]
    return [*(LengthPrior(name, GammaDirichlet(2.0, 1.0, 1.5, 0.8)) for name in sorted(lengths)), *own]


def posterior(likelihood) -> Target:
    block = Block(LENGTHS, "positive", TREE.lengths[:-1], 1e-8, 100.0)
    p = parameterise(likelihood.part_models, block, likelihood.linkage, "shares")
    terms = [*priors_of(p), LikelihoodTerm(likelihood, p)]
    return Target(p.free_space, terms, {TOPOLOGY: likelihood.tree.parent})


def model_of(kind: str) -> TreeLikelihood:
    datatype, text = MODELS[kind]
    rows = {name: row[:18] for name, row in ROWS.items()} if datatype == "codon" else ROWS
    return TreeLikelihood(alignment_from_sequences(rows, alphabet(datatype)), TREE, text, engine="reference")


def two_parts() -> PartitionedLikelihood:
    data = alignment_from_sequences(ROWS, alphabet("dna"))
    link = Linkage("proportional", {"frequencies": (("one", "two"),)})
    parts = {"one": (data, "HKY+FO+G2"), "two": (data, "TN93+FO+R2")}
    return PartitionedLikelihood(parts, TREE, link, engine="reference")


def check_gradient(target: Target) -> None:
    space = target.space
    y = space.to_coordinates(space.start())
    y = y + 0.1 * np.random.default_rng(1).normal(size=len(y))
    found, h = target.at(y, jacobian=True)[1], 1e-5
    ends = [[target.at(y + s * e, jacobian=True)[0] for s in (h, -h)] for e in np.eye(len(y))]
    numeric = np.array([(up - down) / (2 * h) for up, down in ends])
    np.testing.assert_allclose(found, numeric, rtol=1e-4, atol=1e-4 * np.abs(numeric).max())
    assert np.abs(target.at(y, jacobian=False)[1] - numeric).max() > 1e-2


@pytest.mark.parametrize("kind", MODELS)
def test_one_part(kind):
    likelihood = model_of(kind)
    target = posterior(likelihood)
    read = {p.name for p in likelihood.model.free}
    assert read == {r.parameter.name for own in target.terms[-1].parameterisation.readings for r in own
                    if r.block in target.space}  # fmt: skip
    check_gradient(target)


def test_parts_that_share():
    target = posterior(two_parts())
    assert "partition_rates" in target.space and "frequencies" in target.space
    check_gradient(target)


def test_compiled_priors_are_those_of_the_target():
    target = posterior(two_parts())
    space, priors = target.space, target.terms[:-1]
    x = space.from_coordinates(space.to_coordinates(space.start()) + 0.2)
    values = target.values(x)
    lengths, own = priors[0], [p for p in priors if isinstance(p, BlockPrior)]
    expected = sum(p.log_density(values) for p in priors)
    table = length_table(lengths.family, 8, 5)
    found = log_prior(block_table(space, own), x) + log_prior(table, x[space.place(LENGTHS)])
    assert found == pytest.approx(expected, rel=1e-12)
    wrong = log_prior(block_table(space, own), x[::-1].copy()) + log_prior(table, x[space.place(LENGTHS)])
    assert wrong != pytest.approx(expected, rel=1e-6)

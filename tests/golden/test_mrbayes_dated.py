"""Log-likelihoods and log priors that MrBayes 3.2.7a printed of trees with a clock, of files with its block.

Densities are by the same tree and numbers, but of other ones in three places: its kappa is a share κ/(1+κ),
its population size counts individuals, and where the clock's rate is fixed the coalescent's heights are in
substitutions. Normal densities of ages and rates are cut there, with constants that phloem leaves out.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.time_data import TimeInput, time_input
from phloem.analysis.time_options import dated_analysis
from phloem.density import clocks, deviations
from phloem.density.autocorrelated_clock import log_variance
from phloem.density.tree_priors.tree_prior import Genealogy, registered
from phloem.inference.mcmc.structure import printed_names
from phloem.inference.time.calibrated_start import ancestor_of
from phloem.inference.time.sampler import plain_time_likelihood
from phloem.io.newick import parse_newick
from phloem.tree.dated import DatedTree, dated_tree

FOLDER = Path(__file__).parent / "mrbayes_blocks" / "dated"
SAMPLES = json.loads((FOLDER / "samples.json").read_text())
CASES = SAMPLES["cases"]
ITS_NAMES = {"pop_size": "popsize", "net_diversification": "net_speciation"}
ITS_NAMES |= {"relative_death": "relative_extinction", "clock_rate": "clockrate", "p_invariable": "pinvar"}
ITS_NAMES |= {"clock_variance": "variance", "sampling_proportion": "relative_fossilization"}
OF_FOSSILS = ("fossils", "diverse", "living", "fossiltip", "shifts")
BOUND = 2e-3  # of a log-likelihood of seven digits
PRIOR_BOUND = 3e-5  # of a log prior of seven digits, by ages of seven


def read(name: str) -> TimeInput:
    block = block_analysis(FOLDER / f"{name}.nex")
    return time_input(dated_analysis(block, {})[0])


def tree_of(text: str, data: TimeInput, rate: float) -> DatedTree:
    """In units of time, tips in the order of the data."""
    tree = parse_newick(text)[0]
    place = {tree.taxa.index(taxon): i for i, taxon in enumerate(data.taxa)}
    where = np.array([place.get(x, x) for x in range(tree.n_nodes)])
    parent, lengths = np.full(tree.n_nodes, -1), np.zeros(tree.n_nodes)
    parent[where] = np.where(tree.parent >= 0, where[tree.parent], -1)
    lengths[where] = tree.lengths
    return of_heights(parent, lengths / rate)


def of_heights(parent: np.ndarray, lasts: np.ndarray) -> DatedTree:
    """From what branches last; tips that last none are as old as their parents, ancestors."""
    n, depth = len(parent), np.zeros(len(parent))
    for x in range(n - 2, -1, -1):
        depth[x] = depth[parent[x]] + lasts[x]
    heights = np.full(n, depth.max())
    for x in range(n - 2, -1, -1):
        heights[x] = heights[parent[x]] - lasts[x]
    heights[heights < 1e-7] = 0.0
    shape = dated_tree(parent, np.arange(n))
    return replace(shape, heights=heights, order=np.argsort(heights, kind="stable"))


def rate_of(data: TimeInput, numbers: dict[str, float]) -> float:
    return numbers.get("clockrate", float(data.model.space.block("clock_rate").start[0]))


def its_name(name: str, numbers: dict[str, float]) -> str:
    """What it calls a number; it counts stretches of time from the oldest on."""
    bare, _, place = name.rpartition("_")
    if bare in ITS_NAMES and place.isdigit():
        n = sum(other.startswith(ITS_NAMES[bare]) for other in numbers)
        return f"{ITS_NAMES[bare]}_{n + 1 - int(place)}"
    return ITS_NAMES.get(name, name)


def values_of(data: TimeInput, numbers: dict[str, float]) -> dict[str, np.ndarray]:
    """Of every block its numbers in a sample, or where they are fixed."""
    found = {}
    for block in data.model.space.blocks:
        names = block.elements or (block.name,)
        own = [numbers.get(its_name(name, numbers)) for name in names]
        found[block.name] = block.start if block.name in data.model.fixed else np.array(own, float)
    if "pop_size" in found:
        found["pop_size"] = found["pop_size"] * 1.5  # of its file, which is Z-linked
    return found


def prior_of(data: TimeInput, sample: dict, prior: str | None = None, conditioned: bool = True) -> float:
    """The log prior of a sample, in NumPy. prior: another tree prior. conditioned: on ages of clades."""
    model, numbers = data.model, sample["numbers"]
    values = values_of(data, numbers)
    tree = tree_of(sample["tree"], data, rate_of(data, numbers))
    total = sum(term.log_density(values) for term in model.priors)
    dated = list[int]()
    for clade in model.clades:
        node = ancestor_of(tree, clade, data.taxa)
        age = tree.heights[node] - clade.offset
        total += float(clade.age.log_density(np.array([age]))) if clade.age else 0.0
        dated += [node] if clade.age and clade.together and conditioned else []
    own = registered()[prior] if prior else model.tree_prior
    x = np.concatenate([np.zeros(0), *(values[b.name] for b in model.parameters.blocks)])
    g = Genealogy(
        tree.heights, tree.order, model.n_tips, np.zeros(0, np.int64), tree.parent, np.array(dated, np.int64)
    )
    total += own.log_density(g, x, model.parameters.settings)
    return total + (_of_rates(data, sample, values) if "branches" in sample else 0.0)


def branch_rates(data: TimeInput, sample: dict) -> np.ndarray:
    """(N,) of a sample over the clock's, whose trees have lengths in substitutions by clock and branch."""
    clock, relaxed = (tree_of_branches(sample[name], data) for name in ("tree", "branches"))
    return np.divide(relaxed, clock, out=np.ones_like(clock), where=clock > 0)


def tree_of_branches(text: str, data: TimeInput) -> np.ndarray:
    """(N,) lengths, nodes as tree_of has them."""
    tree = parse_newick(text)[0]
    place = {tree.taxa.index(taxon): i for i, taxon in enumerate(data.taxa)}
    lengths = np.zeros(tree.n_nodes)
    lengths[[place.get(x, x) for x in range(tree.n_nodes)]] = tree.lengths
    lengths[-1] = 0.0
    return lengths


def _of_rates(data: TimeInput, sample: dict, values: dict[str, np.ndarray], by_log: bool = False) -> float:
    """Log density of branch rates, or, where these are of both ends, of those of nodes. by_log: the
    variance is that of logarithms."""
    rate, variance = (float(values[name].item()) for name in ("clock_rate", "clock_variance"))
    tree, r = tree_of(sample["tree"], data, rate), branch_rates(data, sample)
    numbers, room = np.array([rate, variance]), [np.zeros(len(r)) for _ in range(3)]
    if data.model.clock == clocks.WHITE_NOISE:
        own = deviations.white_noise(tree.parent, tree.heights, np.log(r), numbers, *room)
        return own - np.log(r[:-1]).sum()
    kind = clocks.AUTOCORRELATED_LOG if by_log else clocks.AUTOCORRELATED
    rho, total = np.ones(len(r)), 0.0
    for x in tree.order[-2::-1]:
        above = rho[tree.parent[x]]
        length = rate * (tree.heights[tree.parent[x]] - tree.heights[x])
        square = log_variance(kind, variance, length, above)[0]
        rho[x] = 2.0 * r[x] - above
        total += lognorm.logpdf(rho[x], np.sqrt(square), scale=above * np.exp(-square / 2))
    return total


def its_measure(name: str, data: TimeInput, numbers: dict[str, float]) -> float:
    """What its densities have more, see above."""
    more = 2 * math.log1p(numbers["kappa"]) if "kappa" in numbers else 0.0
    if name == "coalescence":
        more += math.log(1.5) - (len(data.taxa) - 1) * math.log(rate_of(data, numbers))
    if name in (*OF_FOSSILS, "pieces") and name != "living":  # the age of one is uniform from 0.3 to 0.9
        more -= math.log(0.6)
    if name == "fossils":  # a branch that lasts no time has a deviation here, of which nothing is known
        more += numbers["prop_ancfossil"] * 3 * 0.5 * math.log(2 * math.pi)
    if name == "fossiltip":  # of oriented trees
        more -= (len(data.taxa) - 1) * math.log(2)
    if name == "birthdeath":
        more -= norm.logsf(0.0, 0.01, 0.004) + norm.logsf((6 - 9) / 3)
    return more


@pytest.mark.parametrize("name", CASES)
def test_log_priors_are_those_of_mrbayes(name):
    data, found = read(name), []
    for sample in CASES[name]["samples"]:
        own = prior_of(data, sample) + its_measure(name, data, sample["numbers"])
        found.append(own - sample["numbers"]["LnPr"])
    # rates of nodes are differences of many lengths; its normal distribution function is right to four digits
    assert np.ptp(found) < (5e-4 if name == "tk02" else PRIOR_BOUND)
    assert np.abs(found).max() < (5e-4 if name in ("birthdeath", "tk02") else PRIOR_BOUND)


@pytest.mark.parametrize("name", CASES)
def test_log_likelihoods_are_those_of_mrbayes(name):
    data = read(name)
    plain = plain_time_likelihood(data.alignments, data.model)
    for sample in CASES[name]["samples"]:
        numbers, rate = sample["numbers"], rate_of(data, sample["numbers"])
        tree = tree_of(sample["tree"], data, rate)
        engine = data.model.engine
        names = [n for block in engine.space.blocks for n in printed_names(engine, block)]
        own = {n: numbers[ITS_NAMES.get(n, n)] for n in names}
        parent, heights, _ = tree.sorted()
        rates = rate * (branch_rates(data, sample) if "branches" in sample else np.ones(len(heights)))
        sets = np.stack([heights, rates[tree.sorted()[2]]])
        assert plain(parent, sets, own) == pytest.approx(numbers["LnL"], abs=BOUND)


@pytest.mark.parametrize("part", ["first", "third"])
def test_parts_have_the_densities_of_mrbayes(part):
    """Codon positions with a rate each. The control takes another part's rate."""
    data, likelihoods, priors, wrong = read("parts"), [], [], []
    engine = data.model.engine
    plain = plain_time_likelihood(data.alignments, data.model)
    names = [n for block in engine.space.blocks for n in printed_names(engine, block)]
    for sample in SAMPLES["of_parts"]["parts"]:
        numbers, rate = sample["numbers"], rate_of(data, sample["numbers"])
        tree, own = tree_of(sample["tree"], data, rate), {n: numbers[n] for n in names}
        parent, heights, _ = tree.sorted()
        sets = np.stack([heights, np.full(len(heights), rate)])
        likelihoods.append(plain(parent, sets, own) - numbers["LnL"])
        wrong.append(plain(parent, sets, own | {f"rate{{{part}}}": own["rate{second}"]}) - numbers["LnL"])
        values = engine.space.unpack(engine.values_of(own)) | {"kappa": np.array([own["kappa"]])}
        prior = sum(term.log_density(values) for term in data.model.priors)
        age = tree.heights[ancestor_of(tree, data.model.clades[0], data.taxa)] - data.model.clades[0].offset
        prior += float(data.model.clades[0].age.log_density(np.array([age])))
        g = Genealogy(tree.heights, tree.order, data.model.n_tips, np.zeros(0, np.int64), tree.parent)
        prior += data.model.tree_prior.log_density(g, np.zeros(0), data.model.parameters.settings)
        priors.append(prior + 2 * math.log1p(own["kappa"]) - numbers["LnPr"])
    assert np.abs(likelihoods).max() < BOUND < 0.1 < np.abs(wrong).min()
    assert np.ptp(priors) < PRIOR_BOUND


def test_standard_characters_have_the_likelihoods_of_mrbayes():
    """By their number of states, ordered or not, only variable ones, beside nucleotides under a relaxed
    clock. The control: published +ASC, which conditions every number of states on its own."""
    data = read("mixed")
    lewis = time_input(replace(dated_analysis(block_analysis(FOLDER / "mixed.nex"), {})[0], asc="lewis",
                               sites="1-24", part=(), linkage=None, model="MK+G4", prior=()))  # fmt: skip
    assert len(lewis.alignments) == 6 and lewis.n_sites == 24
    engine = data.model.engine
    assert data.unrecorded == (12, 0, 0, 0, 0, 0, 0) and len(data.alignments) == 7
    names = [n for block in engine.space.blocks for n in printed_names(engine, block)]
    plain, wrong = data.plain_likelihood(), plain_time_likelihood(data.alignments, data.model)
    for sample in SAMPLES["of_parts"]["mixed"]:
        numbers = sample["numbers"]
        tree = tree_of(sample["tree"], data, numbers["clockrate"])
        parent, heights, order = tree.sorted()
        rates = numbers["clockrate"] * branch_rates(data, sample)
        given = parent, np.stack([heights, rates[order]]), {n: numbers[n] for n in names}
        assert plain(*given) == pytest.approx(numbers["LnL"], abs=BOUND)
        assert abs(wrong(*given) - numbers["LnL"]) > 0.1  # without the characters that are not recorded


@pytest.mark.parametrize("prior", ["bd", "yule"])
def test_another_tree_prior_has_other_log_priors(prior):
    """Not even by a constant."""
    data = read("birthdeath")
    found = [prior_of(data, s, prior) - s["numbers"]["LnPr"] for s in CASES["birthdeath"]["samples"]]
    own = [its_measure("birthdeath", data, s["numbers"]) for s in CASES["birthdeath"]["samples"]]
    assert np.ptp(np.add(found, own)) > 100 * PRIOR_BOUND


@pytest.mark.parametrize("name", OF_FOSSILS)
def test_living_sampled_otherwise_have_other_log_priors(name):
    """Nor by a constant: random for diverse, also without fossils, and for fossils that end their lineages;
    diverse for random."""
    data = read(name)
    options = {"sampled": 0.4} | ({"sampling": "diversified"} if name == "fossils" else {})
    if name == "shifts":  # of fossils' rates at other times
        ages = {"net_diversification": (1.3,), "relative_death": (0.9,), "sampling_proportion": (0.45, 0.7)}
        options |= {"shift": ages}
    parameters = data.model.tree_prior.parameters(data.model.scale, options)
    other = replace(data, model=replace(data.model, parameters=parameters))
    samples = CASES[name]["samples"]
    found = [prior_of(other, s) - s["numbers"]["LnPr"] for s in samples]
    found = np.add(found, [its_measure(name, data, s["numbers"]) for s in samples])
    assert np.ptp(found) > 100 * PRIOR_BOUND


def test_uniform_ages_are_not_given_the_root_alone():
    data, samples = read("pieces"), CASES["pieces"]["samples"]
    found = [prior_of(data, s, conditioned=False) - s["numbers"]["LnPr"] for s in samples]
    assert np.ptp(found) > 100 * PRIOR_BOUND


def test_rates_by_the_variance_of_their_logarithms_have_another_density():
    data = read("tk02")
    for sample in CASES["tk02"]["samples"]:
        values = values_of(data, sample["numbers"])
        own = [_of_rates(data, sample, values, by_log) for by_log in (False, True)]
        assert abs(own[0] - own[1]) > 100 * PRIOR_BOUND


def test_an_age_without_its_offset_has_another_density():
    data = read("birthdeath")
    shifted = tuple(replace(c, offset=0.0) for c in data.model.clades)
    other = replace(data, model=replace(data.model, clades=shifted))
    sample = CASES["birthdeath"]["samples"][0]
    assert abs(prior_of(other, sample) - prior_of(data, sample)) > 100 * PRIOR_BOUND

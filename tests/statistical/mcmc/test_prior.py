"""Without data the chains must return the prior: the strictest test of moves and of their Hastings ratios."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc import start
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import (
    ChainSettings,
    Constraints,
    ExponentialPrior,
    GammaDirichletPrior,
    Priors,
    parse_length_prior,
)
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.model.grammar import parse_model
from phloem.summary.splits import topology_table
from statistical.mcmc.prior_sampling import (
    gtr,
    ks_p_value,
    no_data,
    prior_draws,
    tip_lengths,
    topology_p_value,
)

ACCEPT = 1e-4  # smallest p-value of a right sampler: about 90 of them are asked here, at fixed seeds
REJECT = 1e-6  # a planted error must push it below this

EXPONENTIAL = Priors(branch_lengths=ExponentialPrior(10.0))
UNEQUAL = Priors(branch_lengths=GammaDirichletPrior(3.0, 2.0, 1.5, 0.5))

# every length move, alone or with the least that makes it irreducible
LENGTH_MOVES = {
    "branch_multiplier": {"branch_multiplier": 1},
    "tree_multiplier": {"tree_multiplier": 1, "node_slider": 1},
    "node_slider": {"node_slider": 1},
    "spr": {"spr": 3, "branch_multiplier": 1},
    "tbr": {"tbr": 3, "branch_multiplier": 1},
    "nni": {"nni": 3, "branch_multiplier": 1},
    "learnt_nni": {"learnt_nni": 3, "branch_multiplier": 1},
    "learnt_tbr": {"learnt_tbr": 3, "nni": 1, "branch_multiplier": 1},
    "parsimony_spr": {"parsimony_spr": 3, "branch_multiplier": 1},
    "leapfrog": {"leapfrog": 1, "branch_multiplier": 9},
}
TOPOLOGY_MOVES = {
    name: LENGTH_MOVES[name] for name in ("nni", "learnt_nni", "learnt_tbr", "spr", "tbr", "parsimony_spr")
}
JC = structure_of_model(parse_model("JC", datatype="dna"))  # what is asked of trees alone needs no numbers


def some(moves, fast) -> list:
    """Of moves of which the same is asked: the others of the slow suite only."""
    return [pytest.param(move, marks=[] if move in fast else pytest.mark.slow) for move in moves]


def length_p_values(samples, n_tips: int) -> list[float]:
    """Tree length and single branches against gammadir(1, 0.1, 1, 1)."""
    n_branches = 2 * n_tips - 3
    total = samples.lengths.sum(axis=1)
    shares = tip_lengths(samples) / total[:, None]
    share = stats.beta(1, n_branches - 1)
    return [
        ks_p_value(total, stats.gamma(1, scale=10)),
        *(ks_p_value(shares[:, t], share) for t in (0, 1, n_tips - 1)),
    ]


@pytest.mark.parametrize(("n_tips", "n_topologies"), [pytest.param(5, 15, marks=pytest.mark.slow), (6, 105)])
@pytest.mark.parametrize("move", some([*TOPOLOGY_MOVES, "spr far", "tbr far"], ["learnt_tbr"]))
def test_topologies_are_uniform(move, n_tips, n_topologies):
    name, far = move.removesuffix(" far"), move.endswith(" far")
    _, samples = prior_draws(
        n_tips,
        8000,
        JC,
        move_weights=TOPOLOGY_MOVES[name],
        sample_every=60,
        p_extend=0.8 if far else 0.5,
    )
    assert topology_p_value(samples, n_topologies) > ACCEPT


@pytest.mark.parametrize("move", some(LENGTH_MOVES, ["node_slider", "tree_multiplier", "tbr"]))
def test_branch_lengths_follow_the_gamma_dirichlet_prior(move):
    _, samples = prior_draws(5, 6000, JC, move_weights=LENGTH_MOVES[move], sample_every=150)
    assert min(length_p_values(samples, 5)) > ACCEPT


@pytest.mark.parametrize("move", some(LENGTH_MOVES, ["branch_multiplier", "spr"]))
def test_branch_lengths_follow_the_exponential_prior(move):
    _, samples = prior_draws(
        5, 4000, JC, move_weights=LENGTH_MOVES[move], sample_every=150, priors=EXPONENTIAL
    )
    tips = tip_lengths(samples)
    assert min(ks_p_value(tips[:, t], stats.expon(scale=0.1)) for t in range(5)) > ACCEPT
    assert ks_p_value(samples.lengths.sum(axis=1), stats.gamma(7, scale=0.1)) > ACCEPT


@pytest.mark.parametrize("moves", some([None, *TOPOLOGY_MOVES.values()], [None]))
def test_tips_and_internal_branches_of_unequal_weight(moves):
    """Topology moves turn tips' branches into internal ones and back; the prior tells them apart."""
    _, samples = prior_draws(6, 6000, JC, move_weights=moves, sample_every=150, priors=UNEQUAL)
    total = samples.lengths.sum(axis=1)
    share = tip_lengths(samples).sum(axis=1) / total
    assert ks_p_value(total, stats.gamma(3, scale=0.5)) > ACCEPT
    assert ks_p_value(share, stats.beta(6 * 1.5, 3 * 0.75)) > ACCEPT
    assert topology_p_value(samples, 105) > ACCEPT


@pytest.mark.parametrize("move", ["dirichlet", "slider"])
def test_simplexes_follow_their_dirichlet_priors(move):
    weights = {f"relative_rates_{move}": 1, f"frequencies_{move}": 1}
    names, samples = prior_draws(3, 6000, move_weights=weights, sample_every=60)
    for name, rest in (("r(A<->G)", 5), ("r(G<->T)", 5), ("pi(A)", 3), ("pi(T)", 3)):
        assert ks_p_value(samples.numbers[:, 2 + names.index(name)], stats.beta(1, rest)) > ACCEPT


def test_a_dirichlet_prior_that_is_not_flat():
    priors = Priors(exchangeability=2.0, frequency=5.0)
    weights = {"relative_rates_dirichlet": 1, "frequencies_dirichlet": 1}
    names, samples = prior_draws(3, 6000, priors=priors, move_weights=weights, sample_every=60)
    assert ks_p_value(samples.numbers[:, 2 + names.index("r(C<->T)")], stats.beta(2, 10)) > ACCEPT
    assert ks_p_value(samples.numbers[:, 2 + names.index("pi(C)")], stats.beta(5, 15)) > ACCEPT


CHOSEN = ("rates=dirichlet(1,2,3,4,5,6)", "frequencies=dirichlet(5,1,1,2)", "alpha=uniform(0.5,3)")


def test_priors_of_single_blocks():
    priors = Priors(others=(*CHOSEN, "p_invariable=beta(2,5)"))
    moves = ("relative_rates_dirichlet", "frequencies_dirichlet", "alpha_multiplier", "p_invariable_slider")
    names, samples = prior_draws(
        3, 6000, gtr(p_invariable=True), priors=priors, move_weights=dict.fromkeys(moves, 1), sample_every=120
    )
    wanted = {
        "r(A<->G)": stats.beta(2, 19),
        "r(G<->T)": stats.beta(6, 15),
        "pi(A)": stats.beta(5, 4),
        "alpha": stats.uniform(0.5, 2.5),
        "pinvar": stats.beta(2, 5),
    }
    for name, law in wanted.items():
        assert ks_p_value(samples.numbers[:, 2 + names.index(name)], law) > ACCEPT, name
    exchanged = samples.numbers[:, 2 + names.index("r(A<->C)")]
    assert ks_p_value(exchanged, wanted["r(G<->T)"]) < REJECT  # control: entries of a Dirichlet mixed up


@pytest.mark.slow
def test_other_priors_of_branch_lengths():
    def drawn(text):
        priors = Priors(branch_lengths=parse_length_prior(text))
        _, samples = prior_draws(5, 6000, priors=priors, sample_every=150)
        return tip_lengths(samples), samples.lengths.sum(axis=1)

    _, total = drawn("invgamdir(3,2,1,1)")
    assert ks_p_value(total, stats.invgamma(3, scale=2)) > ACCEPT
    assert ks_p_value(total, stats.gamma(3, scale=0.5)) < REJECT  # the control
    tips, total = drawn("twoexp(100,10)")
    assert ks_p_value(tips[:, 1], stats.expon(scale=0.1)) > ACCEPT
    assert ks_p_value(total - tips.sum(axis=1), stats.gamma(2, scale=0.01)) > ACCEPT
    tips, total = drawn("uniform(0.01,0.2)")
    assert ks_p_value(tips[:, 2], stats.uniform(0.01, 0.19)) > ACCEPT


def test_alpha_and_p_invariable_follow_their_priors():
    weights = {"alpha_multiplier": 1, "p_invariable_slider": 1}
    names, samples = prior_draws(3, 6000, gtr(p_invariable=True), move_weights=weights, sample_every=40)
    assert ks_p_value(samples.numbers[:, 2 + names.index("alpha")], stats.expon()) > ACCEPT
    assert ks_p_value(samples.numbers[:, 2 + names.index("pinvar")], stats.uniform()) > ACCEPT


@pytest.mark.slow
def test_all_numbers_together_follow_their_priors():
    """By the move of all of them, learnt covariance and all; heated chains have another scale."""
    weights = {"joint_normal": 3, "branch_multiplier": 1}
    names, samples = prior_draws(
        3, 5000, gtr(p_invariable=True), move_weights=weights, sample_every=200, n_chains=2, heating=0.5
    )
    draws = {name: samples.numbers[:, 2 + i] for i, name in enumerate(names)}
    laws = {"alpha": stats.expon(), "pinvar": stats.uniform(), "pi(A)": stats.beta(1, 3)}
    laws |= {"r(A<->G)": stats.beta(1, 5), "r(G<->T)": stats.beta(1, 5), "TL": stats.gamma(1, scale=10)}
    for name, law in laws.items():
        assert ks_p_value(draws[name], law) > ACCEPT, name


@pytest.mark.slow
def test_shares_of_many_follow_their_prior():
    """By the move of all numbers, in which they are not ratios to one of them."""
    structure = structure_of_model(parse_model("Poisson+FO+G4", datatype="protein"))
    weights = {"joint_normal": 3, "branch_multiplier": 1}
    names, samples = prior_draws(
        3, 3000, structure, move_weights=weights, sample_every=300, n_chains=2, heating=0.5
    )
    draws = {name: samples.numbers[:, 2 + i] for i, name in enumerate(names)}
    laws = {"alpha": stats.expon(), "TL": stats.gamma(1, scale=10)}
    laws |= {f"pi({state})": stats.beta(1, 19) for state in "ARVY"}
    for name, law in laws.items():
        assert ks_p_value(draws[name], law) > ACCEPT, name


def two_parts():
    """Three quarters of the sites have free rates, the others hidden states that switch on and off."""
    models = [parse_model(text, datatype="dna") for text in ("JC+R3", "JC+COV")]
    parts = [PartModel("a", models[0], 30), PartModel("b", models[1], 10)]
    return structure_of_parts(parts, Linkage("proportional"))


@pytest.mark.parametrize("move", ["dirichlet", "slider"])
def test_rates_of_parts_and_free_rates_follow_their_priors(move):
    weights = {f"{block}_{move}": 1 for block in ("partition_rates", "weights", "rates")}
    switches = {f"switch_{way}_multiplier": 1 for way in ("on", "off")}
    names, samples = prior_draws(3, 6000, two_parts(), move_weights=weights | switches, sample_every=60)
    draws = {name: samples.numbers[:, 2 + i] for i, name in enumerate(names)}
    assert np.allclose(draws["rate{a}"] * 0.75 + draws["rate{b}"] * 0.25, 1)
    assert ks_p_value(draws["rate{a}"] * 0.75, stats.uniform()) > ACCEPT
    rates, weights = (np.column_stack([draws[f"{x}_{i}"] for i in (1, 2, 3)]) for x in ("rate", "weight"))
    any_of = np.random.default_rng(1).integers(3, size=len(rates))  # classes are written in a stated order
    for numbers in (rates, weights):
        assert ks_p_value(numbers[np.arange(len(numbers)), any_of], stats.beta(1, 2)) > ACCEPT
    assert (np.diff(rates, axis=1) >= 0).all()
    assert ks_p_value(draws["rate_1"], stats.beta(1, 2)) < REJECT  # control: slowest classes
    for name in ("switch_on", "switch_off"):
        assert ks_p_value(draws[name], stats.expon()) > ACCEPT


@pytest.mark.slow
def test_every_set_of_branch_lengths_follows_the_prior():
    """By all moves, those of the topology included, which change all sets at once."""
    models = [parse_model(text, datatype="dna") for text in ("JC", "JC+H2")]
    parts = [PartModel("a", models[0], 30), PartModel("b", models[1], 10)]
    structure = structure_of_parts(parts, Linkage("unlinked"))
    _, samples = prior_draws(5, 6000, structure, sample_every=250)
    assert topology_p_value(samples, 15) > ACCEPT
    own = [replace(samples, lengths=samples.sets[:, g]) for g in range(3)]
    for one in own:
        assert min(length_p_values(one, 5)) > ACCEPT
    total = [np.log(one.lengths.sum(axis=1)) for one in own]
    assert abs(np.corrcoef(total)[np.triu_indices(3, 1)]).max() < 0.1
    assert min(length_p_values(samples, 5)) < REJECT  # control: the mean of the sets has another law


def test_all_moves_and_heated_chains_together():
    names, samples = prior_draws(6, 5000, gtr(p_invariable=True), n_chains=4, heating=0.5, sample_every=150)
    assert topology_p_value(samples, 105) > ACCEPT
    assert ks_p_value(samples.numbers[:, 2 + names.index("alpha")], stats.expon()) > ACCEPT
    assert ks_p_value(samples.numbers[:, 2 + names.index("r(A<->G)")], stats.beta(1, 5)) > ACCEPT
    assert min(length_p_values(samples, 6)) > ACCEPT


# The hottest chain's alpha has mean 7, the prior's 1; in 4 generations it is left or reached by swaps only.
HOT = {"n_chains": 4, "heating": 2.0, "move_weights": {"alpha_multiplier": 1, "branch_multiplier": 1}}


@pytest.mark.slow
def test_very_hot_chains_leave_the_cold_one_its_prior():
    names, samples = prior_draws(4, 40_000, sample_every=4, **HOT)
    assert ks_p_value(samples.numbers[:, 2 + names.index("alpha")], stats.expon()) > ACCEPT


def test_swaps_without_their_ratio_are_noticed():
    """Temperatures are dealt out anew before every sample, as by swaps that are always taken."""
    rng, chains = np.random.default_rng(1), ChainSettings(use_data=False, sample_every=4, **HOT)
    run = advanced(new_run(0, no_data(4), gtr(), chains), 20_000)
    for _ in range(4000):
        rng.shuffle(run.state.rank)
        run = advanced(run, 4)
    alpha = run.samples.numbers[-4000:, 2 + run.columns.names.index("alpha")]
    assert ks_p_value(alpha, stats.expon()) < REJECT


CONSTRAINTS = ((1, 3), (1, 3, 4))  # of six taxa: 3 ways inside, 3 · 5 trees of the others and the clade


OTHERS = ((CONSTRAINTS[:1], 15), (((0, 2, 5),), 9))
SPLITS = [(CONSTRAINTS, 3), *(pytest.param(*row, marks=pytest.mark.slow) for row in OTHERS)]


@pytest.mark.parametrize("move", some([*TOPOLOGY_MOVES, "all"], ["all"]))
@pytest.mark.parametrize(("constraints", "n_topologies"), SPLITS)
def test_topologies_with_some_splits_are_uniform(constraints, n_topologies, move):
    weights = TOPOLOGY_MOVES.get(move)
    if move == "tbr":  # alone it cannot leave some of them: tips hang at branches that it does not cut
        weights = {**TOPOLOGY_MOVES["tbr"], "nni": 1}
    taxa = tuple(f"t{i}" for i in range(6))
    _, samples = prior_draws(
        6, 6000, JC, move_weights=weights, sample_every=60, constraints=constraints, n_chains=2
    )
    assert topology_p_value(samples, n_topologies) > ACCEPT
    sides = {frozenset(c) for c in constraints}
    seen = splits_of(samples, taxa)
    assert all(any(s in sides or frozenset(range(6)) - s in sides for s in tree) for tree in seen)


@pytest.mark.parametrize(
    ("asked", "n_topologies"),
    [
        # a third of the 105, the other two pairings'
        pytest.param({"partial_constraints": (((0, 1), (2, 3)),)}, 35, marks=pytest.mark.slow),
        ({"negative_constraints": ((1, 2),)}, 90),  # 15 have it
        ({"constraints": ((4, 5),), "partial_constraints": (((0, 4), (1, 2)),)}, 5),
    ],
)
def test_loose_constraints_leave_all_others_as_probable(asked, n_topologies):
    _, samples = prior_draws(6, 6000, JC, sample_every=60, n_chains=2, **asked)
    assert topology_p_value(samples, n_topologies) > ACCEPT


def splits_of(samples, taxa) -> list[set[frozenset[int]]]:
    found = []
    for parent in np.unique(samples.parent, axis=0):
        below = [{x} if x < len(taxa) else set() for x in range(len(parent))]
        for x in range(len(parent) - 1):
            below[parent[x]] |= below[x]
        found.append({frozenset(tips) for tips in below})
    return found


def test_a_sampler_that_forgets_the_splits_is_noticed(monkeypatch):
    right = start.split_rules
    monkeypatch.setattr(start, "split_rules", lambda asked, n_tips: right(Constraints(), n_tips))
    _, samples = prior_draws(6, 3000, JC, sample_every=60, constraints=(CONSTRAINTS[0],))
    counts = topology_table(samples.tree_sample(tuple(f"t{i}" for i in range(6)))).of_tree
    assert len(np.unique(counts)) == 105

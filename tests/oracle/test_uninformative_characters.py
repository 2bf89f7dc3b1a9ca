"""+ASC{informative}, conditional on being informative for parsimony, against sums over all patterns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from phloem.data import unseen
from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.mcmc import recipes
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.trees import parse_trees
from phloem.likelihood import problem
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.tree_likelihood import TreeLikelihood

TREE = parse_trees("(a:0.3,b:0.2,((c:0.4,d:0.1):0.2,e:0.25):0.15);")[0]
MODELS = {"MK+F{0.3,0.7}+G4{0.5}": 2, "MK": 2, "MK+G4{0.7}": 3, "ORDERED": 3}


def informative(pattern) -> bool:
    return sum(pattern.count(state) > 1 for state in set(pattern)) > 1


def patterns(n_taxa: int, n_states: int, wanted) -> np.ndarray:
    """(T, P) all that are wanted, from all there are."""
    return np.array([p for p in product(range(n_states), repeat=n_taxa) if wanted(p)], np.uint8).T


def characters(codes: np.ndarray, n_states: int) -> Alignment:
    states = alphabet("standard", symbols="0123456789"[:n_states]) if n_states > 2 else alphabet("binary")
    sets = np.vstack([np.eye(n_states), np.ones(n_states)]).astype(bool)
    return Alignment(tuple("abcde"), states, np.ascontiguousarray(codes), sets)


def likelihood(codes: np.ndarray, text: str, engine: str = "reference") -> TreeLikelihood:
    data = characters(codes, MODELS[text.removesuffix("+ASC{informative}")])
    return TreeLikelihood(data, TREE, model_for_alphabet(text, data.alphabet), engine=engine)


def without_a_singleton(n_taxa, n_states, kind) -> np.ndarray:
    """Planted: what is never seen, but one."""
    found = unseen.unseen_patterns(n_taxa, n_states, kind)
    single = np.flatnonzero((found != found[0]).sum(0) == 1)[0]
    return np.delete(found, single, axis=1)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (7, 2), (4, 3), (5, 3), (6, 3), (4, 5), (5, 4), (6, 4)])
def test_the_patterns_are_all_that_are_uninformative(n, k):
    found = unseen.unseen_patterns(n, k, "uninformative")
    wanted = patterns(n, k, lambda p: not informative(p))
    assert sorted(map(tuple, found.T.tolist())) == sorted(map(tuple, wanted.T.tolist()))
    assert found.shape[1] == unseen.n_uninformative(n, k)
    assert k > 2 or found.shape[1] == 2 + 2 * n


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("text", MODELS)
def test_the_likelihood_is_divided_by_what_all_patterns_say(text, engine, monkeypatch):
    k = MODELS[text]
    every, seen = patterns(5, k, lambda _: True), patterns(5, k, informative)
    probability = np.exp(likelihood(every, text).site_log_likelihoods())
    assert probability.sum() == pytest.approx(1.0, rel=1e-12)
    share = sum(p for p, c in zip(probability, every.T.tolist()) if informative(c))
    found = likelihood(seen, f"{text}+ASC{{informative}}", engine)
    plain = likelihood(seen, text)
    expected = plain.site_log_likelihoods() - np.log(share)
    np.testing.assert_allclose(found.site_log_likelihoods(), expected, rtol=1e-11)
    assert found.log_likelihood() == pytest.approx(expected.sum(), rel=1e-12)
    assert np.exp(found.site_log_likelihoods()).sum() == pytest.approx(1.0, rel=1e-11)
    gradient, lengths, h = found.gradient().branch_lengths, found.branch_lengths, 1e-5
    for i in range(len(lengths)):
        values = []
        for step in (h, -h):
            values.append(
                found.propose(branch_lengths=np.where(np.arange(len(lengths)) == i, step, 0) + lengths)
            )
            found.reject()
        assert gradient[i] == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-5)
    monkeypatch.setattr(problem, "unseen_patterns", without_a_singleton)
    other = likelihood(seen, f"{text}+ASC{{informative}}", engine)
    assert np.exp(other.site_log_likelihoods()).sum() < 1 - 1e-3


@pytest.mark.parametrize("text", ["MK+FO+G4+ASC{informative}", "MK+G4+ASC{informative}"])
def test_chains_have_the_likelihood_of_all_patterns(text, monkeypatch):
    """What a chain writes is the plain sum over all patterns, and is not where a singleton is forgotten."""
    k = 2 if "FO" in text else 3
    codes = patterns(5, k, informative)
    codes = codes[:, np.random.default_rng(2).choice(codes.shape[1], 12)]
    data = characters(codes, k)
    bare, every = text.removesuffix("+ASC{informative}"), characters(patterns(5, k, lambda _: True), k)
    structures = [structure_of_model(model_for_alphabet(t, data.alphabet)) for t in (text, bare)]
    plain, columns = plain_likelihood([data], structures[1]), []
    for p in range(every.n_sites):
        if not informative(every.codes[:, p].tolist()):
            one = characters(every.codes[:, p : p + 1], k)
            columns.append(plain_likelihood([one], structures[1]))

    def largest() -> float:
        settings = ChainSettings(n_runs=1, n_chains=2, generations=100, sample_every=20)
        run = sample(observations(data, structures[0].parts[0].model.unseen), structures[0], settings).runs[0]
        off = []
        for i in range(1, run.samples.n):
            at = run.samples.tree_and_numbers(i, run.columns.names)
            hidden = sum(np.exp(column(*at)) for column in columns)
            expected = plain(*at) - data.n_sites * np.log1p(-hidden)
            off.append(abs(run.samples.numbers[i, 0] / expected - 1))
        return max(off)

    assert largest() < 1e-9
    monkeypatch.setattr(recipes, "unseen_patterns", without_a_singleton)
    monkeypatch.setattr(problem, "unseen_patterns", without_a_singleton)  # the guard's, else it ends the run
    assert largest() > 1e-4


def test_what_could_be_uninformative_is_what_some_states_make_so():
    rng = np.random.default_rng(5)
    for k in (2, 3, 4):
        sets = np.array([[bool(code >> s & 1) for s in range(k)] for code in range(1, 2**k)])
        codes = rng.integers(0, len(sets), (6, 150))
        codes[:, 50:] = np.where(
            rng.random((6, 100)) < 0.7, 2 ** rng.integers(0, k, (6, 100)) - 1, codes[:, 50:]
        )
        found = unseen.could_be_unseen(codes, sets, "uninformative")
        for p in range(150):
            states = [np.flatnonzero(sets[c]).tolist() for c in codes[:, p]]
            assert found[p] == any(not informative(one) for one in product(*states))
        assert 10 < found.sum() < 140


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_an_uninformative_character_is_an_error(engine):
    codes = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 0, 2]], np.uint8)
    text = "MK+ASC{informative}"
    with pytest.raises(InputError, match=r"1 of 3 characters are uninformative.*: 2 ") as told:
        likelihood(codes, text, engine)
    assert told.value.site == 2 and told.value.hint
    assert np.isfinite(likelihood(codes[:, [0, 2]], text, engine).log_likelihood())
    missing = codes[:, [0, 2]].copy()
    missing[3, 1] = 2
    with pytest.raises(InputError, match="but for missing data"):
        likelihood(missing, text, engine)
    data = characters(codes, 2)
    with pytest.raises(InputError, match="could be uninformative"):
        observations(data, "uninformative")


def test_three_taxa_and_too_many_patterns_are_errors():
    with pytest.raises(InputError, match="no character of 3 taxa is informative") as told:
        unseen.unseen_patterns(3, 2, "uninformative")
    assert told.value.hint
    with pytest.raises(InputError, match="5 states in 20 taxa would have to be summed over") as told:
        unseen.unseen_patterns(20, 5, "uninformative")
    assert "--asc mrbayes" in told.value.hint
    assert unseen.unseen_patterns(300, 2, "uninformative").shape == (300, 602)

"""Moves that ask for gradients: what they are given, and what the chains carry along after them."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.errors import InputError
from phloem.inference.mcmc.compiled.run import chain_prior
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment

MOVES = {"leapfrog": 1.0, "spr": 1.0, "branch_multiplier": 1.0}


def alignment(kind: str, letters: str, n_sites: int) -> Alignment:
    rng = np.random.default_rng(n_sites)
    first = rng.choice(list(letters), n_sites)
    rows = np.where(rng.random((6, n_sites)) < 0.3, rng.choice(list(letters), (6, n_sites)), first)
    return alignment_from_sequences({f"t{i}": "".join(row) for i, row in enumerate(rows)}, alphabet(kind))


def made(n_chains: int = 2, **more) -> tuple[Run, list[Alignment]]:
    """Nucleotides in two classes, and amino acids, with three sets of lengths; the second chain is warm."""
    data = [alignment("dna", "ACGT", 40), alignment("protein", "ARNDCQEGH", 12)]
    models = [model_for_alignment(text, a) for text, a in zip(("HKY+FO+H2", "LG+G4"), data)]
    parts = [PartModel(f"p{i}", m, a.n_sites) for i, (m, a) in enumerate(zip(models, data))]
    structure = structure_of_parts(parts, Linkage("unlinked"))
    settings = ChainSettings(
        n_runs=1, n_chains=n_chains, heating=0.7, sample_every=10, tuning_generations=0, move_weights=MOVES
    )
    return new_run(0, [observations(a) for a in data], structure, settings, **more), data


def log_density(run: Run, plain, h: int, slot: int) -> float:
    """Of log lengths, at the chain's temperature."""
    state, lengths = run.state, run.state.lengths[h, slot]
    parent, by_branch = renumbered(state.parent[h, slot], lengths, state.order[h, slot])
    names = dict(zip(run.columns.names, run.samples.numbers[0, 2:]))
    value = plain(parent, by_branch, names) + chain_prior(run.data, state, h, slot)
    return run.data.heat[state.rank[h], 0] * value + np.log(lengths[lengths > 0]).sum()


@pytest.fixture(scope="module")
def asked():
    """Of both chains: the slopes that the last turn of a move was given, and by differences."""
    from phloem.inference.mcmc.compiled.gradient import propose_by_gradients

    run, data = made()
    plain, found = plain_likelihood(data, run.structure), []
    for h in (0, 1):
        run.shared.move[h] = [m.name for m in run.moves].index("leapfrog")
        propose_by_gradients(
            run.data, run.state, run.shared, run.scratches[0], run.downs.table, run.downs.rooms[0], h
        )
        assert np.isfinite(run.shared.ratio[h])
        slot, step = 1 - int(run.state.slot[h]), 1e-5
        lengths, numeric = run.state.lengths[h, slot], np.zeros(run.shared.slope[h].shape)
        for g, x in np.argwhere(lengths > 0):
            at, ends = lengths[g, x], []
            for sign in (1, -1):
                lengths[g, x] = at * np.exp(sign * step)
                ends.append(log_density(run, plain, h, slot))
            lengths[g, x], numeric[g, x] = at, (ends[0] - ends[1]) / (2 * step)
        found.append(
            (run.shared.slope[h].copy(), numeric, lengths.copy(), run.data.heat[run.state.rank[h], 0])
        )
    return found


def error(slope, numeric) -> float:
    return float(np.abs(slope - numeric).max() / np.abs(numeric).max())


def test_slopes_are_those_of_the_heated_posterior(asked):
    assert asked[0][3] == 1.0 and asked[1][3] < 0.6
    for slope, numeric, *_ in asked:
        assert np.count_nonzero(slope) == 3 * 9 and error(slope, numeric) < 1e-6


def test_wrong_slopes_are_seen(asked):
    """Controls: without the Jacobian of the logarithms, at another temperature, of the other set."""
    slope, numeric, lengths, heat = asked[1]
    own = lengths > 0
    for wrong in (slope - own, np.where(own, (slope - 1) / heat + 1, 0.0), slope[[1, 0, 2]]):
        assert error(wrong, numeric) > 1e-3


def test_what_chains_carry_is_the_reference():
    run, data = made()
    plain = plain_likelihood(data, run.structure)
    run = advanced(run, 200)
    leapfrog = [m.name for m in run.moves].index("leapfrog")
    assert (run.state.accepted[:, leapfrog] > 10).all()
    for i in range(1, run.samples.n, 5):
        expected = plain(*run.samples.tree_and_numbers(i, run.columns.names))
        assert run.samples.numbers[i, 0] == pytest.approx(expected, rel=1e-9)


def test_threads_and_a_resumption_change_no_bit(monkeypatch):
    from phloem.inference.mcmc import run as runs

    monkeypatch.setattr(runs, "SMALL_RUN", 0)
    one, two = (advanced(made(4, threads=t)[0], 120) for t in (1, 2))
    assert len(two.scratches) == 2 and np.array_equal(one.samples.sets, two.samples.sets)
    half, data = made(4)
    half = advanced(half, 60)
    state = type(half.state)(*(array.copy() for array in half.state))
    observed = [observations(a) for a in data]
    again = new_run(0, observed, half.structure, half.settings, state, half.samples)
    assert np.array_equal(advanced(again, 60).samples.sets, one.samples.sets)


def test_on_a_device_they_are_refused():
    with pytest.raises(InputError, match="CPU only"):
        made(device="gpu")

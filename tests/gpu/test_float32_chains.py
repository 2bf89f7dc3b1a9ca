"""Chains whose conditional likelihoods are of float32: near the reference, and no walk of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.test_sampler import case
from phloem.analysis.mcmc import chains_selection
from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.guard import IN_FLOAT32, LOG_LIKELIHOOD, plain_likelihood
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.sampler import Where, sample
from phloem.inference.mcmc.settings import ChainSettings

SETTINGS = ChainSettings(n_chains=2, sample_every=3, tuning_generations=6, precision="float32")


@pytest.mark.parametrize(
    ("text", "datatype"),
    [("GTR+I+G4", "dna"), ("LG+FO", "protein"), pytest.param("HKY+H2", "dna", marks=LATER)],
)
def test_chains_are_near_the_reference(text, datatype, tmp_path):
    """Off by what float32 is off, and by no more; resumed exactly."""
    alignment, structure, observed = case(text, datatype, tmp_path)
    whole = advanced(new_run(0, observed, structure, SETTINGS, device="gpu"), 12)
    plain, off = plain_likelihood([alignment], structure), []
    for i in range(whole.samples.n):
        expected = plain(*whole.samples.tree_and_numbers(i, whole.columns.names))
        off.append(abs(whole.samples.numbers[i, 0] / expected - 1))
    assert max(off) < IN_FLOAT32.allowed / 10
    assert max(off) > 1e-10  # the control: these are not chains of float64
    assert whole.state.accepted.sum() > 0
    half = advanced(new_run(0, observed, structure, SETTINGS, device="gpu"), 6)
    resumed = new_run(0, observed, structure, SETTINGS, half.state, half.samples, device="gpu")
    assert np.array_equal(advanced(resumed, 6).samples.numbers, whole.samples.numbers)


def test_the_guard_allows_no_more(tmp_path):
    """What float32 is off passes, where it is said that chains are of it; ten times what is allowed stops."""
    alignment, structure, observed = case("HKY+G4", "dna", tmp_path)
    plain = plain_likelihood([alignment], structure)
    where = Where("gpu")

    settings = replace(SETTINGS, generations=steps(30, 12), check_every=steps(10, 6), n_runs=1)
    sample(observed, structure, settings, plain=plain, where=where)

    def planted(*of):
        return plain(*of) * (1 + 10 * IN_FLOAT32.allowed)

    with pytest.raises(NumericalError, match="the log-likelihood is not that of the reference"):
        sample(observed, structure, settings, plain=planted, where=where)
    assert LOG_LIKELIHOOD.allowed < IN_FLOAT32.allowed


def test_where_float32_is_not_obeyed_it_is_an_error(tmp_path):
    _, structure, observed = case("JC", "dna", tmp_path)
    with pytest.raises(InputError, match="chains of float32 are on a GPU only"):
        new_run(0, observed, structure, SETTINGS, device="cpu")
    options = {
        "alignment": str(tmp_path / "data.fasta"),
        "model": "JC",
        "datatype": "dna",
        "precision": "float32",
    }
    for more in ({"device": "cpu"}, {"prior_only": True, "device": "gpu"}):
        with pytest.raises(InputError, match="--precision float32 is about likelihoods on a GPU") as told:
            chain_input(mcmc_settings({**options, **more}))
        assert told.value.hint
    with pytest.raises(InputError, match="unknown value of 'precision': 'half'"):
        mcmc_settings({**options, "precision": "half"})
    settings = mcmc_settings(options)
    selection = chains_selection(settings, chain_input(settings))
    assert (selection.engine, selection.precision) == ("gpu", "float32") and "float32" in selection.reason
    other = mcmc_settings({**options, "precision": "float64", "device": "gpu"})
    assert chains_selection(other, chain_input(other)).precision == "float64"  # the control

"""Every command hears of kernels that are compiled, whichever engine they are for."""

from __future__ import annotations

import logging

import pytest

from phloem.analysis.distance import DistanceAnalysisSettings, run_distance_analysis
from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.mcmc import McmcSettings, run_mcmc
from phloem.analysis.plan import PlanSettings, run_plan
from phloem.errors import InputError
from phloem.hardware.notice import NOTICES, compilation_begins, on_first_compilation

NOWHERE = "no-such-file.fasta"  # compilations are listened to before anything is read
RUNS = {
    "distances": (run_distance_analysis, DistanceAnalysisSettings(NOWHERE)),
    "likelihood": (run_likelihood, LikelihoodSettings(NOWHERE, None, "JC")),
    "mcmc": (run_mcmc, McmcSettings(NOWHERE)),
    "plan": (run_plan, PlanSettings(NOWHERE, "JC")),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("asked", [True, False])
def test_a_command_hears_of_compilations_if_it_asked(name, asked):
    run, settings = RUNS[name]
    said: list[str] = []
    on_first_compilation(logging.getLogger("phloem").info)
    with pytest.raises(InputError):
        run(settings, compiling=said.append if asked else None)
    compilation_begins("gpu")
    compilation_begins("cpu")
    assert said == ([NOTICES["gpu"], NOTICES["cpu"]] if asked else [])

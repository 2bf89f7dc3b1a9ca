"""Which tests share a worker of pytest-xdist: those that compile the same kernels, which is then done once.

Tests of one file do, and all of the samplers, whose loops take 20 s and 40 s. Kernels in Triton's interpreter
are not compiled: these tests come last, one by one, so that no worker ends long before the other; but for
files whose host part is compiled.
"""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

# Before NumPy is imported, as the command has it: on two cores that two workers use, threads of BLAS wait for
# each other in a loop, and the exponential of a matrix of four states takes 13 ms instead of 0.1.
for library in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")

# Nor are cycles looked for as often as Python does, as the command has it: what Numba's compiler, Triton's
# interpreter and the commands' parsers make holds next to none.
gc.set_threshold(50_000)

# The same examples in every run: what one in a thousand finds would stop whoever comes next, for nothing of
# theirs.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

# Of trees with and without dates: what they have in common is compiled once. Of the browser's tests the first
# start a sampler, whose compiled loop others then find, and all share one browser.
SAMPLERS = ("mcmc", "/time/", "test_time_parts", "tests/conformance/test_sampler.py", "tests/browser/")
COMPILES = ("tests/gpu/test_sampler.py", "tests/gpu/test_forest.py", "tests/gpu/test_forest_gradient.py")


@pytest.fixture(scope="session", autouse=True)
def commands_are_made_once():
    """Typer's runner makes all commands anew for every line that it runs, which takes 80 ms, and a refused
    line itself 3 ms. Of the same functions under the same names the same are made; they keep nothing of a
    line. What is replaced by a test has others, and so commands of its own."""
    import typer.testing

    make, made = typer.main.get_command, {}

    def kept(app):
        key = tuple((one.name, one.callback, one.cls) for one in app.registered_commands)
        if key not in made:
            made[key] = make(app)
        return made[key]

    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr("typer.testing._get_command", kept, raising=False)
        yield


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests that every search for cycles would look through


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.option.markexpr == "slow":
        return None  # a few long tests: one at a time to whoever is free

    from xdist.scheduler import LoadScopeScheduling

    class ByKernels(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            if file in COMPILES:
                return "chains on a device"
            if file.startswith("tests/gpu/"):
                return nodeid
            return "sampler" if any(one in file for one in SAMPLERS) else file

    return ByKernels(config, log)

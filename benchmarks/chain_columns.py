"""One large chain whose columns several GPUs of a host share: generations a second of `phloem mcmc`'s loop.

    python benchmarks/chain_columns.py [--device gpu] [--gpus 1 2] [--cells 1 2 4 8] [--seconds 5]
        [--taxa 100] [--columns 50000] [--model GY94+F1X4]

Columns are simulated along a random tree, at which the chain starts but for one interchange, as it would be
after burn-in: accepted topologies, whose columns the host numbers, are few then. Every move, prior and sample
(one in 20 generations) is included. A row for each number of cells and of GPUs, as soon as it is measured.
The same cells on another number of GPUs must give the same bits, and other cells the same log-likelihood at
the start to 1e-9, or the programme ends with status 1.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from phloem.inference.mcmc import start
from phloem.inference.mcmc.recipes import Observations, observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.pruning.cpu import cell_memory
from phloem.tree.random import uniform_unrooted
from phloem.tree.tree import Tree

EVERY = 20  # generations between two samples
FIXED = {
    "GY94+F1X4": "GY94{2,0.2}+FQ",
    "GTR+G4": "GTR{1,3,1,1,3}+F{0.3,0.2,0.2,0.3}+G4{0.5}",
    "LG+G4": "LG+G4{0.5}",
}


def case(taxa: int, columns: int, model: str) -> tuple[Observations, ChainModel, Tree]:
    rng = np.random.default_rng(1)
    tree = uniform_unrooted(taxa, rng)
    tree.lengths[:-1] = rng.exponential(0.05, len(tree.lengths) - 1)
    alignment = simulate_alignment(tree, FIXED[model], columns, 1)
    structure = structure_of_model(model_for_alignment(model, alignment), alignment.n_sites)
    return observations(alignment), structure, tree


def speed(run: Run, seconds: float) -> tuple[Run, float]:
    """The run later, and generations a second once its launches are captured."""
    run, n = advanced(run, 50 * EVERY), EVERY
    begin = time.perf_counter()
    run = advanced(run, n)
    each = (time.perf_counter() - begin) / n
    n = max(1, int(seconds / each / EVERY)) * EVERY
    run = advanced(run, n)
    begin = time.perf_counter()
    run = advanced(run, n)
    return run, n / (time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu", choices=("cpu", "gpu"))
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cells", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--taxa", type=int, default=100)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--model", default="GY94+F1X4", choices=tuple(FIXED))
    options = parser.parse_args()
    observed, structure, tree = case(options.taxa, options.columns, options.model)
    print(f"# {options.taxa} taxa, {observed.codes.shape[1]:,} patterns, {options.model}", flush=True)
    start.TIPS_AN_INTERCHANGE = 1 << 30
    print("cells\tGPUs\tgenerations/s\tlog-likelihood at the start", flush=True)
    first: list[float] = []
    for cells in options.cells:
        cell_memory.DEVICE_WORK, cell_memory.MOST_ON_DEVICES = 1.0, cells
        walks: list[np.ndarray] = []
        for gpus in options.gpus:
            if gpus > cells:
                continue
            settings = ChainSettings(
                n_runs=1, n_chains=1, sample_every=EVERY, tuning_generations=0, gpus=gpus
            )
            run = new_run(0, observed, structure, settings, tree, device=options.device)
            first.append(float(run.state.log_likelihood[0]))
            run, found = speed(run, options.seconds)
            print(f"{cells}\t{gpus}\t{found:,.1f}\t{first[-1]!r}", flush=True)
            walks.append(run.samples.numbers[:11].copy())
            if run.on_device is not None:
                run.on_device.dismiss(run.shared)
            del run
        if not all(np.array_equal(walk, walks[0]) for walk in walks):
            raise SystemExit("other bits on another number of GPUs")
    if not np.allclose(first, first[0], rtol=1e-9, atol=0.0):
        raise SystemExit("another log-likelihood in other cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())

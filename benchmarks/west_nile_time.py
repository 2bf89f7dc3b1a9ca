"""West Nile virus by codons, as `make wnv` has it, for so many seconds: moves done, and where the chains are.

    python benchmarks/west_nile_time.py PREFIX SECONDS [--start lsd] [--runs R] [--warm-up MOVES]
        [--sample-every MOVES]

It stops as if killed, and goes on from its checkpoint when called again. Nothing is asked about convergence:
the traces are Tracer's.
"""

from __future__ import annotations

import argparse
import signal
import time

import numpy as np

from phloem.analysis.time import TimeSettings, TimeTreeSettings, TreeModel, time_input
from phloem.analysis.time_start import time_origin
from phloem.inference.mcmc.sampler import Where
from phloem.inference.time.sampler import paths, plain_time_likelihood, sample

PRIORS = (
    "clock_rate=exponential(3)", "clock_cv=exponential(1)", "kappa=jeffreys", "omega=jeffreys",
    "alpha=exponential(2)", "frequencies=dirichlet(1)", "pop_size_1=jeffreys",
)  # fmt: skip
LOOKED_AT = ("LnL", "root_date", "kappa", "omega", "alpha", "clock_rate", "clock_cv")


def settings_of(options: argparse.Namespace) -> TimeTreeSettings:
    data = "examples/west_nile"
    return TimeTreeSettings(
        f"{data}.fasta.gz",
        datatype="codon",
        sites="1-11028",
        stop_codons="mask",
        ambiguity="missing",
        dates=f"{data}.dates.tsv",
        model="GY94+FO+G4",
        gamma="median",
        tree=TreeModel("ucln", "cv", "skyline", 10),
        prior=PRIORS,
        device=options.device,
        chains=TimeSettings(
            generations=1_000_000_000,
            sample_every=options.sample_every,
            n_runs=options.runs,
            check_every=50_000,
            tuning_generations=options.warm_up,
            start=options.start,
            seed=options.seed,
        ),
    )


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("seconds", type=int)
    parser.add_argument("--start", default="random")
    parser.add_argument("--warm-up", type=int, default=200_000)
    parser.add_argument("--sample-every", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = settings_of(options)
    data = time_input(settings)
    observed, plain = data.observed(), plain_time_likelihood(data.alignments, data.model)
    signal.signal(signal.SIGALRM, stopped)
    signal.alarm(options.seconds)
    begun = time.monotonic()
    try:
        sample(
            observed, data.model, settings.chains, options.prefix, {"benchmark": repr(settings.chains)}, None,
            plain, time_origin(settings, data), Where(settings.device),
        )  # fmt: skip
    except KeyboardInterrupt:
        print(f"stopped after {time.monotonic() - begun:.0f} s")
    for r in range(settings.chains.n_runs):
        report(options, r)


def report(options: argparse.Namespace, r: int) -> None:
    """Moves done, and medians with their central 95% after the warm-up."""
    path = paths(options.prefix, r)[0]
    names = path.open().readline().split()
    trace = np.loadtxt(path, skiprows=1, ndmin=2)
    kept = trace[trace[:, 0] > options.warm_up]
    print(f"run {r + 1}: {trace[-1, 0]:,.0f} moves, LnL {trace[-1, 1]:.2f}, {len(kept)} samples")
    for name in LOOKED_AT if len(kept) > 3 else ():
        low, middle, high = np.quantile(kept[:, names.index(name)], [0.025, 0.5, 0.975])
        print(f"  {name}: {middle:.6g} ({low:.6g} to {high:.6g})")


if __name__ == "__main__":
    main()

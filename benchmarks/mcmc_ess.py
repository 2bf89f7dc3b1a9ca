"""Effective samples of `phloem mcmc` a generation and a second of processor time, by the worst number and the
worst split.

    python benchmarks/mcmc_ess.py [NAME …] [--generations 500000] [--moves 'nni=5,spr=7.5'] [--seed 1]

NAME: of the table below; MrBayes' own examples are read where Debian has them, DS1 from ../shared, and what
is missing is said and left out. Two runs of four chains, one after the other on one thread; the first fifth
of the generations, in which moves adapt, is left out of samples and times. Splits: those with a frequency of
0.1 to 0.9. First checked: carried log-likelihoods are, bit for bit, those of an evaluation of everything.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from mcmc_speed import correct

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.inference.mcmc.convergence import split_presence
from phloem.inference.mcmc.move_table import chosen_moves
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.summary.splits import split_frequency_deviation, split_table
from phloem.summary.trace import mixing

HERE = Path(__file__).resolve().parent
EXAMPLES, SHARED = Path("/usr/share/doc/mrbayes/examples"), HERE.parents[1] / "shared/data"
CASES: dict[str, tuple[Path, dict]] = {
    "DS1": (SHARED / "ds/DS1.fasta", {"model": "JC", "branch_prior": "exponential(10)"}),
    "primates": (HERE.parent / "examples/primates.nex", {"model": "GTR+I+G4"}),
    "replicase": (EXAMPLES / "replicase.nex", {"model": "HKY+G4"}),
    "cynmix": (EXAMPLES / "cynmix.nex", {"model": "MK+ASC+G4", "sites": "1-166"}),
    "avian": (EXAMPLES / "avian_ovomucoids.nex", {"model": "WAG+G4"}),
    "sceloporus": (EXAMPLES / "sceloporus.nex", {"model": "GTR+I+G4"}),
}


def started(
    name: str, generations: int, weights: dict[str, float], seed: int, usual: bool
) -> tuple[list[Run], float]:
    """Both runs at their end, and the processor time of what followed the burn-in."""
    file, options = CASES[name]
    data = chain_input(mcmc_settings({"alignment": str(file), **options}))
    burn_in = generations // 5
    settings = ChainSettings(
        seed=seed, priors=data.priors, generations=generations, sample_every=100, tuning_generations=burn_in,
        usual_weights=usual,
    )  # fmt: skip
    if weights:
        usual = {m.name: m.weight for m in chosen_moves(data.structure, len(data.taxa), None)}
        settings = ChainSettings(**{**vars(settings), "move_weights": usual | weights})
    runs = [new_run(r, data.observed(), data.structure, settings) for r in (0, 1)]
    runs = [advanced(run, burn_in) for run in runs]
    begun = time.process_time()
    runs = [advanced(run, generations - burn_in) for run in runs]
    return runs, time.process_time() - begun


def report(name: str, runs: list[Run], seconds: float, generations: int) -> None:
    """Of a case: smallest ESS of a number and of a split, and how often moves are tried and accepted."""
    first = int(np.searchsorted(runs[0].samples.generation, generations // 5, side="right"))
    n_tips = runs[0].data.n_tips
    taxa, n = tuple(map(str, range(n_tips))), runs[0].samples.n - first
    table = split_table([run.samples.tree_sample(taxa, first) for run in runs])
    presence, _ = split_presence(table, len(runs), n, 0.1)
    splits = mixing(presence)[0] if presence.shape[2] else np.zeros(1)
    splits = splits[np.isfinite(splits)] if np.isfinite(splits).any() else np.zeros(1)
    numbers = mixing(np.stack([run.samples.numbers[first:] for run in runs]))[0]
    order, names = np.argsort(numbers), ("LnL", "LnPr", *runs[0].columns.names)
    label = ", ".join(f"{names[i]} {numbers[i] / seconds:.1f}" for i in order[:4])
    spent = 2 * (generations - generations // 5) / 1e6
    deviation = split_frequency_deviation(table, 0.1).average
    print(
        f"{name:10} splits {len(splits):3}: worst ESS {splits.min():7.0f}, "
        f"{splits.min() / spent:7.0f} a million generations, {splits.min() / seconds:7.2f} a CPU-s; "
        f"median {np.median(splits) / spent:7.0f}; ASDSF {deviation:.4f}; "
        f"numbers {np.nanmin(numbers) / seconds:7.2f} a CPU-s ({label}); {seconds:.0f} s"
    )
    tried, accepted = (sum(getattr(run.state, key)[0] for run in runs) for key in ("tried", "accepted"))
    shares = np.mean([np.diff(run.state.cumulative, prepend=0.0) for run in runs], axis=0)
    usual = sum(move.weight for move in runs[0].moves)
    for move, n_tried, n_accepted, share in zip(runs[0].moves, tried, accepted, shares):
        text = f"{100 * share:5.2f}% of proposals, usually {100 * move.weight / usual:5.2f}%, "
        print(f"           {move.name:26} {text}accepted {100 * n_accepted / max(n_tried, 1):6.2f}%")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--generations", type=int, default=500_000)
    parser.add_argument("--moves", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--usual-weights", action="store_true", help="moves keep their usual weights")
    given = parser.parse_args()
    weights = {k: float(v) for k, _, v in (one.partition("=") for one in given.moves.split(",") if one)}
    for name in given.names:
        if not CASES[name][0].exists():
            print(f"{name}: {CASES[name][0]} is not there")
            continue
        runs, seconds = started(name, given.generations, weights, given.seed, given.usual_weights)
        report(name, runs, seconds, given.generations)
        if not all(correct(run) for run in runs):
            print("the chains' log-likelihoods are wrong: no figures", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

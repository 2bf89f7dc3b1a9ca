"""Milliseconds of one likelihood with its whole gradient: in one piece, in cells, in cells among processes.

    mpiexec -n 2 python benchmarks/columns_devices.py --taxa 31 --columns 60000 --states 20 --categories 4
    python -m torch.distributed.run --standalone --nproc-per-node 2 benchmarks/columns_devices.py …

For two GPUs: … --engine gpu --taxa 200 --columns 100000 --states 61 --categories 1. Columns are simulated.
Nothing is printed where processes have other bits than one, or cells other numbers than one piece; the exit
status is 1 then. Seconds are the least of several calls.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from problems import simulated

from phloem.hardware.ranks import Ranks, ranks
from phloem.pruning.grid import OnRanks, cells_of, chosen, fastest
from phloem.pruning.interface import EngineGradient, Evaluator
from phloem.pruning.select import select_engine


def measured(evaluator: Evaluator, case, calls: int) -> tuple[float, EngineGradient]:
    """Seconds of a gradient by everything, and the gradient."""
    found = evaluator.gradient(case.lengths, case.model, True)
    return fastest(lambda: evaluator.gradient(case.lengths, case.model, True), calls), found


def same(a: EngineGradient, b: EngineGradient) -> bool:
    assert a.site_model is not None and b.site_model is not None
    pairs = [(a.branch_lengths, b.branch_lengths), (a.site_model.rates, b.site_model.rates)]
    pairs += [(p.rate_matrix, q.rate_matrix) for p, q in zip(a.site_model.processes, b.site_model.processes)]
    return a.log_likelihood == b.log_likelihood and all(np.array_equal(x, y) for x, y in pairs)


def run(options: argparse.Namespace, here: Ranks) -> int:
    """Of the first process."""
    case = simulated(options.taxa, options.columns, options.states, options.categories)
    threads = options.threads or here.cores
    selection = select_engine(options.engine, case.problem, threads)
    whole, piece = measured(selection.make(case.problem), case, options.calls)
    alone, one = measured(chosen(options.engine, case.problem, threads)[1], case, options.calls)
    shared, evaluator = chosen(OnRanks(options.engine, here), case.problem, threads)
    among, several = measured(evaluator, case, options.calls)
    scale = np.abs(piece.branch_lengths).max()
    close = np.abs(one.branch_lengths - piece.branch_lengths).max() < 1e-8 * scale
    if not (close and abs(one.log_likelihood / piece.log_likelihood - 1) < 1e-9 and same(one, several)):
        print("cells, or processes, have other numbers", file=sys.stderr)
        return 1
    print(f"{case.name}; {shared.reason}")
    print("cells\tone_piece_ms\talone_ms\tamong_ms\ttimes_faster")
    n = cells_of(case.problem, selection.engine)
    print(f"{n}\t{1e3 * whole:.3f}\t{1e3 * alone:.3f}\t{1e3 * among:.3f}\t{alone / among:.3f}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="cpu", choices=("cpu", "gpu"))
    for name, usual in (("taxa", 64), ("columns", 40_000), ("states", 4), ("categories", 4), ("calls", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--threads", type=int)
    options, here = parser.parse_args(), ranks()
    if here.number:
        here.assist()
        here.finish()
        return 0
    status = run(options, here)
    here.dismiss()
    here.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())

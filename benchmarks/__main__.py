"""The benchmarks by name: `python -m benchmarks` runs those that need no GPU, `… NAME …` some of them.

Each checks correctness first and reports nothing on a red check; CSV files go to benchmarks/results.
Run them on an otherwise idle machine: quote medians.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

# Name → (script, what it measures, whether it needs a GPU).
BENCHMARKS = {
    "likelihood": ("cpu_likelihood.py", "value and gradient on the CPU, against BEAGLE and dgemm", False),
    "proposals": ("tree_proposals.py", "interchanges proposed as other trees, on the CPU", False),
    "partitions": ("partitions.py", "50 parts beside the same columns as one alignment, on the CPU", False),
    "mcmc": ("mcmc_speed.py", "chain-generations per second on the primates", False),
    "alignments": ("io_speed.py", "reading alignments", False),
    "trees": ("tree_io_speed.py", "reading and summarising trees", False),
    "dating": ("dating.py", "least-squares dating and root-to-tip regression", False),
    "distance": ("distance_speed.py", "distances, UPGMA and neighbour joining on the CPU", False),
    "hmc": ("hmc_rates.py", "Hamiltonian dynamics of branch rates beside a random walk, on the CPU", False),
    "gpu-likelihood": ("gpu_likelihood.py", "value and gradient on the GPU", True),
    "gpu-distance": ("gpu_distance.py", "distances and trees on the GPU", True),
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all that need no GPU; the exit status is that of the worst."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    chosen = names or [name for name, (_, _, gpu) in BENCHMARKS.items() if not gpu]
    status = 0
    for name in chosen:
        script, what, _ = BENCHMARKS[name]
        print(f"== {name}: {what}", flush=True)
        status = max(status, subprocess.run([sys.executable, str(HERE / script)], check=False).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

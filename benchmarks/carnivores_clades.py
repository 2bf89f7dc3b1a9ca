"""Which of seals, weasels' kin and bears are next to each other, in what `make carnivores` has sampled.

    python benchmarks/carnivores_clades.py PREFIX [--burn-in SHARE]

Prints, for each of the three pairs, its probability in every run and in all, the ESS of its presence, R-hat,
and how often the chains changed between trees with and without it: beside Fig. 2 of Suchard and Rambaut 2009
(Bioinformatics 25:1370).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from phloem.io.trees import read_tree_sample
from phloem.summary.splits import split_table
from phloem.summary.trace import mixing
from phloem.tree.splits import split_members

PINNIPEDIA = (
    "Arctocephalus", "Callorhinus", "Cystophora", "Erignathus", "Eumetopias", "Halichoerus", "Hydrurga",
    "Leptonychotes", "Lobodon", "Mirounga", "Monachus", "Neophoca", "Odobenus", "Ommatophoca", "Otaria",
    "Phoca", "Phocarctos", "Zalophus",
)  # fmt: skip
MUSTELOIDEA = (
    "Ailurus", "Enhydra", "Gulo", "Lontra", "Martes", "Meles", "Mephitis", "Mustela", "Procyon", "Spilogale",
    "Taxidea",
)  # fmt: skip
URSIDAE = "Ailuropoda", "Helarctos", "Melursus", "Tremarctos", "Ursus"
PAIRS = {
    "Pinnipedia, Musteloidea": (*PINNIPEDIA, *MUSTELOIDEA),
    "Pinnipedia, Ursidae": (*PINNIPEDIA, *URSIDAE),
    "Musteloidea, Ursidae": (*MUSTELOIDEA, *URSIDAE),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("--burn-in", type=float, default=0.2)
    options = parser.parse_args()
    files = sorted(Path(options.prefix).parent.glob(f"{Path(options.prefix).name}.run*.trees"))
    runs = [read_tree_sample(file, options.burn_in) for file in files]
    n = min(run.n_trees for run in runs)
    table = split_table([run.select(slice(n)) for run in runs])
    genera = np.array([taxon.split("_")[0] for taxon in runs[0].taxa])
    members = split_members(table.splits, len(genera))
    for name, chosen in PAIRS.items():
        found = np.flatnonzero((members == np.isin(genera, chosen)).all(axis=1))
        there = (table.which == (found[0] if len(found) else -2)).any(axis=1)
        presence = there.reshape(len(runs), n, 1).astype(float)
        ess, r_hat = mixing(presence)
        each = ", ".join(f"{p:.3f}" for p in presence.mean(axis=(1, 2)))
        changes = int(np.abs(np.diff(presence[:, :, 0], axis=1)).sum())
        print(
            f"({name}): {presence.mean():.3f} (runs {each}), ESS {ess[0]:.0f}, R-hat {r_hat[0]:.3f}, "
            f"{changes} changes in {len(runs)} x {n} samples"
        )


if __name__ == "__main__":
    main()

"""How fast trees are read and summarised. Run: python benchmarks/tree_io_speed.py

Each figure is the shortest and the median of five runs in one process, after a check of the result.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from phloem.io.trees import newick_text, nexus_text, parse_trees
from phloem.summary.splits import split_frequency_deviation, split_table, topology_table
from phloem.summary.trees import consensus_tree, maximum_clade_credibility
from phloem.tree.random import uniform_unrooted, yule
from phloem.tree.rearrange import nni_neighbours
from phloem.tree.sample import TreeSample, sample_of_trees
from phloem.tree.tree import Tree


def measure(label: str, work: Callable[[], object], asked: str = "", repeats: int = 5) -> None:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    print(f"{label:58s} {min(seconds):8.3f} s  median {statistics.median(seconds):8.3f} s  {asked}")


def annotated_tree(n_tips: int, rng: np.random.Generator) -> Tree:
    """A Yule tree whose every node carries a rate and an interval."""
    tree = yule(n_tips, rng)
    notes = {
        x: {"rate": float(rng.random()), "height_95%_HPD": (float(rng.random()), 2.0)}
        for x in range(tree.n_nodes)
    }
    return replace(tree, annotations=notes)


def reading(rng: np.random.Generator) -> None:
    one = annotated_tree(10_000, rng)
    text = newick_text([one])
    (back,) = parse_trees(text)
    assert np.array_equal(
        back.lengths[: back.n_tips], one.lengths[[one.taxa.index(name) for name in back.taxa]]
    )
    measure("10,000 tips, annotated Newick", lambda: parse_trees(text), "asked ≤ 0.15 s")
    measure("the same, every annotation parsed", lambda: [dict(t.annotations) for t in parse_trees(text)])
    trees = [uniform_unrooted(100, rng) for _ in range(1000)]
    nexus = nexus_text(trees)
    assert all(
        np.array_equal(np.sort(a.lengths), np.sort(b.lengths)) for a, b in zip(parse_trees(nexus), trees)
    )
    measure("1,000 trees of 100 taxa, NEXUS with TRANSLATE", lambda: parse_trees(nexus), "asked ≤ 1 s")
    measure("1,000 trees of 100 taxa, written as NEXUS", lambda: nexus_text(trees))
    large = newick_text([yule(1_000_000, rng)])
    measure(f"1,000,000 tips ({len(large) / 1e6:.0f} MB)", lambda: parse_trees(large), repeats=2)


def summarising(rng: np.random.Generator) -> None:
    centre = uniform_unrooted(60, rng)
    pool = [centre] * 60 + nni_neighbours(centre)
    drawn = sample_of_trees([pool[i] for i in rng.integers(0, len(pool), 20_000)])
    runs = [drawn.select(slice(0, 10_000)), drawn.select(slice(10_000, 20_000))]
    table = split_table(runs)
    assert table.probability.max() == 1.0
    print("20,000 trees of 60 taxa")
    measure("  split table", lambda: split_table(runs), "asked: seconds")
    measure("  ASDSF from the table", lambda: split_frequency_deviation(table))
    measure("  majority consensus", lambda: consensus_tree(table))
    measure("  consensus with all compatible splits", lambda: consensus_tree(table, "allcompat"))
    measure("  topology frequencies", lambda: topology_table(table))
    measure("  clade credibility tree", lambda: maximum_clade_credibility(table))
    rooted = sample_of_trees([yule(60, rng) for _ in range(500)])
    repeated = TreeSample(
        rooted.taxa, np.tile(rooted.parent, (40, 1)), np.tile(rooted.lengths, (40, 1)), True
    )
    measure("  the same, rooted, common-ancestor heights",
            lambda: maximum_clade_credibility(repeated, "common-ancestor"), repeats=2)  # fmt: skip


if __name__ == "__main__":
    generator = np.random.default_rng(1)
    reading(generator)
    summarising(generator)

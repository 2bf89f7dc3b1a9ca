"""Distances between the genomes of a simulated outbreak, as hard for linkage as those of SARS-CoV-2.

    python benchmarks/outbreak.py [genomes] [seed]      # what the distances are like, and how many rounds

Real epidemics are what simulated trees are not: many genomes are identical, a variant's founder has hundreds
of direct descendants one mutation away (so that one of them merges a round: the next is always nearest to the
grown cluster), the same sites mutate again and again, and amplicons that fail leave stretches of N. Distances
tie in thousands and are not additive. NumPy only, so that it can be made wherever a benchmark runs.
"""

from __future__ import annotations

import sys
import time

import numpy as np

AMPLICONS, AMPLICON_SITES = 98, 305  # of an amplified genome of 29,890 sites
NEW_VARIANTS = (
    4.0  # concentration of the Chinese restaurant process of variants: their number grows as its log
)
FROM_FOUNDER = 0.2  # share of a variant's genomes that copy its founder; the others copy any of its genomes
AS_IN_SARS_COV_2 = 0.12  # this share takes 16,000 genomes about the 1,086 rounds that real ones take
MUTATIONS = 0.6  # Poisson mean of a new genome
RECURRENT, RECURRENT_SHARE = 20, 0.05  # sites that mutate repeatedly, back too, and their share of mutations
INCOMPLETE, MEAN_DROPOUT = 0.4, 4.0  # share of genomes that lack amplicons, and how many on average

_TILE = 1000


def genomes(
    n: int, rng: np.random.Generator, from_founder: float = FROM_FOUNDER
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mutant states (n, M) bool, the amplicon of each of the M sites, and observed amplicons (n, A) bool.

    A genome founds a variant or joins one in proportion to its size, and copies its founder or a member.
    """
    variant, founder, members = np.zeros(n, np.int64), [0], [[0]]
    parent, count = np.zeros(n, np.int64), rng.poisson(MUTATIONS, n)
    for i in range(1, n):
        if rng.random() < NEW_VARIANTS / (i + NEW_VARIANTS):
            parent[i], variant[i] = rng.integers(i), len(founder)
            count[i] += 3
            founder.append(i)
            members.append([i])
            continue
        v = variant[i] = variant[rng.integers(i)]
        parent[i] = founder[v] if rng.random() < from_founder else members[v][rng.integers(len(members[v]))]
        members[v].append(i)
    mutant = np.zeros((n, RECURRENT + int(count[1:].sum())), bool)
    new = RECURRENT
    for i in range(1, n):
        mutant[i] = mutant[parent[i]]
        again = rng.binomial(count[i], RECURRENT_SHARE)
        mutant[i, rng.integers(RECURRENT, size=again)] ^= True
        mutant[i, new : new + count[i] - again] = True
        new += count[i] - again
    prone = rng.dirichlet(np.full(AMPLICONS, 0.3))
    observed = np.ones((n, AMPLICONS), bool)
    for i in np.flatnonzero(rng.random(n) < INCOMPLETE):
        observed[i, rng.choice(AMPLICONS, rng.geometric(1 / MEAN_DROPOUT), p=prone)] = False
    return mutant[:, :new], rng.integers(AMPLICONS, size=new), observed


def outbreak_distances(n: int, seed: int = 1, from_founder: float = FROM_FOUNDER) -> np.ndarray:
    """(n, n) float32 proportions of sites that differ, among those that both genomes have.

    The genomes come in random order; the same n and seed give the same matrix.
    """
    rng = np.random.default_rng(seed)
    mutant, amplicon, observed = genomes(n, rng, from_founder)
    order = rng.permutation(n)
    mutant, observed = mutant[order], observed[order]
    carriers = mutant.sum(axis=0)
    shared, single = carriers > 1, carriers == 1
    one_hot = np.eye(AMPLICONS, dtype=np.float32)[amplicon]
    seen = observed.astype(np.float32)
    own = (mutant[:, single].astype(np.float32) @ one_hot[single]) * seen  # mutations no other genome has
    there = observed[:, amplicon[shared]]
    derived = (mutant[:, shared] & there).astype(np.float32)
    ancestral = (~mutant[:, shared] & there).astype(np.float32)
    d = np.empty((n, n), np.float32)
    for i in range(0, n, _TILE):  # mutations of the row's genome that the column's lacks
        rows = slice(i, i + _TILE)
        d[rows] = derived[rows] @ ancestral.T + own[rows] @ seen.T
    for i in range(0, n, _TILE):
        for j in range(0, i + 1, _TILE):
            here, mirrored = np.s_[i : i + _TILE, j : j + _TILE], np.s_[j : j + _TILE, i : i + _TILE]
            compared = seen[here[0]] @ seen[here[1]].T * AMPLICON_SITES
            d[here] = (d[here] + d[mirrored].T) / compared
            d[mirrored] = d[here].T
    np.fill_diagonal(d, 0.0)
    return d


def linkage_rounds(d: np.ndarray) -> int:
    """Rounds of average linkage in which all reciprocal nearest neighbours merge, equal rows merged before.

    Ties go to the smaller cluster number. Works in a copy; a row is read again if its neighbour merged.
    """
    d = d[np.ix_(*[np.unique(d, axis=0, return_index=True)[1]] * 2)].copy()
    n = len(d)
    np.fill_diagonal(d, np.inf)
    size, nearest, alive, rounds = np.ones(n), d.argmin(axis=1), np.ones(n, bool), 0
    while alive.sum() > 1:
        live = np.flatnonzero(alive)
        a = live[(nearest[nearest[live]] == live) & (live < nearest[live])]
        b = nearest[a]
        for x, y in zip(a.tolist(), b.tolist()):
            d[x] = d[:, x] = (size[x] * d[x] + size[y] * d[y]) / (size[x] + size[y])
            d[x, x], d[y], d[:, y] = np.inf, np.inf, np.inf
            size[x] += size[y]
        alive[b] = False
        live = np.flatnonzero(alive)
        stale = live[np.isin(nearest[live], np.concatenate([a, b])) | np.isin(live, a)]
        nearest[stale] = d[stale].argmin(axis=1)
        for x in a:  # a merged cluster may tie with a neighbour of a larger number
            tie = live[(d[live, x] == d[live, nearest[live]]) & (x < nearest[live])]
            nearest[tie] = x
        rounds += 1
    return rounds


def main() -> None:
    n, seed = (int(x) for x in (*sys.argv[1:], *("16000", "1")[len(sys.argv) - 1 :]))
    start = time.perf_counter()
    d = outbreak_distances(n, seed)
    print(f"{n:,} genomes, seed {seed}, made in {time.perf_counter() - start:.1f} s")
    positive = d[np.triu_indices(n, 1)] if n <= 4000 else d[:2000, 2000:4000].ravel()
    print(f"pairs at distance 0: {(positive == 0).mean():.2%}; distinct values: {len(np.unique(positive)):,}")
    nearest = np.sort(d[: min(n, 2000)], axis=1)[:, 1:3]
    print(f"genomes with an identical one: {(nearest[:, 0] == 0).mean():.0%}")
    start = time.perf_counter()
    print(f"rounds of average linkage: {linkage_rounds(d):,} ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()

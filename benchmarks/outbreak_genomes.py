"""Genomes of a simulated epidemic with its true tree: mutations, hotspots, what was not read, ambiguity.

    python benchmarks/outbreak_genomes.py N PREFIX [seed]            # writes PREFIX.fasta, PREFIX.nwk
    python benchmarks/outbreak_genomes.py compare TRUE FOUND [least] # branches that either tree lacks

A birth-death process in which whoever is removed is sequenced; some 0.5 mutations a branch; sites with gamma
rates (shape 1); rates between nucleotides as in SARS-CoV-2, where C to T and G to T are frequent. NumPy only.
Branches of the true tree have their numbers of mutations / L: those of 0 cannot be told and are left out.
compare leaves out branches of the tree found that are no longer than `least` (1e-9).
"""

from __future__ import annotations

import sys

import numpy as np

SITES = 29_903
REMOVED = 0.42  # chance that the next event of a lineage is that it ends, and is sequenced
MUTATIONS = 0.35  # a lineage from one event to the next, on average
FREQUENCIES = np.array([0.299, 0.184, 0.196, 0.321])  # of A C G T
RATES = np.array(  # from row to column, relative
    [[0.0, 0.3, 1.2, 0.3], [0.4, 0.0, 0.2, 4.5], [1.5, 0.4, 0.0, 2.6], [0.3, 1.8, 0.2, 0.0]]
)
ENDS = (60, 90)  # columns not read at both ends, on average
AMPLICONS, INCOMPLETE, DROPOUTS = 98, 0.3, 3.0  # share of genomes that lack amplicons, and how many of them
AMBIGUOUS = 0.15  # a genome, on average
_IUPAC = {"AC": "M", "AG": "R", "AT": "W", "CG": "S", "CT": "Y", "GT": "K"}


def transmission(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Parents of events, how long each lineage lasted, and the n events at which one is sequenced."""
    while True:
        parent, age, tips = [-1], [1.0], []
        active = [0]
        while active and len(tips) < n:
            k = int(rng.integers(len(active)))
            node, active[k] = active[k], active[-1]
            active.pop()
            if rng.random() < REMOVED and (active or len(tips) == n - 1):
                tips.append(node)
                continue
            for _ in range(2):
                active.append(len(parent))
                parent.append(node)
                age.append(float(rng.exponential()))
        if len(tips) == n:
            return np.array(parent), np.array(age), tips


def simulate(n: int, seed: int, fasta: str, tree: str) -> None:
    """Writes both files."""
    rng = np.random.default_rng(seed)
    parent, age, tips = transmission(n, rng)
    reference = rng.choice(4, SITES, p=FREQUENCIES)
    weight = rng.gamma(1.0, 1.0, SITES) * RATES.sum(1)[reference]
    cumulative = np.cumsum(weight / weight.sum())
    needed = np.zeros(len(parent), bool)
    for tip in tips:
        x = tip
        while x >= 0 and not needed[x]:
            needed[x], x = True, parent[x]
    genomes: dict[int, dict[int, int]] = {}
    number, children = np.zeros(len(parent), int), [[] for _ in parent]
    left = np.bincount(parent[1:][needed[1:]], minlength=len(parent))
    of_tip = {tip: k for k, tip in enumerate(tips)}
    lines: list[str] = [""] * n
    for x in range(len(parent)):
        if not needed[x]:
            continue
        p = parent[x]
        own = dict(genomes[p]) if p >= 0 else {}
        if p >= 0:
            children[p].append(x)
            left[p] -= 1
            if left[p] == 0:
                del genomes[p]
        number[x] = rng.poisson(MUTATIONS * age[x]) if p >= 0 else 0
        for site in np.searchsorted(cumulative, rng.random(number[x])).tolist():
            now = own.get(site, int(reference[site]))
            own[site] = int(rng.choice(4, p=RATES[now] / RATES[now].sum()))
        if x in of_tip:
            lines[of_tip[x]] = _sequence(of_tip[x], own, reference, rng)
        else:
            genomes[x] = own
    with open(fasta, "w") as stream:
        stream.writelines(lines)
    with open(tree, "w") as stream:
        stream.write(_newick(children, number, of_tip) + ";\n")


def _sequence(name: int, own: dict[int, int], reference: np.ndarray, rng: np.random.Generator) -> str:
    states = reference.copy()
    for site, state in own.items():
        states[site] = state
    text = np.frombuffer(b"ACGT", np.uint8)[states]
    for site in rng.integers(SITES, size=rng.poisson(AMBIGUOUS)):
        other = "ACGT"[int(rng.integers(4))]
        pair = "".join(sorted({other, "ACGT"[states[site]]}))
        text[site] = ord(_IUPAC.get(pair, other))
    if rng.random() < INCOMPLETE:
        width = SITES // AMPLICONS
        for k in rng.integers(AMPLICONS, size=1 + rng.poisson(DROPOUTS)):
            text[k * width : (k + 1) * width + 20] = ord("N")
    first, last = rng.poisson(ENDS[0]), rng.poisson(ENDS[1])
    text[:first] = text[SITES - last :] = ord("N")
    return f">g{name}\n{text.tobytes().decode()}\n"


def _newick(children: list[list[int]], number: np.ndarray, of_tip: dict[int, int]) -> str:
    """Branches without mutations joined, nodes with one child left out."""
    text: dict[int, list[tuple[str, int]]] = {}  # what hangs on a node: subtrees and their mutations
    for x in range(len(children) - 1, -1, -1):
        if x in of_tip:
            text[x] = [(f"g{of_tip[x]}", 0)]
        elif children[x]:
            below: list[tuple[str, int]] = []
            for c in children[x]:
                hangs = text.pop(c)
                if len(hangs) == 1:
                    below.append((hangs[0][0], hangs[0][1] + int(number[c])))
                elif number[c] == 0:
                    below += hangs
                else:
                    below.append((f"({','.join(_written(h) for h in hangs)})", int(number[c])))
            text[x] = below
    return f"({','.join(_written(h) for h in text[0])})"


def _written(hanging: tuple[str, int]) -> str:
    return f"{hanging[0]}:{hanging[1] / SITES:.9g}"


def compare(true: str, found: str, least: float) -> str:
    """Inner branches with a length of both trees, and those that only one has, by sums of random numbers."""
    from phloem.io.trees import read_trees

    trees = [next(iter(read_trees(path))) for path in (true, found)]
    rng = np.random.default_rng(0)
    code = {
        name: int(c) for name, c in zip(sorted(trees[0].taxa), rng.integers(1 << 62, size=len(trees[0].taxa)))
    }
    sides = []
    for tree, shortest in zip(trees, (1e-9, least)):
        below, size = np.zeros(tree.n_nodes, np.int64), np.zeros(tree.n_nodes, np.int64)
        below[: tree.n_tips], size[: tree.n_tips] = [code[name] for name in tree.taxa], 1
        for x in range(tree.n_nodes - 1):
            below[tree.parent[x]] ^= below[x]
            size[tree.parent[x]] += size[x]
        inner = np.flatnonzero((size > 1) & (size < tree.n_tips - 1) & (tree.lengths > shortest))
        sides.append({min(int(b), int(b ^ below[-1])) for b in below[inner]})
    one, other = sides
    return f"{len(one)} true, {len(other)} found, {len(one - other)} missed, {len(other - one)} wrong"


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        print(compare(sys.argv[2], sys.argv[3], float(sys.argv[4]) if len(sys.argv) > 4 else 1e-9))
    else:
        seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
        simulate(int(sys.argv[1]), seed, f"{sys.argv[2]}.fasta", f"{sys.argv[2]}.nwk")

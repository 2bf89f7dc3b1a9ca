"""Distance trees and distances next to other programs' on input without ties.

What they printed is frozen in distance_trees/others.json with their versions (distance_trees/make.py); those
that are installed here are asked again: SciPy, DendroPy and Biopython always, the others where there are any.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform

from phloem.clustering.distances import pairwise_distances
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.settings import DistanceSettings
from phloem.io.alignment import read_alignment
from phloem.io.distance_matrix import read_distance_matrix
from phloem.io.newick import parse_newick
from phloem.tree.match import match_taxa
from phloem.tree.random import coalescent
from phloem.tree.reroot import unroot
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits
from phloem.tree.tree import Tree

FOLDER = Path(__file__).parent / "distance_trees"
OTHERS = json.loads((FOLDER / "others.json").read_text())
LINKAGES = {"upgma": "average", "wpgma": "weighted", "single": "single", "complete": "complete"}
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
PRINTED = {"scikit-bio": 1e-8, "dendropy": 1e-8, "biopython": 1e-7, "quicktree": 1.01e-5}


@pytest.fixture(scope="module")
def matrix():
    return read_distance_matrix(FOLDER / "matrix.phy")


def clade_heights(rows: np.ndarray) -> dict[frozenset[int], float]:
    """Leaves below each merge of a matrix in SciPy's form, and its distance."""
    n = len(rows) + 1
    below = [frozenset([i]) for i in range(n)]
    for a, b, *_ in rows:
        below.append(below[int(a)] | below[int(b)])
    return dict(zip(below[n:], np.asarray(rows)[:, 2].tolist()))


def same_heights(found: np.ndarray, others: np.ndarray, tolerance: float) -> bool:
    ours, theirs = clade_heights(found), clade_heights(others)
    return ours.keys() == theirs.keys() and max(abs(ours[c] - theirs[c]) for c in ours) <= tolerance


def branches(tree: Tree, taxa) -> dict[bytes, float]:
    """Length of every branch by its split, without the root."""
    tree = match_taxa(tree, taxa)
    if len(tree.children(tree.n_nodes - 1)) == 2:
        tree = unroot(tree)
    splits = sample_splits(sample_of_trees([tree]))[0]
    return {splits[x].tobytes(): float(tree.lengths[x]) for x in range(tree.n_nodes - 1)}


def same_branches(found: Tree, newick: str, tolerance: float) -> bool:
    ours = branches(found, found.taxa)
    theirs = branches(parse_newick(newick, allow_negative=True)[0], found.taxa)
    return ours.keys() == theirs.keys() and max(abs(ours[s] - theirs[s]) for s in ours) <= tolerance


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("method", LINKAGES)
@pytest.mark.parametrize("program", ["scipy", "fastcluster"])
def test_linkage_as_printed_by_others(matrix, program, method, precision):
    found = linkage(matrix.values.astype(precision), method).linkage_matrix()
    others = OTHERS["linkage"][program]
    assert same_heights(found, others[method], TOLERANCE[precision])
    wrong = "upgma" if method == "wpgma" else "wpgma"
    assert not same_heights(found, others[wrong], TOLERANCE[precision])


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("program", OTHERS["nj"])
def test_neighbour_joining_as_printed_by_others(matrix, program, precision):
    tree = neighbour_joining(matrix.values.astype(precision)).tree(matrix.taxa)
    tolerance = max(PRINTED[program], TOLERANCE[precision])
    assert same_branches(tree, OTHERS["nj"][program], tolerance)
    unj = neighbour_joining(matrix.values.astype(precision), "unj").tree(matrix.taxa)
    assert not same_branches(unj, OTHERS["nj"][program], tolerance)


@pytest.mark.parametrize("program", OTHERS["upgma"])
def test_upgma_trees_as_printed_by_others(matrix, program):
    tree = linkage(matrix.values).tree(matrix.taxa)
    assert same_branches(tree, OTHERS["upgma"][program], 2 * PRINTED[program])
    assert not same_branches(
        linkage(matrix.values, "wpgma").tree(matrix.taxa), OTHERS["upgma"][program], 1e-3
    )


@pytest.mark.parametrize("name", OTHERS["distances of scikit-bio"])
def test_distances_as_computed_by_scikit_bio(name):
    method, _, shape = name.partition(" gamma ")
    alignment = read_alignment(FOLDER / "alignment.fasta")
    settings = DistanceSettings(
        method,  # type: ignore[arg-type]
        shape=float(shape) if shape else None,
        frequencies=tuple(OTHERS["frequencies"]) if method in ("f84", "tn93") else None,
    )
    found = pairwise_distances(alignment, settings).values[np.tril_indices(alignment.n_taxa, -1)]
    theirs = OTHERS["distances of scikit-bio"]
    np.testing.assert_allclose(found, theirs[name], rtol=1e-11)
    wrong = next(other for other in theirs if other != name)
    assert not np.allclose(found, theirs[wrong], rtol=1e-4)


def large_matrix(n: int) -> np.ndarray:
    """Distances on a coalescent tree, each up to 20% too long: all different."""
    rng = np.random.default_rng(n)
    tree = coalescent(n, rng)
    edges = np.zeros((tree.n_nodes, tree.n_nodes), np.float64)
    for x in range(tree.n_nodes - 2, -1, -1):
        edges[x] = edges[tree.parent[x]]
        edges[x, x] = tree.lengths[x]
    depth = edges.sum(axis=1)[:n]
    shared = (edges[:n] > 0).astype(float) @ edges[:n].T
    d = depth[:, None] + depth - 2 * shared
    d *= 1 + 0.2 * rng.random((n, n))
    return np.triu(d, 1) + np.triu(d, 1).T


@pytest.mark.parametrize("method", LINKAGES)
def test_scipy_asked_again(method):
    d = large_matrix(400)
    theirs = scipy_linkage(squareform(d, checks=False), LINKAGES[method])
    for precision, tolerance in TOLERANCE.items():
        assert same_heights(
            linkage(d.astype(precision), method).linkage_matrix(), theirs, tolerance * d.max()
        )


@pytest.mark.parametrize("method", LINKAGES)
def test_fastcluster_asked_again(method):
    fastcluster = pytest.importorskip(
        "fastcluster", reason="fastcluster is no dependency; its output is frozen"
    )
    d = large_matrix(400)
    theirs = fastcluster.linkage(squareform(d, checks=False), LINKAGES[method])
    assert same_heights(linkage(d, method).linkage_matrix(), theirs, 1e-12 * d.max())


def test_dendropy_asked_again():
    dendropy = pytest.importorskip("dendropy")
    names, d = [f"t{i + 1}" for i in range(40)], large_matrix(40)
    rows = [f"{name}," + ",".join(map(repr, row)) for name, row in zip(names, d.tolist())]
    text = "\n".join(["," + ",".join(names), *rows]) + "\n"
    theirs = dendropy.PhylogeneticDistanceMatrix.from_csv(io.StringIO(text))
    ours = neighbour_joining(d).tree(names), linkage(d).tree(names)
    for tree, other in zip(ours, (theirs.nj_tree(), theirs.upgma_tree())):
        newick = other.as_string("newick", suppress_rooting=True)
        assert same_branches(tree, newick, 1e-8)
        assert not same_branches(linkage(d, "complete").tree(names), newick, 1e-8)


def test_biopython_asked_again():
    """Its upgma() is WPGMA, which is why only its WPGMA heights are asked for."""
    construction = pytest.importorskip("Bio.Phylo.TreeConstruction")
    names, d = [f"t{i + 1}" for i in range(30)], large_matrix(30)
    lower = [row[: i + 1] for i, row in enumerate(d.tolist())]
    constructor = construction.DistanceTreeConstructor()
    joined = constructor.nj(construction.DistanceMatrix(names, lower)).format("newick")
    assert same_branches(neighbour_joining(d).tree(names), joined, 1e-6)
    wpgma = constructor.upgma(construction.DistanceMatrix(names, [list(row) for row in lower])).format(
        "newick"
    )
    assert same_branches(linkage(d, "wpgma").tree(names), wpgma, 1e-6)
    assert not same_branches(linkage(d).tree(names), wpgma, 1e-6)


def test_scikit_bio_asked_again():
    skbio = pytest.importorskip("skbio", reason="scikit-bio is no dependency; its output is frozen")
    names, d = [f"t{i + 1}" for i in range(60)], large_matrix(60)
    theirs = str(skbio.tree.nj(skbio.DistanceMatrix(d, names), neg_as_zero=False))
    assert same_branches(neighbour_joining(d).tree(names), theirs, 1e-10)


def test_quicktree_asked_again(matrix):
    program = shutil.which("quicktree")
    if program is None:
        pytest.skip("the program quicktree is not installed; its output is frozen")
    command = [program, "-in", "m", "-out", "t", str(FOLDER / "matrix.phy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    tree = neighbour_joining(matrix.values).tree(matrix.taxa)
    assert same_branches(tree, "".join(done.stdout.split()), PRINTED["quicktree"])

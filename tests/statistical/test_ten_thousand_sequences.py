"""From 10,000 simulated sequences to trees and pictures by the user's commands, next to the true tree."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from typer.testing import CliRunner

from phloem.cli import build_app
from phloem.io.trees import read_tree
from phloem.tree.match import match_taxa
from phloem.tree.reroot import unroot
from phloem.tree.splits import robinson_foulds

pytestmark = pytest.mark.slow

N = 10_000
SPLITS = 2 * (N - 3)  # the largest Robinson-Foulds distance
MODELS = {"jc69": "JC", "tn93": "TN93{4,6}+F{0.3,0.2,0.25,0.25}"}


def run(*arguments: str) -> None:
    done = CliRunner().invoke(build_app(), list(arguments))
    assert done.exit_code == 0, done.exception


@pytest.fixture(scope="module", params=MODELS)
def simulated(request, tmp_path_factory):
    """(distance, alignment file, true tree file, file of another tree of the same taxa)."""
    folder = tmp_path_factory.mktemp(request.param)
    for seed, name in ((1, "true"), (2, "other")):
        out = str(folder / f"{name}.fasta")
        options = ["--tips", str(N), "--height", "0.3", "--seed", str(seed), "-o", out]
        run("simulate", *options, "-m", MODELS[request.param], "-n", "1500" if name == "true" else "1")
    return request.param, *(str(folder / f) for f in ("true.fasta", "true.nwk", "other.nwk"))


def missed(found: str, true: str) -> float:
    """Robinson-Foulds distance without roots, as a share of the largest there is."""
    a = read_tree(true)
    b = match_taxa(read_tree(found, allow_negative=True), a.taxa)
    a, b = (unroot(tree) if tree.rooted else tree for tree in (a, b))
    return robinson_foulds(a, b) / SPLITS


@pytest.mark.parametrize("method", ["upgma", "nj"])
def test_the_true_tree_is_found_but_for_its_shortest_branches(simulated, method, tmp_path):
    """Measured: 0.104 and 0.105 (UPGMA, JC69 and TN93), 0.094 and 0.111 (NJ)."""
    distance, alignment, true, other = simulated
    tree, picture = str(tmp_path / "x.nwk"), tmp_path / "x.svg"
    run(method, alignment, "-d", distance, "-o", tree, "--picture", str(picture))
    assert missed(tree, true) < 0.13
    assert missed(tree, other) > 0.99
    drawn = ElementTree.parse(picture).getroot()
    assert drawn.tag.endswith("svg")
    texts = [node.text for node in drawn.iter() if node.tag.endswith("text")]
    assert 50 < len(texts) < 1000 and any(text in read_tree(true).taxa for text in texts)

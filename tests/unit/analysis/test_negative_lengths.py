"""Trees with branches below zero, as neighbour joining leaves them, where lengths are to be fitted."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError, InputWarning

SEQUENCES = ">A\nACGTACGTAC\n>B\nACGTACGAAC\n>C\nACGAACGAAC\n>D\nTCGAACGATC\n"
JOINED = "((A:0.1,B:0.1):{},C:0.1,D:{});"


@pytest.fixture
def files(tmp_path):
    alignment, tree = tmp_path / "genes.fasta", tmp_path / "joined.nwk"
    alignment.write_text(SEQUENCES)
    tree.write_text(JOINED.format(-0.01, -2))
    return str(alignment), str(tree)


def test_a_fit_begins_from_zero_and_ends_where_it_would(files, tmp_path):
    alignment, joined = files
    positive = tmp_path / "positive.nwk"
    positive.write_text(JOINED.format(0.01, 0.1))
    with pytest.warns(InputWarning, match=r"joined\.nwk: 2 branches have negative lengths"):
        fit = run_likelihood(LikelihoodSettings(alignment, tree=joined, model="JC", optimize=True))
    other = run_likelihood(LikelihoodSettings(alignment, tree=str(positive), model="JC", optimize=True))
    assert fit.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)
    assert (np.asarray(fit.branch_lengths) >= 0).all()


def test_a_search_begins_from_it(files, tmp_path):
    alignment, joined = files
    settings = MlSettings(alignment, model="JC", tree=joined, prefix=str(tmp_path / "run"), fast=True)
    with pytest.warns(InputWarning, match="2 branches have negative lengths"):
        found = run_ml(settings)
    assert found.tree is not None and set(found.tree.taxa) == set("ABCD")


def test_a_likelihood_without_a_fit_names_the_fit(files):
    alignment, joined = files
    with pytest.raises(InputError, match=r"negative branch length -0\.01") as error:
        run_likelihood(LikelihoodSettings(alignment, tree=joined, model="JC"))
    assert error.value.line == 1 and "--optimize" in str(error.value)

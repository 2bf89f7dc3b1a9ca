from __future__ import annotations

import json
from dataclasses import replace

import pytest

from phloem.analysis.likelihood import LikelihoodSettings, criteria_line, few_sites, run_likelihood
from phloem.errors import InputError, ModelError
from phloem.io.trees import read_tree

FASTA = ">a\nACGTACGTAAGGTT\n>b\nACGTACGAAAGGTY\n>c\nACTTACGAAAGCTA\n>d\nGCTTACCAAAGCCA\n"
NEWICK = "(a:0.1,b:0.2,(c:0.15,d:0.3):0.05);\n"


@pytest.fixture
def settings(tmp_path) -> LikelihoodSettings:
    (tmp_path / "a.fasta").write_text(FASTA)
    (tmp_path / "a.nwk").write_text(NEWICK)
    return LikelihoodSettings(
        str(tmp_path / "a.fasta"), str(tmp_path / "a.nwk"), "HKY{3}+F+G4{0.5}", engine="reference"
    )


def test_record(settings):
    record = run_likelihood(replace(settings, gradient=True)).to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["log_likelihood"] < 0
    rows = record["gradient"]["branch_lengths"]
    assert [r["branch"] for r in rows] == ["a", "b", "c", "d", "mrca(c,d)"]
    assert [r["length"] for r in rows] == [0.1, 0.2, 0.15, 0.3, 0.05]
    assert set(record["gradient"]["parameters"]) == {"kappa", "alpha", *(f"frequency_{s}" for s in "ACGT")}
    assert record["settings"]["model"] == "HKY{3}+F+G4{0.5}"
    source = record["provenance"]["files"][settings.alignment]["sha256"]
    assert len(source) == 64 and record["provenance"]["engine"]["name"] == "reference"
    assert "gradient" not in run_likelihood(settings).to_json()


def test_settings_reach_the_computation(settings):
    value = run_likelihood(settings).log_likelihood
    changes = {"ambiguity": "missing", "gamma": "median", "sites": "1-10", "model": "JC"}
    for name, change in changes.items():
        assert run_likelihood(replace(settings, **{name: change})).log_likelihood != value


def test_a_missing_value_is_an_error_unless_optimised(settings, tmp_path):
    free = replace(settings, model="HKY+F+G4{0.5}", gradient=True)
    with pytest.raises(ModelError, match="kappa"):
        run_likelihood(free)
    out, seen = tmp_path / "fitted.nwk", []
    fitting = replace(free, optimize=True, out_tree=str(out))
    result = run_likelihood(fitting, progress=lambda n, value: seen.append(value))
    assert result.log_likelihood == pytest.approx(max(seen))
    assert result.log_likelihood > run_likelihood(settings).log_likelihood
    assert result.model.startswith("HKY{") and "kappa" in result.parameters
    again = run_likelihood(replace(settings, tree=str(out), model=result.model))
    assert again.log_likelihood == pytest.approx(result.log_likelihood, abs=1e-6)
    assert result.to_json()["optimum"]["converged"]
    assert read_tree(out).taxa
    with pytest.raises(InputError, match="exists already"):
        run_likelihood(fitting)
    run_likelihood(replace(fitting, redo=True))
    for place in (tmp_path / "nowhere" / "t.nwk", tmp_path):
        with pytest.raises(InputError, match=r"folder"):
            run_likelihood(replace(fitting, redo=True, out_tree=str(place)))


def test_a_tree_without_lengths_can_be_fitted(settings, tmp_path):
    bare = tmp_path / "bare.nwk"
    bare.write_text("(a,b,(c,d));\n")
    expected = run_likelihood(replace(settings, optimize=True)).log_likelihood
    fitted = run_likelihood(replace(settings, tree=str(bare), optimize=True)).log_likelihood
    assert fitted == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match=r"bare\.nwk: .*has no length") as caught:
        run_likelihood(replace(settings, tree=str(bare)))
    assert "--optimize" in caught.value.hint
    bare.write_text("(a:0.1,b,(c:0.2,d));\n")  # some lengths
    some = replace(settings, tree=str(bare))
    assert run_likelihood(replace(some, optimize=True)).log_likelihood == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match="has no length"):
        run_likelihood(some)


def test_an_empty_model_is_none(settings):
    with pytest.raises(ModelError, match="cannot read ''"):
        run_likelihood(replace(settings, model=""))


def test_inputs_are_never_replaced(settings):
    for file in (settings.tree, settings.alignment):
        with pytest.raises(InputError, match="this file is an input"):
            run_likelihood(replace(settings, out_tree=file, optimize=True, redo=True))


def test_several_trees_and_lengths_in_years_give_warnings(settings, tmp_path):
    other = tmp_path / "other.nwk"
    other.write_text(NEWICK * 3)
    (warning,) = run_likelihood(replace(settings, tree=str(other))).warnings
    assert "3 trees" in warning
    other.write_text(NEWICK.replace("0.", "10."))
    (warning,) = run_likelihood(replace(settings, tree=str(other))).warnings
    assert "units of time" in warning
    assert not any(
        "units of time" in w
        for w in run_likelihood(replace(settings, tree=str(other), optimize=True, model="JC")).warnings
    )
    assert run_likelihood(settings).warnings == ()


def test_trees_of_classes_are_written_and_read_again(settings, tmp_path):
    out = tmp_path / "classes.nwk"
    fitting = replace(settings, model="JC+H2", optimize=True, out_tree=str(out))
    result = run_likelihood(fitting)
    assert result.branch_lengths.shape == (2, 5) and len(result.to_json()["class_trees"]) == 2
    again = run_likelihood(replace(settings, tree=str(out), model=result.model, gradient=True))
    assert again.log_likelihood == pytest.approx(result.log_likelihood, abs=1e-6)
    assert not any("this is the first" in warning for warning in again.warnings)
    row = again.to_json()["gradient"]["branch_lengths"][0]
    assert row["length"] == again.branch_lengths[:, 0].tolist() and len(row["derivative"]) == 2
    with pytest.raises(InputError, match="2 trees are given for 3 classes"):
        run_likelihood(replace(settings, tree=str(out), model="JC+H3{0.3,0.3,0.4}"))
    out.write_text(NEWICK + "(a:0.1,c:0.2,(b:0.15,d:0.3):0.05);\n")
    with pytest.raises(InputError, match="tree 2 has another shape"):
        run_likelihood(replace(settings, tree=str(out), model=result.model))


def test_more_numbers_than_sites_are_warned_of(settings):
    fitted = replace(settings, model="GTR+FO+G4", optimize=True, engine="cpu")
    result = run_likelihood(fitted)
    assert result.optimum.n_free == 14 and len(result.warnings) == 1
    assert "14 free numbers are fitted to 14 sites" in result.warnings[0] and "AICc" in result.warnings[0]
    assert "AICc not defined" in criteria_line(1.0, result.optimum.aicc, 2.0)
    enough = run_likelihood(replace(fitted, model="JC"))
    assert not enough.warnings and "not defined" not in criteria_line(1.0, enough.optimum.aicc, 2.0)
    assert few_sites(14, 16) == () and few_sites(14, 15)


def test_a_taxon_without_data_is_named(settings, tmp_path):
    (tmp_path / "gaps.fasta").write_text(FASTA.replace("GCTTACCAAAGCCA", "-" * 14))
    result = run_likelihood(replace(settings, alignment=str(tmp_path / "gaps.fasta")))
    (said,) = result.warnings
    assert said.startswith("of 1 taxon nothing is known") and said.endswith(": d")
    assert not run_likelihood(settings).warnings

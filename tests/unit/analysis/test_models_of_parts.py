"""Errors in the models that a partition file names say where they stand, in every command."""

from __future__ import annotations

import pytest

from phloem.analysis.likelihood import LikelihoodSettings
from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
from phloem.analysis.plan import PlanSettings, run_plan
from phloem.errors import ModelError

RUNS = {
    "likelihood": lambda file, parts, out: run_partitioned_likelihood(
        LikelihoodSettings(file, tree=None, model=None, partitions=parts)
    ),
    "ml": lambda file, parts, out: run_ml(MlSettings(file, partitions=parts, prefix=out)),
    "mcmc": lambda file, parts, out: chain_input(McmcSettings(file, partitions=parts, prefix=out)),
    "plan": lambda file, parts, out: run_plan(PlanSettings(file, partitions=parts)),
}


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize(("model", "column"), [("HKY+B", 5), ("HKX", 1)])
def test_the_line_of_the_model(tmp_path, command, model, column):
    alignment, parts = tmp_path / "genes.fasta", tmp_path / "genes.parts"
    alignment.write_text(">A\nACGTAC\n>B\nACGTAA\n>C\nACTTAA\n>D\nACTTCA\n")
    parts.write_text(f"# genes\nGTR, a = 1-3\n\n{model}, b = 4-6\n")
    with pytest.raises(ModelError) as error:
        RUNS[command](str(alignment), str(parts), str(tmp_path / "run"))
    assert (error.value.file, error.value.line) == (str(parts), 4)
    assert f"genes.parts:4: model string, column {column}: part 'b': " in str(error.value)

"""Models among which a chain chooses: what its numbers are called, printed and read back; what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.partitioned_likelihood import read_linkage
from phloem.density.parameterisation import parameterise
from phloem.density.parts import Linkage, PartModel
from phloem.density.space import Block
from phloem.density.terms.tied_dirichlet import TiedDirichlet, all_groupings, code_of, groups_of
from phloem.errors import InputError, ModelError
from phloem.inference.mcmc.convergence import diagnose
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.samples import Samples, choices_of, model_shares
from phloem.inference.mcmc.settings import ChainSettings, Convergence, Priors
from phloem.inference.mcmc.structure import printed_names, printed_values, structure_of_parts
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.grammar import parse_model

RATES = [f"rate_{pair}" for pair in ("AC", "AG", "AT", "CG", "CT")]


def structure(*texts: str, linkage: Linkage | None = None):
    models = [PartModel(f"p{i}", parse_model(text, datatype="dna"), 10) for i, text in enumerate(texts)]
    return structure_of_parts(models, linkage)


def test_groupings_are_counted_and_ordered_as_in_mrbayes():
    assert [len(all_groupings(k)) for k in range(1, 7)] == [1, 2, 5, 15, 52, 203]
    six = all_groupings(6)
    assert six[0] == (1, 1, 1, 1, 1, 1) and six[-1] == (1, 2, 3, 4, 5, 6)
    assert six[12] == (1, 1, 1, 2, 3, 2)  # of a sample of MrBayes': gtrsubmodel 12
    assert code_of([7, 7, 1]) == 112.0 and groups_of(112.0, 3) == (1, 1, 2)


def test_printed_numbers_are_mrbayes_and_read_back():
    made = structure("MIXED+FO")
    block = made.space.block("relative_rates")
    assert printed_names(made, block) == (
        "r(G<->T)", "r(A<->C)", "r(A<->G)", "r(A<->T)", "r(C<->G)", "r(C<->T)", "gtrsubmodel", "k_revmat"
    )  # fmt: skip
    x = np.array([0.1, 0.2, 0.2, 0.2, 0.1, 0.2, code_of("122212")])  # GT and CG; all others
    printed = printed_values(made, block, x)
    assert choices_of("gtrsubmodel{p0,p1}")[int(printed[6])] == "111212" and printed[7] == 2
    values = dict(zip(printed_names(made, block), printed)) | {f"pi({s})": 0.25 for s in "ACGT"}
    assert np.array_equal(made.values_of(values)[: len(x)], x)


def test_the_prior_has_one_number():
    made = structure("MIXED", "GTR", linkage=Linkage("linked"))
    families = {p.block: p.family for p in number_priors(made, Priors(others=("rates=dirichlet(2.5)",)))}
    assert families["relative_rates{p0}"] == TiedDirichlet(2.5)
    with pytest.raises(InputError, match="have one number"):
        number_priors(made, Priors(others=("rates{p0}=dirichlet(1,2,3,4,5,6)",)))


def test_rates_are_linked_by_one_name():
    models = {name: parse_model(text, datatype="dna") for name, text in (("a", "GTR"), ("b", "MIXED"))}
    models |= {"c": parse_model("MIXED+G4", datatype="dna"), "d": parse_model("HKY", datatype="dna")}
    assert read_linkage("linked", ["rates:b,c"], models).parameters == {r: (("b", "c"),) for r in RATES}
    assert "kappa" not in read_linkage("linked", ["rates"], models).parameters
    classes = {name: parse_model("GTR+R3", datatype="dna") for name in "ab"}
    assert set(read_linkage("linked", ["rates"], classes).parameters) == {"rates"}  # those of +R
    parts = [PartModel(name, models[name], 10) for name in "abc"]
    with pytest.raises(InputError, match="not the same thing in parts 'a' and 'b'"):
        structure_of_parts(parts, read_linkage("linked", ["rates:a,b"], models))


def test_only_the_sampler_takes_such_a_model():
    model = parse_model("MIXED+G4", datatype="dna")
    with pytest.raises(ModelError, match="only phloem mcmc and time average"):
        model.evaluate()
    with pytest.raises(ModelError, match="only phloem mcmc and time average"):
        parameterise([PartModel("a", model, 10)], Block("lengths", "positive", np.ones(3), 1e-8, 10.0))
    for text, column in (("MIX{JC,MIXED}", 8), ("MIXED*H2", 1)):
        with pytest.raises(ModelError, match="cannot be one of several") as told:
            parse_model(text, datatype="dna")
        assert told.value.column == column
    fixed = parse_model("MIXED{1,2,3,4,5}+FQ", datatype="dna")  # one model, then
    other = parse_model("GTR{1,2,3,4,5}+FQ", datatype="dna")
    rates = [m.evaluate().processes[0].rate_matrix for m in (fixed, other)]
    assert np.array_equal(*rates) and fixed.text().startswith("MIXED{1.0,2.0")


def test_an_analysis_is_compiled_resumed_and_summarised(tmp_path):
    alignment = read_alignment("examples/primates.nex")
    made = structure_of_parts([PartModel("all", model_for_alignment("MIXED+G4", alignment), 898)])

    def run(name: str, generations: int):
        given = {"generations": generations, "sample_every": 50, "check_every": 500, "n_runs": 2}
        settings = ChainSettings(seed=2, n_chains=2, tuning_generations=200, **given)
        return sample(observations(alignment), made, settings, str(tmp_path / name), {"seed": 2})

    whole = run("whole", 1500)
    assert whole.runs[0].data.recipes.rows[0, KIND] == COMPILED
    run("parts", 500)
    assert run("parts", 1500).resumed_at == 500
    texts = [(tmp_path / f"{name}.run2.p").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    names, *rows = (line.split("\t") for line in texts[0].splitlines()[1:])
    places = [names.index(name) for name in ("gtrsubmodel", "k_revmat")]
    assert names.index("r(G<->T)") + 1 == places[0] == places[1] - 1
    for row in rows[20:]:  # at the start rates of different groups are equal
        submodel, n_rates = (row[i] for i in places)
        assert len(set(choices_of("gtrsubmodel")[int(submodel)])) == int(n_rates)
        assert len({row[names.index(n)] for n in names if n.startswith("r(")}) == int(n_rates)


def test_probabilities_of_models():
    names = ("LnL", "gtrsubmodel", "TL")
    draws = np.zeros((2, 4, 3))
    draws[0, :, 1], draws[1, :, 1] = [202, 202, 5, 5], [202, 202, 202, 5]
    most, other = model_shares(names, draws)
    assert (most.name, most.probability, most.low, most.high) == ("123456", 5 / 8, 0.5, 0.75)
    assert other.probability == 3 / 8 and most.sd == pytest.approx(np.std([0.5, 0.75], ddof=1))
    assert model_shares(("LnL", "TL"), draws[:, :, [0, 2]]) == ()


@pytest.mark.parametrize(("apart", "met"), [(0.0, True), (0.4, False)])
def test_runs_that_differ_in_a_model_only_have_not_converged(apart, met):
    """The numbers 3 and 5 of two models have no order, which a mean would give them."""
    rng, parent = np.random.default_rng(1), np.array([4, 4, 5, 5, 5, -1], np.int32)

    def run(share: float) -> Samples:
        model = np.where(rng.random(4000) < share, 3.0, 5.0)
        numbers = np.column_stack([rng.normal(size=(4000, 3)), model])
        lengths = np.where(np.arange(6) < 5, 0.1, 0.0) * np.ones((4000, 1))
        trees = np.tile(parent, (4000, 1))
        return Samples(np.arange(4000) * 10, numbers, trees, lengths, np.zeros((4000, 0, 6)))

    runs = [run(0.3), run(0.3 + apart)]
    names = ("LnL", "LnPr", "TL", "gtrsubmodel")
    found = diagnose(runs, names, ("a", "b", "c", "d"), 0, Convergence())
    assert found.met == met
    if not met:
        assert found.limiting.startswith("gtrsubmodel ") and found.r_hat > 1.01


def test_moves_between_models_keep_their_weight_while_weights_are_learnt():
    """Their jumps have no coordinates to be measured in; taken for nothing, they would hardly be tried."""
    alignment = read_alignment("examples/primates.nex")
    made = structure_of_parts([PartModel("all", model_for_alignment("MIXED+G4", alignment), 898)])
    settings = ChainSettings(seed=2, n_chains=2, n_runs=1, generations=9000, sample_every=500)
    settings = replace(settings, tuning_generations=8000, check_every=9000)
    [run] = sample(observations(alignment), made, settings).runs
    usual = np.array([move.weight for move in run.moves])
    now = np.diff(run.state.cumulative, prepend=0.0)
    change = {move.name: x for move, x in zip(run.moves, now / (usual / usual.sum()))}
    assert max(change.values()) > 1.2 and min(change.values()) < 0.8  # something was learnt
    assert min(x for name, x in change.items() if name.startswith("relative_rates_")) > 0.5

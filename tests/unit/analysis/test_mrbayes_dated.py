"""What a MRBAYES block with a clock becomes in `phloem time`."""

from __future__ import annotations

import math
import shlex
from dataclasses import fields

import numpy as np
import pytest
from scipy.integrate import quad
from typer.testing import CliRunner

import phloem.cli.time as command
from phloem.analysis.mrbayes import BlockAnalysis, block_analysis
from phloem.analysis.mrbayes_ages import age_density
from phloem.analysis.time_data import time_input
from phloem.analysis.time_options import dated_analysis, time_settings
from phloem.cli import build_app
from phloem.density.terms.beta_prime import BetaPrime
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.tied_dirichlet import TiedDirichlet
from phloem.errors import InputError
from phloem.inference.time.settings import parse_age
from phloem.io.mrbayes import Value

ROWS = ("aa ACGTACGTAC", "bb ACGTTCGTAC", "cc ACCTACGTAA", "dd AGCTACGTAA", "ee AGCTACGGAA")


def written(folder, *lines: str) -> str:
    text = "#NEXUS\nbegin data; dimensions ntax=5 nchar=10; format datatype=dna; matrix\n" + "\n".join(ROWS)
    file = folder / "x.nex"
    file.write_text(f"{text}\n; end;\nbegin mrbayes;\n" + "\n".join(lines) + "\nend;\n")
    return str(file)


def block_of(folder, *lines: str) -> BlockAnalysis:
    found = block_analysis(written(folder, *lines))
    assert found is not None and found.dated
    return found


def test_defaults_are_those_of_mrbayes(tmp_path):
    line = "prset speciationpr=exp(2) treeagepr=gamma(1,1) fossilizationpr=beta(1,2);"
    block = block_of(tmp_path, "prset brlenspr=clock:uniform;", line, "outgroup aa;", "mcmc;")
    found, told = block.options, "\n".join(block.notes)
    assert found["tree_prior"] == "uniform" and found["calibrate"] == ["root=gamma(1,1)"]
    assert "speciationpr: no meaning with clock:uniform" in told and "treeagepr" not in told
    assert "fossilizationpr: no meaning with clock:uniform" in told
    assert found["prior"] == ["clock_rate=1"] and found["clock"] == "strict"
    assert (found["generations"], found["runs"], found["chains"], found["warm_up"]) == (1_000_000, 2, 4, 0.25)
    found = block_of(tmp_path, "lset nst=2;", "prset brlenspr=clock:birthdeath;", "mcmc;").options
    assert found["prior"][:2] == ["kappa=ratios(1)", "clock_rate=1"]
    assert found["prior"][2:] == ["net_diversification=exponential(10)", "relative_death=beta(1,1)"]
    found = block_of(tmp_path, "prset brlenspr=clock:coalescence;", "mcmc;").options
    assert found["prior"] == ["clock_rate=1", "pop_size=gamma(1,5)"] and "calibrate" not in found


def test_the_rule_to_stop_by_is_that_of_the_block(tmp_path):
    rule = "mcmc ngen=9000 stoprule=yes stopval=0.02 diagnfreq=300;"
    settings, text = dated_analysis(block_of(tmp_path, "prset brlenspr=clock:uniform;", rule), {})
    chains = settings.chains
    assert (chains.until_converged, chains.generations, chains.check_every) == (True, 9000, 300)
    assert (chains.convergence.asdsf, chains.convergence.ess, chains.convergence.r_hat) == (0.02, 0.0, 1e9)
    assert "--until-converged --asdsf 0.02 --least-ess 0 --r-hat 1e+09" in text


@pytest.mark.parametrize(
    "ploidy, given, expected",
    [
        ("haploid", "gamma(2,3)", "gamma(2,3)"),
        ("diploid", "uniform(1,3)", "uniform(2,6)"),
        ("zlinked", "normal(2,1)", "normal(3,1.5)"),
        ("dip", "fixed(3)", "6"),
        ("diploid", "lognormal(1,2)", f"lognormal({1 + math.log(2):.12g},2)"),
    ],
)
def test_sizes_count_chromosomes(tmp_path, ploidy, given, expected):
    found = block_of(tmp_path, f"lset ploidy={ploidy};", f"prset brlenspr=clock:coal popsizepr={given};")
    assert found.options["prior"][1] == f"pop_size={expected}"


def test_growth_is_by_time(tmp_path):
    more = "clockratepr=fixed(0.5) growthpr=uniform(-2,4)"
    found = block_of(tmp_path, f"prset brlenspr=clock:coalescence {more};").options
    assert found["tree_prior"] == "exponential" and found["prior"][2] == "growth_rate=uniform(-1,2)"


AGES = {
    "gamma": (("6", "2"), 6.0, 2.0),
    "offsetgamma": (("4", "6", "2"), 6.0, 2.0),
    "lognormal": (("6", "2"), 6.0, 2.0),
    "offsetlognormal": (("4", "6", "2"), 6.0, 2.0),
    "offsetexponential": (("4", "6"), 6.0, 2.0),
    "uniform": (("4", "9"), 6.5, 5 / math.sqrt(12)),
}


def moments(text: str) -> tuple[float, float, float]:
    """Mass, mean and sd of an age, by quadrature."""
    least, family = parse_age(text)

    def weighed(power):
        def value(x):
            return (least + x) ** power * np.exp(family.log_density(np.array([x])))

        ends = ((0, 4), (4, 9), (9, 40), (40, 900))
        return sum(quad(value, a, b, epsabs=1e-11, limit=200)[0] for a, b in ends)

    mass, mean, square = (weighed(k) for k in range(3))
    return mass, mean, math.sqrt(square - mean**2)


@pytest.mark.parametrize("kind", AGES)
def test_ages_have_the_mean_and_deviation_that_were_said(kind):
    numbers, mean, sd = AGES[kind]
    text = age_density(Value(kind, "", numbers), AssertionError)
    assert moments(text) == pytest.approx((1.0, mean, sd), rel=1e-5)
    other = age_density(Value(kind, "", (*numbers[:-1], f"{1.1 * float(numbers[-1])}")), AssertionError)
    assert moments(other)[1:] != pytest.approx((mean, sd), rel=1e-2)


def test_a_truncated_normal_is_cut_at_its_least_age():
    least, family = parse_age(age_density(Value("truncatednormal", "", ("4", "6", "2")), AssertionError))
    assert (least, family.mean, family.scale) == (4.0, 2.0, 2.0)


CLADES = [
    "constraint k = aa bb;", "constraint all5 = 1-5;", "prset topologypr=constraints(k,all5) nodeagepr=cal;",
]  # fmt: skip


def test_constraints_are_clades_and_that_of_all_taxa_is_the_root(tmp_path):
    ages = "calibrate k = offsetexponential(2,3) all5 = uniform(5,9);"
    found = block_of(tmp_path, *CLADES, ages, "prset brlenspr=clock:birthdeath;").options
    assert (found["clade"], found["monophyletic"]) == (["k=aa,bb"], ["k"])
    assert found["calibrate"] == ["k=2+exponential(1)", "root=uniform(5,9)"]
    model = time_input(time_settings(found)).model
    assert [c.offset for c in model.clades] == [0.0, 2.0] and model.fixed == {"clock_rate"}
    found = block_of(tmp_path, *CLADES, ages, "prset brlenspr=clock:uniform;").options
    assert found["calibrate"] == ["k=2+exponential(1)", "root=uniform(5,9)"]
    found = block_of(tmp_path, *CLADES[:2], ages, "prset brlenspr=clock:uniform;")
    assert found.options["calibrate"] == ["root=gamma(1,1)"]
    assert any("nodeagepr=unconstrained, as in MrBayes" in note for note in found.notes)


def test_partial_and_negative_constraints(tmp_path):
    lines = [
        "constraint k partial = aa bb : dd;", "constraint n negative = 3 4;",
        "constraint one partial = 1 : 2;",
        "prset topologypr=constraints(k,n,one) nodeagepr=cal brlenspr=clock:birthdeath;",
    ]  # fmt: skip
    found = block_of(tmp_path, *lines).options
    assert found["constraint"] == ["k partial: aa, bb | dd", "n negative: cc, dd"] and "clade" not in found
    k, n = (c for c in time_input(time_settings(found)).model.clades if c.name != "root")
    assert (k.taxa, k.together, k.outside, k.apart) == (("aa", "bb"), True, ("dd",), False)
    assert (n.taxa, n.together, n.outside, n.apart) == (("cc", "dd"), False, (), True)
    assert (k.constraint_text, n.constraint_text) == ("k without dd", "n not monophyletic")
    with pytest.raises(InputError, match="'k' is no hard constraint"):
        block_of(tmp_path, *lines, "calibrate k = gamma(3,1);")
    for more, told in (
        ({"clade": ["n=aa,bb"]}, "'n': expected a new name"),
        ({"monophyletic": ["k"]}, "more than"),
    ):
        with pytest.raises(InputError, match=told):
            time_input(time_settings(found | more))


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("", {}),
        ("samplestrat=random", {}),
        ("samplestrat=random 2: 2 .5, 0, 1: 3", {"shift": ["sampling_proportion=0.5,2", "relative_death=3"]}),
        ("samplestrat=diversity", {"sampling": "diversified"}),
        ("samplestrat=fossiltip", {"fossils": "ends"}),
    ],
)
def test_fossils_are_tips_with_ages_that_may_be_ancestors(tmp_path, strategy, options):
    ages = "calibrate aa = fixed(0) bb = uniform(2,3) cc = fixed(1.5) my_Clade = gamma(3,1);"
    lines = (
        "constraint my_clade = aa bb;", "prset topologypr=constraints(my_clade) nodeagepr=cal;", ages,
        f"prset brlenspr=clock:fossilization fossilizationpr=beta(2,5) sampleprob=0.3 {strategy};", "mcmc;",
        "delete dd;",
    )  # fmt: skip
    found = block_of(tmp_path, *lines)
    assert found.options["tree_prior"] == "fbd-root" and found.options["sampled"] == 0.3
    assert found.options["tip_age"] == ["bb=2,3", "cc=1.5"]
    assert "sampling_proportion=beta(2,5)" in found.options["prior"]
    own = ("sampling", "fossils", "shift")
    assert {name: found.options[name] for name in own if name in found.options} == options
    assert found.options["calibrate"] == ["my_clade=gamma(9,3)", "root=gamma(1,1)"]
    assert any("delete: comes after mcmc" in note for note in found.notes) and "without" not in found.options
    model = time_input(time_settings(found.options)).model
    assert model.tip_bounds.tolist() == [[0, 0], [2, 3], [1.5, 1.5], [0, 0], [0, 0]]
    assert model.samples_ancestors == ("fossils" not in options)
    stretches = [b.name for b in model.parameters.blocks if b.name.startswith("sampling_proportion")]
    assert len(stretches) == (3 if "shift" in options else 1)


def test_dating_of_nodes_alone_has_no_fossils(tmp_path):
    """As in MrBayes' tutorial: diversity sampling with no fossils; deleted ones do not count."""
    lines = (
        "calibrate ee = fixed(2);", "prset brlenspr=clock:fossilization samplestrat=diversity nodeagepr=cal;",
        "prset fossilizationpr=fixed(0) sampleprob=0.2;",
    )  # fmt: skip
    with pytest.raises(InputError, match="proportion of fossils"):
        block_of(tmp_path, *lines)
    found = block_of(tmp_path, "delete ee;", *lines).options
    assert "sampling_proportion=0" in found["prior"] and found["sampling"] == "diversified"
    model = time_input(time_settings(found)).model
    assert "sampling_proportion" in model.fixed and not model.tip_bounds.any()


def test_ages_of_what_no_tree_has_are_not_obeyed_as_in_mrbayes(tmp_path):
    """Of constraints that topologypr does not name, and of deleted taxa, which constraints are without."""
    ages = "calibrate k = gamma(3,1) other = gamma(2,1) ee = uniform(1,2);"
    lines = "constraint other = cc dd;", "delete ee;", ages, "prset brlenspr=clock:birthdeath;"
    found = block_of(tmp_path, *CLADES, *lines)
    assert found.options["calibrate"] == ["k=gamma(9,3)", "root=gamma(1,1)"]
    assert found.options["without"] == ["ee"] and found.options["clade"] == ["k=aa,bb"]
    told = " ".join(found.notes)
    assert "calibrate other: no meaning, topologypr does not name it" in told
    assert "calibrate ee: no meaning, the taxon is deleted" in told
    assert time_input(time_settings(found.options)).taxa == ("aa", "bb", "cc", "dd")


@pytest.mark.parametrize(
    ("said", "clock", "prior"),
    [
        ("clockvarpr=igr", "white-noise", "exponential(10)"),
        ("clockvarpr=igr igrvarpr=uniform(0.01,2)", "white-noise", "uniform(0.01,2)"),
        ("clockvarpr=tk02 tk02varpr=fixed(0.3)", "autocorrelated", "0.3"),
        ("clockvarpr=bm igrvarpr=exponential(2)", "autocorrelated", "exponential(1)"),
    ],
)
def test_relaxed_clocks(tmp_path, said, clock, prior):
    found = block_of(tmp_path, f"prset brlenspr=clock:uniform {said};", "mcmc;")
    assert found.options["clock"] == clock and f"clock_variance={prior}" in found.options["prior"]
    assert any("no meaning while clockvarpr=bm" in note for note in found.notes) == ("=bm" in said)
    assert time_input(time_settings(found.options)).model.clock_names == ("",)


def test_fixed_ages_are_held(tmp_path):
    lines = (*CLADES, "calibrate k = fixed(2.5);", "prset brlenspr=clock:birthdeath treeagepr=fixed(7);")
    found = block_of(tmp_path, *lines).options
    assert found["calibrate"] == ["k=fixed(2.5)", "root=fixed(7)"]
    ages = {c.name: c.age for c in time_input(time_settings(found)).model.clades}
    assert ages == {"k": 2.5, "root": 7.0}


def test_options_stand_before_the_block(tmp_path):
    block = block_of(tmp_path, "prset brlenspr=clock:uniform;", "mcmc ngen=5000 nchains=1 temp=0.2;")
    settings, command = dated_analysis(block, {"generations": 7000, "burn_in": 0.5, "prefix": "a b"})
    assert settings.chains.generations == 7000 and settings.chains.warm_up == 0.5
    assert any("--generations of the command line stands before line" in text for text in settings.told)
    assert command.endswith("--prefix 'a b'") and "--chains 1" in command and "--heating" not in command
    with pytest.raises(InputError, match="--branch-prior is no option of dated trees"):
        dated_analysis(block, {"branch_prior": "exponential(1)"})
    with pytest.raises(InputError, match="no option 'clade_rate'"):
        time_settings({"alignment": "x", "clade_rate": 1})


def test_the_command_that_is_printed_says_the_same(tmp_path, monkeypatch):
    """Read again by `phloem time`, it makes the same settings but for what is told."""
    last = ("calibrate k = gamma(3,1);", "prset brlenspr=clock:birthdeath;", "mcmc ngen=90000;")
    file = written(tmp_path, *CLADES, *last)
    settings, line = dated_analysis(block_analysis(file), {})
    shown = CliRunner().invoke(build_app(), ["mcmc", file, "--dry-run"])
    assert shown.exit_code == 0 and "".join(line.split()) in "".join(shown.output.split())
    taken = []
    monkeypatch.setattr(command, "run_dated", lambda settings, *run: taken.append(settings))
    again = CliRunner().invoke(build_app(), shlex.split(line)[1:])
    assert again.exit_code == 0, again.output
    for field in fields(settings):
        if field.name not in ("of_block", "told"):
            assert getattr(taken[0], field.name) == getattr(settings, field.name), field.name


PARTS = (
    "charset a = 1-6;",
    "charset b = 7-10;",
    "partition p = 2: a, b;",
    "set partition = p;",
    "lset nst=2;",
)
CLOCK = "prset brlenspr=clock:birthdeath;"


def test_parts_have_one_tree(tmp_path):
    found = block_of(
        tmp_path, *PARTS, CLOCK, "prset ratepr=variable;", "unlink statefreq=(all);", "mcmc;"
    ).options
    assert found["part"] == ["HKY+FO, a = DNA, 1-6", "HKY+FO, b = DNA, 7-10"] and "model" not in found
    assert found["linkage"] == "proportional" and found["link"] == ["kappa:a,b"]
    assert found["prior"][:2] == ["kappa=ratios(1)", "clock_rate=1"]
    data = time_input(time_settings(found))
    assert [part.name for part in data.model.engine.parts] == ["a", "b"]
    found = block_of(tmp_path, *PARTS, CLOCK, "exclude 3-4;", "mcmc;").options
    assert found["linkage"] == "linked" and found["unassigned_sites"] == "drop"
    assert found["part"][0] == "HKY+FO, a = DNA, 1-2, 5-6"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("prset applyto=(2) clockratepr=normal(1,0.1);", "parts that differ in clockratepr"),
        ("prset applyto=(1) brlenspr=clock:uniform;", "parts that differ in brlenspr"),
        ("unlink brlens=(all);", "unlinked branch lengths"),
        ("prset applyto=(2) clockvarpr=igr;", "differ in clockvarpr"),
        ("prset clockvarpr=igr; unlink igrbranchrates=(all);", "unlinked branch rates"),
    ],
)
def test_parts_that_have_not_are_refused(tmp_path, line, told):
    with pytest.raises(InputError, match=told):
        block_analysis(written(tmp_path, *PARTS, CLOCK, line, "mcmc;"))


@pytest.mark.parametrize(
    ("lines", "families"),
    [
        (["prset tratiopr=beta(2,3);"], {"kappa": BetaPrime(2.0, 3.0)}),
        (
            ["unlink tratio=(all);", "prset applyto=(2) tratiopr=beta(2,3);"],
            {"kappa{a}": Ratios(1.0), "kappa{b}": BetaPrime(2.0, 3.0)},
        ),
    ],
)
def test_ratios_whose_shares_are_beta(tmp_path, lines, families):
    found = time_input(time_settings(block_of(tmp_path, *PARTS, CLOCK, *lines, "mcmc;").options)).model
    assert {p.block: p.family for p in found.priors if "kappa" in p.block} == families


def test_growth_by_any_of_its_densities(tmp_path):
    for said, ours in (("exponential(2)", "exponential(1)"), ("normal(1,3)", "normal(2,6)")):
        lines = [f"prset growthpr={said} clockratepr=fixed(2);", "prset brlenspr=clock:coalescence;"]
        assert f"growth_rate={ours}" in block_of(tmp_path, *lines).options["prior"]


@pytest.mark.parametrize(
    ("said", "model", "block", "family"),
    [
        ("lset nst=mixed; prset revratepr=symdir(2);", "MIXED+FO", "relative_rates", TiedDirichlet(2.0)),
        (
            "lset nst=6; prset revmatpr=dirichlet(1,2,3,4,5,6);",
            "GTR+FO",
            "relative_rates",
            Dirichlet((6.0, 1.0, 2.0, 3.0, 4.0, 5.0)),  # that of GT comes first
        ),
        ("lset covarion=yes; prset covswitchpr=exponential(2);", "F81+FO+COV", "switch_on", Exponential(2.0)),
    ],
)
def test_models_that_dated_trees_share_with_others(tmp_path, said, model, block, family):
    found = block_of(tmp_path, said, "prset brlenspr=clock:birthdeath;")
    assert found.options["model"] == model
    data = time_input(time_settings(found.options))
    assert {p.block: p.family for p in data.model.priors}[block] == family


def test_matrices_to_choose_among_are_as_probable(tmp_path):
    found = block_of(tmp_path, "lset nst=mixed;", "prset brlenspr=clock:birthdeath;").options
    for prior, told in (("relative_rates=exponential(1)", "has a density of one"), ("rate=1", "no 'rate'")):
        with pytest.raises(InputError, match=told):
            time_input(time_settings(found | {"prior": ["clock_rate=1", prior]}))
    data = time_input(time_settings(found))
    model = data.model
    assert model.printed_names[-6:-4] == ("gtrsubmodel", "k_revmat")
    start = model.space.start()
    assert model.printed(start)[-6:-4].tolist() == [202, 6]  # where all rates differ
    assert len(model.printed(start)) == len(model.printed_names) == len(start) + 1

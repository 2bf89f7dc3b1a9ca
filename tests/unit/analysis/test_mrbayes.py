"""MRBAYES blocks as options of phloem mcmc: every command, what contradicts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import (
    command_line,
    command_options,
    mcmc_settings,
    merged_options,
    read_settings,
    settings_text,
)
from phloem.analysis.mrbayes import BlockAnalysis, block_analysis
from phloem.data.sites import parse_sites
from phloem.errors import InputError, InputWarning

ROWS = ("ACGTACGTACGT", "ACGTACGAACGA", "ACTTACGTAGGT", "ACGTAGGTACCT", "ACTTACGTACGA")
TAXA = ("one", "Two_b", "three", "four", "five")
STANDARD = ("0110", "0012", "1021", "1110", "0101")


def data(kind: str = "dna", rows=ROWS) -> str:
    matrix = "\n".join(f"{taxon} {row}" for taxon, row in zip(TAXA, rows))
    return (
        f"#NEXUS\nbegin data; dimensions ntax=5 nchar={len(rows[0])};\n"
        f"format datatype={kind} gap=- missing=?; matrix\n{matrix}\n; end;\n"
    )


MIXED = [dna + standard for dna, standard in zip(ROWS, STANDARD)]
FIRST = 11  # line of the first command


def analysis(tmp_path: Path, *lines: str, kind: str = "dna", rows=ROWS) -> BlockAnalysis:
    file = tmp_path / "x.nex"
    file.write_text(data(kind, rows) + "begin mrbayes;\n" + "\n".join(lines) + "\nend;\n")
    found = block_analysis(file)
    assert found is not None
    return found


def options(tmp_path: Path, *lines: str, **how) -> dict:
    return analysis(tmp_path, *lines, **how).options


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        (["set autoclose=yes;"], "F81+FO"),
        (["lset nst=1; prset statefreqpr=fixed(equal);"], "F81+FQ"),
        (["lset nst=2 rates=propinv;"], "HKY+FO+I"),
        (["lset nst=6 rates=invgamma ngammacat=6;"], "GTR+FO+I+G6"),
        (["lset nst=2 rates=gamma; prset tratiopr=fixed(3.5) shapepr=fixed(0.5);"], "HKY{3.5}+FO+G4{0.5}"),
        (["lset nst=6;", "prset revm=fixed(1,2,3,4,5,6);"], "GTR{1,2,3,4,5,6}+FO"),
        (["lset rates=i;", "prset pinvarpr=fixed(.2);"], "F81+FO+I{0.2}+G4"),
        (["prset statefreqpr=fixed(0.1,0.2,0.3,0.4);"], "F81+F{0.1,0.2,0.3,0.4}"),
        (["lset covarion=yes nst=2;"], "HKY+FO+COV"),
        (["lset covarion=yes rates=gamma; prset shapepr=fixed(0.5);"], "F81+FO+COV*G4{0.5}"),
        (["lset covarion=yes rates=lnorm;"], "F81+FO+COV*LN4"),
        (["lset covarion=yes rates=invgamma;"], "F81+FO+COV*G4"),
        (["lset covarion=yes rates=propinv;"], "F81+FO+COV"),
        (["lset nst=6;", "lset nst=2;"], "HKY+FO"),
        (["lset nst=mixed rates=gamma;"], "MIXED+FO+G4"),
        (["lset nst=2 rates=lnorm nlnormcat=5;"], "HKY+FO+LN5"),
        (["lset rates=lnorm; prset shapepr=fixed(0.3);"], "F81+FO+LN4{0.3}"),
        (["lset nst=mixed rates=kmixture;", "lset nst=2 rates=equal;"], "HKY+FO"),
        (["lset nst=2 rates=adgamma ngammacat=5;"], "HKY+FO+AG5"),
        (
            ["lset rates=adgamma;", "prset shapepr=fixed(0.5) ratecorrpr=fixed(0.3);"],
            "F81+FO+AG4{alpha=0.5,rho=0.3}",
        ),
        (["lset rates=adgamma; prset ratecorrpr=fixed(-0.25);"], "F81+FO+AG4{rho=-0.25}"),
        (["lset nucmodel=codon nst=2; prset omegapr=fixed(0.3);"], "GY94{omega=0.3}+FO"),
        (["lset nucmodel=codon; prset statefreqpr=fixed(equal);"], "GY94{kappa=1}+FQ"),
    ],
)  # fmt: skip
def test_models_of_nucleotides(tmp_path, lines, model):
    assert options(tmp_path, *lines)["model"] == model


@pytest.mark.parametrize(
    ("kind", "lines", "model"),
    [
        ("protein", "prset aamodelpr=fixed(jones); lset rates=gamma;", "JTT+G4"),
        ("protein", "lset nst=6 rates=invgamma;", "Poisson+I+G4"),
        ("protein", "prset aamodelpr=fixed(gtr) statefreqpr=fixed(equal);", "GTR20+FQ"),
        ("protein", "prset aamodelpr=fixed(equalin);", "Poisson+FO"),
        ("protein", "prset aamodelpr=mixed; lset rates=gamma;", "AAMIXED+G4"),
    ],
)
def test_models_of_proteins(tmp_path, kind, lines, model):
    assert options(tmp_path, lines, kind=kind)["model"] == model


@pytest.mark.parametrize(
    ("kind", "lines", "model"),
    [
        ("standard", "lset rates=gamma;", "MK+G4+ASC"),
        ("standard", "lset coding=all rates=invgamma;", "MK"),  # not applied to such data, as there
        ("restriction", "lset rates=gamma;", "MK+FO+G4+ASC{0}"),
        ("restriction", "lset coding=variable; prset statefreqpr=fixed(equal);", "MK+FQ+ASC"),
        ("restriction", "lset coding=informative;", "MK+FO+ASC{informative}"),
        ("restriction", "lset coding=nopresencesites|noabsence;", "MK+FO+ASC"),
        ("restriction", "lset coding=variable|nosingletons;", "MK+FO+ASC{informative}"),
        ("standard", "lset coding=inf rates=gamma;", "MK+G4+ASC{informative}"),
        ("standard", "prset symdirihyperpr=fixed(infinity);", "MK+ASC"),
        ("standard", "prset symdiri=fixed(0.5); lset coding=all;", "MK+FB5{0.5}"),
        ("standard", "prset symdirihyperpr=exponential(2); lset nbetacat=4;", "MK+FB4+ASC"),
        ("restriction", "prset symdirihyperpr=exponential(2);", "MK+FO+ASC{0}"),  # of no such data there
    ],
)
def test_models_of_standard_and_restriction_data(tmp_path, kind, lines, model):
    rows = STANDARD if kind == "standard" else [row.replace("2", "1") for row in STANDARD]
    found = options(tmp_path, lines, kind=kind, rows=rows)
    assert found["model"] == model and ("asc" in found) == ("+ASC" in model)


def test_priors_are_named_where_they_are_not_the_usual_ones(tmp_path):
    found = options(
        tmp_path,
        "lset nst=6 rates=invgamma; prset shapepr=exp(2) pinvarpr=uniform(0,0.5) revmatpr=dir(1,2,1,1,2,1);",
        "prset statefreqpr=dirichlet(2) brlenspr=unc:exp(20);",
    )
    assert found["prior"] == [
        "rates=dirichlet(1,2,1,1,2,1)",
        "frequencies=dirichlet(0.5)",  # a single number is shared by the states, as there
        "p_invariable=uniform(0,0.5)",
        "alpha=exponential(2)",
    ]
    assert found["branch_prior"] == "exponential(20)"
    assert "prior" not in options(tmp_path, "lset nst=6 rates=invgamma;")


def test_frequencies_that_differ_among_characters(tmp_path):
    """Every part has a hyperparameter of its own, linked or not; characters of more states are named."""
    parts = ["charset a = 1 4;", "charset b = 2 3;", "partition p = 2: a, b;", "set partition=p;"]
    said = ["prset symdirihyperpr=uniform(0.1,5);", "prset applyto=(2) symdirihyperpr=exponential(3);"]
    two = [row.replace("2", "1") for row in STANDARD]
    found = options(tmp_path, *parts, *said, kind="standard", rows=two)
    assert found["prior"] == ["alpha_symdir{a}=uniform(0.1,5)", "alpha_symdir{b}=exponential(3)"]
    assert "link" not in found
    ordered = options(tmp_path, "ctype ordered: 2;", said[0], kind="standard", rows=two)
    made = chain_input(replace(mcmc_settings(ordered), of_block=str(tmp_path / "x.nex")))
    assert [part.model.name for part in made.structure.parts] == ["MK+FB5+ASC"]  # two states have no order
    same = options(tmp_path, *parts, said[0], kind="standard", rows=two)
    assert same["prior"] == ["alpha_symdir=uniform(0.1,5)"] and "link" not in same
    settings = mcmc_settings(options(tmp_path, "exclude 1;", said[0], kind="standard", rows=STANDARD))
    with pytest.raises(InputError, match="characters 3-4 have more than two states") as caught:
        chain_input(replace(settings, of_block=str(tmp_path / "x.nex")))
    assert "symdirihyperpr=fixed" in str(caught.value.hint)


PARTS = ["charset a = 1-6;", "charset b = 7-.;", "partition p = 2: a, b;", "set partition=p;"]


def test_parts_and_what_they_share(tmp_path):
    found = options(tmp_path, *PARTS, "lset nst=6 rates=gamma;")
    assert found["part"] == ["GTR+FO+G4, a = DNA, 1-6", "GTR+FO+G4, b = DNA, 7-12"]
    assert found["linkage"] == "linked"
    assert found["link"] == ["rates:a,b", "frequencies:a,b", "alpha:a,b"]
    unlinked = options(
        tmp_path, *PARTS, "lset nst=6 rates=gamma; unlink revmat=(all) shape=(1,2) statef=(all);"
    )
    assert "link" not in unlinked
    again = options(
        tmp_path, *PARTS, "lset nst=6; unlink revmat=(all) statefreq=(all);", "link revmat=(1,2);"
    )
    assert again["link"] == ["rates:a,b"]
    differ = options(tmp_path, *PARTS, "lset applyto=(1) nst=6; lset applyto=(2) nst=2;")
    assert differ["link"] == ["frequencies:a,b"]
    priors = options(tmp_path, *PARTS, "lset rates=gamma; prset applyto=(2) shapepr=exp(3);")
    assert priors["link"] == ["frequencies:a,b"] and priors["prior"] == ["alpha{b}=exponential(3)"]


def test_lengths_of_parts(tmp_path):
    assert options(tmp_path, *PARTS, "prset ratepr=variable;")["linkage"] == "proportional"
    found = options(tmp_path, *PARTS, "prset applyto=(all) ratepr=dirichlet(2,3);")
    assert found["prior"] == ["partition_rates=dirichlet(2,3)"]
    assert options(tmp_path, *PARTS, "prset applyto=(1) ratepr=variable;")["linkage"] == "linked"
    assert options(tmp_path, *PARTS, "unlink brlens=(all);")["linkage"] == "unlinked"
    three = ["partition q = 3: 1-4, 5-8, 9-12;", "set partition=q;"]
    found = options(tmp_path, *three, "prset applyto=(1,3) ratepr=variable;")
    assert "rate=1:part2" in found["link"]
    found = options(tmp_path, *three, "unlink brlens=(3) statefreq=(all);")
    assert found["linkage"] == "unlinked" and found["link"] == ["lengths:part1,part2"]


@pytest.mark.parametrize(
    ("nucmodel", "shares", "told"),
    [("codon", [1, 1], True), ("protein", [1, 1], False), ("4by4", [1, 1], False)],
)
def test_rates_of_parts_count_the_columns_of_the_file(tmp_path, nucmodel, shares, told):
    """MrBayes counts those of codons and doublets again, three times and twice, and a note says so."""
    varying = f"lset applyto=(2) nucmodel={nucmodel}; prset ratepr=variable;"
    found = analysis(tmp_path, *PARTS, varying)
    settings = mcmc_settings(merged_options(found, {}, {})[0])
    structure = chain_input(replace(settings, of_block=found.file)).structure
    np.testing.assert_allclose(2 * structure.parameterisation.rate_shares, shares)
    assert any("MrBayes counts columns of codons three times" in note for note in found.notes) == told
    linked = analysis(tmp_path, *PARTS, "lset applyto=(2) nucmodel=codon;")
    assert not any("three times" in note for note in linked.notes)


def test_columns_and_taxa(tmp_path):
    found = options(tmp_path, "exclude 1-3 7;", "include 2;", "outgroup two_B; delete 4-.;", "restore five;")
    assert found["sites"] == "2, 4-6, 8-12" and found["outgroup"] == "Two_b" and found["without"] == ["four"]
    found = options(tmp_path, "taxset t = 2-3 five;", "delete t;", "charset s = 1-.\\3;", "exclude s;")
    assert found["without"] == ["Two_b", "three", "five"]
    assert parse_sites(found["sites"], 12).tolist() == [1, 2, 4, 5, 7, 8, 10, 11]
    found = options(tmp_path, *PARTS, "exclude 12 1;")
    assert found["part"][1].endswith("7-11") and found["unassigned_sites"] == "drop"


def test_constraints_hold_where_the_prior_asks_for_them(tmp_path):
    lines = ["constraint x = one two_b;", "constraint y -1 = 3 4;", "constraint z partial = one : four;"]
    assert "constraint" not in options(tmp_path, *lines)
    lines.append("constraint w neg = 3 4;")
    loose = options(tmp_path, *lines, "prset topologypr=constraints(z, w);")
    assert loose["constraint"] == ["z partial: one | four", "w negative: three, four"]
    found = options(tmp_path, *lines, "prset topologypr=constraints(x, Y);")
    assert found["constraint"] == ["x: one, Two_b", "y: three, four"]
    assert (
        options(tmp_path, *lines, "prset topologypr=constraints(1-2);")["constraint"] == found["constraint"]
    )


def test_the_run(tmp_path):
    found = options(
        tmp_path,
        "mcmcp ngen=20000 samplefreq=10 nruns=3 nchains=2 temp=0.2 swapfreq=10 nswaps=2 seed=7 "
        "swapseed=8 file=out/y;",
        "mcmc data=no;",
        "sump relburnin=no burnin=500;",
        "sumt relburnin=no burnin=500 contype=allcompat;",
    )
    assert {name: found[name] for name in ("generations", "sample_every", "runs", "chains")} == {
        "generations": 20000, "sample_every": 10, "runs": 3, "chains": 2,
    }  # fmt: skip
    assert found["heating"] == 0.2 and found["swap_every"] == 5 and found["prefix"] == "out/y"
    assert found["seed"] == 7 and found["swap_seed"] == 8 and found["prior_only"] is True
    assert int(found["burn_in"] * 2001) == 500 and found["consensus"] == "allcompat"
    found = options(tmp_path, "ssp ngen=9000 nsteps=30;", "ss alpha=0.3;")
    assert (found["generations"], found["stepping_stone"], found["stone_shape"]) == (9000, 30, 0.3)
    assert options(tmp_path, "ss;")["stepping_stone"] == 50 and "stone_shape" not in options(
        tmp_path, "mcmc;"
    )
    said = {"-1": None, "0": 0, "30": 300, "-2": 7812}  # 2 of 128 stones' worth
    for word, generations in said.items():
        own = f"ssp ngen=500000 samplefreq=10 nsteps=126 burninss={word};", "ss fromprior=y;"
        found = analysis(tmp_path, *own)
        assert found.options.get("stone_burn_in") == generations and found.options["stones_from_prior"]
        assert any("2 of 128 stones' worth" in note for note in found.notes) == (word == "-2")
    found = options(tmp_path, "mcmc ngen=9000 stoprule=yes stopval=0.02 diagnfreq=300 burninfrac=0.5;")
    assert found["until_converged"] and found["asdsf"] == 0.02 and found["check_every"] == 300
    assert found["burn_in"] == 0.5 and found["least_ess"] == 0.0


def test_what_has_no_meaning_is_listed_and_a_burn_in_without_effect_is_told(tmp_path):
    notes = analysis(
        tmp_path, "log start;", "mcmcp printfreq=10 savebrlens=yes;", "showmodel;", "sump burnin=250;"
    ).notes
    told = "\n".join(notes)
    assert f"line {FIRST}: log" in told and "showmodel" in told and "printfreq, savebrlens" in told
    assert "burnin has no effect while relburnin=yes" in told
    told = "\n".join(analysis(tmp_path, "lset nst=6;", *PARTS).notes)
    assert "sets models and links back" in told


@pytest.mark.parametrize(
    ("kind", "rows", "said", "what"),
    [
        ("restriction", ["0110", "0010", "1001", "1110", "0101"], "coding=all", "restriction data"),
        ("standard", STANDARD, "coding=all", "standard data"),
        ("dna", ROWS, "nucmodel=codon", "codons"),
    ],
)
def test_covarion_that_has_no_meaning_is_told(tmp_path, kind, rows, said, what):
    found = analysis(tmp_path, f"lset covarion=yes {said};", kind=kind, rows=rows)
    assert f"covarion=yes: no meaning for {what}, as in MrBayes" in found.notes
    assert "COV" not in found.options["model"]
    assert not any("covarion" in note for note in analysis(tmp_path, "lset covarion=yes;").notes)


def test_symbols_are_digits_as_there(tmp_path):
    """A file that lists the symbols 1 to 3 has four states there."""
    rows = [row.translate(str.maketrans("012", "123")) for row in STANDARD]
    kinds = 'standard symbols="123"', 'standard symbols="0123"', "standard"
    found = [analysis(tmp_path, "lset coding=all;", kind=kind, rows=rows) for kind in kinds]
    assert [one.options.get("character_states") for one in found] == ["digits", None, None]
    assert "symbols '123': not read, as in MrBayes: states are digits, 0 the lowest" in found[0].notes
    assert not any("symbols" in note for note in found[1].notes)
    file = tmp_path / "x.nex"
    file.write_text(data(kinds[0], rows))
    for how, names in (("digits", ["all_3", "all_4"]), ("own", ["all_2", "all_3"])):
        made = chain_input(mcmc_settings({"alignment": str(file), "character_states": how}))
        assert [part.name for part in made.structure.parts] == names


def test_classes_of_log_normal_rates_that_mrbayes_does_not_count_are_told(tmp_path):
    told = "rates=lnorm has 5 classes, as nlnormcat says; MrBayes 3.2.7a takes 4, as of ngammacat"
    assert told in analysis(tmp_path, "lset rates=lnorm nlnormcat=5;").notes
    for line in ("lset rates=lnorm nlnormcat=5 ngammacat=5;", "lset rates=gamma nlnormcat=5;"):
        assert not any("nlnormcat" in note for note in analysis(tmp_path, line).notes)


def test_correlated_rates_of_neighbours(tmp_path):
    assert "prior" not in options(tmp_path, "lset rates=adgamma;")  # uniform(-1,1) in both programs
    found = options(tmp_path, "lset rates=adgamma; prset ratecorrpr=uniform(0,1);")
    assert found["prior"] == ["rho=uniform(0,1)"]
    assert any("Yang" in note for note in analysis(tmp_path, "lset rates=adgamma;").notes)
    assert not any("Yang" in note for note in analysis(tmp_path, "lset rates=gamma;").notes)
    with pytest.raises(InputError, match="ratecorrpr needs 2 number"):
        options(tmp_path, "lset rates=adgamma; prset ratecorrpr=uniform(0);")


def test_after_quit_and_after_mcmc(tmp_path):
    found = analysis(tmp_path, "lset nst=2;", "mcmc;", "lset nst=6;", "sumt;", "quit;", "mcmc;")
    assert found.options["model"] == "HKY+FO" and any("comes after mcmc" in note for note in found.notes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lset nst=mixed; prset revratepr=exponential(1);", "revratepr is symdir"),
        ("lset nst=mixed nucmodel=codon;", "codon models with nst=mixed"),
        ("lset rates=kmixture;", "rates=kmixture"),
        ("lset nucmodel=doublet;", "doublet"),
        ("lset nucmodel=codon omegavar=m10;", "omegavar=m10"),
        ("lset nucmodel=codon omegavar=ny98; prset ny98omega3pr=uniform(0.5,9);", "is 1 or more"),
        ("lset nucmodel=codon omegavar=ny98; prset codoncatfreqs=dirichlet(1,2);", "needs 3 number"),
        ("lset nucmodel=codon; report possel=yes;", "REPORT POSSEL is of codons whose omega varies"),
        ("lset coding=variable parsmodel=yes;", "parsmodel=yes"),
        ("prset brlenspr=clock:fossilization samplestrat=cluster;", "samplestrat=cluster is not"),
        ("prset brlenspr=clock:fossilization samplestrat=random 2: 3 0;", "is not supported"),
        ("prset brlenspr=clock:fossilization samplestrat=random 2: 1 3;", "is not supported"),
        ("prset brlenspr=clock:fossilization samplestrat=random 2: 3;", "is not supported"),
        ("prset brlenspr=clock:fossilization samplestrat=diversity 1: 3;", "rates do not shift"),
        ("prset brlenspr=clock:birthdeath samplestrat=random 1: 3;", "rates do not shift"),
        (
            "calibrate one=fixed(3); prset brlenspr=clock:foss nodeagepr=cal fossilizationpr=fixed(0);",
            "proportion of fossils",
        ),
        ("prset brlenspr=clock:fossilization fossilizationpr=fixed(1);", "proportion of fossils"),
        (
            "calibrate one = gamma(3,1); prset brlenspr=clock:fossilization nodeagepr=cal;",
            "taxon 'one' is not",
        ),
        ("calibrate one = fixed(x); prset brlenspr=clock:foss nodeagepr=cal;", "taxon 'one' is not"),
        ("prset brlenspr=clock:uniform clockvarpr=cpp;", "change at points of a Poisson process"),
        ("prset brlenspr=clock:uniform clockvarpr=igr igrvarpr=normal(1,1);", "normal"),
        ("prset brlenspr=clock:coalescence clockratepr=exp(1);", "not fixed"),
        ("prset brlenspr=clock:birthdeath samplestrat=diversity;", "samplestrat=diversity"),
        ("prset brlenspr=clock:birthdeath extinctionpr=fixed(0);", "no value at this relative extinction"),
        ("prset brlenspr=clock:uniform treeagepr=offsetexp(3,2);", "is not above its least age"),
        ("prset topologypr=fixed(t);", "there is no such tree"),
        ("prset topologypr=fixed(t) brlenspr=clock:uniform;", "phloem time samples topologies"),
        ("prset topologypr=fixed(t) brlenspr=clock:fixed(t);", "clock:fixed.* samples ages and topologies"),
        ("prset brlenspr=clock;", "3.2.7a has clock:uniform"),
        ("prset brlenspr=relaxedclock:uniform;", "3.2.7a has clock:uniform"),
        ("prset brlenspr=fixed(t);", "brlenspr=fixed is not supported"),
        ("prset clockvarpr=wn;", "'wn' is of later versions"),
        ("prset clockvarpr=iln;", "'iln' is not known"),
        ("execute missing.nex;", "EXECUTE: there is no file 'missing.nex'"),
        (" ".join([*PARTS, "unlink brlens=(all); prset ratepr=variable;"]), "say the same thing twice"),
        ("prset topologypr=constraints(x);", "no constraint 'x'"),
        ("constraint x partial = 1 2; prset topologypr=constraints(x);", "has no ':'"),
        ("constraint x soft = 1 2; prset topologypr=constraints(x);", "soft constraints"),
        ("calibrate one = fixed(3); prset brlenspr=clock:coal nodeagepr=cal;", "taxon 'one' has an age"),
        ("calibrate two fixed; prset brlenspr=clock:uniform;", "CALIBRATE is 'name"),
        ("prset topologypr=speciestree;", "there are no species trees"),
        (
            "prset brlenspr=clock:uniform; ss burninss=10;",
            "burninss is not supported where trees have a clock",
        ),
        ("ss burninss=ten;", "burninss is no whole number"),
        ("mcmc ngen=1000; ss;", "starts two analyses"),
        ("ss stoprule=yes;", "stoprule=yes is not supported by ss"),
        ("propset x=1;", "PROPSET"),
        ("mcmc nswaps=2;", "nswaps=2 every 1 generations"),
        ("mcmc nswaps=3 swapfreq=10;", "nswaps=3 every 10 generations"),
        ("mcmc nswaps=0;", "nswaps=0 every 1 generations"),
        ("mcmc starttree=nj;", "starttree=nj"),
        ("prset brlenspr=clock:uniform; mcmc starttree=parsimony;", "starttree=parsimony is not"),
        ("mcmc ngen=1e6;", "ngen is no whole number"),
        ("mcmc; mcmc;", "two analyses"),
        ("mcmc ngen=5000 samplefreq=50 relburnin=no burnin=101;", "leaves nothing"),
        ("sump burninfrac=0.1; sumt burninfrac=0.2;", "different burn-ins"),
        ("mcmcp file=a; sumt file=b;", "SUMT is of 'b'"),
        ("outgroup seven;", "no taxon or set of taxa 'seven'"),
        ("delete 6;", "no taxon"),
        ("exclude 13;", "past the last column"),
        ("charset 3;", "no '='"),
        ("partition p = 3: 1-4, 5-12;", "announces 3 parts"),
        ("set partition=zzz;", "no partition 'zzz'"),
        ("lset applyto=(2) nst=6;", "'2' is no part"),
        (" ".join([*PARTS, "unlink topology=(all);"]), "UNLINK TOPOLOGY"),
        ("unlink ratemultiplier=(all);", "UNLINK RATEMULTIPLIER"),
        ("prset ratepr=dirichlet(1,2);", "2 numbers for 1 parts"),
        ("prset shapepr=uniform(1); lset rates=gamma;", "needs 2 number"),
        ("execute a.nex; execute b.nex;", "second EXECUTE"),
        ("ctype irreversible: 1;", "CTYPE"),
    ],
)
def test_what_cannot_be_obeyed_is_an_error_at_its_line(tmp_path, line, message):
    for name in ("a.nex", "b.nex"):
        (tmp_path / name).write_text(data())
    with pytest.raises(InputError, match=message) as told:
        analysis(tmp_path, "set autoclose=yes;", line)
    assert told.value.line == FIRST + 1 and told.value.file.endswith("x.nex") and told.value.hint


CLOCKED = [
    "calibrate one = uniform(2,3);", "unlink topology=(all);", "prset brlenspr=clock:fossilization;",
    "prset clockvarpr=cpp cppratepr=exp(10);", "lset nst=6;", "prset nodeagepr=calibrated;",
]  # fmt: skip


def refused(tmp_path, *lines: str) -> InputError:
    with pytest.raises(InputError) as told:
        analysis(tmp_path, *lines)
    return told.value


def test_dated_trees_are_refused_by_all_their_lines_and_the_command_that_samples_them(tmp_path):
    told = refused(tmp_path, *PARTS, *CLOCKED, "mcmc;", "prset popsizepr=fixed(1);")
    first = FIRST + len(PARTS)
    assert told.line == first + 2 and "brlenspr=clock:fossilization" in str(told)
    assert f"commands of line {first}-{first + 3}, {first + 5} (" in told.hint  # neither LSET nor after MCMC
    file = tmp_path / "x.nex"
    assert f"phloem time {file} --partitions {file} --tree-prior fbd-root --clock random" in told.hint
    told = refused(tmp_path, "prset brlenspr=clock:coalescence clockvarpr=cpp;")
    assert "--tree-prior constant --clock random" in told.hint and "--partitions" not in told.hint
    assert f"the command of line {FIRST}." in told.hint


def test_species_trees_are_refused_by_all_their_lines(tmp_path):
    species = ["speciespartition s = A: 1, B: 2-.;", "set speciespartition=s;", "set seed=3;"]
    told = refused(tmp_path, *PARTS, *species, "prset brlenspr=clock:speciestree topologypr=speciestree;")
    first = FIRST + len(PARTS)
    assert "multispecies coalescent" in str(told) and f"commands of line {first}-{first + 1}, " in told.hint
    assert "--mrbayes-block ignore --partitions" in told.hint


def test_dates_and_species_without_a_clock_have_no_meaning_as_there(tmp_path):
    """MrBayes 3.2.7a samples unrooted trees by the usual priors then; so does what replaces a clock."""
    found = analysis(
        tmp_path, "calibrate one = fixed(3);", "speciespartition s = A: 1, B: 2-.;",
        "set speciespartition=s;", "prset nodeagepr=calibrated brlenspr=clock:uniform;",
        "prset brlenspr=unc:exp(10);", "unlink topology=(all);",  # of one part
    )  # fmt: skip
    told = "\n".join(found.notes)
    assert found.options["branch_prior"] == "exponential(10)"
    assert f"line {FIRST}: calibrate: no meaning without a clock" in told
    assert f"line {FIRST + 1}: speciespartition: no meaning without species trees" in told
    assert f"line {FIRST + 2}: set speciespartition" in told and "nodeagepr" in told


def test_a_matrix_with_other_numbers_is_refused(tmp_path):
    with pytest.raises(InputError, match="VT has other numbers"):
        analysis(tmp_path, "prset aamodelpr=fixed(vt);", kind="protein")
    assert options(tmp_path, "prset aamodelpr=mixed;")["model"] == "F81+FO"  # of no weight for nucleotides


OF_CLASSES = [  # commands → model string, priors
    ("omegavar=ny98;", "M2a{kappa=1}+FO", []),
    (
        "nst=2 omegavar=Ny98; prset ny98omega1pr=beta(1,9) ny98omega3pr=uniform(1,50)"
        " codoncatfreqs=dir(1,2,3);",
        "M2a+FO",
        ["omega_1=beta(1,9)", "omega_3=uniform(1,50)", "mixture_weights=dirichlet(1,2,3)"],
    ),
    (
        "nst=2 omegavar=ny98; prset ny98omega1pr=fixed(0.2) ny98omega3pr=exp(2)"
        " codoncatfreqs=fixed(0.5,0.3,0.2);",
        "M2a{omega_1=0.2,mixture_weight_1=0.5,mixture_weight_2=0.3,mixture_weight_3=0.2}+FO",
        ["omega_3=exponential(2)"],
    ),
    ("nst=2 omegavar=m3;", "M3+FO", ["omegas=ratios(1)"]),
    (
        "nst=2 omegavar=m3; prset m3omegapr=fixed(0.1,1,3);",
        "M3{omega_1=0.1,omega_2=1,omega_3=3}+FO",
        [],
    ),
]


@pytest.mark.parametrize(("said", "model", "priors"), OF_CLASSES)
def test_classes_of_omega_and_their_priors(tmp_path, said, model, priors):
    found = options(tmp_path, f"lset nucmodel=codon {said} report possel=yes siteomega=no;")
    assert (found["model"], found.get("prior", [])) == (model, priors)
    assert options(tmp_path, f"lset nucmodel=codon {said.split(';')[0]};")["model"].startswith(model[:2])


def test_classes_of_omega_are_not_shared_by_parts(tmp_path):
    said = ["charset a = 1-6; charset b = 7-12; partition p = 2: a, b; set partition=p;"]
    said.append("lset applyto=(all) nucmodel=codon omegavar=ny98;")
    with pytest.raises(InputError, match="classes of omega that parts share"):
        analysis(tmp_path, *said)
    found = options(tmp_path, *said, "unlink omega=(all);")
    assert all(part.startswith("M2a{kappa=1}+FO") for part in found["part"])


def test_execute_names_the_data(tmp_path):
    (tmp_path / "data.nex").write_text(data())
    file = tmp_path / "run.nex"
    file.write_text("#NEXUS\nbegin mrbayes;\nexecute data.nex;\nlset nst=6;\nend;\n")
    found = block_analysis(file)
    assert found.options["alignment"] == str(tmp_path / "data.nex") and found.options["model"] == "GTR+FO"


@pytest.mark.parametrize(
    "text",
    [
        "#NEXUS\nlog start file=x.log;\nexecute data.nex;\nbegin mrbayes;\nlset nst=2;\nmcmc ngen=7;\nend;\n",
        "#NEXUS\nexecute data.nex; exclude 1; lset nst=6;\nbegin mrbayes;\nlset nst=2;\nend; mcmc ngen=7;\n",
        "set autoclose=yes;\nexecute data.nex;\nlset nst=2;\nmcmc ngen=7; quit;\n",
    ],
)
def test_commands_between_blocks_are_obeyed_in_their_order(tmp_path, text, recwarn):
    (tmp_path / "data.nex").write_text(data())
    file = tmp_path / "commands.nex"
    file.write_text(text)
    found = block_analysis(file)
    assert found is not None and found.options["alignment"] == str(tmp_path / "data.nex")
    assert (found.options["model"], found.options["generations"]) == ("HKY+FO", 7) and not recwarn


def test_commands_between_blocks_are_told_where_nothing_obeys_them(tmp_path):
    file = tmp_path / "x.nex"
    file.write_text(data() + "lset nst=2; mcmc;\n")
    assert block_analysis(file) is None
    with pytest.warns(InputWarning, match="are not obeyed: LSET, MCMC"):
        chain_input(mcmc_settings({"alignment": str(file)}))


def test_states_by_character_ordered_ones_and_types_of_data(tmp_path):
    kind = "mixed(dna:1-12,standard:13-16)"
    found = options(tmp_path, "ctype ordered: 15 16;", "lset rates=gamma;", kind=kind, rows=MIXED)
    assert found["part"] == ["F81+FO+G4, dna = DNA, 1-12", "MK+G4+ASC, standard = STANDARD, 13-16"]
    assert found["ordered"] == "15-16" and found["asc"] == "mrbayes" and found["linkage"] == "linked"
    block = str(tmp_path / "x.nex")
    made = chain_input(replace(mcmc_settings(found), of_block=block))
    assert [p.name for p in made.structure.parts] == [
        "dna", "standard_2", "standard_3_ordered",
    ]  # fmt: skip
    assert [b.name for b in made.structure.space.blocks if b.name.startswith("alpha")] == [
        "alpha{dna}", "alpha{standard_2,standard_3_ordered}",
    ]  # fmt: skip
    assert made.unrecorded == (0, 2, 0)
    own = chain_input(replace(mcmc_settings(found | {"asc": "lewis"}), of_block=block))
    assert own.unrecorded == (0, 0, 0) and own.structure.parts[2].model.unseen == (0, 1, 2)


def test_informative_characters_by_their_states(tmp_path):
    """As MrBayes, by two states; by their own; none left."""
    rows = ["001012", "010012", "101{12}20", "110110", "011120"]  # three states in the last three
    found = options(tmp_path, "lset coding=informative;", kind="standard", rows=rows)
    block = str(tmp_path / "x.nex")
    made = chain_input(replace(mcmc_settings(found), of_block=block))
    assert [p.model.unseen for p in made.structure.parts] == ["uninformative", ()]
    assert made.unrecorded == (3, 0)  # which is told, the models of the parts do not show it
    assert [text.partition(" too")[0] for text in made.told] == [
        "+ASC of 'all_2' divides the 3 characters of 'all_3'"
    ]
    (tmp_path / "plain.nex").write_text(data("standard", [row.replace("{12}", "2") for row in rows]))
    own = {"alignment": str(tmp_path / "plain.nex"), "model": "MK+ASC{informative}"}
    made = chain_input(mcmc_settings(own))
    assert [p.model.unseen for p in made.structure.parts] == ["uninformative", "uninformative"]
    assert [observed.n_hidden for observed in made.observed()] == [12, 3 * (1 + 10 + 20)]
    rows = ["0010", "0100", "0000", "0000", "0000"]
    found = options(tmp_path, "lset coding=informative;", kind="restriction", rows=rows)
    with pytest.raises(InputError, match="no character of part 'all' is one that") as told:
        chain_input(replace(mcmc_settings(found), of_block=block))
    assert "lset coding=all" in str(told.value.hint)


def test_settings_say_the_same_on_a_command_line_and_in_a_file(tmp_path):
    block = analysis(
        tmp_path,
        *PARTS,
        "lset nst=6 rates=gamma; prset ratepr=variable applyto=(2) shapepr=uniform(0.1,50);",
        "outgroup 2; delete 5; mcmcp ngen=30000 seed=4 file=it;",
    )
    settings = mcmc_settings(block.options)
    file = tmp_path / "it.toml"
    file.write_text(settings_text(settings))
    assert "mrbayes_block" not in settings_text(settings)
    assert mcmc_settings(read_settings(file)) == settings
    assert mcmc_settings(command_options(settings)) == settings
    line = command_line(settings)
    assert "--part 'GTR+FO+G4, a = DNA, 1-6'" in line and "--seed 4" in line and "--without five" in line
    assert settings != mcmc_settings(block.options | {"seed": 5})  # the control
    for text, message in (
        ("sed = 4", "no option 'sed'"),
        ("seed = [", "no TOML"),
        ("[a]\nb = 1", "no option"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_settings(file)


def test_what_stands_before_what(tmp_path):
    block = analysis(tmp_path, "lset nst=6;", "mcmcp ngen=30000 seed=4;")
    found, told = merged_options(block, {"seed": 5, "heating": 0.3}, {"seed": 6, "generations": 30000})
    assert found["seed"] == 6 and found["heating"] == 0.3 and found["generations"] == 30000
    assert told == [
        f"--seed of the settings file stands before line {FIRST + 1} of {block.file}",
        f"--seed of the command line stands before line {FIRST + 1} of {block.file}",
    ]
    parts = analysis(tmp_path, *PARTS)
    for name, value in (("model", "GTR"), ("partitions", "x"), ("sites", "1-9")):
        with pytest.raises(InputError, match="contradicts the MRBAYES block"):
            merged_options(parts, {}, {name: value})
    assert merged_options(None, {"seed": 1}, {})[0] == {"seed": 1}


def test_frequencies_are_counted_as_mrbayes_counts_them(tmp_path):
    rows = ("AAAA", "AAAA", "AAAR", "AAA-", "CCCC")
    found = options(tmp_path, "prset statefreqpr=fixed(empirical);", rows=rows)
    numbers = [float(x) for x in found["model"].split("{")[1][:-1].split(",")]
    expected = np.array([11 + 3.75, 4.25, 0.75, 0.25])
    assert numbers == pytest.approx((expected / expected.sum()).tolist(), rel=1e-8)

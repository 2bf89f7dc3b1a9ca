"""Model strings: what they mean, what they print, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.data.genetic_code import genetic_code
from phloem.errors import ModelError
from phloem.model.frequencies import CodonTable
from phloem.model.grammar import parse_model
from phloem.model.model import Model
from phloem.model.record import SiteModel

CODE = genetic_code(2)
TABLE = CodonTable(CODE.sense_codons, "".join(CODE.translate(c) for c in CODE.sense_codons))
COUNTS = np.array([[3.0, 1, 4, 2], [5, 9, 2, 4], [6, 5, 3, 6]])


def parse(text: str, datatype: str = "dna") -> Model:
    sizes = {"dna": 4, "protein": 20, "codon": 60, "standard": 5, "binary": 2}
    counted = np.arange(1.0, sizes[datatype] + 1)
    return parse_model(
        text,
        datatype=datatype,
        n_states=5,
        codon_table=TABLE if datatype == "codon" else None,
        empirical_frequencies=counted / counted.sum(),
        codon_position_counts=COUNTS,
    )


def same_numbers(a: SiteModel, b: SiteModel) -> bool:
    of_process = ("rate_matrix", "frequencies", "root_frequencies")
    fields = ("process", "rates", "weights", "length_class", "invariant", "invariant_frequencies")
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in fields) and all(
        np.array_equal(getattr(p, f), getattr(q, f))
        for p, q in zip(a.processes, b.processes, strict=True)
        for f in of_process
    )


@pytest.mark.parametrize(
    ("text", "name", "free"),
    [
        ("JC", "JC", []),
        ("jc69", "JC", []),
        ("K2P", "K80", ["kappa"]),
        ("HKY85", "HKY+FO", ["kappa", "frequencies"]),
        ("TN+F", "TN93+F", ["kappa_R", "kappa_Y"]),
        ("TNe", "TNe", ["kappa_R", "kappa_Y"]),
        ("TrNef", "TNe", ["kappa_R", "kappa_Y"]),
        ("K81uf+FE", "K3Pu+FQ", ["rate_AG", "rate_AT"]),
        ("TPM2uf", "TPM2u+FO", ["rate_AC", "rate_AG", "frequencies"]),
        ("TIM3e", "TIM3e", ["rate_AC", "rate_AG", "rate_CT"]),
        ("GTR{1,2,3,4,5}+FC+IO+G", "GTR+F+I+G4", ["p_invariable", "alpha"]),
        (" HKY { kappa = 3.5 } + F + R3 ", "HKY+F+R3", ["weights", "rates"]),
        ("GTR{rate_CT=3}+FQ", "GTR+FQ", ["rate_AC", "rate_AG", "rate_AT", "rate_CG"]),
        ("010020+FQ", "010020+FQ", ["rate_AG", "rate_CT"]),
        ("UNREST+FROOT", "UNREST+FROOT", ["transition_rates", "root_frequencies"]),
        ("JC+ASC", "JC+ASC", []),
        ("JC+E", "JC+E", []),
        ("HKY+F+H2", "HKY+F+H2", ["kappa", "weights"]),
        ("MIX{JC,HKY{3}+FO}+G", "MIX{JC,HKY+FO}+G4", ["frequencies.2", "mixture_weights", "alpha"]),
        ("mix{K80:1:0.3,HKY+F:2:0.7}", "MIX{K80,HKY+F}", ["kappa.1", "kappa.2"]),
        ("MIX{K80,JC}*G2", "MIX{K80,JC}*G2", ["kappa.1", "alpha"]),
        ("K80*H2", "MIX{K80,K80}*H2", ["kappa.1", "kappa.2", "weights"]),
        ("MIX{K80,JC}+H3", "MIX{K80,JC}+H3", ["kappa.1", "mixture_weights", "weights"]),
        ("HKY{2}+F+COV{1,2}", "HKY+F+COV", []),
        ("HKY{2}+F+COV{1,2}*G2", "HKY+F+COV*G2", ["alpha"]),
    ],
)
def test_names_and_free_parameters(text: str, name: str, free: list[str]) -> None:
    model = parse(text)
    assert model.name == name
    assert [p.name for p in model.free] == free


ROUND_TRIPS = [
    ("dna", "GTR{1.2,4.0,0.7,0.9,5.0}+F{0.35,0.30,0.10,0.25}+I{0.2}+G4{0.8}"),
    ("dna", "GTR{1/2/3/4/5/3}+FU{0.35/0.30/0.10/0.25}+IU{0.2}+G4m{0.8}"),
    ("dna", "HKY{kappa=3.5}+F+G5a{0.3}"),
    ("dna", "TPM3u{rate_CG=0.3,rate_CT=3}+F{0.333,0.333,0.167,0.167}+R3{0.3,0.2,0.4,0.9,0.3,2.0}"),
    ("dna", "UNREST{1,2,3,4,5,6,7,8,9,10,11}+FROOT{0.1,0.2,0.3,0.4}"),
    ("dna", "GTR{1,2,1,1,2}+FQ+MM2{0.5,0.4,0.2,0.6,1.1}+G4{1}"),
    ("dna", "HKY{2}+F+COV{switch_on=0.3,switch_off=0.9}"),
    ("dna", "JC+COV{0.3,0.9}*R2{0.3,0.2,0.7,1.5}"),
    ("protein", "LG+F+G4{0.4}"),
    ("protein", "Q.PFAM+R{0.3,0.2,0.7,2.0}"),
    ("protein", "poisson+FQ"),
    ("codon", "GY94{omega=0.2,kappa=3}+F3X4+G4{0.5}"),
    ("codon", "MG94xHKY85{0.2,3}+F1X4"),
    ("codon", "MG94{0.2}+F3X4"),
    ("codon", "GY{0.2,3}+F"),
    ("dna", "MIX{HKY{3}+F{0.35,0.30,0.10,0.25}:0.5:0.3,GTR{1,2,3,4,5}+F:2:0.7}+I{0.1}+G4{0.5}"),
    ("dna", "MIX{K80{kappa=3}+COV{1,2},JC+COV{1,3}}*R2{0.3,1,0.7,3}"),
    ("dna", "HKY{3}+F+H2{0.2,0.8}+I{0.1}"),
    ("dna", "MIX{K80{2},K80{3}}*H2{0.2,0.8}"),
    ("dna", "JC+E"),
    ("protein", "LG4M+G4{0.5}"),
    ("protein", "LG4X{}*R4{0.1,0.2,0.2,0.5,0.3,1.0,0.4,2.0}+I{0.1}"),
    ("protein", "C10+G4{0.5}"),
    ("protein", "LG+C20+E"),
    ("protein", "WAG+C10{0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1}+R2{0.4,0.5,0.6,1.5}"),
    ("protein", "LG+F+C10{0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.05,0.05}+E"),
    ("codon", "M1a{0.1,0.7,0.3,3}+F3X4"),
    (
        "codon",
        "M2a{omega_1=0.1,omega_3=2.5,kappa=3,mixture_weight_1=0.6,mixture_weight_2=0.3,"
        "mixture_weight_3=0.1}+F",
    ),
    ("codon", "M3K2{0.1,0.8,0.5,0.5,3}+F1X4+G4{0.5}"),
    ("codon", "M7{0.5,1.5,3}+FQ"),
    ("codon", "M8K4{0.5,1.5,2.5,0.9,0.1,3}+F3X4+I{0.1}"),
    ("standard", "MKV+F+G4{0.2}"),
    ("binary", "MKV+FB4{0.3}+G4{0.2}"),
    ("standard", "GTRK{1,2,3,4,5,6,7,8,9,2}+FQ"),
    ("standard", "ORDERED+ASC"),
    ("standard", "MK+G4{0.3}+ASC{0,2}"),
    ("standard", "MK+G4{0.3}+ASC{informative}"),
]


@pytest.mark.parametrize(("datatype", "text"), ROUND_TRIPS)
def test_text_parses_back_to_the_same_numbers(datatype: str, text: str) -> None:
    model = parse(text, datatype)
    again = parse_model(
        model.text(), datatype=datatype, n_states=5, codon_table=TABLE if datatype == "codon" else None
    )
    assert again.name == model.name and again.unseen == model.unseen
    assert again.text() == model.text()
    assert same_numbers(model.evaluate(), again.evaluate())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=4, max_size=4),
    st.floats(0, 0.99),
    st.floats(0.01, 100),
)
def test_any_value_round_trips(rates, frequencies, p, alpha) -> None:
    values = dict(zip(("rate_AC", "rate_AG", "rate_AT", "rate_CG", "rate_CT"), rates))
    pi = np.array(frequencies) / np.sum(frequencies)
    model = parse("GTR+FO+I+G4")
    given_values = values | {"frequencies": pi, "p_invariable": p, "alpha": alpha}
    again = parse_model(model.text(given_values), datatype="dna")
    assert not again.free
    assert same_numbers(model.evaluate(given_values), again.evaluate())


def test_partly_free_text_keeps_what_is_known() -> None:
    model = parse("TN93{kappa_Y=2}+FO")
    assert model.text() == "TN93{kappa_Y=2.0}+FO"
    assert [p.name for p in parse(model.text()).free] == ["kappa_R", "frequencies"]


def test_frequencies_of_the_data() -> None:
    assert parse("HKY{2}+F").evaluate().single.frequencies == pytest.approx([0.1, 0.2, 0.3, 0.4])
    phi = parse("GY94{1,1}", "codon").values()
    assert phi["frequencies_2"] == pytest.approx(COUNTS[1] / 20)
    pooled = parse("GY94{1,1}+F1X4", "codon").values()["frequencies"]
    assert pooled == pytest.approx(COUNTS.sum(0) / COUNTS.sum())


def test_mkv_is_mk_with_ascertainment() -> None:
    assert parse("MKV", "standard").name == "MK+ASC"
    assert parse("MKV", "standard").unseen == (0, 1, 2, 3, 4)
    assert parse("MK", "standard").unseen == ()
    assert parse("MK+ASC{2,0}", "standard").unseen == (0, 2)
    assert parse("MK+ASC{0,1,2,3,4}", "standard").name == "MK+ASC"
    assert parse("MKV+ASC{Informative}", "standard").name == "MK+ASC{informative}"
    assert parse("MK+ASC{informative}", "standard").unseen == "uninformative"
    with pytest.raises(ModelError, match="'7' is no state"):
        parse("MK+ASC{7}", "standard")


def test_hidden_states_show_base_states() -> None:
    assert parse("JC+COV").observed_state.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert parse("GY94+FQ+COV", "codon").n_states == 120
    assert parse("JC").observed_state.tolist() == [0, 1, 2, 3]


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ModelError, match="'kappa' of model HKY"):
        parse("HKY+F").evaluate()
    assert parse("HKY+F").evaluate({"kappa": 2.0}) is not None
    assert parse("HKY+F").with_values({"kappa": 2.0}).text() == "HKY{2.0}+F{0.1,0.2,0.3,0.4}"
    with pytest.raises(ModelError, match="no parameter 'kapa'"):
        parse("HKY+F").evaluate({"kapa": 2.0})
    with pytest.raises(ModelError, match="negative"):
        parse("HKY+F").with_values({"kappa": -1.0})
    with pytest.raises(ModelError, match="'kappa' is no number: 'two'"):
        parse("HKY+F").with_values({"kappa": "two"})


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("GTX", 1, "unknown dna model 'GTX'", "Did you mean 'GTR'"),
        ("GTRGAMMA", 1, "unknown dna model 'GTRGAMMA'", "is about --model GTR+F+G4 here"),
        ("GTRCATX", 1, "unknown dna model 'GTRCATX'", "is about --model GTR+FO+G4 here"),
        ("PROTGAMMAILG", 1, "unknown dna model", "is about --model LG+I+G4 here"),
        ("PROTGAMMADAYHOFF", 1, "unknown dna model", "is about --model DAYHOFF+G4 here"),
        ("PROTGAMMADAYHOFFF", 1, "unknown dna model", "is about --model DAYHOFF+F+G4 here"),
        ("PROTCATAUTO", 1, "unknown dna model", "is about --model auto here"),
        ("PROTGAMMAXYZ", 1, "unknown dna model 'PROTGAMMAXYZ'", "Known: "),
        ("BINGAMMA", 1, "unknown dna model", "is about --model MK+F+G4 here"),
        ("HKY{3", 4, "never closed", "Add '}'"),
        ("HKY}", 4, "unbalanced", "NAME"),
        ("HKY{3,4}", 1, "takes 1 value", "kappa"),
        ("GTR+F{.1,.2}", 5, "takes 4 value", "frequency_A"),
        ("GTR+F{.1,.2,.3,.3}", 5, "sum to 0.9", "sum to 1"),
        ("GTR+G4+R3", 8, "both set the rate categories", "Keep one"),
        ("GTR+I+I", 7, "both set the invariable sites", "Keep one"),
        ("HKY{kapa=3}", 5, "unknown parameter of HKY 'kapa'", "Did you mean 'kappa'"),
        ("HKY{kappa=3,kappa=4}", 13, "given twice", "once"),
        ("TN{1,kappa_Y=4}", 6, "mixed with values by position", "once"),
        ("GTR+Q", 5, "unknown suffix '+Q'", "+FQ"),
        ("HKY{a}", 5, "'a' is not a number", "1e-3"),
        ("HKY{nan}", 1, "not a finite number", ""),
        ("HKY{-1}", 1, "must not be negative", ""),
        ("", 1, "cannot read ''", "HKY{3.5}"),
        ("+G", 1, "cannot read ''", "HKY{3.5}"),
        ("JC+G0", 4, "asks for 0 classes", "1 to 256"),
        ("UNREST+F", 8, "cannot be combined with +F", "FROOT"),
        ("JC{1}", 1, "takes no values", "Remove"),
        ("JC+COV+I*G4", 8, "cannot be combined with *G4", "Leave it out, or write +G4"),
        ("JC+FROOT+COV", 4, "cannot be combined with hidden", ""),
        ("GTR+F3X4", 5, "cannot be combined with +F3X4", "+FO"),
        ("HKY+R2{weight_1=0.5}", 5, "lacks weight_2", "all of its values"),
        ("LG", 1, "unknown dna model 'LG'", "--datatype protein"),
        ("LG4X", 1, "unknown dna model 'LG4X'", "--datatype protein"),
        ("M2a", 1, "unknown dna model 'M2a'", "--datatype codon"),
        ("JC+C20", 4, "mixture of amino-acid profiles", "--datatype protein"),
        ("MIX", 1, "needs its components", "MIX{JC,HKY{3}+FO}"),
        ("MIX{JC,HKX}", 8, "unknown dna model 'HKX'", "Did you mean 'HKY'"),
        ("MIX{JC,HKY{3,4}}", 8, "takes 1 value", "kappa"),
        ("MIX{JC,K80{3}+G4}", 15, "holds for the whole mixture", "behind the closing brace"),
        ("MIX{JC:1,K80}", 5, "cannot read 'JC:1'", "model:rate:weight"),
        ("MIX{JC:1:0.3,K80}", 1, "some components have no weight", "or for none"),
        ("MIX{JC:1:0.3,K80:1:0.6}", 1, "sum to 0.9", "sum to 1"),
        ("MIX{JC:0:0.3,K80:1:0.7}", 1, "must be above 0", "+I"),
        ("MIX{JC:1:0.3,K80:1:0.7}*G2", 1, "behind * have the rates", "Leave them out"),
        ("MIX{JC,K80}*G4", 13, "ties 4 categories to 2 process(es)", "Give 2 categories"),
        ("MIX{JC,K80}+F", 13, "cannot be combined with MIX", "inside of MIX"),
        ("MIX{JC,K80+COV}", 1, "different hidden classes", "same +COV"),
        ("MIX{MIX{JC,K80},JC}", 5, "unknown dna model 'MIX'", ""),
        ("HKY*G4", 5, "ties 4 categories to 1 process(es)", "every process"),
        ("HKY*F", 5, "'*' cannot stand before F", "*H4"),
        ("HKY+G4+H2", 8, "both set the rate categories", "Keep one"),
        ("JC+FB5", 4, "+FB5 is of characters of two states, and these have 4", "+FQ, +F or +FO"),
        ("JC{{1}}", 4, "unbalanced '{'", "NAME"),
    ],
)
def test_errors_say_where_and_what_is_allowed(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(text)
    assert caught.value.column == column
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_counts_are_asked_for() -> None:
    with pytest.raises(ModelError, match="no data are given"):
        parse_model("HKY{2}+F", datatype="dna")
    with pytest.raises(ModelError, match="no data are given"):
        parse_model("GY94{1,1}+F3X4", datatype="codon", codon_table=TABLE)
    with pytest.raises(ModelError, match="number of states"):
        parse_model("MK", datatype="standard")
    with pytest.raises(ModelError, match="table of sense codons"):
        parse_model("GY94", datatype="codon")
    with pytest.raises(ModelError, match="unknown datatype"):
        parse_model("JC", datatype="dnaa")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="GTRHKYLFIQMX+*{}=,.:/;0123456789- eé\n", max_size=30))
def test_no_string_raises_anything_else(text: str) -> None:
    try:
        model = parse(text)
        model.evaluate(model.start_values())
    except ModelError:
        pass


@pytest.mark.parametrize("name", ["M2a{0.1,0.9,0.6,0.3,0.1,3}+FQ", "M8{0.5,1.5,0.9,0.9,0.1,3}+FQ"])
def test_positive_selection_has_an_omega_of_one_or_more(name: str) -> None:
    with pytest.raises(ModelError, match="1 or more"):
        parse(name, "codon").evaluate()


def test_a_mixture_has_no_single_family() -> None:
    assert parse("HKY+G4").substitution.n_states == 4
    for text in ("MIX{JC,HKY}", "HKY+H2"):
        with pytest.raises(ModelError, match="mixture"):
            _ = parse(text).substitution


def test_a_model_of_other_data_says_how_to_read_them():
    with pytest.raises(ModelError) as caught:
        parse_model("LG+G4", datatype="dna")
    assert "LG is a model of protein data" in caught.value.hint and "--datatype protein" in caught.value.hint


def test_parameter_names_in_any_case():
    assert parse_model("HKY{KAPPA=3.5}+FQ", datatype="dna").parameter("kappa").value == 3.5


def test_a_long_list_of_parameters_is_cut_in_the_hint():
    with pytest.raises(ModelError) as caught:
        parse_model("GTR20{1,2,3}", datatype="protein")
    assert "rate_AR,rate_AN,rate_AD,…,rate_WV" in caught.value.hint

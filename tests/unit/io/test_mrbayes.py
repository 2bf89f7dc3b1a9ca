"""Commands of MRBAYES blocks: abbreviations, values, comments, and what is none."""

from __future__ import annotations

import pytest

from phloem.errors import InputError
from phloem.io.mrbayes import OPTIONS, Value, read_mrbayes

DATA = "#NEXUS\nbegin data; dimensions ntax=2 nchar=4; format datatype=dna; matrix a ACGT b ACGA; end;\n"


def commands(tmp_path, *lines: str, before: str = DATA):
    file = tmp_path / "x.nex"
    file.write_text(before + "Begin MrBayes;\n" + "\n".join(lines) + "\nend;\n")
    return read_mrbayes(file)


def options(tmp_path, *lines: str) -> dict[str, str]:
    [command] = commands(tmp_path, *lines)
    return {option.name: str(option.value) for option in command.options}


def test_names_may_be_shortened_to_what_only_one_begins_with(tmp_path):
    found = commands(
        tmp_path, "LS NST = 6 rat=invg;", "prs statef=fixed(eq);", "Mcmc ng=10;", "unli rev=(all);"
    )
    assert [one.name for one in found] == ["lset", "prset", "mcmc", "unlink"]
    assert [option.name for one in found for option in one.options] == [
        "nst", "rates", "statefreqpr", "ngen", "revmat",
    ]  # fmt: skip
    assert found[0].options[1].value == Value("invgamma")
    assert [one.line for one in found] == [4, 5, 6, 7]


def test_whole_names_come_before_longer_ones(tmp_path):
    found = commands(tmp_path, "mcmc;", "mcmcp ngen=5;", "ss;", "set seed=4;", "sump;", "sumt burnin=3;")
    assert [one.name for one in found] == ["mcmc", "mcmcp", "ss", "set", "sump", "sumt"]
    assert found[5].options[0].name == "burnin"


def test_values(tmp_path):
    found = options(
        tmp_path,
        "prset [one] applyto=(1, 2) brlenspr = unconstrained:exp( 10.0 ) [two [nested]]",
        "  shapepr=uniform(0.1,50) ratepr=variable topologypr=constraints(a, 'b c');",
    )
    assert found == {
        "applyto": "(1,2)",
        "brlenspr": "unconstrained:exponential(10.0)",
        "shapepr": "uniform(0.1,50)",
        "ratepr": "variable",
        "topologypr": "constraints(a,b c)",
    }


def test_names_of_files_and_flags(tmp_path):
    assert options(tmp_path, "log start filename=out/my-log.txt replace;") == {
        "start": "None", "filename": "out/my-log.txt", "replace": "None",
    }  # fmt: skip
    assert options(tmp_path, "mcmc file='a b.nex' data=y;") == {"filename": "a b.nex", "data": "yes"}


def test_other_commands_keep_their_words(tmp_path):
    [charset, exclude] = commands(tmp_path, "charset a = 1-. \\ 3 [x] 7;", "exclude 1 -3 a;")
    assert [word.text for word in charset.words] == ["a", "=", "1-.", "\\", "3", "7"]
    assert exclude.text == "1 -3 a" and exclude.options == ()


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("frobnicate 3;", "5:1", "command 'frobnicate' is not known"),
        ("s nst=6;", "5:1", "command 's' could be several"),
        ("lset nst=7;", "5:10", "nst: value '7' is not known"),
        ("lset foo=1;", "5:6", "LSET: option 'foo' is not known"),
        ("lset n=6;", "5:6", "option 'n' could be several"),
        ("lset rates=;", "5:11", "rates has no value"),
        ("lset applyto=(1,2;", "5:14", "never closed"),
        ("lset =6;", "5:6", "stands where an option"),
        ("prset brlenspr=unconstrained:cauchy(1);", "5:30", "value 'cauchy' is not known"),
        ("lset rates=inv [open;", "5:16", "never ends"),
    ],
)
def test_what_mrbayes_does_not_have_is_an_error_at_its_place(tmp_path, line, place, message):
    with pytest.raises(InputError, match=message) as told:
        commands(tmp_path, "set autoclose=yes;", line)
    assert told.value.place.endswith(f"x.nex:{place}") and told.value.hint


def test_a_file_without_a_block_has_no_commands(tmp_path):
    file = tmp_path / "x.nex"
    file.write_text(DATA)
    assert read_mrbayes(file) == []
    file.write_text(">a\nACGT\n>b\nACGA\n")
    assert read_mrbayes(file) == []
    assert {name for names in OPTIONS.values() for name in names} >= {"ngen", "applyto", "burninfrac"}

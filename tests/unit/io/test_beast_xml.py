import random
import warnings

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning, PhloemError
from phloem.io.alignment import part_alignment, read_alignment, read_characters, read_scheme
from phloem.io.date_table import dates_from_table, read_dates
from phloem.io.dates import DateReading

BEAST_1 = """<?xml version="1.0" standalone="yes"?>
<!-- made by hand -->
<beast>
  <taxa id="taxa">
    <taxon id="a"><date value="1982.0" direction="forwards" units="years"/></taxon>
    <taxon id="b c"><date value="1990.5" direction="forwards" units="years"/></taxon>
    <taxon id="d"><date value="1994" direction="forwards" units="years"/></taxon>
  </taxa>
  <taxa id="clade"><taxon idref="a"/><taxon idref="d"/></taxa>
  <alignment id="one" dataType="nucleotide">
    <sequence><taxon idref="a"/>ACGT
      ACGT</sequence>
    <sequence><taxon idref="b c"/>ACGTACGA</sequence>
    <sequence><taxon idref="d"/>ACGTACCA</sequence>
  </alignment>
  <patterns id="patterns" from="1"><alignment idref="one"/></patterns>
  <constantSize id="constant" units="years"/>
  <mcmc id="mcmc"/>
</beast>
"""
BEAST_2 = """<beast namespace="x" version="2.7">
<data id="dna" spec="Alignment" dataType="nucleotide">
  <sequence id="s1" taxon="a" totalcount="4" value="ACGTACGT"/>
  <sequence id="s2" taxon="b c" totalcount="4" value="ACGTACGA"/>
  <sequence id="s3" taxon="d" totalcount="4">ACGTACCA</sequence>
</data>
<run id="mcmc" spec="MCMC"><state id="state"><tree id="Tree.t">
  <trait id="dateTrait" spec="beast.base.evolution.tree.TraitSet" traitname="date"
         value="a=1982.0,b c=1990.5, d=1994"/>
</tree></state></run>
</beast>
"""


@pytest.mark.parametrize("text", [BEAST_1, BEAST_2])
def test_alignment_taxa_and_dates(text, tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.warns(InputWarning, match="not (constantSize, mcmc|run)"):
        alignment = read_alignment(path)
    assert alignment.taxa == ("a", "b c", "d") and alignment.alphabet.kind == "dna"
    assert alignment.codes[:, -3:].tolist() == [[1, 2, 3], [1, 2, 0], [1, 1, 0]]
    with pytest.warns(InputWarning) as told:
        read_alignment(path), read_dates(path)
    assert len({(one.filename, one.lineno, str(one.message)) for one in told}) == 1  # Python shows it once
    with pytest.warns(InputWarning):
        dates = read_dates(path, ["d", "a", "b c"])
    assert dates.lower.tolist() == dates.upper.tolist() == [1994.0, 1982.0, 1990.5] and dates.calendar


def dates(text: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return dates_from_table(text)


def test_units_and_directions():
    backwards = dates(BEAST_1.replace("forwards", "backwards"))
    assert backwards.lower.tolist() == [-1982.0, -1990.5, -1994.0] and not backwards.calendar
    ages = dates(BEAST_2.replace('"date"', '"date-backward"'))
    assert ages.upper.max() == -1982.0 and ages.latest == 0.0  # they count from the present
    months = dates(BEAST_1.replace('units="years"/></', 'units="months"/></'))
    assert months.lower[0] == pytest.approx(1982 / 12)
    days = dates(BEAST_2.replace("traitname", 'units="day" traitname'))
    assert days.lower[2] == pytest.approx(1994 / 365.25)
    written = dates(
        BEAST_2.replace("traitname", 'dateFormat="yyyy-M-dd" traitname').replace("1982.0", "1982-1-1")
    )
    assert written.lower[0] == 1982.0


def test_dates_that_are_sampled_have_the_limits_of_their_uncertainty():
    uncertain = BEAST_1.replace('"1994"', '"1994" precision="6.0"').replace("years", "months")
    with pytest.warns(InputWarning, match="count as exact, as that of 'd'"):
        assert dates_from_table(uncertain).upper[2] == 1994 / 12
    sampled = uncertain.replace("<mcmc", '<treeModel><leafHeight taxon="d"/></treeModel><mcmc')
    with pytest.warns(InputWarning) as told:
        found = dates_from_table(sampled)
    assert found.lower[2] == 1994 / 12 and found.upper[2] == 2000 / 12
    assert next(str(one.message) for one in told).startswith("the file: its dates are in months; here ages")
    older = dates(sampled.replace("forwards", "backwards"))
    assert older.lower[2] == -2000 / 12 and older.upper[2] == -1994 / 12
    with pytest.warns(InputWarning, match="sampled without one, count as exact, as that of 'a'"):
        dates_from_table(sampled.replace('taxon="d"', 'taxon="a"'))
    assert any("no date after 166.167" in str(one.message) for one in told)  # a height would be negative
    with warnings.catch_warnings(record=True) as told:
        dates_from_table(sampled.replace("forwards", "backwards"))
    assert not any("no date after" in str(one.message) for one in told)


SAMPLED_TIPS = """<distribution spec="MRCAPrior" tipsonly="true"><taxonset id="A"><taxon id="a"/></taxonset>
  <Uniform name="distr" lower="1981.5" upper="1983"/></distribution>
<distribution spec="MRCAPrior" tipsonly="true" taxonset="@D">
  <distr spec="beast.base.inference.distribution.Normal" offset="1">
    <parameter name="mean">1993.0</parameter><parameter name="sigma" value="0.5"/></distr></distribution>
<taxonset id="D"><taxon idref="d"/></taxonset>
<operator spec="TipDatesRandomWalker" taxonset="@A" weight="1"/>
<operator spec="beast.base.evolution.operator.TipDatesScaler" taxonset="@D" weight="1"/></run>"""


def test_tips_that_beast_2_samples_have_their_priors():
    text = BEAST_2.replace("</run>", SAMPLED_TIPS)
    found = dates(text)
    assert (found.lower[0], found.upper[0], found.error[0]) == (1981.5, 1983.0, 0.0)
    assert (found.lower[1], found.upper[1]) == (1990.5, 1990.5)
    assert (found.mean[2], found.error[2]) == (1994.0, 0.5)
    ages = dates(text.replace('"date"', '"age"').replace("<trait", '<trait units="month"'))
    assert (ages.lower[0], ages.upper[0], ages.mean[2]) == (-1983 / 12, -1981.5 / 12, -1994 / 12)
    held = dates(text.replace('"@A" weight="1"', '"@A" weight="0.0"'))  # no move: as the trait says
    assert held.lower[0] == held.upper[0] == 1982.0
    for old, new, told in (
        ("Uniform", "Gamma", "'a'"),
        ('taxonset="@D" w', "w", "all tips"),
        ("@A", "", "all tips"),
    ):
        with pytest.warns(InputWarning, match=f"count as exact, as of {told}"):
            dates_from_table(text.replace(old, new))


def test_dates_that_are_named_or_written_otherwise():
    named = '<beast><date id="first" value="07/05/1990" units="years"/>'
    written = dates(BEAST_1.replace("<beast>", named).replace('value="1982.0"', 'idref="first"'))
    assert written.lower[0] == pytest.approx(1990 + 126 / 365)
    for text, told in (('idref="last"', "no date is called 'last'"), ('origin="1/1/1990"', "from an origin")):
        with pytest.raises(InputError, match=told):
            dates(BEAST_1.replace('value="1982.0"', f'value="1982.0" {text}'))
    for form in ("d/M/yyyy", "dd.MM.yyyy", "yyyy-M-dd"):
        year_last = "7/5/1982" if form[0] == "d" else "1982-5-7"
        year_last = year_last.replace("/", "." if "." in form else "/")
        text = BEAST_2.replace("traitname", f'dateFormat="{form}" traitname').replace(
            "a=1982.0", f"a={year_last}"
        )
        assert dates(text).lower[0] == pytest.approx(1982 + 126 / 365), form
    for form in ("yy-M-d", "d MMM yyyy", "yyyy'T'M", "M-d"):
        with pytest.raises(InputError, match="are not read"):
            dates(BEAST_2.replace("traitname", f'dateFormat="{form}" traitname'))


def test_taxa_without_an_age_are_of_the_present():
    ages = BEAST_2.replace('"date"', '"age"').replace("b c=1990.5, ", "")
    with pytest.warns(InputWarning, match="1 of 3 taxa have no age .* as 'b c'"):
        assert dates_from_table(ages, ["a", "b c", "d"]).upper.tolist() == [-1982.0, 0.0, -1994.0]
    with pytest.raises(InputError, match="1 of 3 taxa have no date"):
        dates_from_table(BEAST_2.replace("b c=1990.5, ", ""), ["a", "b c", "d"])
    with pytest.warns(InputWarning, match="1 of 4 taxa have no date .* 1994, the youngest, as 'e'"):
        found = dates_from_table(BEAST_1, ["a", "b c", "d", "e"])  # BEAST 1 gives it height 0
    assert found.lower.tolist() == found.upper.tolist() == [1982.0, 1990.5, 1994.0, 1994.0]


@pytest.mark.parametrize(
    "old, new, line",
    [
        ("</beast>", "", None),
        (
            'direction="forwards" units="years"/></taxon>\n  </taxa>',
            'direction="backwards"/></taxon>\n  </taxa>',
            1,
        ),
        ('"1990.5"', '"soon"', 6),
        ('units="years"/></taxon>', 'units="epochs"/></taxon>', 5),
        ("<beast>", '<!DOCTYPE beast [<!ENTITY e "e">]><beast>', None),
    ],
)
def test_bad_dates(old, new, line):
    with pytest.raises(InputError) as error:
        dates(BEAST_1.replace(old, new) if "ENTITY" not in new else BEAST_1.replace(old, new).lstrip())
    assert error.value.hint and (line is None or error.value.line == line)


def test_bad_alignments(tmp_path):
    path = tmp_path / "x.xml"
    for old, new, line in (
        ("ACGTACCA", "ACGTAC!A", 14),
        ("ACGTACCA", "ACGT", 14),
        ('idref="d"/>ACG', 'idref="a"/>ACG', 14),
        ("</alignment>\n", "</alignment><data id='two'><sequence taxon='a' value='A'/></data>\n", 15),
    ):
        path.write_text(BEAST_1.replace(old, new))
        with warnings.catch_warnings(), pytest.raises(InputError) as error:
            warnings.simplefilter("ignore", InputWarning)
            read_alignment(path)
        assert error.value.line == line and error.value.hint
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        assert read_alignment(path, block="one").n_taxa == 3
        with pytest.raises(InputError, match="no alignment is called 'three'") as error:
            read_alignment(path, block="three")
    assert error.value.hint == "Choose all, or one of one, two."
    reading = DateReading(undated="unknown")
    assert not np.isfinite(dates_of_more(reading).lower[-1])


MORE = """<alignment id="genes:2" dataType="amino acid">
<sequence><taxon idref="d"/>MKL</sequence><sequence><taxon idref="e"/>MKV</sequence></alignment>
<alignment id="three"><sequence><taxon idref="a"/>ACGTACGTAC</sequence></alignment>
<patterns id"""


@pytest.mark.filterwarnings("ignore:the file|.*of a BEAST file")
def test_several_alignments_are_parts_by_their_ids(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(BEAST_1.replace("<patterns id", MORE, 1))
    rows = read_characters(path, "all")
    assert rows.taxa == ("a", "b c", "d", "e")
    text = rows.matrix.astype(np.uint8).tobytes().decode()
    assert (
        text == "ACGTACGT???ACGTACGTAC" + "ACGTACGA" + "?" * 13 + "ACGTACCAMKL" + "?" * 18 + "MKV" + "?" * 10
    )
    scheme = read_scheme(rows)
    assert [(s.name, s.datatype) for s in scheme.subsets] == [
        ("one", "dna"), ("genes:2", "protein"), ("three", "dna"),
    ]  # fmt: skip
    assert rows.charsets == {"one": "1-8", "genes:2": "9-11", "three": "12-21"}
    assert part_alignment(rows, scheme.subsets[1]).alphabet.kind == "protein"
    assert read_alignment(path, block="genes:2").taxa == ("d", "e")
    with pytest.raises(InputError, match="the file has 3 alignments") as error:
        read_alignment(path)
    assert "--block all --partitions declared" in error.value.hint and error.value.line == 16
    twice = tmp_path / "twice.xml"
    twice.write_text(path.read_text().replace('id="three"', 'id="one"'))
    with pytest.raises(InputError, match="two alignments are called 'one'"):
        read_characters(twice, "all")
    path.write_text(path.read_text().replace("MKV", "MK!"))
    with pytest.raises(InputError, match="!") as error:
        part_alignment(read_characters(path, "all"), scheme.subsets[1])
    assert (error.value.line, error.value.taxon) == (17, "e")


FILTERED = """<beast version="2.7"><data id="dna">
<sequence taxon="a" value="ACGTACGTAC"/><sequence taxon="b" value="ACGTACGTAA"/></data>
<run><alignment id="first" spec="FilteredAlignment" filter="1-9\\3"><data idref="dna"/></alignment>
<taxa id="second" spec="FilteredAlignment" data="@dna" filter="2::3,10"/>
<data id="third" spec="beast.base.evolution.alignment.FilteredAlignment" data="@dna" filter="3:.:3"/>
<data id="other" spec="FilteredAlignment" data="@rna" filter="1-2"/><data idref="dna"/></run></beast>"""
PATTERNS = """<beast><alignment id="dna"><sequence><taxon idref="a"/>ACGTACGTAC</sequence></alignment>
<patterns id="patterns"><alignment idref="dna"/></patterns><mergePatterns id="CP12.patterns">
<patterns from="1" every="3"><alignment idref="dna"/></patterns>
<patterns from="2" every="3"><alignment idref="dna"/></patterns></mergePatterns>
<patterns id="CP3.patterns" from="3" every="3" strip="false"><alignment idref="dna"/></patterns></beast>"""


@pytest.mark.filterwarnings("ignore:the file|.*of a BEAST file")
def test_filters_and_patterns_are_sets_of_columns(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(FILTERED)
    rows = read_characters(path)
    assert rows.taxa == ("a", "b") and not rows.parts
    assert rows.charsets == {"first": "1-9\\3", "second": "2-.\\3, 10", "third": "3-.\\3"}
    path.write_text(PATTERNS)
    assert read_characters(path).charsets == {"CP3": "3-.\\3", "CP12": "1-.\\3, 2-.\\3"}
    path.write_text(PATTERNS.replace("CP3.", "CP12."))
    with pytest.raises(InputError, match="two sets of columns are called 'CP12'"):
        read_characters(path)
    rna = '<data id="rna"><sequence taxon="c" value="UU"/></data>'
    two = FILTERED.replace("<run>", f"{rna}<run>")
    path.write_text(two.replace("</run>", '<data id="aa"><sequence taxon="c" value="MKL"/></data></run>'))
    scheme = read_scheme(read_characters(path, "all"))
    assert [(s.name, s.datatype, (s.sites + 1).tolist()) for s in scheme.subsets] == [
        ("first", "dna", [1, 4, 7]), ("second", "dna", [2, 5, 8, 10]), ("third", "dna", [3, 6, 9]),
        ("other", "rna", [11, 12]), ("aa", "protein", [13, 14, 15]),
    ]  # fmt: skip
    path.write_text(two.replace("2::3", "2::x"))
    with pytest.raises(InputError, match="2::x"):
        read_characters(path, "all")


@pytest.mark.parametrize(
    "old, new, line, told",
    [
        ("<data id", '<data weights="1,2" id', 1, "weights and strip"),
        ('filter="3:', 'strip="true" filter="3:', 5, "weights and strip"),
        ('filter="3:', 'constantSiteWeights="1 2 3 4" filter="3:', 5, "constantSiteWeights"),
        (
            '<data idref="dna"/></al',
            '<data idref="dna"/><constantSiteWeights/></al',
            3,
            "constantSiteWeights",
        ),
        ('taxon="b"', 'taxon="b" uncertain="true"', 2, "of probabilities"),
    ],
)
def test_columns_that_count_otherwise_are_no_plain_data(old, new, line, told, tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(FILTERED.replace(old, new))
    with warnings.catch_warnings(), pytest.raises(InputError, match=told) as error:
        warnings.simplefilter("ignore", InputWarning)
        read_characters(path)
    assert error.value.line == line and error.value.hint


@pytest.mark.filterwarnings("ignore:.*of a BEAST file")
def test_columns_that_an_analysis_is_conditional_on_are_told_of(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(FILTERED.replace('data="@rna"', 'data="@rna" weights="2"'))
    assert read_characters(path).n_sites == 10  # the weights are of another alignment
    path.write_text(FILTERED.replace('<data id="dna"', '<data ascertained="true" excludeto="1" id="dna"'))
    with pytest.warns(InputWarning, match=r"x.xml:1: columns that .* --sites"):
        read_characters(path)


def dates_of_more(reading: DateReading):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return dates_from_table(BEAST_2, ["a", "b c", "d", "e"], reading)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_raise_only_phloem_errors(seed, tmp_path):
    rng, path = random.Random(seed), tmp_path / "x.xml"
    for _ in range(150):
        text = list(rng.choice((BEAST_1, BEAST_2)))
        for _ in range(rng.choice((1, 2, 5))):
            at = rng.randrange(len(text))
            text[at : at + rng.choice((0, 1, 5, 50))] = rng.choice(
                ("", "<", '"', "é", "\x1f", "=,", "</data>", "1e999")
            )
        path.write_text("".join(text))
        for read in (read_alignment, read_dates):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", InputWarning)
                    read(path)
            except PhloemError as error:
                assert str(error)

import gzip
from pathlib import Path

import numpy as np
import pytest

import phloem
from phloem.data.alignment import alignment_from_states
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, InputWarning
from phloem.io.alignment import (
    part_alignment,
    read_alignment,
    read_characters,
    read_scheme,
    write_fasta,
    write_nexus,
    write_phylip,
)
from phloem.io.date_table import read_dates

MRBAYES = Path("/usr/share/doc/mrbayes/examples")


def read(tmp_path, text, **options):
    path = tmp_path / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_alignment(path, **options)


def letters(alignment):
    symbols = "".join(alignment.alphabet.states) + "-"
    return {
        taxon: "".join(symbols[code] if code < len(symbols) else "*" for code in row)
        for taxon, row in zip(alignment.taxa, alignment.codes)
    }


EXPECTED = {"alpha": "ACGTACGT", "beta": "AC-TAC-T", "gamma": "ACGTACGA"}
FILES = {
    "fasta": ">alpha one\nACGTACGT\n>beta\nac-uacnt\n>gamma\nACGTACGA\n",
    "wrapped fasta": ";comment\n>alpha\nACGT\n\nACGT\n>beta\nAC-T AC\n-T\n>gamma\nACGTACGA",
    "windows fasta": ">alpha\r\nACGTACGT\r\n>beta\r\nAC-TAC-T\r\n>gamma\r\nACGTACGA\r\n",
    "old mac fasta": ">alpha\rACGTACGT\r>beta\rAC-TAC-T\r>gamma\rACGTACGA\r",
    "byte order mark": "\ufeff>alpha\nACGTACGT\n>beta\nAC-TAC-T\n>gamma\nACGTACGA\n",
    "relaxed phylip": " 3 8 \nalpha ACGTACGT\nbeta   AC-TAC-T\ngamma ACGT ACGA\n",
    "strict phylip": "3 8\nalpha     ACGTACGT\nbeta      AC-TAC-T\ngamma     ACGTACGA\n",
    "interleaved phylip": "3 8 I\nalpha ACGT\nbeta AC-T\ngamma ACGT\n\nACGT\nAC-T\nACGA\n",
    "repeated names": "3 8\nalpha ACGT\nbeta AC-T\ngamma ACGT\n\nalpha ACGT\nbeta AC-T\ngamma ACGA\n",
    "sequential phylip": "3 8\nalpha ACGT\n ACGT\nbeta\nAC-T\nAC-T\ngamma ACGT\nACGA\n",
    "nexus": """#NEXUS
        begin data; dimensions ntax=3 nchar=8; format datatype=dna gap=- missing=?;
        matrix alpha ACGTACGT
               beta  AC-TAC-T
               gamma ACGT ACGA ; end;""",
    "nexus over lines": """#nexus
        Begin Data; Dimensions NTax=3 NChar=8; Format DataType=Nucleotide;
        Matrix alpha ACGT
        ACGT
        beta
          AC-T
          AC-T
        gamma ACGTACGA
        ; EndBlock;""",
    "interleaved nexus": """#NEXUS [a [nested] comment; with 'things']
        begin taxa; dimensions ntax=3; taxlabels alpha beta gamma; end;
        begin characters; dimensions nchar=8;
        format datatype=dna interleave matchchar=. missing=X gap=~;
        matrix [ 10 ] 'alpha' ACGT [here; too]
          beta   ..~.
          "gamma" ....

          'alpha' AC[in between]GT
          beta    ..X.
          "gamma" ...A
        ; end;""",
    "nexus with equate": """#NEXUS
        begin data; dimensions ntax=3 nchar=8; format datatype=dna equate="1=A 2=C 3=- 4={ACGT}";
        matrix alpha 1CGT1CGT
        beta 12-T123T
        gamma A2GT{A}(C)G1
        ; end;""",
    "nexus without datatype": """#NEXUS
        begin data; dimensions ntax=3 nchar=8; matrix
        alpha ACGTACGT
        beta  AC-TAC-T
        gamma ACGTACGA
        ; end;""",
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_formats(tmp_path, name):
    assert letters(read(tmp_path, FILES[name])) == EXPECTED
    assert letters(read(tmp_path, gzip.compress(FILES[name].encode()))) == EXPECTED


def test_strict_phylip_with_blanks_in_names(tmp_path):
    alignment = read(tmp_path, "2 14\nHomo sapieACGTACGTAC\nGTAA\nPan trogloACGTACGTACGTAC\n")
    assert letters(alignment) == {"Homo sapie": "ACGTACGTACGTAA", "Pan troglo": "ACGTACGTACGTAC"}


def test_quoted_names_stay_as_they_are(tmp_path):
    text = nexus(["'it''s [1]; a' A", "a_b C", "O'B G"], "ntax=3 nchar=1")
    assert read(tmp_path, text).taxa == ("it's [1]; a", "a_b", "O'B")


@pytest.mark.parametrize(
    "rows, kind, n_states",
    [
        ("ACGTNN", "dna", 4),
        ("ACGUNN", "rna", 4),
        ("0101??", "binary", 2),
        ("0120-3", "standard", 4),
        ("MKVLAW", "protein", 20),
        ("------", "dna", 4),
    ],
)
def test_guesses(tmp_path, rows, kind, n_states):
    alignment = read(tmp_path, f">a\n{rows}\n")
    assert alignment.alphabet.kind == kind and alignment.alphabet.n_states == n_states
    assert alignment.settings["datatype_guessed"] is True
    assert read(tmp_path, f">a\n{rows}\n", datatype=kind).settings["datatype_guessed"] is False


@pytest.mark.parametrize("slip", ["1", "E"])
def test_a_slip_does_not_make_nucleotides_a_protein(tmp_path, slip):
    with pytest.raises(InputError, match=f"'[{slip}]' in dna data.*'b'.*site 3"):
        read(tmp_path, f">a\nACGTACGTACGT\n>b\nAC{slip}TNNACGTXX\n")
    protein = f">a\nACGTACGTGGGS\n>b\nAC{slip}TMKVLAWGA\n"  # 16 of 24 letters are those of nucleotides
    assert slip == "1" or read(tmp_path, protein, stop_codons="mask").alphabet.kind == "protein"


def test_standard_symbols(tmp_path):
    text = nexus(["a 01{0 2}a", "b (1,2)A-?"], options='symbols="0~2 a A" respectcase')
    alignment = read(tmp_path, text, datatype="standard")
    assert alignment.alphabet.states == ("0", "1", "2", "a", "A") and alignment.alphabet.case_sensitive
    assert alignment.codes[0, 3] == 3 and alignment.codes[1, 1] == 4
    sets = alignment.state_sets[[alignment.codes[0, 2], alignment.codes[1, 0]]]
    assert sets.tolist() == [[True, False, True, False, False], [False, True, True, False, False]]


def test_an_alphabet_of_ones_own(tmp_path):
    alignment = read(tmp_path, ">a\nxyz\n>b\nzZ?\n", datatype=alphabet("custom", symbols="xyz"))
    assert alignment.codes.tolist() == [[0, 1, 2], [2, 2, 3]]


def read_parts(path, **options):
    characters = read_characters(path)
    scheme = read_scheme(characters, **options)
    return {subset.name: part_alignment(characters, subset) for subset in scheme.subsets}


MIXED = """#NEXUS
begin data; dimensions ntax=2 nchar=7; format datatype=mixed(standard:1-3, dna:4-6, dna:7) interleave;
matrix
a 012
b 0{01}-
a ACGT
b RC-A
; end;
begin sets; charset codon = 4-6; charset third = 6 7; end;
"""


def test_mixed(tmp_path):
    with pytest.raises(InputError) as error:
        read(tmp_path, MIXED)
    assert "such as 7" in error.value.hint
    assert letters(read(tmp_path, MIXED, sites="4-6")) == {"a": "ACG", "b": "*C-"}
    assert letters(read(tmp_path, MIXED, sites="codon")) == {"a": "ACG", "b": "*C-"}
    (tmp_path / "file").write_text(MIXED)
    parts = read_parts(tmp_path / "file")
    assert list(parts) == ["standard", "dna", "dna_2"]
    assert [part.alphabet.n_states for part in parts.values()] == [3, 4, 4]
    assert [part.n_sites for part in parts.values()] == [3, 3, 1]


def test_charsets_become_partitions(tmp_path):
    file = tmp_path / "file"
    file.write_text(FILES["nexus"] + "begin mrbayes; charset x = 1-4; charset y = 5 - 8 \\ 2; end;")
    parts = read_parts(file, partitions=file, unassigned="drop")
    assert {name: part.n_sites for name, part in parts.items()} == {"x": 4, "y": 2}
    with pytest.raises(InputError, match="2 columns are in no subset: 6, 8"):
        read_parts(file, partitions=file)


def nexus(rows, dimensions="ntax=2 nchar=4", options=""):
    body = "\n".join(rows)
    head = f"#NEXUS\nbegin data;\ndimensions {dimensions};\nformat datatype=dna {options};\n"
    return f"{head}matrix\n{body}\n;\nend;\n"


# text, line, column, taxon, part of the message
ERRORS = {
    "duplicate fasta": (">a\nAC\n>b\nAC\n>a\nAC\n", 5, 2, "a", "twice"),
    "unequal fasta": (">a\nACGT\n>b\nACG\n", 3, 2, "b", "3 characters"),
    "unknown fasta": (">a\nACGT\n>b\nAC\nG!\n", 5, 2, "b", "'!'"),
    "dash of a text editor": (">a\nAC–T\n", 2, 3, "a", "'–'"),
    "point in fasta": (">a\nACGT\n>b\nAC.T\n", 4, 3, "b", "'.' in dna"),
    "nameless fasta": (">a\nACGT\n> \nACGT\n", 3, 1, None, "no name"),
    "empty": ("", None, None, None, "empty"),
    "blank": (" \n\t\n", None, None, None, "empty"),
    "binary": (b">a\nAC\x00GT", 2, 3, None, "binary"),
    "utf-16": (">a\nACGT\n".encode("utf-16"), 1, None, None, "UTF-16"),
    "utf-32": (">a\nACGT\n".encode("utf-32"), 1, None, None, "UTF-32"),
    "utf-32 without a mark": (">a\nACGT\n".encode("utf-32-be"), 1, None, None, "UTF-32"),
    "utf-16 without a mark": (">a\nACGT\n".encode("utf-16-be"), 1, None, None, "UTF-16"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00", None, None, None, "zip archive"),
    "no format": ("hello world\n", 1, 1, None, "neither"),
    "newick": ("(a,b);", 1, 1, None, "Newick"),
    "phylip length": ("2 4\na ACGT\nb ACGTA\n", 3, 1, "b", "5 characters"),
    "phylip taxa": ("3 4\na ACGT\nb ACGT\n", 1, 1, None, "3 taxa"),
    "phylip duplicate": ("2 4\na ACGT\na ACGT\n", 3, 1, "a", "twice"),
    "phylip unknown": ("2 4\na ACGT\nb AC!T\n", 3, 5, "b", "'!'"),
    "nchar": (nexus(["a ACGT", "b ACGT"], "ntax=2 nchar=5"), 6, 1, "a", "NCHAR is 5"),
    "nchar interleaved": (nexus(["a ACGT"], "nchar=5", "interleave"), 6, 1, "a", "NCHAR is 5"),
    "ntax": (nexus(["a ACGT", "b ACGT"], "ntax=3 nchar=4"), 5, 1, None, "NTAX is 3"),
    "nexus unequal": (nexus(["a ACGT", "b ACG"], "ntax=2 nchar=4"), 7, 1, "b", "3 characters"),
    "nexus unknown": (nexus(["a ACGT", "b AC[x]!T"]), 7, 8, "b", "'!'"),
    "nexus unknown in a set": (nexus(["a ACGT", "b A{CQ}GT"]), 7, 4, "b", "{CQ}"),
    "nexus duplicate": (nexus(["a ACGT", "a ACGT"]), 7, 1, "a", "twice"),
    "interleaved duplicate": (nexus(["a AC", "a GT", "b AC"], options="interleave"), 7, 1, "a", "twice"),
    "late taxon": (nexus(["a AC", "b AC", "a GT", "c GT"], options="interleave"), 9, 1, "c", "first block"),
    "open set": (nexus(["a ACGT", "b A{CGT"]), 7, 4, "b", "never ends"),
    "open comment": (nexus(["a ACGT", "b AC[GT"]), 7, 5, None, "never ends"),
    "open quote": (nexus(["a ACGT", "'b ACGT"]), 7, 1, None, "never ends"),
    "no semicolon": ("#NEXUS\nbegin data;\nmatrix\na A\n", 3, 1, None, "never ends"),
    "no end": ("#NEXUS\nbegin data;\nmatrix\na A;\n", 2, 1, None, "never ends"),
    "matrix without ;": (nexus(["a ACGT"]).replace(";\nend", "end"), 7, 1, None, "no ';' ahead"),
    "and a block behind": (
        nexus(["a ACGT"]).replace(";\nend", " endblock") + "begin sets;\nend;", 7, 2, None, "no ';' ahead",
    ),
    "dimensions without ;": (nexus(["a ACGT"]).replace("=4;", "=4"), 4, 1, None, "no option 'format'"),
    "format without ;": (nexus(["a ACGT"]).replace("dna ;", "dna"), 4, 1, None, "no option 'matrix'"),
    "no block": ("#NEXUS\n", 2, 1, None, "no block"),
    "matchchar first": (nexus(["a AC.T", "b ACGT"], options="matchchar=."), 6, 1, "a", "MATCHCHAR"),
    "transpose": (nexus(["a ACGT", "b ACGT"], options="transpose"), 4, 1, None, "TRANSPOSE"),
    "datatype": (nexus(["a ACGT"]).replace("dna", "smell"), 4, 1, None, "smell"),
    "symbols": (nexus(["a ACGT"]).replace("nchar=4", "nchar=four"), 3, 25, None, "NCHAR"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_where_and_what_to_do(tmp_path, name):
    text, line, column, taxon, message = ERRORS[name]
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert message in error.message
    assert (error.line, error.column, error.taxon) == (line, column, taxon)
    assert error.file == str(tmp_path / "file") and error.hint


def test_stop_codon_says_where(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, ">a\nATGTTT\n>b\nATG\nTAA\n", datatype="codon")
    assert (caught.value.line, caught.value.column, caught.value.taxon, caught.value.site) == (5, 1, "b", 4)
    with pytest.raises(InputError, match="multiple of three"):
        read(tmp_path, ">a\nATGT\n", datatype="codon")


def test_missing_file_folder_and_damaged_gzip(tmp_path):
    for path in (tmp_path / "absent", tmp_path, "a\0b"):
        with pytest.raises(InputError) as caught:
            read_alignment(path)
        assert caught.value.file == str(path)
    with pytest.raises(InputError, match="gzip"):
        read(tmp_path, gzip.compress(b">a\nACGT\n" * 100)[:-9])


def test_dates_file(tmp_path):
    (tmp_path / "dates").write_text("name\tdate\na\t2001\nb\tsoon\n")
    with pytest.raises(InputError) as caught:
        read_dates(tmp_path / "dates")
    assert (caught.value.file, caught.value.line, caught.value.taxon) == (str(tmp_path / "dates"), 3, "b")


def test_names_that_a_format_cannot_hold(tmp_path):
    alignment = read(tmp_path, nexus(["'a b' ACGT", "a_long_name ACGT"]))
    for write in (write_fasta, write_phylip):
        with pytest.raises(InputError) as caught:
            write(alignment, tmp_path / "out")
        assert caught.value.taxon == "a b"
    write_nexus(alignment, tmp_path / "out")
    assert read_alignment(tmp_path / "out").taxa == alignment.taxa
    with pytest.raises(InputError):
        write_phylip(read(tmp_path, ">a_long_name\nA\n"), tmp_path / "out", strict=True)
    with pytest.raises(InputError):
        write_fasta(read(tmp_path, ">a\nA\n"), tmp_path / "absent" / "out")


def test_sets_need_nexus(tmp_path):
    text = nexus(["a {01}2"], "ntax=1 nchar=2", 'symbols="012"').replace("dna", "standard")
    alignment = read(tmp_path, text)
    write_nexus(alignment, tmp_path / "out")
    again = read_alignment(tmp_path / "out")
    assert np.array_equal(again.codes, alignment.codes) and np.array_equal(
        again.state_sets, alignment.state_sets
    )
    with pytest.raises(InputError) as caught:
        write_fasta(alignment, tmp_path / "out")
    assert caught.value.taxon == "a" and caught.value.site == 1


@pytest.mark.parametrize("symbols", [["home", "away"], "ab[", "αβ", "x>"])
def test_states_that_no_file_can_hold(tmp_path, symbols):
    alignment = alignment_from_states({"a": [symbols[0], symbols[-1]]}, alphabet("custom", symbols=symbols))
    for write in (write_fasta, write_phylip, write_nexus):
        with pytest.raises(InputError, match="has no place"):
            write(alignment, tmp_path / "out")


def test_foreign_blocks_come_back_verbatim(tmp_path):
    from phloem.io.nexus import read_blocks
    from phloem.io.source_text import read_source

    foreign = "begin mrbayes;\n  [note; here]  lset nst=6\n\trates=invgamma;\nend;"
    (tmp_path / "in").write_text(FILES["nexus"] + "\n" + foreign)
    blocks = read_blocks(read_source(tmp_path / "in"))
    write_nexus(
        read_alignment(tmp_path / "in"), tmp_path / "out", tuple(b for b in blocks if b.name != "data")
    )
    assert foreign in (tmp_path / "out").read_text()
    assert letters(read_alignment(tmp_path / "out")) == EXPECTED


@pytest.mark.skipif(not MRBAYES.exists(), reason="Debian's MrBayes examples are not installed")
@pytest.mark.parametrize(
    "name, taxa, sites, kind",
    [
        ("primates", 12, 898, "dna"),
        ("avian_ovomucoids", 89, 88, "protein"),
        ("finch", 4, 16119, "dna"),
        ("replicase", 9, 720, "rna"),
        ("sceloporus", 123, 1606, "dna"),
        ("cynmix", 32, 3246, None),
        ("hymfossil", 114, 5449, None),
    ],
)
def test_mrbayes_examples(name, taxa, sites, kind):
    parts = (
        read_parts(MRBAYES / f"{name}.nex")
        if kind is None
        else {kind: phloem.read_alignment(MRBAYES / f"{name}.nex")}
    )
    assert {part.n_taxa for part in parts.values()} == {taxa}
    assert sum(part.n_sites for part in parts.values()) == sites
    assert all(part.alphabet.kind == key for key, part in parts.items())


@pytest.mark.parametrize(
    "text, message",
    [
        ("2 5\na ACGT\nb ACGT\n", "'a' has 4 characters, the header announces 5"),
        ("2 4\na ACGT\nb ACG\n", "'b' has 3 characters, the header announces 4"),
        ("3 8\na ACGT\nACG\nb ACGTACGT\nc ACGTACGT\n", "'a' has 7 or 16 characters, the header announces 8"),
    ],
)
def test_a_short_phylip_row_is_counted_without_the_next(text, message, tmp_path):
    path = tmp_path / "a.phy"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_alignment(path)


def test_eliminated_characters_are_not_kept_silently(tmp_path):
    path = tmp_path / "a.nex"
    path.write_text(
        "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=4;\neliminate 2;\nmatrix\na ACGT\nb ACGT\n;\nend;\n"
    )
    with pytest.raises(InputError, match="ELIMINATE") as caught:
        read_alignment(path)
    assert caught.value.line == 4


def test_a_genetic_code_without_codons_is_an_error(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGTAA\n>b\nACGTAC\n")
    with pytest.raises(InputError, match="genetic code 2 is chosen, and the data are read as dna"):
        read_alignment(path, genetic_code=2)
    assert read_alignment(path, datatype="codon", genetic_code=2, stop_codons="mask").n_sites == 2


def test_much_ambiguity_does_not_make_nucleotides_a_protein(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGTRYKMACGT\n>b\nACGTRYSWACGT\n")
    assert read_alignment(path).alphabet.kind == "dna"
    path.write_text(">a\nACGTRYKMACGL\n>b\nACGTRYSWACGT\n")
    assert read_alignment(path).alphabet.kind == "protein"


AMBIGUOUS_PHYLIP = "2 12\nTaxA ACGT\nTaxB ACGT\nACGT\nACGT\nACGT\nACGT\n"


def test_a_phylip_file_that_fits_two_layouts_is_refused(tmp_path):
    file = tmp_path / "a.phy"
    file.write_text(AMBIGUOUS_PHYLIP)
    with pytest.raises(InputError, match="fits two layouts, sequential and interleaved") as caught:
        read_alignment(file)
    assert "--phylip-layout" in caught.value.hint
    assert read_alignment(file, phylip_layout="interleaved").taxa == ("TaxA", "TaxB")
    assert read_alignment(file, phylip_layout="sequential").taxa == ("TaxA", "ACGT")
    file.write_text(AMBIGUOUS_PHYLIP.replace("2 12", "2 12 I"))
    assert read_alignment(file).taxa == ("TaxA", "TaxB")


def test_what_is_indented_goes_on(tmp_path):
    file = tmp_path / "a.phy"
    text = "2 12\nTaxA ACGT\n     AAAA ACGT\nTaxB\n     ACGT\n     ACGT\n     ACGT\n"
    file.write_text(text)
    assert read_alignment(file).taxa == ("TaxA", "TaxB")
    file.write_text(text.replace("     ", ""))
    with pytest.raises(InputError, match="fits two layouts"):
        read_alignment(file)


def test_notes_behind_a_phylip_alignment(tmp_path):
    file = tmp_path / "a.phy"
    file.write_text("2 4\na ACGT\nb ACGA\n\nData of Stewart et al. (1987)\n")
    with pytest.warns(InputWarning, match="line 5: what follows the alignment is not read"):
        assert read_alignment(file).taxa == ("a", "b")
    file.write_text("2 4\na ACGT\nb ACGA\nc ACGG\n")
    with pytest.raises(InputError, match="more than 2 taxa"):
        read_alignment(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 4 GC\na ACGT\nb ACGT\n", "goes on with 'GC'"),
        ("2 4\na ACGT\nb ACGT\n\n2 4\na ACGT\nb ACGA\n", "another alignment follows"),
        ("2 4\na ACGT\nb ACGT\n(a,b);\n", "a tree follows"),
    ],
)
def test_what_paml_has_in_an_alignment_file_is_named(tmp_path, text, message):
    file = tmp_path / "a.phy"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_alignment(file)
    assert "PAML" in caught.value.hint


def test_options_of_other_formats_are_refused(tmp_path):
    file = tmp_path / "a.fa"
    file.write_text(">a\nAC\n>b\nAG\n")
    for options in ({"block": "1"}, {"phylip_layout": "sequential"}):
        with pytest.raises(InputError, match="is for"):
            read_alignment(file, **options)


def test_ambiguous_rna_is_no_protein(tmp_path):
    file = tmp_path / "a.fa"
    file.write_text(">a\nAUGRYKMSWBDHVN\n>b\nAUGRYKMSWBDHVN\n")
    assert read_alignment(file).alphabet.kind == "rna"
    file.write_text(">a\nMUGRYKMSWEDHVN\n>b\nMUGRYKMSWEDHVN\n")
    assert read_alignment(file).alphabet.kind == "protein"

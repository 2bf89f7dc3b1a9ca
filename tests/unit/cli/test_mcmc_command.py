"""`phloem mcmc` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.cli import build_app
from phloem.cli.chain_tables import _r_hat
from phloem.errors import InputError
from phloem.io.trees import read_tree

PRIMATES = Path(__file__).resolve().parents[3] / "examples/primates.nex"
SHORT = ["--generations", "6000", "--sample-every", "50", "--check-every", "3000"]
FILES = {"x.run1.p", "x.run1.t", "x.run2.p", "x.run2.t", "x.con.tre", "x.json", "x.ckp.npz"}
FILES |= {"x.mcmc", "x.parts", "x.tstat", "x.vstat"}
FILES |= {"x.ckp.run1.samples", "x.ckp.run2.samples"}


def command(*arguments: str):
    return CliRunner().invoke(build_app(), ["mcmc", str(PRIMATES), *arguments])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcmc")
    return command("--prefix", str(folder / "x"), *SHORT), folder


def test_what_is_printed_fits_a_terminal(finished):
    result, _ = finished
    assert result.exit_code == 0, result.exception
    for line in result.stdout.splitlines():
        assert len(line) <= 80 or str(line).lstrip().startswith("/"), line
    for text in (
        "Majority-rule consensus",
        "Gorilla",
        "alpha",
        "HPD",
        "ESS",
        "R-hat",
        "split frequencies",
        "x.con.tre",
    ):
        assert text in result.stdout


def test_an_r_hat_of_runs_that_never_meet_is_no_number_of_many_digits():
    assert [_r_hat(x) for x in (1.00234, 5.8e15, np.nan)] == ["1.0023", "over 1000", "–"]


def test_files_are_written(finished):
    _, folder = finished
    assert {file.name for file in folder.iterdir()} == FILES
    record = json.loads((folder / "x.json").read_text())
    assert record["finished"] and record["settings"]["chains"]["seed"] == 1
    assert record["provenance"]["files"][str(PRIMATES)]["sha256"]
    assert record["settings"]["device"] == record["provenance"]["engine"]["name"] == "cpu"
    assert "CPU chosen: " in record["provenance"]["engine"]["reason"]
    assert {row["name"] for row in record["parameters"]} >= {"LnL", "TL", "alpha", "r(A<->G)", "pi(T)"}
    assert set(record["acceptance"]) >= {"spr", "tbr", "nni", "branch_multiplier", "alpha_multiplier"}
    tree = read_tree(folder / "x.con.tre")
    assert tree.n_tips == 12 and any("prob" in notes for notes in tree.annotations.values())
    text = (folder / "x.con.tre").read_text()
    assert "[&prob=" in text and text.splitlines()[1] == "[Branch lengths: expected substitutions per site]"
    assert record["branch_lengths"] == "expected substitutions per site"


def test_a_finished_analysis_gets_its_report(finished, tmp_path):
    """The same command with --report: nothing is sampled, one page more."""
    _, folder = finished
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    done = command("--prefix", str(tmp_path / "x"), *SHORT, "--report")
    assert done.exit_code == 0 and "was finished before" in done.stdout
    page = (tmp_path / "x.html").read_text()
    assert page.count("<svg") == 15 and "r(A&lt;-&gt;G)" in page and "phloem mcmc" in page
    assert {file.name for file in tmp_path.iterdir()} == FILES | {"x.html"}
    for file in FILES - {"x.ckp.npz"}:
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), file
    stones = command("--prefix", str(tmp_path / "s"), *SHORT, "--stepping-stone", "2", "--report")
    assert isinstance(stones.exception, InputError) and "--report is about" in str(stones.exception)


def test_nothing_is_overwritten_without_redo(finished):
    _, folder = finished
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    again = command("--prefix", str(folder / "x"), *SHORT)
    assert again.exit_code == 0 and "was finished before" in again.stdout and "HPD" in again.stdout
    for other in (["--burn-in", "0.5"], ["--generations", "5000"]):
        told = command("--prefix", str(folder / "x"), *SHORT, *other)
        assert isinstance(told.exception, InputError) and "is finished" in str(told.exception)
    seed = command("--prefix", str(folder / "x"), *SHORT, "--seed", "7")
    assert isinstance(seed.exception, InputError) and "another seed" in str(seed.exception)
    (folder / "y.run1.p").write_text("mine")
    other = command("--prefix", str(folder / "y"), *SHORT)
    assert isinstance(other.exception, InputError) and "exists already" in str(other.exception)
    (folder / "y.run1.p").unlink()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_redo_replaces_but_not_before_the_input_is_read(finished):
    _, folder = finished
    trace = (folder / "x.run1.p").read_text()
    wrong = command("--prefix", str(folder / "x"), "--redo", "--model", "GTR+X9", *SHORT)
    assert wrong.exception is not None and (folder / "x.run1.p").read_text() == trace
    of_more_runs = [folder / f"x.{name}" for name in ("run3.p", "run3.t", "ckp.run3.samples", "run4.t")]
    for file in of_more_runs:
        file.write_text("of an analysis of four runs, which this one replaces")
    as_start = command("--prefix", str(folder / "x"), "--redo", *SHORT, "--start", str(folder / "x.run3.t"))
    assert "is an input" in str(as_start.exception) and of_more_runs[1].exists()
    assert command("--prefix", str(folder / "x"), "--redo", *SHORT).exit_code == 0
    assert (folder / "x.run1.p").read_text() == trace, "same seed, same numbers"
    assert not any(file.exists() for file in of_more_runs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--generations", "100"], "leave 0 samples"),
        (["--model", "UNREST"], "root"),
        (["--branch-prior", "gamma(1)"], "no prior on branch lengths"),
        (["--runs", "0"], "runs must be"),
        (["--threads", "0"], "threads"),
    ],
)
def test_wrong_settings_are_the_users_errors(arguments, words, tmp_path):
    result = command("--prefix", str(tmp_path / "x"), *arguments)
    assert isinstance(result.exception, InputError) and words in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_too_few_samples_are_told_with_what_would_do(tmp_path):
    few = command("--prefix", str(tmp_path / "x"), "--generations", "2000").exception
    assert isinstance(few, InputError) and "leave 3 samples" in str(few)
    assert few.hint == "Raise --generations, or give --sample-every 100."
    none = command("--prefix", str(tmp_path / "x"), "--generations", "9", "--sample-every", "9").exception
    assert isinstance(none, InputError) and none.hint == "Raise --generations."


def test_the_prior_alone(tmp_path):
    result = command("--prefix", str(tmp_path / "x"), "--prior-only", "--model", "HKY", *SHORT)
    assert result.exit_code == 0 and "samples the prior" in result.stdout
    numbers = (tmp_path / "x.run1.p").read_text().splitlines()[5].split("\t")
    assert float(numbers[1]) == 0.0


def test_a_finished_analysis_goes_on(tmp_path):
    longer = ["--generations", "9000", *SHORT[2:]]
    assert command("--prefix", str(tmp_path / "x"), *SHORT).exit_code == 0
    first = (tmp_path / "x.run1.p").read_text()
    assert command("--prefix", str(tmp_path / "x"), *longer).exit_code == 0
    whole = (tmp_path / "x.run1.p").read_text()
    assert whole.startswith(first) and len(whole.splitlines()) == len(first.splitlines()) + 60
    record = json.loads((tmp_path / "x.json").read_text())
    assert record["resumed_at"] == 6000 and record["settings"]["chains"]["generations"] == 9000
    again = command("--prefix", str(tmp_path / "x"), *longer)
    assert again.exit_code == 0 and "was finished before" in again.stdout


def test_a_converged_analysis_goes_on_from_where_it_ended(tmp_path):
    """What nobody limited ended far before its limit: more generations than it has are an extension."""
    prefix = tmp_path / "x"
    easy = (
        "--least-ess",
        "1",
        "--r-hat",
        "3",
        "--asdsf",
        "1",
        "--sample-every",
        "20",
        "--check-every",
        "2000",
    )
    first = command("--model", "JC", "--prefix", str(prefix), *easy)
    assert first.exit_code == 0, first.exception
    drawn = json.loads(Path(f"{prefix}.json").read_text())["convergence"]["generation"]
    assert 0 < drawn < 100_000 and "all thresholds met" in first.stdout
    again = command("--model", "JC", "--prefix", str(prefix), *easy)
    assert again.exit_code == 0 and "was finished before" in again.stdout
    fewer = command("--model", "JC", "--prefix", str(prefix), "--generations", "400", *easy)
    assert isinstance(fewer.exception, InputError) and f"it has {drawn:,} generations" in str(fewer.exception)
    more = command("--model", "JC", "--prefix", str(prefix), *easy, "--generations", str(drawn + 2000))
    assert more.exit_code == 0 and f"resumed at generation {drawn:,}" in more.stdout, more.exception


def test_a_checkpoint_decides_about_the_device(tmp_path, monkeypatch):
    """What a GPU began is not gone on with elsewhere, under auto either; a device asked for is used."""
    from phloem.analysis import mcmc as analysis
    from phloem.errors import DeviceError
    from phloem.inference.mcmc.checkpoint import FORMAT

    def none_here(why):
        raise DeviceError(f"no GPU, {why}")

    monkeypatch.setattr(analysis, "chains_on_gpu", none_here)
    identity = np.frombuffer(json.dumps({"format": FORMAT, "device": "gpu"}).encode(), np.uint8)
    np.savez(tmp_path / "x.ckp.npz", identity=identity)
    answer = command("--prefix", str(tmp_path / "x"), *SHORT)
    assert isinstance(answer.exception, DeviceError) and "checkpoint was made on one" in str(answer.exception)
    other = command("--prefix", str(tmp_path / "x"), *SHORT, "--device", "cpu")
    assert isinstance(other.exception, InputError) and "device" in str(other.exception)


def test_what_no_gpu_is_asked_about_says_why(tmp_path, monkeypatch):
    from phloem.analysis import mcmc as analysis

    def asked(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(analysis, "select_chains", asked)
    assert command("--prefix", str(tmp_path / "y"), *SHORT, "--prior-only").exit_code == 0
    reason = json.loads((tmp_path / "y.json").read_text())["provenance"]["engine"]["reason"]
    assert "a prior needs no likelihood" in reason
    assert isinstance(command("--prefix", str(tmp_path / "z"), *SHORT).exception, AssertionError)


def test_another_analysis_is_no_extension(tmp_path):
    assert command("--prefix", str(tmp_path / "x"), *SHORT).exit_code == 0
    other = command("--prefix", str(tmp_path / "x"), "--generations", "9000", *SHORT[2:], "--seed", "7")
    assert isinstance(other.exception, InputError) and "seed" in str(other.exception)
    (tmp_path / "x.ckp.npz").unlink()
    gone = command("--prefix", str(tmp_path / "x"), "--generations", "9000", *SHORT[2:])
    assert isinstance(gone.exception, InputError) and "finished" in str(gone.exception)


def test_nothing_is_printed_into_the_bar_of_progress(monkeypatch):
    """The bar is on standard error, and starts when what chains start from has been told."""
    import rich.progress

    from phloem.analysis import mcmc as analysis
    from phloem.cli import mcmc as command_line
    from phloem.errors import NumericalError

    shown = []
    monkeypatch.setattr(rich.progress.Progress, "start", lambda _: shown.append("bar"))
    monkeypatch.setattr(rich.progress.Progress, "stop", lambda _: shown.append("no bar"))
    monkeypatch.setattr(command_line, "_introduce", lambda *_: shown.append("told"))

    def run(settings, progress, started, compiling, measuring, told):
        started("data", "random", "CPU")
        raise NumericalError("stopped")

    monkeypatch.setattr(analysis, "run_mcmc", run)
    with pytest.raises(NumericalError):
        command_line._run(analysis.McmcSettings("a.nex"), None)
    assert shown == ["told", "bar", "no bar"]


BLOCK = """#NEXUS
begin data; dimensions ntax=5 nchar=16; format datatype=mixed(dna:1-12,standard:13-16) gap=-; matrix
a ACGTACGTACGT0110
b ACGTACGAACGA0012
c ACTTACGTAGGT1021
d ACGTAGGTACCT1110
e ACTTACGTACGA0101
; end;
begin mrbayes;
  log start;
  outgroup c; delete d;
  lset applyto=(1) nst=2 rates=gamma;
  mcmcp ngen=2000 samplefreq=50 nruns=1 nchains=2 swapfreq=3 filename=mine;
  mcmc; sumt contype=allcompat;
end;
"""


@pytest.fixture
def block(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.nex").write_text(BLOCK)
    return lambda *words: CliRunner().invoke(build_app(), ["mcmc", "x.nex", *words])


def test_a_block_is_obeyed_and_its_command_stored(block, tmp_path):
    result = block()
    assert result.exit_code == 0, result.exception
    for text in ("as the MRBAYES block of x.nex says", "log: no meaning here", "MK+ASC", "--mrbayes-block"):
        assert text in result.stdout
    record = json.loads((tmp_path / "mine.json").read_text())
    assert record["settings"]["chains"]["swap_every"] == 3 and record["data"]["taxa"] == 4
    assert record["command"].startswith("phloem mcmc x.nex") and "--outgroup c" in record["command"]
    tree = read_tree(tmp_path / "mine.con.tre")
    assert tree.parent[tree.taxa.index("c")] == tree.n_nodes - 1 and "d" not in tree.taxa
    assert record["settings"]["of_block"] == "x.nex"


def test_what_a_dry_run_prints_is_a_settings_file_that_says_the_same(block, tmp_path):
    first = block("--dry-run")
    assert first.exit_code == 0 and not list(tmp_path.glob("mine*"))
    toml = first.stdout.split("The same as a settings file:")[1].strip()
    (tmp_path / "it.toml").write_text(toml + "\n")
    assert toml.startswith('mrbayes_block = "ignore"')
    second = CliRunner().invoke(build_app(), ["mcmc", "--settings", "it.toml", "--dry-run"])
    assert second.exit_code == 0, second.exception
    assert second.stdout.split("The same as a settings file:")[1].strip() == toml


@pytest.mark.parametrize(
    ("options", "words", "told"),
    [
        ([], "until converged", []),
        (["--generations", "3000"], "3,000 generations", ["generations = 3000"]),
        (
            ["--generations", "3000", "--until-converged"],
            "until converged, at most 3,000 generations",
            ["generations = 3000", "until_converged = true"],
        ),
        (["--until-converged"], "until converged", []),
        (["--stepping-stone", "5"], "1,000,000 generations over 5 stepping stones", ["stepping_stone = 5"]),
    ],
)
def test_chains_run_until_converged_unless_told_how_long(tmp_path, options, words, told):
    found = command("--model", "JC", *options, "--dry-run")
    assert found.exit_code == 0, found.exception
    assert f"seed 1, {words} start:" in " ".join(found.stdout.split())
    toml = found.stdout.split("The same as a settings file:")[1]
    assert all(line in toml for line in told)
    assert ("generations" in toml) == ("generations = 3000" in told)
    (tmp_path / "it.toml").write_text(toml)
    again = CliRunner().invoke(build_app(), ["mcmc", "--settings", str(tmp_path / "it.toml"), "--dry-run"])
    assert again.stdout.split("The same as a settings file:")[1].strip() == toml.strip()


def test_an_end_that_nobody_says_is_asked_for(tmp_path):
    (tmp_path / "it.toml").write_text(f'alignment = "{PRIMATES}"\nuntil_converged = false\n')
    found = CliRunner().invoke(build_app(), ["mcmc", "--settings", str(tmp_path / "it.toml"), "--dry-run"])
    assert isinstance(found.exception, InputError) and "says no end" in str(found.exception)


def test_options_stand_before_the_block_and_it_is_told(block):
    told = block("--seed", "4", "--generations", "3000", "--dry-run")
    flat = " ".join(told.stdout.split())
    assert "--generations of the command line stands before line 13 of x.nex" in flat
    assert "generations = 3000" in told.stdout and "seed = 4" in told.stdout
    other = block("--mrbayes-block", "ignore", "--partitions", "declared", "--dry-run")
    assert other.exit_code == 0 and "GTR+FO+G4" in other.stdout and "block:" not in other.stdout
    contradiction = block("--model", "JC", "--dry-run")
    assert isinstance(contradiction.exception, InputError) and "contradicts" in str(contradiction.exception)
    nothing = CliRunner().invoke(build_app(), ["mcmc"])
    assert isinstance(nothing.exception, InputError) and "no alignment" in str(nothing.exception)

"""What the page tells of an analysis from its files."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from web_asgi import ask


def analysis(root, kind: str, file: str, answers: dict) -> str:
    """The folder of one that has ended; its prefix."""
    from phloem.web.jobs import Job

    name = f"x.{kind}-1"
    (root / name).mkdir()
    job = Job(name, kind, file, answers, f"{name}/x", [kind, file], 1.0, 1, 2.0, 3.0, 0)
    (root / name / "page.json").write_text(json.dumps(vars(job)))
    return f"{name}/x"


@pytest.mark.parametrize(
    ("kind", "ending", "answers", "first"),
    [("time", "log", {}, 11), ("mcmc", "p", {}, 25), ("mcmc", "p", {"burn-in": 0}, 11)],
)
def test_samples_of_the_tuning_are_in_no_number(opened, kind, ending, answers, first):
    app, headers, root = opened
    (root / "x.fasta").write_text(">a\nA\n")
    prefix = root / analysis(root, kind, "x.fasta", answers)
    for run in (1, 2):
        rows = "".join(f"{10 * k}\t{-1000.0 if k < first else k % 7 + run}\n" for k in range(101))
        prefix.with_name(f"x.run{run}.{ending}").write_text(f"# phloem\nstate\tLnL\n{rows}")
    prefix.with_name("x.progress.json").write_text('{"tuning": 100}')
    told = json.loads(ask(app, "GET", f"/api/analyses/x.{kind}-1/trace", headers).text)
    assert told["used_from"] == told["means"][0]["x"][0] == 10 * first
    assert told["summary"][0]["hpd_low"] > 0
    record = {"settings": {"chains": {"burn_in": 0.5, "tuning_generations": 100}}}  # as a block may have it
    prefix.with_name("x.json").write_text(json.dumps(record))
    told = json.loads(ask(app, "GET", f"/api/analyses/x.{kind}-1/trace", headers).text)
    assert told["used_from"] == 500


def test_an_archive_has_no_file_that_was_not_analysed(opened):
    from phloem.web.jobs import stamp_of

    app, headers, root = opened
    for name in ("x.fasta", "y.nwk"):
        (root / name).write_text("before")
    prefix = analysis(root, "fit", "x.fasta", {"tree": "y.nwk"})
    page = root / prefix.replace("/x", "/page.json")
    read = {name: stamp_of(root / name) for name in ("x.fasta", "y.nwk")}
    page.write_text(json.dumps(json.loads(page.read_text()) | {"read": read}))
    (root / "x.fasta").write_text("after")
    archive = zipfile.ZipFile(io.BytesIO(ask(app, "GET", "/api/analyses/x.fit-1/zip", headers).body))
    assert archive.read("y.nwk") == b"before" and "x.fasta" not in archive.namelist()
    assert archive.read("missing.txt").startswith(b"x.fasta is another file")
    told = json.loads(ask(app, "GET", "/api/analyses/x.fit-1", headers).text)
    assert told["changed"] == ["x.fasta"]

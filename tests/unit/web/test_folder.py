"""What the page gives out and takes in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from phloem.web.folder import Folder, FolderError
from web_asgi import ask

FASTA = b">a\nACGT\n>b\nACGA\n>c\nACTT\n>d\nGCTT\n"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.fasta",
        "a/../../secret.fasta",
        "/etc/passwd",
        "..",
        "",
        "a//b",
        ".hidden",
        "a/.page",
        "a\\b",
        "a\x00b",
    ],
)
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "secret.fasta").write_bytes(FASTA)
    (root / ".hidden").write_bytes(FASTA)
    with pytest.raises(FolderError) as refused:
        Folder(root, 10).path(name)
    assert refused.value.status == 403


def test_paths_that_lead_out_are_refused_over_http(opened):
    app, headers, root = opened
    (root.parent / "secret.fasta").write_bytes(FASTA)
    (root / "mine.fasta").write_bytes(FASTA)
    for name in ("../secret.fasta", "%2e%2e/secret.fasta", str(root.parent / "secret.fasta")):
        for target in (
            f"/api/files/{name}",
            f"/api/look?file={quote(name)}",
            f"/api/tree?file={quote(name)}",
        ):
            answer = ask(app, "GET", target, headers)
            assert answer.status in (403, 404) and b"ACGT" not in answer.body
    assert ask(app, "GET", "/api/files/mine.fasta", headers).body == FASTA  # the control
    assert ask(app, "GET", "/static/../server.py", headers).status == 404


def test_links_out_of_the_folder_are_refused_and_links_inside_are_not(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "secret.fasta").write_bytes(FASTA)
    (root / "a.fasta").write_bytes(FASTA)
    (root / "out.fasta").symlink_to(tmp_path / "secret.fasta")
    (root / "folder").symlink_to(tmp_path)
    (root / "in.fasta").symlink_to(root / "a.fasta")
    folder = Folder(root.resolve(), 10)
    for name in ("out.fasta", "folder/secret.fasta"):
        with pytest.raises(FolderError, match="outside"):
            folder.path(name)
    assert folder.path("in.fasta") == (root / "a.fasta").resolve()


def test_pipes_and_folders_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.fasta")
    (tmp_path / "sub").mkdir()
    for name in ("pipe.fasta", "sub"):
        with pytest.raises(FolderError, match="no file"):
            Folder(tmp_path.resolve(), 10).path(name)


@pytest.mark.parametrize("announced", [True, False])
def test_a_file_over_the_limit_is_refused_and_leaves_nothing(opened, announced):
    app, headers, root = opened
    length = {"content-length": "1001"} if announced else {}
    refused = ask(app, "PUT", "/api/files/big.fasta", headers | length, [b"A" * 600, b"C" * 401])
    assert refused.status == 413 and "hint" in refused.text
    assert list(root.iterdir()) == []
    assert ask(app, "PUT", "/api/files/fits.fasta", headers, [b"A" * 600, b"C" * 400]).status == 201
    assert (root / "fits.fasta").stat().st_size == 1000


def test_a_length_that_lies_does_not_help(opened):
    app, headers, root = opened
    refused = ask(app, "PUT", "/api/files/x.fasta", headers | {"content-length": "3"}, [b"A" * 2000])
    assert refused.status == 413 and list(root.iterdir()) == []


def test_a_file_is_replaced_only_when_that_is_asked_for(opened):
    app, headers, root = opened
    assert ask(app, "PUT", "/api/files/a.fasta", headers, FASTA).status == 201
    assert ask(app, "PUT", "/api/files/a.fasta", headers, b"other").status == 409
    assert (root / "a.fasta").read_bytes() == FASTA
    assert ask(app, "PUT", "/api/files/a.fasta?replace=yes", headers, b"other").status == 201
    assert (root / "a.fasta").read_bytes() == b"other"


@pytest.mark.parametrize("name", ["../x.fasta", "a/x.fasta", ".x", "-o.fasta", "x" * 300])
def test_names_that_no_upload_may_have(opened, name):
    app, headers, root = opened
    assert ask(app, "PUT", f"/api/files/{name}", headers, FASTA).status == 403
    assert list(root.iterdir()) == [] and not (root.parent / "x.fasta").exists()


def test_an_upload_follows_no_link(opened):
    app, headers, root = opened
    outside: Path = root.parent / "victim.fasta"
    outside.write_bytes(FASTA)
    (root / "link.fasta").symlink_to(outside)
    assert ask(app, "PUT", "/api/files/link.fasta?replace=yes", headers, b"x").status == 403
    assert outside.read_bytes() == FASTA


def test_what_is_listed(opened):
    app, headers, root = opened
    for name in ("a.fasta", "b.nwk", "c.nex.gz", "p.partitions", "notes.md", ".secret.fasta"):
        (root / name).write_bytes(FASTA)
    listed = json.loads(ask(app, "GET", "/api/folder", headers).text)["files"]
    names = {one["name"]: one["kind"] for one in listed}
    wanted = {"a.fasta": "alignment", "b.nwk": "tree", "c.nex.gz": "alignment", "p.partitions": "partitions"}
    assert names == wanted


def test_downloads_are_never_shown_as_pages(opened):
    app, headers, root = opened
    (root / "page.nex").write_text("<script>alert(1)</script>")
    answer = ask(app, "GET", "/api/files/page.nex", headers)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_example_data_come_into_the_folder_once(opened):
    app, headers, root = opened
    assert ask(app, "POST", "/api/examples", headers).status == 201
    assert "primates.nex" in {file.name for file in root.iterdir()}
    again = ask(app, "POST", "/api/examples", headers)
    assert again.status == 422 and "exists already" in again.text


def test_a_file_called_as_an_option_or_standard_input_is_a_file(opened):
    app, headers, root = opened
    for name in ("-", "--help"):
        (root / f"{name}.fasta").write_bytes(FASTA)
        found = ask(app, "GET", f"/api/look?file={quote(name)}.fasta", headers)
        assert found.status == 200 and json.loads(found.text)["taxa"] == 4
    (root / "-").write_bytes(FASTA)
    assert ask(app, "GET", "/api/look?file=-", headers).status == 200
    planned = ask(app, "GET", "/api/quick-tree?file=--help.fasta", headers)
    assert json.loads(planned.text)["command"] == "phloem nj ./--help.fasta"


def test_the_table_of_dates_is_made_once(opened):
    app, headers, root = opened
    body = b'{"file": "a.b.fasta"}'
    (root / "a.b.fasta").write_text(">a_2001\nACGT\n>b_2003\nACGA\n")
    for _ in range(2):  # one that says the same is kept
        made = ask(app, "POST", "/api/dates-of-names", headers, body)
        assert made.status == 201 and json.loads(made.text) == {"name": "a.b.dates.tsv"}
    assert (
        root / "a.b.dates.tsv"
    ).read_text() == "name\tearliest\tlatest\na_2001\t2001\t2001\nb_2003\t2003\t2003\n"
    (root / "a.b.dates.tsv").write_text("mine")
    for _ in range(2):
        made = ask(app, "POST", "/api/dates-of-names", headers, body)
        assert made.status == 201 and json.loads(made.text) == {"name": "a.b.dates-2.tsv"}
    assert (root / "a.b.dates.tsv").read_text() == "mine"
    assert (root / "a.b.dates-2.tsv").read_text().startswith("name\tearliest")
    outside = root.parent / "mine.tsv"
    outside.write_text("mine")
    (root / "a.b.dates.tsv").unlink()
    (root / "a.b.dates-2.tsv").unlink()
    (root / "a.b.dates.tsv").symlink_to(outside)
    (root / "a.b.dates-2.tsv").symlink_to(root.parent / "nowhere.tsv")
    made = ask(app, "POST", "/api/dates-of-names", headers, body)
    assert json.loads(made.text) == {"name": "a.b.dates-3.tsv"}
    assert outside.read_text() == "mine" and not (root.parent / "nowhere.tsv").exists()


def test_new_questions_about_files_stay_inside_too(opened):
    app, headers, root = opened
    (root.parent / "d.tsv").write_text("a\t2001\n")
    (root / "a.fasta").write_bytes(FASTA)
    for target in ("quick-signal?file=../d.tsv", "quick-signal?file=a.fasta&dates=../d.tsv"):
        assert ask(app, "GET", f"/api/{target}", headers).status == 403
    asked = {"kind": "time", "file": "a.fasta", "answers": {"dates": "../d.tsv"}}
    assert ask(app, "POST", "/api/command", headers, json.dumps(asked).encode()).status == 403
    fit = {"kind": "fit", "file": "a.fasta", "answers": {"model": "JC", "partitions": "declared"}}
    assert ask(app, "POST", "/api/command", headers, json.dumps(fit).encode()).status == 200
    fit["answers"]["partitions"] = "../d.tsv"
    assert ask(app, "POST", "/api/command", headers, json.dumps(fit).encode()).status == 403

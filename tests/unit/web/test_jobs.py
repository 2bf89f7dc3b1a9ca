"""Analyses are processes of their own: they outlive the page, are found again, stopped and gone on with."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest

from phloem.errors import InputError
from phloem.web.jobs import Jobs, told

# Stands in for phloem: works until a file "go" is there, then does as it says.
PROGRAM = """
import pathlib, sys, time
words = sys.argv[1:]
print("at work", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.01)
if pathlib.Path("go").read_text() == "fail":
    sys.exit("error: no such luck")
prefix = words[words.index("--prefix") + 1]
pathlib.Path(prefix + ".json").write_text("{}")
"""


def jobs_of(root, at_once=1) -> Jobs:
    return Jobs(root, at_once, (sys.executable, "-c", PROGRAM))


def wait_for(found, seconds=300.0):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.02)


def state(jobs, name):
    return jobs.state(jobs.job(name))


@pytest.fixture
def root(tmp_path):
    yield tmp_path
    if not (tmp_path / "go").exists():
        (tmp_path / "go").write_text("end")  # whatever is left ends


def test_an_analysis_runs_and_ends(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {"seed": "3"})
    assert job.id == "data.mcmc-1" and state(jobs, job.id) == "running"
    wait_for(lambda: "at work" in jobs.log(jobs.job(job.id)))
    assert jobs.log(job).startswith(f"$ {job.command}\n")
    (root / "go").write_text("end")
    wait_for(lambda: state(jobs, job.id) != "running")
    assert state(jobs, job.id) == "finished"
    assert told(jobs, jobs.job(job.id))["record"] == "data.mcmc-1/data.json"


def test_a_failure_is_told(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {})
    (root / "go").write_text("fail")
    wait_for(lambda: state(jobs, job.id) != "running")
    assert state(jobs, job.id) == "failed" and "no such luck" in jobs.log(jobs.job(job.id))


def test_it_outlives_the_page_and_is_found_again(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {})
    later = jobs_of(root)  # as after a restart of the page: it knows only the folder
    assert state(later, job.id) == "running"
    with pytest.raises(InputError, match="runs or waits"):
        later.go_on(job.id)
    os.kill(jobs.job(job.id).pid, signal.SIGKILL)
    wait_for(lambda: state(later, job.id) != "running")
    record = root / job.id / "page.json"
    wait_for(lambda: json.loads(record.read_text())["status"] is not None)
    forgotten = json.loads(record.read_text()) | {"status": None, "ended": None}  # nobody saw the end
    record.write_text(json.dumps(forgotten))
    assert state(later, job.id) == "interrupted"
    record.write_text(json.dumps(forgotten | {"status": 143}))  # phloem's own, when the machine shuts down
    assert state(later, job.id) == "interrupted"
    (root / "go").write_text("end")
    assert later.go_on(job.id).words == job.words  # the very same command
    wait_for(lambda: state(later, job.id) == "finished")


def test_the_end_that_nobody_saw_is_read_from_the_files(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {})
    (root / "go").write_text("end")
    wait_for(lambda: state(jobs, job.id) == "finished")
    record = root / job.id / "page.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": None}))
    assert state(jobs_of(root), job.id) == "finished"
    (root / job.record).unlink()  # the control: without the record it is not
    assert state(jobs_of(root), job.id) == "interrupted"


def test_stop_and_go_on(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {})
    jobs.stop(job.id)
    wait_for(lambda: state(jobs, job.id) == "stopped")
    (root / "go").write_text("end")
    jobs.go_on(job.id)
    wait_for(lambda: state(jobs, job.id) == "finished")


def test_a_finished_analysis_goes_on_with_more(root):
    jobs = jobs_of(root)
    job = jobs.create("mcmc", "data.nex", {"generations": "5000"})
    (root / "go").write_text("end")
    wait_for(lambda: state(jobs, job.id) == "finished")
    more = jobs.go_on(job.id, generations="9000")
    assert more.words[more.words.index("--generations") + 1] == "9000" and "--redo" not in more.words
    wait_for(lambda: state(jobs, job.id) == "finished")
    for wrong in ("many", "1.5", "--redo"):
        with pytest.raises(InputError):
            jobs.go_on(job.id, generations=wrong)
    assert state(jobs, job.id) == "finished"


def test_what_has_no_checkpoint_starts_anew(root):
    jobs = jobs_of(root)
    first = jobs.create("nj", "data.nex", {})
    jobs.stop(first.id)
    wait_for(lambda: state(jobs, first.id) == "stopped")
    assert "--redo" in jobs.go_on(first.id).words and "--redo" not in first.words
    jobs.stop(first.id)


def test_an_input_that_is_another_file_now_is_told(root):
    (root / "a.fasta").write_text(">a\nA\n")
    (root / "go").write_text("end")
    jobs = jobs_of(root)
    name = jobs.create("mcmc", "a.fasta", {}).id
    wait_for(lambda: state(jobs, name) == "finished")
    os.utime(root / "a.fasta")
    assert jobs.changed(jobs.job(name)) == []  # the same, written anew
    (root / "a.fasta").write_text(">a\nC\n")
    assert jobs.changed(jobs.job(name)) == ["a.fasta"]
    jobs.go_on(name, generations="9")  # which keeps what its checkpoint is of
    wait_for(lambda: state(jobs, name) == "finished")
    assert jobs.changed(jobs.job(name)) == ["a.fasta"]
    jobs.go_on(name, anew=True)
    wait_for(lambda: state(jobs, name) == "finished")
    assert jobs.changed(jobs.job(name)) == []


def test_one_waits_for_the_other(root):
    jobs = jobs_of(root)
    first, second, third = (jobs.create("mcmc", "data.nex", {}) for _ in range(3))
    assert [state(jobs, job.id) for job in (first, second, third)] == ["running", "waiting", "waiting"]
    assert [told(jobs, jobs.job(job.id))["ahead"] for job in (first, second, third)] == [0, 1, 2]
    jobs.stop(second.id)
    (root / "go").write_text("end")
    wait_for(lambda: state(jobs, third.id) == "finished")
    assert state(jobs, second.id) == "stopped"
    assert len({first.id, second.id, third.id}) == 3


def test_a_page_that_starts_begins_with_what_waits(root):
    jobs = jobs_of(root, at_once=0)
    job = jobs.create("mcmc", "data.nex", {})
    assert state(jobs, job.id) == "waiting"
    (root / "go").write_text("end")
    jobs_of(root).start_waiting()
    wait_for(lambda: state(jobs, job.id) == "finished")


@pytest.mark.parametrize("name", ["../x", "nothing", ".x", "a/b", "other"])
def test_other_folders_are_no_analyses(root, name):
    (root / "other").mkdir()
    (root / "other" / "page.json").write_text('{"id": "else"}')
    with pytest.raises(InputError):
        jobs_of(root).job(name)
    assert jobs_of(root).all() == []


def test_names_of_files_make_plain_folders(root):
    jobs = jobs_of(root, at_once=0)
    assert jobs.create("nj", "my data; rm *.fasta.gz", {}).id == "my_data_rm.nj-1"
    assert jobs.create("nj", "..fasta", {}).id == "data.nj-1"
    assert jobs.create("nj", "ä.fasta", {}).id == "data.nj-2"


def test_stepping_stones_have_a_record_of_their_own(root):
    jobs = jobs_of(root, at_once=0)
    assert jobs.create("mcmc", "a.nex", {"stepping-stone": "50"}).record == "a.mcmc-1/a.ss.json"
    assert jobs.create("mcmc", "a.nex", {"stepping-stone": ""}).record == "a.mcmc-2/a.json"


def test_inputs_are_all_files_that_are_read(root):
    jobs = jobs_of(root, at_once=0)
    assert jobs.create("fit", "a.nex", {"tree": "t.nwk", "model": "JC"}).inputs == ["a.nex", "t.nwk"]
    declared = {"partitions": "declared", "model": "JC"}
    assert jobs.create("fit", "a.nex", declared).inputs == ["a.nex"]

"""Analyses as folders: each holds what was asked, its log and its files, and outlives the page.

An analysis is a process of its own that runs the very command line the page shows. `page.json` says which; a
lock that the process inherits says, also to a page that was started later, whether it still runs. Nothing
else is remembered: what has come of it is read from its files.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from phloem.analysis.outputs import write_file
from phloem.errors import InputError
from phloem.web.command import Answer, Kind, arguments, shown
from phloem.web.kinds import BY_NAME

RECORD, LOG, LOCK = "page.json", "log.txt", "page.lock"
State = Literal["waiting", "running", "finished", "stopped", "failed", "interrupted"]
_BY_SIGNALS = 129, 130, 143  # exit statuses of a command that SIGHUP, SIGINT or SIGTERM ended
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Job:
    """One analysis. id: its folder's name. prefix: of its files, relative to the root. words: the command
    line without `phloem`. pid, started: of the last start, None before it. status: of the exit, None where
    the page was not there to see it. stopped: by the user. read: of every input what it was (`stamp_of`) when
    its files were begun."""

    id: str
    kind: str
    file: str
    answers: dict[str, Answer]
    prefix: str
    words: list[str]
    created: float
    pid: int | None = None
    started: float | None = None
    ended: float | None = None
    status: int | None = None
    stopped: bool = False
    read: dict[str, list] = field(default_factory=dict)

    @property
    def of(self) -> Kind:
        return BY_NAME[self.kind]

    @property
    def inputs(self) -> list[str]:
        """Files that it reads, relative to the root."""
        asked = [(q, str(self.answers.get(q.option) or "")) for q in self.of.questions if q.kind == "file"]
        return [self.file, *(name for q, name in asked if name and name not in dict(q.choices))]

    @property
    def command(self) -> str:
        return shown(self.words)

    @property
    def tree(self) -> str:
        return self.prefix + self.of.tree

    @property
    def record(self) -> str:
        return self.prefix + (".ss.json" if self.answers.get("stepping-stone") else self.of.record)


@dataclass
class Jobs:
    """All analyses of a folder. at_once: how many run side by side, others wait. program: it runs phloem."""

    root: Path
    at_once: int = 1
    program: tuple[str, ...] = (sys.executable, "-m", "phloem")
    _guard: threading.RLock = field(default_factory=threading.RLock)
    _awaited: set[str] = field(default_factory=set)

    def create(self, kind: str, file: str, answers: dict[str, Answer]) -> Job:
        """A new analysis, which waits for its turn. InputError for answers that make no command."""
        if kind not in BY_NAME:
            raise InputError(f"there is no analysis '{kind}'", hint="Reload the page.")
        with self._guard:
            name, prefix = self.place(kind, file)
            words = arguments(BY_NAME[kind], file, answers, prefix)
            os.mkdir(self.root / name)
            job = Job(name, kind, file, answers, prefix, words, time.time())
            self._save(job)
            self.start_waiting()
            return self.job(name)

    def place(self, kind: str, file: str) -> tuple[str, str]:
        """The folder of the next analysis of a file, and the prefix of what it will write."""
        stem = Path(file).name.removesuffix(".gz").rsplit(".", 1)[0]
        stem = _UNSAFE.sub("_", stem).strip("._-") or "data"
        number = 1
        while os.path.lexists(self.root / f"{stem}.{kind}-{number}"):
            number += 1
        return f"{stem}.{kind}-{number}", f"{stem}.{kind}-{number}/{stem}"

    def job(self, name: str) -> Job:
        """InputError where there is none."""
        if "/" in name or name.startswith("."):
            raise InputError("there is no such analysis")
        try:
            told = json.loads((self.root / name / RECORD).read_text(encoding="utf-8"))
            job = Job(**told)
            known = job.id == name and job.kind in BY_NAME
        except (OSError, ValueError, TypeError):
            known = False
        if not known:
            raise InputError(f"there is no analysis '{name}'", hint="Look at the list again.")
        return job

    def all(self) -> list[Job]:
        """The newest first; folders that are no analyses are left out."""
        found = []
        for path in self.root.glob(f"*/{RECORD}"):
            try:
                found.append(self.job(path.parent.name))
            except InputError:
                continue
        return sorted(found, key=lambda job: -job.created)

    def state(self, job: Job) -> State:
        """What has become of it, by its lock and its files."""
        if job.started is None:
            return "stopped" if job.stopped else "waiting"
        if self._runs(job):
            return "running"
        if job.status == 0 or (job.status is None and self._is_newer(job.record, job.started)):
            return "finished"
        if job.stopped:
            return "stopped"
        if job.status in _BY_SIGNALS:
            return "interrupted"
        return "failed" if (job.status or 0) > 0 or "\nerror: " in f"\n{self.log(job)}" else "interrupted"

    def changed(self, job: Job) -> list[str]:
        """Inputs that are no longer what the analysis has read."""
        return [name for name, then in job.read.items() if not _is_still(self.root / name, then)]

    def ahead(self, job: Job) -> int:
        """How many have their turn before one that waits."""
        others = (one for one in self.all() if one.created < job.created)
        return sum(self.state(one) in ("running", "waiting") for one in others)

    def start_waiting(self) -> None:
        """Start what waits, the oldest first, as far as there is room."""
        with self._guard:
            jobs = [(job, self.state(job)) for job in reversed(self.all())]
            room = self.at_once - sum(state == "running" for _, state in jobs)
            for job in [job for job, state in jobs if state == "waiting"][: max(room, 0)]:
                self._start(job)

    def go_on(self, name: str, anew: bool = False, generations: str | None = None) -> Job:
        """The same command again, which goes on from its checkpoint if it has any; anew: with --redo.
        generations: instead of those asked for before."""
        with self._guard:
            job = self.job(name)
            if self.state(job) in ("running", "waiting"):
                raise InputError("this analysis runs or waits already", hint="Stop it first.")
            answers = job.answers | ({} if generations is None else {"generations": generations})
            words = arguments(job.of, job.file, answers, job.prefix, redo=anew or not job.of.resumes)
            read = {} if anew or not job.of.resumes else job.read
            fresh = replace(job, started=None, ended=None, status=None, stopped=False, read=read)
            self._save(replace(fresh, words=words, answers=answers))
            self.start_waiting()
            return self.job(name)

    def stop(self, name: str) -> Job:
        """End its process; checkpoints are whole at any moment, so that it can go on later."""
        with self._guard:
            job = replace(self.job(name), stopped=True)
            running = self._runs(job)
            self._save(job)
            if running and job.pid is not None:
                os.kill(job.pid, signal.SIGTERM)
            return job

    def log(self, job: Job, most: int = 20_000) -> str:
        """The end of what the command printed."""
        try:
            with open(self.root / job.id / LOG, "rb") as stream:
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
                return stream.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def _start(self, job: Job) -> None:
        folder = self.root / job.id
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another page on this folder was faster
                return
            os.write(log, f"$ {job.command}\n".encode())
            there = [name for name in job.inputs if (self.root / name).is_file()]
            read = job.read or {name: stamp_of(self.root / name) for name in there}
            started = time.time()
            process = subprocess.Popen(
                [*self.program, *job.words], cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=(lock,), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(lock)
            os.close(log)
        self._awaited.add(job.id)
        self._save(replace(job, pid=process.pid, started=started, read=read))
        threading.Thread(target=self._await, args=(job.id, process), daemon=True).start()

    def _await(self, name: str, process: subprocess.Popen) -> None:
        """Note the exit status, and give the place to the next."""
        status = process.wait()
        with self._guard:
            job = self.job(name)
            if job.pid == process.pid:
                self._save(replace(job, status=status, ended=time.time()))
            self._awaited.discard(name)
            self.start_waiting()

    def _runs(self, job: Job) -> bool:
        """Whether a process still holds the lock that its start took, or has just ended."""
        with self._guard:  # two looks at once would see each other's lock
            if job.id in self._awaited:
                return True
            try:
                lock = os.open(self.root / job.id / LOCK, os.O_RDWR)
            except OSError:
                return False
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                return True
            finally:
                os.close(lock)

    def _is_newer(self, name: str, moment: float) -> bool:
        try:
            return (self.root / name).stat().st_mtime >= moment - 1
        except OSError:
            return False

    def _save(self, job: Job) -> None:
        write_file(self.root / job.id / RECORD, json.dumps(asdict(job), indent=1) + "\n")


def stamp_of(path: Path) -> list:
    """What a file is: nanoseconds of its last change, bytes, and what they are."""
    about = path.stat()
    with path.open("rb") as stream:
        return [about.st_mtime_ns, about.st_size, hashlib.file_digest(stream, "sha256").hexdigest()]


def _is_still(path: Path, then: list) -> bool:
    """Whether a file has the bytes it had; read only where its time is another."""
    try:
        about = path.stat()
        return [about.st_mtime_ns, about.st_size] == then[:2] or stamp_of(path)[2] == then[2]
    except OSError:
        return False


def told(jobs: Jobs, job: Job) -> dict[str, Any]:
    """What the page is told of an analysis."""
    files = sorted(
        f"{job.id}/{path.name}" for path in (jobs.root / job.id).iterdir()
        if path.is_file() and path.name not in (RECORD, LOCK) and not path.name.endswith(".part")
    )  # fmt: skip
    state = jobs.state(job)
    return {
        "id": job.id,
        "kind": job.kind,
        "title": job.of.title,
        "file": job.file,
        "answers": job.answers,
        "command": job.command,
        "state": state,
        "ahead": jobs.ahead(job) if state == "waiting" else 0,
        "resumes": job.of.resumes,
        "samples": job.of.samples,
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "files": files,
        "tree": next((name for name in (job.tree, f"{job.prefix}.mcc.tre") if name in files), None),
        "record": job.record if job.record in files else None,
    }

"""What the page asks the server for. Every answer is JSON, a file, or one of the page's own scripts."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from phloem import __version__
from phloem.errors import InputError
from phloem.web.command import arguments, plain_file, shown, words_of
from phloem.web.folder import Folder
from phloem.web.jobs import Job, Jobs, told
from phloem.web.kinds import BY_NAME, KINDS
from phloem.web.looking import Looking, body_of, explained

STATIC = Path(__file__).parent / "static"
PLAN_SECONDS = 300.0
PLANNED = {  # options of plan too
    "datatype", "genetic-code", "sites", "partitions", "partition-name", "distance", "device",
}  # fmt: skip
ROWS_OF = {
    "--optimize": "likelihood ml",
    "phloem mcmc": "mcmc",
    "engine": "likelihood ml",
    "why": "likelihood ml nj upgma",
}
STONES = ("*.ss.json", "*/*.ss.json")  # records of stepping stones
PILOT_SECONDS = "20"
TRACE_POINTS = 1200
_OF_TABLES = "┌├└│|┏┃┡"  # what a line of a printed table begins with
MISSING_INPUT = "{} is another file now than the one that was analysed, and is not here.\n"
CITATION = (
    f"phloem {__version__}: statistical phylogenetics on many-core hardware. https://pypi.org/project/phloem/"
)


@dataclass(frozen=True)
class Page:
    """The folder and the analyses that the requests are about."""

    folder: Folder
    jobs: Jobs

    def routes(self) -> list[Route | Mount]:
        get, change, looking = ["GET"], ["POST"], Looking(self.folder)
        api = {
            "folder": (self.listing, get),
            "look": (looking.look, get),
            "overview": (looking.overview, get),
            "quick-tree": (looking.quick_tree, get),
            "quick-signal": (looking.quick_signal, get),
            "dates-of-names": (looking.dates_of_names, change),
            "examples": (self.examples, change),
            "kinds": (self.kinds, get),
            "command": (self.command, change),
            "plan": (self.plan, change),
            "analyses": (self.create, change),
            "analyses/{id}": (self.analysis, get),
            "analyses/{id}/trace": (self.trace, get),
            "analyses/{id}/zip": (self.zipped, get),
            "analyses/{id}/stop": (self.stop, change),
            "analyses/{id}/go-on": (self.go_on, change),
            "tree": (looking.tree, get),
            "compare": (looking.compare, get),
            "export": (looking.export, get),
            "pdf": (looking.pdf, change),
            "bayes-factors": (self.bayes_factors, get),
            "record": (looking.record, get),
        }
        routes: list[Route | Mount] = [
            Route(f"/api/{path}", explained(answer), methods=methods)
            for path, (answer, methods) in api.items()
        ]
        return [
            Route("/", _index, methods=get),
            *routes,
            Route("/api/files/{name:path}", explained(self.download), methods=get),
            Route("/api/files/{name:path}", explained(self.upload), methods=["PUT"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def listing(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            self.jobs.start_waiting()
            return {
                "folder": str(self.folder.root),
                "files": [asdict(one) for one in self.folder.listed()],
                "analyses": [self._told(job) for job in self.jobs.all()],
                "most_upload": self.folder.most_upload,
                "version": __version__,
            }

        return JSONResponse(await run_in_threadpool(found))

    async def upload(self, request: Request) -> Response:
        length = request.headers.get("content-length", "")
        announced = int(length) if length.isdecimal() else None
        redo = request.query_params.get("replace") == "yes"
        await self.folder.store(request.path_params["name"], request.stream(), announced, redo)
        return JSONResponse({"name": request.path_params["name"]}, 201)

    async def download(self, request: Request) -> Response:
        path = self.folder.path(request.path_params["name"])
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def examples(self, request: Request) -> Response:
        """The example data, written to the folder."""

        def written() -> list[str]:
            from phloem.analysis.examples import write_examples

            return [Path(name).name for name in write_examples(str(self.folder.root))]

        return JSONResponse(await run_in_threadpool(written), 201)

    async def kinds(self, request: Request) -> Response:
        return JSONResponse([asdict(kind) for kind in KINDS])

    async def command(self, request: Request) -> Response:
        kind, file, answers = self._asked(await body_of(request))
        words = arguments(kind, file, answers, self.jobs.place(kind.name, file)[1])
        return JSONResponse({"command": shown(words)})

    async def plan(self, request: Request) -> Response:
        """The forecast of `phloem plan` for what is asked; with "pilot", what the very analysis says after
        sampling for some seconds. Either ends when the request does."""
        asked = await body_of(request)
        kind, file, answers = self._asked(asked)
        words = ["plan", plain_file(file)]
        if asked.get("pilot"):
            if kind.command not in ("mcmc", "time"):
                raise InputError(f"{kind.title} has no pilot")
            words = [*arguments(replace(kind, outputs=()), file, answers, ""), "--pilot", PILOT_SECONDS]
        elif kind.command in ("nj", "upgma"):
            words += ["--method", kind.command, "--bootstrap", str(answers.get("bootstrap") or 0)]
        elif "model" in {q.option for q in kind.questions}:
            usual = str(asked.get("usual_model", "MK+G4"))
            usual = "" if answers.get("partitions") else usual  # parts have each their own
            model = str(answers.get("model") or usual)
            model = usual if model == "auto" else model
            words += ["--model", model] if model else []
        else:
            raise InputError(f"{kind.title} takes seconds and has no forecast")
        planned = () if asked.get("pilot") else PLANNED | ({"tree"} if kind.name == "fit" else set())
        for question in kind.questions:
            if question.option in planned and (answer := answers.get(question.option)):
                words += words_of(question, answer)
        output = await Looking(self.folder).called_while_wanted(request, words, PLAN_SECONDS)
        rows = [row for row in _table_rows(output) if kind.command in ROWS_OF.get(row[0], kind.command)]
        return JSONResponse({"rows": rows, "note": _beside(output), "command": shown(words)})

    async def bayes_factors(self, request: Request) -> Response:
        """Models compared, for all data of which there are finished stepping-stone analyses."""

        def found() -> dict[str, Any]:
            from phloem.analysis.stones import bayes_factors, of_same_data

            job_of = {job.record: job for job in self.jobs.all()}
            done = {name for name, job in job_of.items() if self.jobs.state(job) == "finished"}
            root = self.folder.root
            there = sorted(p.relative_to(root).as_posix() for form in STONES for p in root.glob(form))
            wanted = [name for name in there if name in done or name not in job_of]
            groups = []
            for files in of_same_data([name for name in wanted if self.folder.has(name)]):
                models = [asdict(one) for one in bayes_factors(files)] if len(files) > 1 else []
                for one in models:
                    one["analysis"] = job_of[one["file"]].id if one["file"] in job_of else None
                words = ["bayes-factors", *map(plain_file, files)]
                groups.append({"files": files, "models": models, "command": shown(words)})
            return {"groups": groups}

        return JSONResponse(await run_in_threadpool(found))

    async def create(self, request: Request) -> Response:
        kind, file, answers = self._asked(await body_of(request))
        job = await run_in_threadpool(self.jobs.create, kind.name, file, answers)
        return JSONResponse(told(self.jobs, job), 201)

    async def analysis(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            self.jobs.start_waiting()
            job = self.jobs.job(request.path_params["id"])
            return self._told(job) | {"log": self.jobs.log(job), "changed": self.jobs.changed(job)}

        return JSONResponse(await run_in_threadpool(found))

    async def stop(self, request: Request) -> Response:
        job = await run_in_threadpool(self.jobs.stop, request.path_params["id"])
        return JSONResponse(told(self.jobs, job))

    async def go_on(self, request: Request) -> Response:
        asked = await body_of(request)
        more = None if asked.get("generations") is None else str(asked["generations"])
        name, anew = request.path_params["id"], bool(asked.get("anew"))
        job = await run_in_threadpool(self.jobs.go_on, name, anew, more)
        return JSONResponse(told(self.jobs, job))

    async def trace(self, request: Request) -> Response:
        job = self.jobs.job(request.path_params["id"])
        column = request.query_params.get("column", "0")

        def found() -> dict[str, Any] | None:
            from phloem.analysis.trace_view import (
                first_used,
                read_traces,
                running_means,
                running_summary,
                thinned_trace,
            )

            traces = read_traces(str(self.folder.root / job.prefix))
            if traces is None:
                return None
            which = min(int(column), len(traces.names) - 1) if column.isdecimal() else 0
            left_out = self._left_out(job)
            used = traces.generations[0][first_used(traces.generations[0], *left_out) :]
            return {
                "names": traces.names,
                "column": which,
                "runs": thinned_trace(traces, which, TRACE_POINTS),
                "means": running_means(traces, which, left_out[0], TRACE_POINTS, left_out[1]),
                "used_from": float(used[0]) if len(used) else None,
                "summary": running_summary(traces, *left_out),
            }

        return JSONResponse(await run_in_threadpool(found))

    async def zipped(self, request: Request) -> Response:
        """All files of an analysis with its input, the command that does it again, and what to cite. An input
        that is another one now is not among them, but a note of it."""
        job = self.jobs.job(request.path_params["id"])

        def packed() -> bytes:
            buffer, changed = io.BytesIO(), self.jobs.changed(job)
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in dict.fromkeys([*told(self.jobs, job)["files"], *job.inputs]):
                    if name not in changed:
                        archive.write(self.folder.path(name), name)
                if changed:
                    archive.writestr("missing.txt", "".join(map(MISSING_INPUT.format, changed)))
                archive.writestr("command.txt", f"{job.command}\n")
                archive.writestr("citation.txt", f"{CITATION}\n")
            return buffer.getvalue()

        head = {"content-disposition": f'attachment; filename="{job.id}.zip"'}
        return Response(await run_in_threadpool(packed), media_type="application/zip", headers=head)

    def _asked(self, asked: dict[str, Any]):
        """(kind, file, answers) of a request, whose files may be read."""
        kind = BY_NAME.get(str(asked.get("kind")))
        answers = asked.get("answers")
        if kind is None or not isinstance(answers, dict):
            raise InputError("there is no such analysis", hint="Reload the page.")
        file = str(asked.get("file", ""))
        self.folder.path(file)
        for question in kind.questions:
            answer = answers.get(question.option)
            if question.kind == "file" and answer and answer not in dict(question.choices):
                self.folder.path(str(answer))
        return kind, file, answers

    def _told(self, job: Job) -> dict[str, Any]:
        """With how far it is since it was started."""
        file = self.folder.root / f"{job.prefix}.progress.json"
        fresh = job.started is not None and file.exists() and file.stat().st_mtime >= job.started
        return told(self.jobs, job) | {"progress": self._progress(job) if fresh else None}

    def _left_out(self, job: Job) -> tuple[float, int]:
        """The share of the samples, and the last generation, that the summaries of a sampler leave out."""
        from phloem.analysis.draws import left_out

        if self.jobs.state(job) == "finished" and not job.answers.get("stepping-stone"):
            with suppress(InputError):  # a record without them
                return left_out(str(self.folder.root / job.prefix))
        return _burn_in(job), int((self._progress(job) or {}).get("tuning", -1))

    def _progress(self, job: Job) -> dict[str, Any] | None:
        """As it was last told."""
        try:
            return json.loads((self.folder.root / f"{job.prefix}.progress.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def _burn_in(job: Job) -> float:
    answer = job.answers.get("burn-in")
    return job.of.burn_in if answer in (None, "") else float(answer)


async def _index(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html")


def _table_rows(text: str) -> list[tuple[str, str]]:
    """The rows of a printed table of two columns; a row without a first cell goes on with the one above."""
    rows: list[tuple[str, str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("│|").split("│")]
        if line[:1] not in "│|" or len(cells) != 2:
            continue
        if cells[0] or not rows:
            rows.append((cells[0], cells[1]))
        else:
            rows[-1] = rows[-1][0], f"{rows[-1][1]} {cells[1]}"
    return rows


def _beside(text: str) -> str:
    """What is printed beside tables."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip() and line[:1] not in _OF_TABLES)

"""What the page asks the server for. Every answer is JSON, a file, or one of the page's own scripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from phloem import __version__
from phloem.errors import InputError, PhloemError
from phloem.web.command import arguments, plain_file, shown
from phloem.web.folder import Folder, FolderError
from phloem.web.jobs import Jobs, told
from phloem.web.kinds import BY_NAME, KINDS

STATIC = Path(__file__).parent / "static"
MOST_JSON = 1 << 20  # bytes of a request
QUICK_TREE_SECONDS = 120.0
PLAN_SECONDS = 300.0
OVERVIEW = (400, 1500)  # rows, columns
TRACE_POINTS = 1200
CITATION = (
    f"phloem {__version__}: statistical phylogenetics on many-core hardware. https://pypi.org/project/phloem/"
)

Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Page:
    """The folder and the analyses that the requests are about."""

    folder: Folder
    jobs: Jobs

    def routes(self) -> list[Route | Mount]:
        get, change = ["GET"], ["POST"]
        api = {
            "folder": (self.listing, get),
            "look": (self.look, get),
            "overview": (self.overview, get),
            "quick-tree": (self.quick_tree, get),
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
            "tree": (self.tree, get),
            "compare": (self.compare, get),
            "export": (self.export, get),
            "record": (self.record, get),
        }
        routes: list[Route | Mount] = [
            Route(f"/api/{path}", _explained(answer), methods=methods)
            for path, (answer, methods) in api.items()
        ]
        return [
            Route("/", _index, methods=get),
            *routes,
            Route("/api/files/{name:path}", _explained(self.download), methods=get),
            Route("/api/files/{name:path}", _explained(self.upload), methods=["PUT"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def listing(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            self.jobs.start_waiting()
            return {
                "folder": str(self.folder.root),
                "files": [asdict(one) for one in self.folder.listed()],
                "analyses": [told(self.jobs, job) for job in self.jobs.all()],
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

    async def look(self, request: Request) -> Response:
        name = self._file(request)

        def found() -> dict[str, Any]:
            from phloem.analysis.look import look_at

            return vars(look_at(name, request.query_params.get("datatype") or None))

        return JSONResponse(await run_in_threadpool(found))

    async def overview(self, request: Request) -> Response:
        name = self._file(request)

        def found() -> dict[str, Any]:
            from phloem.analysis.look import overview

            o = overview(name, *OVERVIEW, request.query_params.get("datatype") or None)
            return {
                "rows": ["".join(map(chr, (row + 32).tolist())) for row in o.codes],
                "taxa": o.taxa.tolist(), "sites": o.sites.tolist(), "states": o.states, "missing": o.missing,
            }  # fmt: skip

        return JSONResponse(await run_in_threadpool(found))

    async def quick_tree(self, request: Request) -> Response:
        """The neighbour-joining tree of an alignment or matrix, by the command itself."""
        words = ["nj", self._file(request)]
        if datatype := request.query_params.get("datatype"):
            words += ["--datatype", datatype]

        def found() -> dict[str, Any]:
            from phloem.analysis.tree_view import RootChoice, read_view, tree_record

            with tempfile.TemporaryDirectory() as place:
                out = f"{place}/nj.tre"
                self._called([*words, "--out", out], QUICK_TREE_SECONDS)
                tree, _ = read_view(out, 0, RootChoice("midpoint"))
            return {"tree": tree_record(tree), "command": shown(words)}

        return JSONResponse(await run_in_threadpool(found))

    async def examples(self, request: Request) -> Response:
        """The example data, written to the folder."""

        def written() -> list[str]:
            from phloem.analysis.examples import write_examples

            return [Path(name).name for name in write_examples(str(self.folder.root))]

        return JSONResponse(await run_in_threadpool(written), 201)

    async def kinds(self, request: Request) -> Response:
        return JSONResponse([asdict(kind) for kind in KINDS])

    async def command(self, request: Request) -> Response:
        kind, file, answers = self._asked(await _body(request))
        words = arguments(kind, file, answers, self.jobs.place(kind.name, file)[1])
        return JSONResponse({"command": shown(words)})

    async def plan(self, request: Request) -> Response:
        """The forecast of `phloem plan` for what is asked."""
        asked = await _body(request)
        kind, file, answers = self._asked(asked)
        words = ["plan", plain_file(file)]
        if kind.command in ("nj", "upgma"):
            words += ["--method", kind.command, "--bootstrap", str(answers.get("bootstrap") or 0)]
        elif "model" in {q.option for q in kind.questions}:
            usual = str(asked.get("usual_model") or "MK+G4")
            model = str(answers.get("model") or usual)
            words += ["--model", usual if model == "auto" else model]
        else:
            raise InputError(f"{kind.title} takes seconds and has no forecast")
        if answers.get("datatype"):
            words += ["--datatype", str(answers["datatype"])]
        output = await run_in_threadpool(self._called, words, PLAN_SECONDS)
        return JSONResponse({"rows": _table_rows(output), "command": shown(words)})

    async def create(self, request: Request) -> Response:
        kind, file, answers = self._asked(await _body(request))
        job = await run_in_threadpool(self.jobs.create, kind.name, file, answers)
        return JSONResponse(told(self.jobs, job), 201)

    async def analysis(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            self.jobs.start_waiting()
            job = self.jobs.job(request.path_params["id"])
            return told(self.jobs, job) | {"log": self.jobs.log(job), "progress": self._progress(job.prefix)}

        return JSONResponse(await run_in_threadpool(found))

    async def stop(self, request: Request) -> Response:
        job = await run_in_threadpool(self.jobs.stop, request.path_params["id"])
        return JSONResponse(told(self.jobs, job))

    async def go_on(self, request: Request) -> Response:
        asked = await _body(request)
        more = None if asked.get("generations") is None else str(asked["generations"])
        name, anew = request.path_params["id"], bool(asked.get("anew"))
        job = await run_in_threadpool(self.jobs.go_on, name, anew, more)
        return JSONResponse(told(self.jobs, job))

    async def trace(self, request: Request) -> Response:
        job = self.jobs.job(request.path_params["id"])
        column = request.query_params.get("column", "0")

        def found() -> dict[str, Any] | None:
            from phloem.analysis.trace_view import read_traces, running_summary, thinned_trace

            traces = read_traces(str(self.folder.root / job.prefix))
            if traces is None:
                return None
            which = min(int(column), len(traces.names) - 1) if column.isdecimal() else 0
            burn_in = float(job.answers.get("burn-in") or job.of.burn_in)
            return {
                "names": traces.names,
                "column": which,
                "runs": thinned_trace(traces, which, TRACE_POINTS),
                "burn_in": burn_in,
                "summary": running_summary(traces, burn_in),
            }

        return JSONResponse(await run_in_threadpool(found))

    async def zipped(self, request: Request) -> Response:
        """All files of an analysis with its input, the command that does it again, and what to cite."""
        job = self.jobs.job(request.path_params["id"])

        def packed() -> bytes:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                inputs = [job.file, *(str(job.answers[q.option]) for q in job.of.questions
                                      if q.kind == "file" and job.answers.get(q.option))]  # fmt: skip
                for name in dict.fromkeys([*told(self.jobs, job)["files"], *inputs]):
                    archive.write(self.folder.path(name), name)
                archive.writestr("command.txt", f"{job.command}\n")
                archive.writestr("citation.txt", f"{CITATION}\n")
            return buffer.getvalue()

        head = {"content-disposition": f'attachment; filename="{job.id}.zip"'}
        return Response(await run_in_threadpool(packed), media_type="application/zip", headers=head)

    async def tree(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            from phloem.analysis.tree_view import tree_record

            return tree_record(*self._tree(request, "file"))

        return JSONResponse(await run_in_threadpool(found))

    async def compare(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            from phloem.analysis.tree_view import compared

            return compared(self._tree(request, "file")[0], self._tree(request, "other")[0])

        return JSONResponse(await run_in_threadpool(found))

    async def export(self, request: Request) -> Response:
        """The tree as it is rooted now, as Newick, NEXUS or a PDF."""
        form = request.query_params.get("as", "newick")

        def made() -> bytes:
            from phloem.analysis.tree_view import PictureChoice, exported

            tree, _ = self._tree(request, "file")
            asked = request.query_params
            return exported(tree, form, PictureChoice(asked.get("shape"), asked.get("colour") or None))

        kinds = {"newick": "nwk", "nexus": "nex", "pdf": "pdf", "svg": "svg"}
        stem = Path(self._file(request)).name.rsplit(".", 1)[0]
        content = await run_in_threadpool(made)
        head = {"content-disposition": f"attachment; filename*=UTF-8''{_quoted(stem)}.{kinds[form]}"}
        return Response(content, media_type="application/octet-stream", headers=head)

    async def record(self, request: Request) -> Response:
        """A JSON file, or the rows of a table."""
        path = self.folder.path(request.query_params.get("file", ""))
        text = await run_in_threadpool(path.read_text, encoding="utf-8")
        if path.suffix == ".tsv":
            return JSONResponse([line.split("\t") for line in text.splitlines()])
        return Response(text, media_type="application/json")

    def _file(self, request: Request, key: str = "file") -> str:
        """The name that a request gives, of a file that may be read; the process works in the folder."""
        name = request.query_params.get(key, "")
        self.folder.path(name)
        return plain_file(name)

    def _asked(self, asked: dict[str, Any]):
        """(kind, file, answers) of a request, whose files may be read."""
        kind = BY_NAME.get(str(asked.get("kind")))
        answers = asked.get("answers")
        if kind is None or not isinstance(answers, dict):
            raise InputError("there is no such analysis", hint="Reload the page.")
        file = str(asked.get("file", ""))
        self.folder.path(file)
        for question in kind.questions:
            if question.kind == "file" and answers.get(question.option):
                self.folder.path(str(answers[question.option]))
        return kind, file, answers

    def _tree(self, request: Request, key: str):
        from phloem.analysis.tree_view import RootChoice, read_view

        asked = request.query_params
        root, index = asked.get("root", "file"), asked.get("index", "0")
        choice = RootChoice("file")
        if root == "midpoint":
            choice = RootChoice("midpoint")
        elif root.isdecimal():
            choice = RootChoice("branch", int(root))
        return read_view(self._file(request, key), int(index) if index.isdecimal() else 0, choice)

    def _progress(self, prefix: str) -> dict[str, Any] | None:
        try:
            return json.loads((self.folder.root / f"{prefix}.progress.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _called(self, words: list[str], seconds: float) -> str:
        """What a short command prints. InputError with its message where it fails."""
        try:
            done = subprocess.run(
                [sys.executable, "-m", "phloem", *words], cwd=self.folder.root, capture_output=True,
                text=True, timeout=seconds, stdin=subprocess.DEVNULL, encoding="utf-8", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            hint = "Start it as an analysis."
            raise InputError(f"this took longer than {seconds:.0f} seconds", hint=hint) from None
        if done.returncode != 0:
            message, _, hint = done.stderr.strip().removeprefix("error: ").partition("\n  hint: ")
            raise InputError(message or "the command failed", hint=hint or None)
        return done.stdout


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


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


async def _index(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html")


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_JSON:
            raise FolderError(413, "this request is too long", "Reload the page.")
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("this request is no JSON object", hint="Reload the page.")
    return found


def _explained(answer: Answer) -> Answer:
    """What a user can mend comes as JSON with message, place and remedy."""

    async def told_as_json(request: Request) -> Response:
        try:
            return await answer(request)
        except FolderError as error:
            return JSONResponse({"message": error.message, "hint": error.hint}, error.status)
        except InputError as error:
            record = {
                "message": error.message, "hint": error.hint, "place": error.place, "line": error.line,
                "column": error.column, "taxon": error.taxon, "site": error.site,
            }  # fmt: skip
            return JSONResponse(record, 422)
        except PhloemError as error:
            return JSONResponse({"message": str(error), "hint": None}, 422)

    return told_as_json

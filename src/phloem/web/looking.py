"""What the browser asks about files: what they hold, their trees, and what short commands say of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from phloem.errors import InputError, PhloemError
from phloem.web.command import plain_file, shown
from phloem.web.folder import Folder, FolderError

MOST_JSON = 1 << 20  # bytes of a request
MOST_PICTURE = 16 << 20
QUICK_SECONDS = 120.0
WANTED_SECONDS = 0.2  # between looks whether a request is still there
OVERVIEW = (400, 1500)  # rows, columns
QUICK_PERMUTATIONS = "100"

Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Looking:
    """The folder whose files the requests are about."""

    folder: Folder

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
                self.called([*words, "--out", out], QUICK_SECONDS)
                tree, _ = read_view(out, 0, RootChoice("midpoint"))
            return {"tree": tree_record(tree), "command": shown(words)}

        return JSONResponse(await run_in_threadpool(found))

    async def quick_signal(self, request: Request) -> Response:
        """Distances from the best root against dates, by the command itself."""
        words = ["temporal-signal", "--alignment", self._file(request)]
        if dates := request.query_params.get("dates"):
            self.folder.path(dates)
            words += ["--dates", plain_file(dates)]
        if datatype := request.query_params.get("datatype"):
            words += ["--datatype", datatype]
        words += ["--permutations", QUICK_PERMUTATIONS]

        def found() -> dict[str, Any]:
            with tempfile.TemporaryDirectory() as place:
                files = f"{place}/s.tsv", f"{place}/s.json"
                self.called([*words, "--table", files[0], "--json", files[1]], QUICK_SECONDS)
                table, record = (Path(file).read_text(encoding="utf-8") for file in files)
            return {"rows": rows_of(table), "record": json.loads(record), "command": shown(words)}

        return JSONResponse(await run_in_threadpool(found))

    async def dates_of_names(self, request: Request) -> Response:
        """A table of the dates that the names carry, beside the alignment; one that is there is kept."""
        asked = await body_of(request)
        name = str(asked.get("file", ""))
        self.folder.path(name)

        def written() -> str:
            from phloem.analysis.look import table_of_dates

            text = table_of_dates(plain_file(name), str(asked["datatype"]) if asked.get("datatype") else None)
            return self.folder.keep(
                f"{Path(name).name.removesuffix('.gz').rsplit('.', 1)[0]}.dates.tsv", text
            )

        return JSONResponse({"name": await run_in_threadpool(written)}, 201)

    async def tree(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            from phloem.analysis.tree_view import tree_record, youngest_date

            tree, n_trees = self._tree(request, "file")
            if _is_rerooted(request):  # heights and dates are of the other root
                return tree_record(tree, n_trees) | {"rerooted": True}
            return tree_record(tree, n_trees, youngest_date(tree, self._file(request)))

        return JSONResponse(await run_in_threadpool(found))

    async def compare(self, request: Request) -> Response:
        def found() -> dict[str, Any]:
            from phloem.analysis.tree_view import compared

            return compared(self._tree(request, "file")[0], self._tree(request, "other")[0])

        return JSONResponse(await run_in_threadpool(found))

    async def export(self, request: Request) -> Response:
        """The tree as it is rooted now, as Newick or NEXUS."""
        form = request.query_params.get("as", "newick")

        def made() -> bytes:
            from phloem.analysis.tree_view import exported

            return exported(self._tree(request, "file")[0], form)

        kinds = {"newick": "nwk", "nexus": "nex"}
        stem = Path(self._file(request)).name.rsplit(".", 1)[0]
        content = await run_in_threadpool(made)
        head = {"content-disposition": f"attachment; filename*=UTF-8''{quote(stem, safe='')}.{kinds[form]}"}
        return Response(content, media_type="application/octet-stream", headers=head)

    async def pdf(self, request: Request) -> Response:
        """A picture as the browser has drawn it."""
        from phloem.analysis.tree_view import pdf_of

        content = await run_in_threadpool(pdf_of, await body_of(request, MOST_PICTURE))
        return Response(content, media_type="application/pdf")

    async def record(self, request: Request) -> Response:
        """A JSON file, or the rows of a table."""
        path = self.folder.path(request.query_params.get("file", ""))
        text = await run_in_threadpool(path.read_text, encoding="utf-8")
        if path.suffix == ".tsv":
            return JSONResponse(rows_of(text))
        return Response(text, media_type="application/json")

    def _file(self, request: Request, key: str = "file") -> str:
        """The name that a request gives, of a file that may be read; the process works in the folder."""
        name = request.query_params.get(key, "")
        self.folder.path(name)
        return plain_file(name)

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

    def called(self, words: list[str], seconds: float) -> str:
        """What a short command prints. InputError with its message where it fails."""
        try:
            done = subprocess.run(
                [sys.executable, "-m", "phloem", *words], cwd=self.folder.root, capture_output=True,
                text=True, timeout=seconds, stdin=subprocess.DEVNULL, encoding="utf-8", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            hint = "Start it as an analysis."
            raise InputError(f"this took longer than {seconds:.0f} seconds", hint=hint) from None
        return _output(done.returncode, done.stdout, done.stderr)

    async def called_while_wanted(self, request: Request, words: list[str], seconds: float) -> str:
        """The same of a longer one, which ends with the request: nothing is measured for a browser that has
        left or that asks something else now."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "phloem", *words, cwd=self.folder.root, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        output = asyncio.ensure_future(process.communicate())
        end = time.monotonic() + seconds
        try:
            while not (await asyncio.wait([output], timeout=WANTED_SECONDS))[0]:
                if await request.is_disconnected():
                    raise InputError("this is no longer wanted")
                if time.monotonic() > end:
                    hint = "Start it as an analysis."
                    raise InputError(f"this took longer than {seconds:.0f} seconds", hint=hint)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            told = await output
        return _output(process.returncode, *(text.decode("utf-8", "replace") for text in told))


def _output(status: int | None, printed: str, errors: str) -> str:
    """Of a command that has ended. InputError with its message where it failed."""
    if status != 0:
        error = f"\n{errors.strip()}".rpartition("\nerror: ")[2]  # behind warnings
        message, _, hint = error.strip().partition("\n  hint: ")
        raise InputError(message or "the command failed", hint=hint or None)
    return printed


def _is_rerooted(request: Request) -> bool:
    return request.query_params.get("root", "file") != "file"


def rows_of(text: str) -> list[list[str]]:
    """Of a table with tabs."""
    return [line.split("\t") for line in text.splitlines()]


async def body_of(request: Request, most: int = MOST_JSON) -> dict[str, Any]:
    """The JSON object of a request. most: bytes."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise FolderError(413, "this request is too long", "Reload the page.")
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("this request is no JSON object", hint="Reload the page.")
    return found


def explained(answer: Answer) -> Answer:
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

"""`phloem page`: a server on the loopback address, and the browser that is shown to it."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from phloem.errors import InputError
from phloem.web.folder import Folder
from phloem.web.guard import Guard
from phloem.web.jobs import Jobs
from phloem.web.routes import Page

ADDRESS = "127.0.0.1"
USUAL_PORT = 8765
PORTS = 20  # that are tried from the usual one on


@dataclass(frozen=True)
class PageSettings:
    """folder: what the page may see and write. port: None takes the first free one from USUAL_PORT on.
    browser: whether one is opened. most_upload: bytes of a file. at_once: analyses that run side by side."""

    folder: str = "."
    port: int | None = None
    browser: bool = True
    most_upload: int = 512 * 2**20
    at_once: int = 1


def run_page(settings: PageSettings, started: Callable[[str, str], None]) -> None:
    """Serve until interrupted. started: called with the address and the folder. Analyses go on without us."""
    root = Path(os.path.realpath(settings.folder))
    if not root.is_dir():
        raise InputError("there is no such folder", file=settings.folder, hint="Make it first.")
    if not os.access(root, os.W_OK):
        hint = "Choose another with --folder."
        raise InputError("this folder cannot be written to", file=settings.folder, hint=hint)
    listening = _listening(settings.port)
    os.chdir(root)  # so that messages name files as the page does
    guard = application(root, settings)
    url = f"http://{ADDRESS}:{listening.getsockname()[1]}/?token={guard.token}"
    config = uvicorn.Config(
        guard, log_level="warning", access_log=False, ws="none", server_header=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    started(url, str(root))
    if settings.browser:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    uvicorn.Server(config).run(sockets=[listening])


def application(root: Path, settings: PageSettings) -> Guard:
    """The page behind its guard. Waiting analyses are started with it."""
    jobs = Jobs(root, settings.at_once)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=jobs.start_waiting, daemon=True).start()
        yield

    page = Page(Folder(root, settings.most_upload), jobs)
    return Guard(Starlette(routes=page.routes(), lifespan=lifespan))


def _listening(port: int | None) -> socket.socket:
    """A socket on the loopback address. InputError where the port is taken."""
    tried = range(USUAL_PORT, USUAL_PORT + PORTS) if port is None else [port]
    for number in tried:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((ADDRESS, number))
            found.listen(128)
        except OSError:
            found.close()
        else:
            return found
    raise InputError(f"port {tried[0]} is taken", hint="Choose another with --port; 0 takes any free one.")

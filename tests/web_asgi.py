"""One request to an ASGI application, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    app,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes | list[bytes] = b"",
    leaves: Callable[[], bool] = bool,
) -> Answer:
    """headers: with Host. body: or its pieces. leaves: whether the browser has gone away meanwhile."""
    path, _, query = target.partition("?")
    pieces = [body] if isinstance(body, bytes) else list(body)
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()], "http_version": "1.1",
        "scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765), "root_path": "",
    }  # fmt: skip
    told: list[dict] = []

    async def receive():
        if pieces:
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}
        while not leaves():
            await asyncio.sleep(0.02)
        return {"type": "http.disconnect"}

    async def send(message):
        told.append(message)

    asyncio.run(app(scope, receive, send))
    start = told[0]
    content = b"".join(message.get("body", b"") for message in told[1:])
    return Answer(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, content)

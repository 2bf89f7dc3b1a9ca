"""Who may talk to the page: the browser that was given its address, from the page itself, and nobody else.

Any web site a user visits can send requests to the loopback address. What keeps it out, each by itself:
- Host must be a name of this machine, so that no foreign name can be pointed here (DNS rebinding).
- Origin must be the page's own; requests that change something must have one.
- Sec-Fetch-Site must be same-origin or none: another port of this machine is "same-site" and refused too.
- The address that is opened has a random token, for which the browser gets a cookie (HttpOnly, Strict).
What is answered tells the browser to run no script but the page's own files (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
CLOSED = (
    "This page belongs to whoever started it.\n"
    "Open the whole address that `phloem page` printed, with its token. After a restart it is a new one.\n"
)


class Guard:
    """An ASGI application around another, which gets only requests that may be answered."""

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.token = secrets.token_urlsafe(32) if token is None else token
        self._app, self._cookie = app, secrets.token_urlsafe(32)
        self._name = f"phloem_{secrets.token_hex(4)}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # there are no sockets here
        headers = _headers(scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        opened = bool(given) and scope["method"] == "GET" and scope["path"] == "/" and self._is_token(given)
        refusal = _foreign(scope["method"], headers, opened) or self._stranger(headers, opened)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = dict(HEADERS)
                if opened and refusal is None:
                    extra["set-cookie"] = f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
                named = {name.lower() for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in extra.items() if k.encode() not in named]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if refusal is not None:
            await PlainTextResponse(refusal, 403)(scope, receive, guarded)
        else:
            await self._app(scope, receive, guarded)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _stranger(self, headers: dict[str, str], opened: bool) -> str | None:
        """Why this request is not from a browser that was given the address."""
        if opened:
            return None
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            cookie = None
        known = cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())
        return None if known else CLOSED


def _headers(scope: Scope) -> dict[str, str]:
    """By lower-case name; of a name that is there twice, both, which fits nothing."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = f"{found[key]}, {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _foreign(method: str, headers: dict[str, str], opened: bool) -> str | None:
    """Why a request is not from this page, or None. opened: by its address, where a link may be anywhere."""
    host = headers.get("host", "")
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if (name if port.isdecimal() else host).lower() not in LOOPBACK:
        return "This page answers to the names of this machine only.\n"
    origin = headers.get("origin")
    if origin is None and method not in SAFE_METHODS:
        return "A request that changes something must say where it comes from.\n"
    if origin is not None and origin != f"http://{host}":
        return "This request comes from another page.\n"
    if not opened and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "This request comes from another page.\n"
    return None

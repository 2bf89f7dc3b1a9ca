"""Whoever is not the browser that was given the address gets nothing; every refusal with its control."""

from __future__ import annotations

import asyncio

import pytest

import phloem.web.guard
from phloem.web.guard import HEADERS, Guard
from web_asgi import ask

HERE = "127.0.0.1:8765"


def test_the_address_opens_the_page_and_gives_a_strict_cookie(opened):
    app, _, _ = opened
    answer = ask(app, "GET", f"/?token={app.token}", {"host": HERE})
    assert answer.status == 200 and "<main" in answer.text
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and app.token not in cookie


@pytest.mark.parametrize(
    "target", ["/", "/?token=wrong", "/api/folder", "/static/app.js", "/api/folder?token={}"]
)
def test_without_token_or_cookie_there_is_nothing(opened, target):
    app, headers, _ = opened
    answer = ask(app, "GET", target.format(app.token), {"host": HERE})
    assert answer.status == 403 and "set-cookie" not in answer.headers
    assert ask(app, "GET", target, headers).status == 200  # the control: the cookie opens it


def test_another_pages_cookie_is_none(opened):
    app, headers, _ = opened
    name, _, value = headers["cookie"].partition("=")
    for cookie in (f"{name}=x", f"other={value}", "\x00=;;="):
        assert ask(app, "GET", "/api/folder", {"host": HERE, "cookie": cookie}).status == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "localhost", "[::1]:9000", "LOCALHOST:1"]
)
def test_names_of_this_machine_are_answered(opened, host):
    app, headers, _ = opened
    assert ask(app, "GET", "/api/folder", headers | {"host": host, "origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:8765", "127.0.0.1.evil.example", "localhost@evil.example:80", "192.168.0.7:8765", ""],
)
def test_a_foreign_host_is_refused(opened, monkeypatch, host):
    app, headers, _ = opened
    asked = headers | {"host": host, "origin": f"http://{host}"}
    assert ask(app, "GET", "/api/folder", asked).status == 403
    monkeypatch.setattr(phloem.web.guard, "LOOPBACK", (host.rpartition(":")[0] or host, host))
    assert ask(app, "GET", "/api/folder", asked).status == 200  # only the name of the host was wrong


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:8766",
        "https://127.0.0.1:8765",
        "http://localhost:8765",
    ],
)
def test_a_foreign_origin_is_refused(opened, origin):
    app, headers, _ = opened
    for method, target in (("GET", "/api/folder"), ("POST", "/api/command"), ("PUT", "/api/files/a.fasta")):
        refused = ask(app, method, target, headers | {"origin": origin})
        assert refused.status == 403 and "another page" in refused.text
        assert ask(app, method, target, headers).status != 403  # the control


def test_a_change_without_origin_is_refused(opened):
    app, headers, root = opened
    bare = {name: value for name, value in headers.items() if name != "origin"}
    assert ask(app, "PUT", "/api/files/a.fasta", bare, b">a\nACGT\n").status == 403
    assert not (root / "a.fasta").exists()
    assert ask(app, "PUT", "/api/files/a.fasta", headers, b">a\nACGT\n").status == 201


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_requests_of_other_sites_and_ports_are_refused(opened, site, status):
    app, headers, _ = opened
    assert ask(app, "GET", "/api/folder", headers | {"sec-fetch-site": site}).status == status


def test_the_address_may_be_opened_from_a_link_anywhere(opened):
    app, _, _ = opened
    from_a_link = {"host": HERE, "sec-fetch-site": "cross-site"}
    assert ask(app, "GET", f"/?token={app.token}", from_a_link).status == 200
    assert ask(app, "GET", "/?token=guess", from_a_link).status == 403


def test_every_answer_forbids_foreign_scripts(opened):
    app, headers, _ = opened
    for target in ("/", "/static/app.js", "/api/folder", "/api/files/none.fasta", "/nowhere"):
        found = ask(app, "GET", target, headers).headers
        assert {name: found.get(name) for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert ask(app, "GET", "/", {"host": HERE}).headers["content-security-policy"]  # refusals too


def test_a_header_that_is_there_twice_fits_nothing():
    async def app(scope, receive, send):
        raise AssertionError("it was let through")

    guard = Guard(app, "t")
    twice = {"type": "http", "method": "GET", "path": "/", "query_string": b"token=t",
             "headers": [(b"host", b"localhost"), (b"host", b"evil.example")]}  # fmt: skip
    told = []

    async def send(message):
        told.append(message)

    asyncio.run(guard(twice, None, send))
    assert told[0]["status"] == 403


def test_nothing_but_requests_comes_in():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    guard = Guard(app)
    for kind in ("websocket", "lifespan"):
        asyncio.run(guard({"type": kind}, None, None))
    assert seen == ["lifespan"]

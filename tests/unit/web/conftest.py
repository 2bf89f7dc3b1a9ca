from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the page needs phloem[ui]")
pytest.importorskip("uvicorn", reason="the page needs phloem[ui]")


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """The page of an empty folder, and the headers of the browser that was given its address."""
    from phloem.web.server import PageSettings, application
    from web_asgi import ask

    root = (tmp_path / "work").resolve()
    root.mkdir()
    monkeypatch.chdir(root)
    app = application(root, PageSettings(most_upload=1000))
    here = {"host": "127.0.0.1:8765"}
    first = ask(app, "GET", f"/?token={app.token}", here)
    cookie = first.headers["set-cookie"].partition(";")[0]
    return app, here | {"cookie": cookie, "origin": "http://127.0.0.1:8765"}, root

"""`phloem page` as a process: where it listens, what it says, how it ends."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

PHLOEM = [sys.executable, "-m", "phloem", "page", "--no-browser"]


@pytest.fixture
def page(tmp_path):
    process = subprocess.Popen(
        [*PHLOEM, "--port", "0", "--folder", str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    text = ""
    while "token=" not in text:
        text += process.stdout.readline()
    yield process, re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", text)
    process.kill()
    process.wait()


def asked(port: int, path: str, headers: dict | None = None) -> http.client.HTTPResponse:
    end = time.monotonic() + 300
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            connection.request("GET", path, headers=headers or {})
            return connection.getresponse()
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_it_listens_on_the_loopback_address_only_and_ends_at_once(page):
    process, found = page
    port = int(found[1])
    assert asked(port, f"/?token={found[2]}").status == 200
    assert asked(port, "/").status == 403
    assert asked(port, f"/?token={found[2]}", {"Host": "evil.example"}).status == 403
    listening = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[3] == "0A"
    ]
    assert f"0100007F:{port:04X}" in listening and f"00000000:{port:04X}" not in listening
    process.send_signal(signal.SIGINT)
    assert process.wait(300) in (0, 130)


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            [*PHLOEM, "--port", str(port), "--folder", str(tmp_path)], capture_output=True, text=True
        )
    assert done.returncode == 2 and f"port {port} is taken" in done.stderr and "hint" in done.stderr


@pytest.mark.parametrize(
    "options", [["--folder", "none"], ["--port", "70000"], ["--most-upload", "0"], ["--at-once", "0"]]
)
def test_options_that_do_not_fit_are_refused(tmp_path, options):
    done = subprocess.run([*PHLOEM, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "error: " in done.stderr and "hint: " in done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['starlette'] = None; sys.argv = ['phloem', 'page']; "
    code += "import phloem.cli as c; sys.exit(c.run())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "pip install 'phloem[ui]'" in done.stderr

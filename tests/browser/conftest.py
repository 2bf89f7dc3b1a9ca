"""A page of a folder of its own, and Chromium looking at it."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the page needs phloem[ui]")
pytest.importorskip("selenium", reason="selenium drives the browser")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Server:
    """`phloem page` as a process, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "phloem",
            "page",
            "--no-browser",
            "--port",
            "0",
            "--folder",
            str(self.folder),
        ]
        begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        text = ""
        while "token=" not in text:
            text += self.process.stdout.readline()
        self.seconds = time.monotonic() - begun
        self.url = re.search(r"http://\S+", text).group()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("page"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium with chromedriver here (apt-get install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--window-size=1280,1000"):
        options.add_argument(flag)
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()

"""A page of a folder of its own, and Chromium looking at it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the page needs phloem[ui]")
pytest.importorskip("selenium", reason="selenium drives the browser")
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

FOUND = (
    "const all = [...document.querySelectorAll('button, a.button')];"
    "const found = all.find((b) => b.innerText === arguments[0]);"
    "found?.scrollIntoView({block: 'center'}); return found ?? null"
)


class Server:
    """`phloem page` as a process, which can be killed and started again. seconds: of a processor, until it
    was there."""

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
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        text = ""
        while "token=" not in text:
            text += self.process.stdout.readline()
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        self.seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self.url = re.search(r"http://\S+", text).group()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("page"))
    yield server
    server.kill()


@pytest.fixture(scope="session")
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


class Visit:
    """A browser on a page, with what people do there."""

    def __init__(self, driver, server) -> None:
        self.driver, self.server = driver, server
        self.open()

    def open(self) -> None:
        self.driver.get("about:blank")
        self.driver.get(self.server.url)
        self.until("What do you have?")

    def at(self, *names: str) -> None:
        wanted = "#/" + "/".join(quote(name, safe="") for name in names)
        self.driver.execute_script(
            "if (location.hash === arguments[0]) dispatchEvent(new HashChangeEvent('hashchange'));"
            "else location.hash = arguments[0]",
            wanted,
        )
        self.until({"": "What do you have?", "compare": "Compare two trees"}.get(names[0], names[-1]))

    @property
    def text(self) -> str:
        return self.driver.execute_script("return document.querySelector('main').innerText")

    def until(self, words: str, seconds: float = 60) -> None:
        def there(_):
            text = self.text
            assert "did not work" not in text or "did not work" in words, text
            return words in text

        try:
            WebDriverWait(self.driver, seconds, 0.1).until(there)
        except Exception as error:
            raise AssertionError(f"no '{words}' in: {self.text}") from error

    def all(self, css: str):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str, seconds: float = 30):
        return WebDriverWait(self.driver, seconds, 0.1).until(lambda _: (self.all(css) or [None])[0])

    def press(self, words: str) -> None:
        def pressed(_):
            button = self.driver.execute_script(FOUND, words)
            try:
                return button and (button.click() or True)
            except StaleElementReferenceException:  # drawn anew meanwhile
                return False

        WebDriverWait(self.driver, 30, 0.1).until(pressed, f"no button '{words}'")

    def drop(self, path: Path) -> None:
        self.at("")
        self.one("#pick").send_keys(str(path))

    def start(self, kind: str, **answers: str) -> str:
        """Fill in an analysis of the file that is shown; its name."""
        self.driver.execute_script("arguments[0].click()", self.one(f"[data-kind={kind}]"))
        self.driver.execute_script("for (const d of document.querySelectorAll('form details')) d.open = true")
        for name, answer in answers.items():
            field = self.one(f"#q-{name.replace('_', '-')}")
            if field.get_attribute("type") == "checkbox":
                if field.is_selected() != (answer == "yes"):
                    self.driver.execute_script("arguments[0].click()", field)
            else:
                field.clear()
                field.send_keys(answer)
        self.driver.execute_script("arguments[0].click()", self.one("form button[type=submit]"))
        WebDriverWait(self.driver, 30, 0.1).until(lambda _: "#/run/" in self.driver.current_url)
        return self.driver.current_url.rpartition("/")[2]

    def wait(self, found: Callable[[], object], what: str, seconds: float = 60) -> None:
        """Until it is found."""
        WebDriverWait(self.driver, seconds, 0.1).until(lambda _: found(), what)

    def ink(self, css: str) -> int:
        """How many pixels of a canvas are drawn on."""
        self.one(css)
        return self.driver.execute_script(
            "const c = document.querySelector(arguments[0]); let n = 0;"
            "const d = c?.width ? c.getContext('2d').getImageData(0, 0, c.width, c.height).data : [];"
            "for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n",
            css,
        )

    def at_rest(self, script: str = "return document.querySelector('main').innerText") -> object:
        """What a script returns twice in a row: by default the words of a view that is all there."""
        found: list[object] = []

        def again() -> bool:
            found.append(self.driver.execute_script(script))
            return len(found) > 1 and found[-1] == found[-2]

        self.wait(again, "it never comes to rest")
        return found[-1]

    def drawn(self, css: str, least: int) -> None:
        """Wait for a canvas with more than so many pixels drawn on."""
        self.wait(lambda: self.ink(css) > least, f"fewer than {least} pixels of {css} are drawn on")

    def fetched(self, path: str) -> bytes:
        return bytes(self.driver.execute_async_script(
            "const [path, done] = arguments; fetch(path).then((r) => r.arrayBuffer())"
            ".then((b) => done(Array.from(new Uint8Array(b))))", path))  # fmt: skip

    def colour_scheme(self, scheme: str, width: int) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def problems(self) -> list[str]:
        """What axe-core finds against WCAG 2 A and AA."""
        from axe_selenium_python import Axe

        axe = Axe(self.driver)
        if not self.driver.execute_script("return 'axe' in window"):  # views are of one document
            axe.inject()
        found = axe.run(options={"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa"]}})
        return [f"{one['id']}: {node['html'][:120]}" for one in found["violations"] for node in one["nodes"]]

    def tab_to(self, css: str, press: str) -> None:
        """By the keyboard alone: Tab until it has the focus, then a key."""
        for _ in range(200):
            here = self.driver.switch_to.active_element
            if here == self.one(css):
                here.send_keys(press)
                return
            here.send_keys(Keys.TAB)
        raise AssertionError(f"Tab does not reach {css}")


@pytest.fixture(scope="module")
def visit(chromium, server):
    return Visit(chromium, server)

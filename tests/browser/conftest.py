"""A browser that is cut off from the network, pages that heed wrote, and a server."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from exhaustive import is_exhaustive, pytest_addoption, pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401
from heed_command import build, heed  # noqa: E402, F401

# Seconds that a page or a program may take where other tests keep the processors busy.
PATIENCE = 180

SENTENCE = "The quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="session")
def written(heed: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """The page that `heed explain` writes with the given arguments; each once."""
    folder = tmp_path_factory.mktemp("pages")
    pages: dict[tuple[object, ...], pathlib.Path] = {}

    def write(*arguments: object) -> pathlib.Path:
        if arguments not in pages:
            path = folder / f"{len(pages)}.html"
            heed("explain", "--out", path, *arguments)
            pages[arguments] = path
        return pages[arguments]

    return write


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["HEED_CHROMIUM"], timeout=1000 * PATIENCE)
        yield browser
        browser.close()


class Guard:
    """Opens pages; a request beyond the page itself and the files of `own`, an error or a dialog is a failure."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.pages: list[Page] = []
        self.faults: list[str] = []
        self.own: pathlib.Path | None = None

    def open(self, path: pathlib.Path | str, fragment: str = "", **options: object) -> Page:
        url = path if isinstance(path, str) else path.as_uri()
        page = self.browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        page.set_default_timeout(1000 * PATIENCE)
        self.pages.append(page)

        def check(request) -> None:
            own = url.startswith("http") and request.url.startswith(url)
            own = own or (self.own is not None and request.url.startswith(self.own.as_uri() + "/"))
            if not own and request.url.split("#")[0] != url and not request.url.startswith(("data:", "blob:")):
                self.faults.append(f"request to {request.url}")

        page.on("request", check)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", lambda message: message.type == "error" and self.faults.append(message.text))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.goto(url + fragment)
        settle(page)
        return page


def settle(page: Page) -> None:
    """Waits for what a change has scheduled to be drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def wait_until(page: Page, expression: str) -> None:
    """Waits until an expression holds. Playwright's own waiting needs eval, which the page's policy forbids."""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        settle(page)


@pytest.fixture
def guard(browser: Browser) -> Iterator[Guard]:
    guard = Guard(browser)
    yield guard
    for page in guard.pages:
        page.close()
    assert guard.faults == []


@pytest.fixture(scope="session")
def serve(build: pathlib.Path) -> Iterator[Callable[..., tuple[subprocess.Popen, str]]]:
    """Starts `heed serve` on a free port: the process and the address it names."""
    servers: list[subprocess.Popen] = []

    def start(*arguments: object) -> tuple[subprocess.Popen, str]:
        command = [str(build / "heed"), "serve", "--port", "0", *map(str, arguments)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        servers.append(server)
        line = server.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + server.stderr.read()
        return server, found.group()

    yield start
    for server in servers:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=PATIENCE)


def weights_of(heed: Callable[..., str], *arguments: object) -> list:
    """The weights [head][query][key] that heed computes."""
    return json.loads(heed("explain", "--json", *arguments))["weights"]

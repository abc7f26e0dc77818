"""Fixtures of the tests in a browser: servers that run while the tests do, and visits to them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.sites import write_crawl, write_large, write_rich
from viewing import Viewer, viewing

if TYPE_CHECKING:
    from browser.visits import Visit

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, and other tests could start none
def chromium() -> Iterator[Any]:
    """Start the browser."""
    from browser.visits import AXE, INSTALL, sync_api

    path = shutil.which("chromium")
    if path is None:
        pytest.skip(f"chromium is not installed; {INSTALL}")
    if not AXE.exists():
        pytest.skip(f"axe-core is not installed; {INSTALL}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Return a function that opens a state of an explorer in a new window. At the end nothing may have gone wrong."""
    from browser.visits import new_visit

    with ExitStack() as contexts:
        visits = []

        def opened(viewer: Viewer, state: str = "", *, width: int = 1280, height: int = 800) -> Visit:
            context = chromium.new_context(viewport={"width": width, "height": height})
            contexts.callback(context.close)
            found = new_visit(context, viewer)
            visits.append(found)
            found.page.goto(f"{found.base}?token={viewer.token}#/{state}")
            return found

        yield opened
        assert [fault for one in visits for fault in one.unexpected()] == []


@contextmanager
def ready(folder: Path, *arguments: str | Path, command: str = "view") -> Iterator[Viewer]:
    """Run an explorer, and wait until everything is read. At the end it must leave nothing behind."""
    folder.mkdir()
    with viewing(*arguments, command=command, TMPDIR=str(folder)) as viewer:
        while viewer.ask("status")["state"] in ("loading", "checking"):
            time.sleep(0.02)
        yield viewer
        assert viewer.end()[0] == 0
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def demo(chromium: Any, folder: Path) -> Iterator[Viewer]:
    """Explore the demo site."""
    with ready(folder / "demo", "--view", command="demo") as viewer:
        yield viewer


@pytest.fixture(scope="module")
def rich(chromium: Any, folder: Path) -> Iterator[Viewer]:
    """Explore a folder of sitemaps that has everything."""
    with ready(folder / "rich", write_rich(folder / "rich-site")) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def crawled(chromium: Any, folder: Path) -> Iterator[Viewer]:
    """Explore a crawl of three runs."""
    with ThreadPoolExecutor() as threads:  # Playwright runs an event loop in this one
        written = threads.submit(write_crawl, folder / "crawl").result()
    with ready(folder / "crawled", written) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def large(chromium: Any, folder: Path) -> Iterator[Viewer]:
    """Explore 300,000 pages."""
    with ready(folder / "large", write_large(folder / "large-site")) as viewer:
        yield viewer

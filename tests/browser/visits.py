"""Visits to the explorer: a page of the browser, and everything that must not happen in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from viewing import Viewer

INSTALL = "make test-browser installs it"
sync_api = pytest.importorskip("playwright.sync_api", reason=f"Playwright is not installed; {INSTALL}")
expect = sync_api.expect

__all__ = ["AXE", "INSTALL", "Visit", "expect", "new_visit", "sync_api"]

NODE = Path(__file__).parents[2] / ".venv" / "node" / "node_modules"
AXE = NODE / "axe-core" / "axe.min.js"
_TIMEOUT = 15_000  # milliseconds; only a defect takes that long
expect.set_options(timeout=_TIMEOUT)


@dataclass
class Visit:
    """A page of the explorer.

    :param faults: errors, requests to other hosts and images. They fail the test, apart from those that it allows.
    """

    viewer: Viewer
    page: Any
    faults: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.viewer.port}/"

    @property
    def state(self) -> str:
        """The state of the page, as its URL has it: pages?q=blog."""
        return str(self.page.url).partition("#/")[2]

    def go(self, state: str) -> None:
        """Go to a state, as a link does."""
        self.page.goto(f"{self.base}#/{state}")

    def grid(self, name: str) -> Any:
        return self.page.get_by_role("grid", name=name, exact=True)

    def row(self, grid: str, index: int) -> Any:
        """Return a row of a table; the first is 0."""
        return self.grid(grid).locator(f"[role=row][aria-rowindex='{index + 2}']")

    def expect_rows(self, grid: str, count: int) -> None:
        """Wait until a table has this number of rows, and shows the first ones."""
        expect(self.grid(grid)).to_have_attribute("aria-rowcount", str(count + 1))
        if count:
            expect(self.row(grid, 0)).not_to_contain_text("…")

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Any:
        return self.page.get_by_role("link", name=name, exact=True)

    def unexpected(self) -> list[str]:
        return [fault for fault in self.faults if not any(text in fault for text in self.allowed)]

    def violations(self) -> list[str]:
        """Return what axe-core finds that is serious."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [
            f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


def new_visit(context: Any, viewer: Viewer) -> Visit:
    """Return a page of a browser that notes what goes wrong in it."""
    context.set_default_timeout(_TIMEOUT)
    visit = Visit(viewer, context.new_page())

    def on_request(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != f"127.0.0.1:{viewer.port}":
            visit.faults.append(f"request to another host: {request.url}")
        elif request.resource_type == "image" and parts.path != "/static/icon.svg":
            visit.faults.append(f"image: {request.url}")

    def on_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            visit.faults.append(f"console: {message.text} {message.location}")

    visit.page.on("request", on_request)
    visit.page.on("console", on_console)
    visit.page.on("pageerror", lambda error: visit.faults.append(f"page error: {error}"))
    return visit

"""Servers that ask to wait, and bodies that inflate without end: what a sitemap may cost, by both drivers."""

from __future__ import annotations

import gzip
import re
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from faults import (
    BAD,
    PATIENT,
    QUICK,
    START,
    Driver,
    Request,
    described,
    each_driver,
    ok,
    once,
    serve_faults,
    status,
    visit,
)
from support import urlset
from usp.limits import Limits
from usp.politeness import Politeness

pytestmark = pytest.mark.network


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@each_driver
@pytest.mark.parametrize(
    ("code", "form", "least", "most"),
    [
        (429, "seconds", 1.0, 2.5),
        (429, "date", 0.4, 3.0),
        (429, "nonsense", 0.0, 0.35),
        (429, "negative", 0.0, 0.35),
        (429, "past", 0.0, 0.35),
        (503, "past", 0.0, 0.35),
        (429, "not a number", 0.0, 0.35),
        (429, "empty", 0.0, 0.35),
    ],
)
def test_retry_after(driver: Driver, code: int, form: str, least: float, most: float) -> None:
    """A `Retry-After` within the limit is obeyed; one that makes no sense is ignored."""
    values = {
        "seconds": "1",
        "date": in_seconds(1.5),  # dates have whole seconds
        "nonsense": "soon",
        "negative": "-5",
        "past": in_seconds(-86_400),
        "not a number": "nan",
        "empty": "",
    }
    politeness = Politeness(retry_seconds=0.01, max_delay=60)
    found = visit(driver, once(status(code, Retry_After=values[form])), politeness=politeness, seconds=6)
    assert described(found.sitemap) == "1 pages"
    first, second = found.server.times(BAD)
    assert least <= second - first
    early, late = found.server.undisturbed_times(BAD)
    assert late - early < most
    others = [at for at, _ in found.server.asked if first + 0.2 < at < second - 0.05]
    assert others == [], "the whole host is left alone"


@each_driver
@pytest.mark.parametrize(("code", "is_date"), [(429, False), (503, False), (429, True)])
def test_too_long_a_wait(driver: Driver, code: int, is_date: bool) -> None:
    """A `Retry-After` beyond the limit fails that sitemap at once, and only that one."""
    value = in_seconds(86_400 * 365) if is_date else "9" * 30
    politeness = Politeness(retry_seconds=0.01, max_delay=0.4)
    found = visit(driver, once(status(code, Retry_After=value)), politeness=politeness, seconds=6)
    assert f"{code} " in found.reason
    assert "asked to wait" in found.reason
    assert "(max_delay)" in found.reason
    assert found.server.count(BAD) == 1


@each_driver
@pytest.mark.parametrize("seconds", [1, 86_400])
def test_a_redirect_to_a_host_that_asked_to_wait(driver: Driver, seconds: int) -> None:
    """A redirect does not lead to a host before its time, as no other request does; nothing is lost.

    A host that asks to wait for too long is left alone for a second, and then gets one request at a time.
    """
    pauses, moves = once(status(429, Retry_After=str(seconds))), 4

    def move(request: Request) -> None:
        request.pause(0.3)  # by then, the other host has asked to wait
        status(302, Location=f"{other.url}{request.path}")(request)

    targets = {f"/{number}.xml": ok(urlset(f"http://x/{number}")) for number in range(moves)}
    with serve_faults({"/pauses.xml": pauses, **targets}, host="127.0.0.2") as other:
        listed = [f"{other.url}/pauses.xml", *(f"{{base}}{path}" for path in targets), "{base}/good.xml"]
        robots = "".join(f"Sitemap: {url}\n" for url in listed)
        site = {"/robots.txt": ok(robots), "/good.xml": ok(urlset("http://x/good")), **dict.fromkeys(targets, move)}
        with serve_faults(site) as server:
            politeness = Politeness(retry_seconds=0.01, max_delay=60)
            tree = driver.tree(server.url, politeness=politeness, limits=PATIENT, allow_hosts=["127.0.0.2"])
    pages = [page.url for page in tree.all_pages()]
    assert pages == ["http://x/bad"] * (seconds == 1) + [*(f"http://x/{at}" for at in range(moves)), "http://x/good"]
    first = other.times("/pauses.xml")[0]
    assert min(other.times(path)[0] for path in targets) - first >= 1.0
    assert server.times("/good.xml")[0] - first < 1.0
    assert sum(map(server.count, targets)) <= 3 * moves


@each_driver
def test_never_anything_but_429(driver: Driver) -> None:
    """A server that always answers 429 is asked a few times, and the sitemap says so."""
    found = visit(driver, status(429, Retry_After="0"), politeness=QUICK)
    assert "429" in found.reason
    assert found.server.count(BAD) == 2


GIB = 1 << 30


def bomb(size: int) -> bytes:
    """Return gzip data that inflates to one page and many spaces: one compressed piece, repeated."""
    block = 1 << 20
    start, rest = zlib.compressobj(9, zlib.DEFLATED, 31), zlib.compressobj(9, zlib.DEFLATED, -15)
    first = start.compress(START) + start.flush(zlib.Z_FULL_FLUSH)
    piece = rest.compress(b" " * block) + rest.flush(zlib.Z_FULL_FLUSH)
    return first + piece * (size // block)


@each_driver
@pytest.mark.parametrize("way", ["file", "transport", "file in file", "file in transport", "twice in transport"])
def test_bomb(driver: Driver, way: str) -> None:
    """A document that inflates to six gigabytes is read up to the limit, with little memory."""
    data = bomb(6 * GIB)  # some 6 MB, which stay in memory; the tree that holds a larger body has an open file
    twice = gzip.compress(data, 1)
    handler = {
        "file": ok(data),
        "transport": ok(data, Content_Encoding="gzip"),
        "file in file": ok(twice),
        "file in transport": ok(twice, Content_Encoding="gzip"),
        "twice in transport": ok(twice, Content_Encoding="gzip, gzip"),
    }[way]
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = memory_peak()
    limits = Limits(request_seconds=5, tree_seconds=10, max_sitemap_bytes=20_000_000)
    found = visit(driver, handler, limits=limits)
    assert re.search("1 pages T804", described(found.sitemap)), described(found.sitemap)
    assert memory_peak() - before < 150_000_000


def memory_peak() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

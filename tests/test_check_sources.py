"""`usp.check.check` takes any source, or several, and returns one report."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from checks import NOW, found_in
from support import FakeClient, Server, index, serve, urlset
from usp.check import check, check_homepage, check_path
from usp.check.formats import FORMATS, render
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.limits import Limits
from usp.politeness import Politeness
from usp.sources import Targets

pytestmark = pytest.mark.network

XML = {"Content-Type": "application/xml"}
TEXT = {"Content-Type": "text/plain"}


def site_pages() -> dict[str, Any]:
    """Return a site whose sitemap is deep in a folder, with a page that the folder does not cover."""
    return {
        "/robots.txt": (200, TEXT, b"Sitemap: {base}/maps/index.xml\nSitemap: {base}/other.xml\n"),
        "/maps/index.xml": (200, XML, index("{base}/maps/a.xml", "{base}/maps/b.xml").encode()),
        "/maps/a.xml": (200, XML, urlset("{base}/1", "{base}/2", "{base}/2").encode()),
        "/maps/b.xml": (200, XML, urlset("{base}/3").encode()),
        "/other.xml": (200, XML, urlset("{base}/4").encode()),
        "/page": (200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html><body>Hello</body></html>"),
    }


def address(site: Server) -> str:
    return site.url.removeprefix("http://")


def test_a_site() -> None:
    """A site gives the report of `check_homepage`."""
    with serve(site_pages()) as site:
        report = check(site.url, now=NOW)
        assert report == check_homepage(site.url, now=NOW)
    assert [code for _, code, _, _ in found_in(report)] == ["P418"]
    assert (report.outcome.kind, report.notes) == ("complete", ())


def test_a_sitemap_alone() -> None:
    """Rules on the whole site and on folders do not apply to a sitemap that is read alone; all others do."""
    with serve(site_pages()) as site:
        report = check(f"{site.url}/maps/index.xml", now=NOW)
        first, *others = site.paths()
        assert (first, sorted(others)) == ("/maps/index.xml", ["/maps/a.xml", "/maps/b.xml"])  # two requests at once
    assert report.target == f"{site.url}/maps/index.xml"
    assert [sitemap.name for sitemap in report.sitemaps] == ["maps/index.xml", "maps/a.xml", "maps/b.xml"]
    assert [(name, code) for name, code, _, _ in found_in(report)] == [("maps/a.xml", "P418")]


def test_other_readings() -> None:
    """The report is that of what was read in the end, and its notes say what that is."""
    with serve(site_pages()) as site:
        page = check(f"{site.url}/page", now=NOW)
        host = check(address(site), now=NOW)
        forced = check(f"{site.url}/page", read_as="sitemap", now=NOW)
    assert page.target == host.target == f"{site.url}/"
    assert page.sitemaps == host.sitemaps
    assert page.notes == (f"{site.url}/page is not a sitemap; reading the whole site {site.url}/",)
    assert host.notes[0].startswith(f"https://{address(site)}/ cannot be reached (")
    assert host.notes[0].endswith(f"); reading {site.url}/")
    assert [code for _, code, _, _ in found_in(forced)] == ["T807"]
    assert forced.outcome.kind == "empty"


@pytest.mark.parametrize(("status", "kind"), [(404, "empty"), (403, "blocked"), (503, "blocked")])
def test_a_sitemap_that_is_not_there(status: int, kind: str) -> None:
    """A sitemap that cannot be fetched is a problem with the reason, and the outcome says what happened."""
    with serve({"/a.xml": (status, {}, b"")}) as site:
        report = check(f"{site.url}/a.xml", now=NOW, politeness=Politeness(tries=1))
        assert site.paths() == ["/a.xml"]
    (problem,) = report.problems()
    assert problem.code == "T807"
    assert f": {status} " in problem.message
    assert (report.outcome.kind, report.is_reached) == (kind, True)
    report = check(f"{site.url}/a.xml", now=NOW, politeness=Politeness(tries=1))
    assert (report.outcome.kind, report.is_reached) == ("unreachable", False)


def test_files(tmp_path: Path) -> None:
    """Files and folders give the reports of `check_path`."""
    (tmp_path / "robots.txt").write_text("User-agent: *\n")
    path = tmp_path / "sitemap.xml"
    path.write_text(urlset("https://www.example.org/1", "https://www.example.org/1"))
    for target in (path, tmp_path, str(tmp_path)):
        for url in (None, "https://www.example.org/maps/"):
            assert check(target, url=url, now=NOW) == check_path(target, url=url, now=NOW)
    root, *files = check(tmp_path).sitemaps
    assert not root.is_file
    assert all(sitemap.is_file for sitemap in files)


def test_notes_on_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes of a report say that a target is a folder here, and which sitemaps a file lists."""
    monkeypatch.chdir(tmp_path)
    Path("example.org").mkdir()
    Path("example.org/sitemap.xml").write_text(index("https://www.example.org/a.xml"))
    assert check("example.org").notes == ("example.org is a folder here; for the site, write https://example.org",)
    assert len(check("example.org/sitemap.xml").notes) == 2


def test_several(tmp_path: Path) -> None:
    """Several sources give one report, in their order. Sitemaps on the web have their whole URLs as names."""
    path = tmp_path / "sitemap.xml"
    path.write_text(urlset("https://www.example.org/1"))
    with serve(site_pages()) as site, serve(site_pages()) as other:
        report = check([site.url, path, f"{other.url}/maps/a.xml", f"{other.url}/gone.xml"], now=NOW)
    assert report.target == f"{site.url}/, {path}, {other.url}/maps/a.xml, {other.url}/gone.xml"
    names = [sitemap.name for sitemap in report.sitemaps]
    paths = ("/", "/robots.txt", "/maps/index.xml", "/maps/a.xml", "/maps/b.xml", "/other.xml")
    assert names == [
        *(site.url + path for path in paths),
        str(path),
        f"{other.url}/maps/a.xml",
        f"{other.url}/gone.xml",
    ]
    assert (report.outcome.kind, report.is_reached, report.pages) == ("partial", True, 4 + 1 + 2)
    assert [code for _, code, _, _ in found_in(report)] == ["P418", "P418", "T807"]
    for name in FORMATS:
        assert "".join(render(name, report))


def test_options_reach_every_source(tmp_path: Path) -> None:
    """Options apply to every source. An option that does not exist raises before anything is read."""
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_text(urlset("https://www.example.org/1"))
    with serve(site_pages()) as site:
        report = check([site.url, tmp_path], exclude=r"b\.xml", now=NOW)
        assert not any(path == "/maps/b.xml" for path in site.paths())
        asked = len(site.requests)
        with pytest.raises(TypeError, match="no_such"):
            check([site.url, tmp_path], no_such=1)  # type: ignore[call-arg]
        assert len(site.requests) == asked
    assert str(tmp_path / "b.xml") not in {sitemap.name for sitemap in report.sitemaps}


def test_no_sitemap_is_no_problem_if_some_are_left_out() -> None:
    """R711 is reported only if nothing leaves sitemaps out."""
    with serve({"/robots.txt": (200, TEXT, b"User-agent: *\n")}) as site:
        assert [problem.code for problem in check(site.url).problems()] == ["R711"]
        assert list(check(site.url, exclude="xml").problems()) == []


def test_wrong_use() -> None:
    """Wrong arguments raise before anything is read."""
    wrong: list[Targets] = [[], "no-such-file.xml", "", "ftp://example.org/"]
    for targets in wrong:
        with pytest.raises(InvalidArgumentError):
            check(targets)
    with pytest.raises(InvalidArgumentError, match="time zone"):
        check("-", now=NOW.replace(tzinfo=None))


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C leaves a report of everything that was read until then."""
    path = tmp_path / "sitemap.xml"
    path.write_text(urlset("https://www.example.org/1"))
    home, is_first = "https://www.example.org/", Event()

    def answer(url: str) -> Any:
        if url.endswith("b.xml"):
            is_first.set()
            raise KeyboardInterrupt
        return {
            f"{home}robots.txt": f"Sitemap: {home}a.xml\nSitemap: {home}b.xml",
            f"{home}a.xml": urlset(f"{home}2", f"{home}2"),
        }.get(url)

    with pytest.raises(TreeInterrupted) as caught:
        check([path, home, "never.example.org"], FakeClient(answer), now=NOW, limits=Limits(tree_seconds=30))
    assert is_first.is_set()
    report = caught.value.report
    assert report is not None
    assert [sitemap.name for sitemap in report.sitemaps][:4] == [str(path), home, f"{home}robots.txt", f"{home}a.xml"]
    assert "P418" in report.counts()

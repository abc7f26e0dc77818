"""The benchmark tool itself: its files are what they are said to be, its arithmetic and verdicts right. No network."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from bench import answers, cli, documents, environments, measure, networks, report, rows, wholes
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.tools

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[measure.Workshop]:
    with measure.Workshop(tmp_path, rounds=2) as workshop:
        yield workshop


def row(**changes: object) -> rows.Row:
    sides = {"ours": measure.Subject("usp", "urls", "urlset.xml"), "theirs": measure.Subject("1.8.1", "urls", "a.xml")}
    values = {"name": "a", "group": "a", "what": "pages", "against": "1.8.1", "target": report.Target(50)}
    return rows.Row(**{**sides, **values, **changes})  # type: ignore[arg-type]  # the caller's business


def side(*seconds: float, **found: object) -> measure.Measured:
    return measure.Measured({"pages": 10, "checksum": "c", **found}, list(seconds))


def test_urlset_is_always_the_same() -> None:
    """The generated sitemap does not depend on the Python or the day."""
    assert hashlib.sha256(documents.urlset(1000)).hexdigest()[:16] == "82c4d422744b3b31"
    assert hashlib.sha256(documents.news(100)).hexdigest()[:16] == "442ddf524db08958"


def test_urlset_has_what_it_says() -> None:
    """50,000 entries of about 11.1 MB, indented, all fields in each, dates nearly all different, some ampersands."""
    data = documents.urlset()
    assert abs(len(data) - 11_100_000) < 200_000
    fields = (
        r"\n  <url>\n    <loc>(.*)</loc>\n    <lastmod>(.*)</lastmod>\n    <changefreq>.*</changefreq>\n    <priority>"
    )
    entries = re.findall(fields.encode(), data)
    assert len(entries) == 50_000
    assert len({location for location, _ in entries}) == 50_000
    assert len({date for _, date in entries}) > 49_900
    assert sum(b"&amp;" in location for location, _ in entries) == 10_000
    assert data.count(b"&") == 10_000


def test_news_has_what_it_says() -> None:
    """Each page has a whole story, an image and two languages."""
    pages = list(sitemap_from_bytes(documents.news(50)).all_pages())
    assert len(pages) == 50
    for page in pages:
        assert page.news_story
        assert page.news_story.publish_date
        assert (page.news_story.publication_name, page.news_story.publication_language) == ("The Example Times", "en")
        assert len(page.news_story.keywords) == 3
        assert page.images
        assert page.images[0].title
        assert page.images[0].caption
        assert [language for language, _ in page.alternates or ()] == ["de", "fr"]


def test_site_repeats_no_page(tmp_path: Path) -> None:
    """The sitemaps of a site are gzipped and all different."""
    documents.write_site(tmp_path / "site", sitemaps=3, pages=20)
    bodies = [gzip.decompress(path.read_bytes()) for path in (tmp_path / "site").iterdir()]
    assert len({page.url for body in bodies for page in sitemap_from_bytes(body).all_pages()}) == 60


@pytest.mark.parametrize("kind", documents.HOSTILE)
def test_hostile_documents_are_as_large_as_they_should_be(kind: str, tmp_path: Path) -> None:
    """A hostile document has the size that was asked for, and the pages that were counted."""
    pages = documents.write_hostile(tmp_path / "hostile.xml", kind, 200_000)
    data = (tmp_path / "hostile.xml").read_bytes()
    assert abs(len(data) - 200_000) < 1_000
    assert len(list(sitemap_from_bytes(data).all_pages())) == pages == data.count(b"<loc>")
    if kind == "attributes":
        names = re.findall(rb' ([a-z]{6})=""', data)
        assert len(names) == len(set(names)) == 19_950
    elif kind == "depth":
        assert data.count(b"<a>") == data.count(b"</a>") == 28_500
    else:
        assert max(map(len, re.findall(rb">([^<]*)<", data))) > 179_000


def test_ratio_is_of_the_best() -> None:
    """A ratio is that of the best of each side; its spread is that of single rounds."""
    assert measure.Ratio(5, 4, 10) == measure.Ratio.of([10, 12, 20], [2, 3, 2])
    assert measure.Ratio(2, 1.5, 4) == wholes.growth([[1, 1, 2], [2, 4, 3]])
    assert measure.Ratio(2, 1.5, 4) == wholes.rise([[1, 1, 2], [2, 4, 3]])
    assert measure.Ratio(0.5, 0.5, 0.5) == wholes.rise([[4, 4], [2, 2], [1, 1]])


@pytest.mark.parametrize(
    ("target", "number", "is_met"),
    [
        (report.Target(50), 50, True),
        (report.Target(50), 49.99, False),
        (report.Target(0.8, "x its time", is_most=True), 0.8, True),
        (report.Target(0.8, "x its time", is_most=True), 0.801, False),
    ],
)
def test_targets(target: report.Target, number: float, is_met: bool) -> None:
    """A target is met at its very number, and a number is not rounded first."""
    assert target.is_met_by(number) is is_met


def test_faster_row_is_met() -> None:
    """A row at its target is met, and says its ratio, spread, and times."""
    result = rows.judged(row(), side(0.1, 0.2), side(6.0, 5.0))
    assert (result.verdict, result.found, result.spread) == (report.Verdict.MET, "50.0x as fast", "25.0..60.0x in 2")
    assert result.detail == "100 ms (worst 200 ms) against 5.00 s (worst 6.00 s), 10 pages"


def test_slower_row_is_missed() -> None:
    """A row that misses its target is shown as missed, in the table and on the page."""
    result = rows.judged(row(), side(1.0), side(2.0))
    assert (result.verdict, result.found) == (report.Verdict.MISSED, "2.00x as fast")
    assert "at least 50x as fast  MISSED" in report.table([result])
    assert "| at least 50x as fast | MISSED |" in report.page([result], {"usp": "1"}, is_compiled=False)
    assert report.summary([result]) == "1 rows: 1 missed"


def test_share_of_time_is_ours_of_theirs() -> None:
    """Where a share of a time is wanted, less is better."""
    share = row(target=report.Target(0.8, "x its time", is_most=True))
    assert _verdict_and_found(rows.judged(share, side(1.0), side(2.0))) == (report.Verdict.MET, "0.50x its time")
    assert _verdict_and_found(rows.judged(share, side(2.0), side(1.0))) == (report.Verdict.MISSED, "2.00x its time")


def _verdict_and_found(result: report.Result) -> tuple[report.Verdict, str]:
    return result.verdict, result.found


@pytest.mark.parametrize("found", [{"pages": 9}, {"checksum": "d"}])
def test_reading_something_else_never_wins(found: dict[str, object]) -> None:
    """A side that finds other pages or values loses the row, however fast."""
    result = rows.judged(row(), side(0.001, **found), side(9.0))
    assert result.verdict is report.Verdict.MISSED
    assert "not of the same" in result.found


def test_what_is_not_there_is_skipped_and_what_fails_is_missed() -> None:
    """Missing modules skip a row; a side that fails misses it. Both say why."""
    missing, failed = measure.NotMeasured("No module named 'x'", is_skipped=True), measure.NotMeasured("out of memory")
    skipped = rows.judged(row(), missing, side(1.0))
    assert _verdict_and_found(skipped) == (report.Verdict.SKIPPED, "ours not there yet: No module named 'x'")
    assert _verdict_and_found(rows.judged(row(), failed, side(1.0))) == (
        report.Verdict.MISSED,
        "ours failed: out of memory",
    )


def test_without_a_target_there_is_no_verdict() -> None:
    """Rows for information are neither met nor missed."""
    assert rows.judged(row(target=None), side(1.0), side(1.0)).verdict is report.Verdict.NONE


def test_wide_cells_go_on_below() -> None:
    """Every line of the table has its columns at the same places."""
    lines = report.table([rows.judged(row(what="word " * 20), side(1.0), side(2.0))]).splitlines()
    assert len(lines) > 3
    assert {line[18:20] for line in lines} == {"  "}


def test_workers_measure_in_turn(workshop: measure.Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process reads a file, says what it found, and how long that takes; one that cannot is left out."""
    monkeypatch.setattr(documents, "urlset", lambda: b"<urlset><url><loc>http://site.example/</loc></url></urlset>")
    good, bad = measure.Subject("usp", "urls", "urlset.xml"), measure.Subject("usp", "no task", "urlset.xml")
    asked: list[str] = []
    results = measure.interleaved([good, bad, good], workshop, asked.append)
    measured, not_measured = results[good], results[bad]
    assert isinstance(measured, measure.Measured)
    assert (measured.found["pages"], len(measured.seconds)) == (1, 2)
    assert isinstance(not_measured, measure.NotMeasured)
    assert "no task" in str(not_measured)
    assert asked[-2:] == ["usp: urls, round 2 of 2", "usp: no task, round 2 of 2"]


def test_worker_that_takes_too_long_is_ended(workshop: measure.Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request takes longer than the limit, and the next one has a new process."""
    monkeypatch.setattr(measure, "REQUEST_SECONDS", 0)
    with pytest.raises(measure.NotMeasured, match="not done after 0 s"):
        workshop.worker("usp").ask("about", package="usp")
    monkeypatch.undo()
    assert workshop.worker("usp").ask("about", package="usp")["version"]


def test_sites_are_served_and_read(workshop: measure.Workshop) -> None:
    """A site is served by a process of its own, which is gone when the workshop is closed."""
    homepage = workshop.site(sitemaps=2, pages=30)
    with workshop.fresh_worker("usp") as worker:
        answer = worker.ask("site", url=homepage, times=2, warm_up=homepage)
    assert answer["pages"] == 60
    assert answer["memory"] > 1_000_000
    workshop.__exit__()
    with pytest.raises(OSError, match="refused"):
        urlopen(homepage, timeout=5)  # noqa: S310 -- on loopback


def test_answers_leave_after_their_delay(workshop: measure.Workshop) -> None:
    """A server answers as late as it should, also to two requests at once, and keeps connections open."""
    homepage = workshop.site(1, 10, delay=0.2)
    assert workshop.site(1, 10, delay=0.2) == homepage
    with (
        closing(HTTPConnection(urlsplit(homepage).netloc)) as one,
        closing(HTTPConnection(one.host, one.port)) as other,
    ):
        for path, status in (("/robots.txt", 200), ("/nothing", 404)):
            start = time.perf_counter()
            one.request("GET", path)
            other.request("GET", path)
            responses = [one.getresponse(), other.getresponse()]
            assert {(response.status, bool(response.read())) for response in responses} == {(status, True)}
            assert 0.2 <= time.perf_counter() - start < 0.39


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one")
def test_sites_of_one_page_have_hosts_of_their_own(workshop: measure.Workshop) -> None:
    """Many sites are served, each at its own address, and a worker finds the page of each, in their order."""
    homepages = workshop.sites(300, delay=0.01)
    assert len({urlsplit(homepage).hostname for homepage in homepages}) == 300
    sample = homepages[::100]
    with workshop.fresh_worker("usp") as worker:
        found = worker.ask("crawl sites", urls=sample, warm_up=homepages[1])
        at_once = worker.ask("crawl sites asyncio", urls=sample, warm_up=homepages[1], at_once=2)
    expected = answers.summary(f"{homepage}page" for homepage in sample)
    assert {**found, **expected} == found
    assert {**at_once, **expected} == at_once


@pytest.mark.parametrize("driver", ["threads", "asyncio"])
def test_crawls_count_waiting(workshop: measure.Workshop, driver: str) -> None:
    """A crawl takes the time of its waits, and says which pages it found."""
    homepage = workshop.site(sitemaps=2, pages=30, delay=0.05)
    with workshop.fresh_worker("usp") as worker:
        answer = worker.ask("crawl", url=homepage, warm_up=workshop.site(1, 10), driver=driver, concurrency=2)
    bodies = [gzip.decompress(path.read_bytes()) for path in (workshop.folder / "site-2-30").iterdir()]
    urls = [page.url for body in bodies for page in sitemap_from_bytes(body).all_pages()]
    expected = answers.unordered_summary(urls)
    assert expected == {"pages": answer["pages"], "checksum": answer["checksum"]}
    assert answer["seconds"] > 0.15  # robots.txt, the index, and two sitemaps at once


def test_unordered_summary() -> None:
    """Pages in another order are the same; one that is missing, another or there twice is not."""
    expected = answers.unordered_summary(["a", "b", "c"])
    assert answers.unordered_summary(["c", "a", "b"]) == expected
    others = [["a", "b"], ["a", "b", "d"], ["a", "b", "b"], ["a", "b", "c", "c"]]
    assert expected not in [answers.unordered_summary(other) for other in others]


def test_all_rounds_are_compared_with_the_only_one_of_a_slow_side() -> None:
    """What is too slow to be measured more than once is what each round of ours is compared with."""
    ours = [{"pages": 10, "checksum": "c", "seconds": seconds} for seconds in (2.0, 1.0)]
    theirs = {"pages": 10, "checksum": "c", "seconds": 30.0}
    is_met, found, spread, detail = networks.compared(ours, [theirs], report.Target(30))
    assert (is_met, found, spread) == (True, "30.0x as fast", "15.0..30.0x in 2")
    assert detail == "1.00 s (worst 2.00 s) against 30.0 s (once), 10 pages"
    with pytest.raises(measure.NotMeasured, match="not of the same"):
        networks.compared(ours, [{**theirs, "checksum": "d"}], report.Target(30))


def test_side_that_is_measured_once_is_not_charged_for_a_busy_machine() -> None:
    """Its time is at most its processor time and its waits, and never more than what passed."""
    assert networks.undisturbed({"seconds": 9.0, "cpu": 2.0}, requests=20)["seconds"] == 3.0
    assert networks.undisturbed({"seconds": 2.5, "cpu": 2.0}, requests=20)["seconds"] == 2.5


@pytest.mark.parametrize(
    ("reason", "verdict", "found"),
    [
        (measure.NotMeasured("no module", is_skipped=True), report.Verdict.SKIPPED, "not there yet: no module"),
        (measure.NotMeasured("out of memory"), report.Verdict.MISSED, "failed: out of memory"),
    ],
)
def test_wholes_that_are_not_measured(
    workshop: measure.Workshop, reason: measure.NotMeasured, verdict: report.Verdict, found: str
) -> None:
    """A row whose modules are missing is skipped; one that fails is missed."""

    def fail(*_: object) -> wholes.Outcome:
        raise reason

    whole = wholes.Whole("a", "pages", "", report.Target(50), fail)
    assert _verdict_and_found(whole.result(workshop, lambda _: None)) == (verdict, found)


def test_index_that_cannot_be_reached_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a package index, people read one line, not a traceback."""
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert cli.main(["--only", "lxml"]) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: cannot install lxml: No matching distribution found for lxml; is there a network")


def test_list_names_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` names each row once, in the order of the table."""
    assert cli.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == cli.NAMES
    assert len(set(cli.NAMES)) == len(cli.NAMES)


@contextmanager
def results_of(monkeypatch: pytest.MonkeyPatch, *results: report.Result) -> Iterator[None]:
    monkeypatch.setattr(cli, "measured", lambda *_: list(results))
    monkeypatch.setattr(cli, "versions", lambda *_: {"usp": "1"})
    yield


def test_only_strict_fails_for_missed_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missed target is said, and fails only if that is asked for."""
    with results_of(monkeypatch, rows.judged(row(), side(1.0), side(2.0))):
        assert cli.main(["--only", "import"]) == 0
        assert cli.main(["--only", "import", "--strict"]) == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--rounds", "0"], ["--write", "--only", "urls"]])
def test_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong options are refused before anything is installed or measured."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "bench: error: " in capsys.readouterr().err

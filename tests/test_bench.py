"""The benchmark tool: its documents are what they claim, its sums and verdicts are right, and it runs. No network."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from bench import against, cli, crawls, documents, measures, report, rows, small_sites
from bench import workshop as workshops
from bench.measures import Measured, Outcome, Ratio, Sample, Subject
from bench.report import Result, Target, Verdict
from bench.workshop import FILES, ROOT, NotMeasured, Workshop
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.tools


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with Workshop(tmp_path, rounds=2) as workshop:
        yield workshop


def side(*seconds: float, **found: object) -> Measured:
    return Measured({"pages": 10, "checksum": "c", **found}, list(seconds))


def row(outcome: Outcome | NotMeasured, target: Target | None = Target(50)) -> rows.Row:  # noqa: B008 -- it is frozen
    def measure(*_: object) -> Outcome:
        if isinstance(outcome, NotMeasured):
            raise outcome
        return outcome

    return rows.Row("a", "pages", "1.8.1", target, measure, lambda _: Sample(1.0))


def result(outcome: Outcome | NotMeasured, workshop: Workshop) -> Result:
    return row(outcome).result(workshop, lambda _: None)


# Documents


def test_documents_are_always_the_same() -> None:
    """The generated sitemaps do not depend on the Python or the day."""
    assert hashlib.sha256(documents.urlset(1000)).hexdigest()[:16] == "82c4d422744b3b31"
    assert hashlib.sha256(documents.news(100)).hexdigest()[:16] == "442ddf524db08958"
    assert hashlib.sha256(documents.references(100)).hexdigest()[:16] == "d4cff45db62f8852"


@pytest.mark.parametrize("name", ["rss", "atom", "text"])
def test_feeds_and_texts_have_what_they_say(name: str) -> None:
    """Each entry has a page of its own, and in feeds a news story with a date."""
    pages = list(sitemap_from_bytes(FILES[name](50)).all_pages())
    assert len({page.url for page in pages}) == 50
    stories = [page.news_story for page in pages if page.news_story is not None]
    assert len([story for story in stories if story.publish_date is not None]) == (0 if name == "text" else 50)


def test_index_has_what_it_says() -> None:
    """Each sitemap of an index has a URL of its own."""
    assert len({child.url for child in sitemap_from_bytes(documents.index(50)).sub_sitemaps}) == 50


def test_urlset_has_what_it_says() -> None:
    """A page takes about 222 bytes, has all fields, and a date of its own; every fifth URL has an ampersand."""
    data = documents.urlset(5_000)
    assert abs(len(data) - 1_110_000) < 20_000
    fields = (
        r"\n  <url>\n    <loc>(.*)</loc>\n    <lastmod>(.*)</lastmod>\n    <changefreq>.*</changefreq>\n    <priority>"
    )
    entries = re.findall(fields.encode(), data)
    assert len(entries) == len({location for location, _ in entries}) == 5_000
    assert len({date for _, date in entries}) > 4_990
    assert sum(b"&amp;" in location for location, _ in entries) == data.count(b"&") == 1_000
    assert documents.URLSET_PAGES == 50_000


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


def test_references_have_what_they_say() -> None:
    """Each title has two references, and the name of each publication one; all else is as without references."""
    data, without = documents.references(50), documents.news(50)
    assert data.count(b"&#8217;") == 50
    assert data.count(b"&amp;") == without.count(b"&amp;") + 100
    for page, plain in zip(sitemap_from_bytes(data).all_pages(), sitemap_from_bytes(without).all_pages(), strict=True):
        assert page.news_story
        assert plain.news_story
        assert page.news_story.publication_name == "Example & Times"
        assert page.news_story.title == plain.news_story.title.replace(" and the ", " & the day\u2019s ")
        assert (page.url, page.images, page.alternates) == (plain.url, plain.images, plain.alternates)


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


# Sums and verdicts


def test_ratio_is_of_the_best() -> None:
    """A ratio is that of the best of each side; its spread is that of single rounds."""
    assert Ratio.of([10, 12, 20], [2, 3, 2]) == Ratio(5, 4, 10)
    assert measures.growth([[1, 1, 2], [2, 4, 3]]) == Ratio(2, 1.5, 4)
    assert measures.rise([[1, 1, 2], [2, 4, 3]]) == Ratio(2, 1.5, 4)
    assert measures.rise([[4, 4], [2, 2], [1, 1]]) == Ratio(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("target", "number", "is_met"),
    [
        (Target(50), 50, True),
        (Target(50), 49.99, False),
        (Target(0.8, "x its time", is_most=True), 0.8, True),
        (Target(0.8, "x its time", is_most=True), 0.801, False),
    ],
)
def test_targets(target: Target, number: float, is_met: bool) -> None:
    """A target is met at its very number, and a number is not rounded first."""
    assert target.is_met_by(number) is is_met


def test_faster_side_is_met() -> None:
    """A side that reaches its target is met, with its ratio, spread and times."""
    assert measures.compared(side(0.1, 0.2), side(6.0, 5.0), Target(50)) == Outcome(
        True,
        "50.0x as fast",
        "25.0..60.0x in 2",
        "100 ms (worst 200 ms) against 5.00 s (worst 6.00 s), 10 pages, 10.0 ms each",
    )
    assert measures.compared(side(1.0), side(1.0), None).is_met is None


def test_slower_row_is_missed(workshop: Workshop) -> None:
    """A row that misses its target is shown as missed, in the table and on the page."""
    missed = result(measures.compared(side(1.0), side(2.0), Target(50)), workshop)
    assert (missed.verdict, missed.found) == (Verdict.MISSED, "2.00x as fast")
    assert "at least 50x as fast  MISSED" in report.table([missed])
    assert "| at least 50x as fast | MISSED |" in report.page([missed], {"usp": "1"}, is_compiled=False)
    assert report.summary([missed]) == "1 rows: 1 missed"


def test_share_of_time_is_ours_of_theirs() -> None:
    """Where the target is a share of a time, less is better."""
    share = Target(0.8, "x its time", is_most=True)
    assert measures.compared(side(1.0), side(2.0), share)[:2] == (True, "0.50x its time")
    assert measures.compared(side(2.0), side(1.0), share)[:2] == (False, "2.00x its time")


@pytest.mark.parametrize("found", [{"pages": 9}, {"checksum": "d"}])
def test_reading_something_else_never_wins(found: dict[str, object], workshop: Workshop) -> None:
    """A side that finds other pages or values loses the row, however fast it is."""
    with pytest.raises(NotMeasured, match="not of the same") as reason:
        measures.compared(side(0.001, **found), side(9.0), Target(50))
    assert result(reason.value, workshop).verdict is Verdict.MISSED


def test_missing_modules_skip_a_row_and_failures_miss_it(workshop: Workshop) -> None:
    """A missing module skips a row; a side that fails misses it. Both say why. Without a target there is no verdict."""
    skipped = result(NotMeasured("No module named 'x'", is_skipped=True), workshop)
    assert (skipped.verdict, skipped.found) == (Verdict.SKIPPED, "not there yet: No module named 'x'")
    failed = result(NotMeasured("out of memory"), workshop)
    assert (failed.verdict, failed.found) == (Verdict.MISSED, "failed: out of memory")
    assert result(Outcome(None, "1.00x as fast", ""), workshop).verdict is Verdict.NONE


def test_one_round_of_a_slow_side_counts_for_all_of_ours() -> None:
    """A side that is too slow to be measured twice is compared with each round of ours."""
    ours = [{"pages": 10, "checksum": "c", "seconds": seconds} for seconds in (2.0, 1.0)]
    theirs = {"pages": 10, "checksum": "c", "seconds": 30.0}
    detail = "1.00 s (worst 2.00 s) against 30.0 s (once), 10 pages"
    expected = Outcome(True, "30.0x as fast", "15.0..30.0x in 2", detail)
    assert measures.faster(ours, [theirs], Target(30)) == expected
    with pytest.raises(NotMeasured, match="not of the same"):
        measures.faster(ours, [{**theirs, "checksum": "d"}], Target(30))


def test_side_that_is_measured_once_is_not_charged_for_a_busy_machine() -> None:
    """Its time is at most its processor time and its waits, and never more than what passed."""
    assert measures.undisturbed({"seconds": 9.0, "cpu": 2.0}, requests=20)["seconds"] == 3.0
    assert measures.undisturbed({"seconds": 2.5, "cpu": 2.0}, requests=20)["seconds"] == 2.5


def test_unordered_summary() -> None:
    """Pages in another order are the same; one that is missing, another or there twice is not."""
    expected = crawls.unordered_summary(["a", "b", "c"])
    assert crawls.unordered_summary(["c", "a", "b"]) == expected
    others = [["a", "b"], ["a", "b", "d"], ["a", "b", "b"], ["a", "b", "c", "c"]]
    assert expected not in [crawls.unordered_summary(other) for other in others]


def test_wide_cells_go_on_below() -> None:
    """Every line of the table has its columns at the same places."""
    lines = report.table([Result("a", "word " * 20, "", "", "", "", Verdict.MET)]).splitlines()
    assert len(lines) > 3
    assert {line[18:20] for line in lines} == {"  "}


# Workers and servers


def test_workers_measure_in_turn(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes read a file, say what they found, and are timed in turn; one that cannot says why."""
    document = b"<urlset><url><loc>http://site.example/</loc></url></urlset>"
    monkeypatch.setitem(FILES, "urlset", lambda: document)
    asked: list[str] = []
    ours = Subject("usp", "urls", "urlset.xml"), Subject("usp", "fields", "urlset.xml")
    measured = measures.interleaved(ours, workshop, asked.append)
    assert [(side.found["pages"], len(side.seconds)) for side in measured] == [(1, 2), (1, 2)]
    assert asked[-2:] == ["usp: urls, round 2 of 2", "usp: fields, round 2 of 2"]
    with pytest.raises(NotMeasured, match="usp: KeyError: 'no task'"):
        measures.side_once(Subject("usp", "no task", "urlset.xml"), workshop)


def test_worker_that_takes_too_long_is_ended(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request takes longer than the limit, and the next one has a new process."""
    monkeypatch.setattr(workshops, "REQUEST_SECONDS", 0)
    with pytest.raises(NotMeasured, match="not done after 0 s"):
        workshop.worker("usp").ask("about", package="usp")
    monkeypatch.undo()
    assert workshop.worker("usp").ask("about", package="usp")["version"]


def test_sites_are_served_and_read(workshop: Workshop) -> None:
    """A site is served by a process of its own, which is gone when the workshop is closed."""
    homepage = workshop.site(sitemaps=2, pages=30)
    answer = workshop.ask_ours(60, "site", url=homepage, times=2, warm_up=homepage)
    assert answer["memory"] > 1_000_000
    workshop.__exit__()
    with pytest.raises(OSError, match="refused"):
        urlopen(homepage, timeout=5)  # noqa: S310 -- on loopback


def test_responses_leave_after_their_delay(workshop: Workshop) -> None:
    """A server delays two requests at once by the same time, not by the sum, and keeps connections open."""
    delay = 0.2
    homepage = workshop.site(1, 10, delay=delay)
    assert workshop.site(1, 10, delay=delay) == homepage
    with (
        closing(HTTPConnection(urlsplit(homepage).netloc)) as one,
        closing(HTTPConnection(one.host, one.port)) as other,
    ):
        fastest = float("inf")  # of several tries: a busy machine is late now and then
        for path, status in (("/robots.txt", 200), ("/nothing", 404)) * 3:
            start = time.perf_counter()
            one.request("GET", path)
            other.request("GET", path)
            responses = [one.getresponse(), other.getresponse()]
            assert {(response.status, bool(response.read())) for response in responses} == {(status, True)}
            fastest = min(fastest, time.perf_counter() - start)
        assert delay <= fastest < 2 * delay


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one")
def test_sites_of_one_page_have_hosts_of_their_own(workshop: Workshop) -> None:
    """Many sites are served, each at its own address, and a worker finds the page of each, in their order."""
    homepages = workshop.sites(300, delay=0.01)
    assert len({urlsplit(homepage).hostname for homepage in homepages}) == 300
    sample = homepages[::100]
    with workshop.fresh_worker("usp") as worker:
        found = worker.ask("crawl sites", urls=sample, warm_up=homepages[1])
        at_once = worker.ask("crawl sites asyncio", urls=sample, warm_up=homepages[1], at_once=2)
    expected = crawls.summary(f"{homepage}page" for homepage in sample)
    assert {**found, **expected} == found
    assert {**at_once, **expected} == at_once


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one")
def test_small_sites_cost_each_side_the_same_requests(workshop: Workshop) -> None:
    """Both sides fetch robots.txt, the index, and the two to five sitemaps of each site, and count processor time."""
    homepages = workshop.small_sites(6, pages=10)
    assert len({urlsplit(homepage).hostname for homepage in homepages}) == 6
    for side in small_sites.SIDES:
        with workshop.fresh_worker("usp") as worker:
            answer = worker.ask("small sites", side=side, urls=homepages, warm_up=homepages[:1], at_once=3)
        assert answer["documents"] == 2 * 6 + (2 + 3 + 4 + 5 + 2 + 3)
        assert answer["cpu"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one")
def test_small_sites_are_crawled_into_a_folder_twice(workshop: Workshop) -> None:
    """The second run asks for all documents, gets no body, and finds the same pages, as aiohttp alone does."""
    homepages = workshop.small_sites(6, pages=10)
    asked = {"urls": homepages, "warm_up": homepages[:1], "at_once": 3}
    with workshop.fresh_worker("usp") as worker:
        first, second = worker.ask("small sites crawled", runs=2, **asked)["runs"]
    assert first["pages"] == second["pages"] == 10 * (2 + 3 + 4 + 5 + 2 + 3)
    assert first["requests"] == second["requests"] == 2 * 6 + (2 + 3 + 4 + 5 + 2 + 3)
    assert (first["bytes"] > 0, second["bytes"]) == (True, 0)
    assert min(first["cpu"], second["cpu"], first["stored"], second["stored"]) > 0
    names = [path.name for path in sorted(workshop.site_folder(5, 10).iterdir())]
    with workshop.fresh_worker("usp") as worker:
        assert worker.ask("small sites asked again", names=names, **asked)["documents"] == second["requests"]


def test_probes_count_waiting(workshop: Workshop) -> None:
    """A probe fetches all pages of the site, and takes the time of its waits."""
    homepage, warm_up = workshop.listed_pages(30, 0.05), workshop.listed_pages(2, 0.01)
    with workshop.fresh_worker("usp") as worker:
        answer = worker.ask("probe", url=homepage, warm_up=warm_up, concurrency=10)
    assert answer["pages"] == 30
    assert answer["seconds"] > 0.2  # robots.txt, the sitemap, and three pages one after another


def test_crawls_count_waiting(workshop: Workshop) -> None:
    """A crawl takes the time of its waits, and says which pages it found."""
    homepage, warm_up = workshop.site(sitemaps=2, pages=30, delay=0.05), workshop.site(1, 10)
    bodies = [gzip.decompress(path.read_bytes()) for path in workshop.site_folder(2, 30).iterdir()]
    expected = crawls.unordered_summary(page.url for body in bodies for page in sitemap_from_bytes(body).all_pages())
    with workshop.fresh_worker("usp") as worker:
        for driver in ("threads", "asyncio"):
            answer = worker.ask("crawl", url=homepage, warm_up=warm_up, driver=driver, concurrency=2)
            assert expected == {"pages": answer["pages"], "checksum": answer["checksum"]}
            assert answer["seconds"] > 0.15  # robots.txt, the index, and two sitemaps at once


# The command


def test_package_index_that_cannot_be_reached_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a package index, people read one line, not a traceback."""
    monkeypatch.setattr(workshops, "FOLDER", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert cli.main(["--only", "lxml"]) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: cannot install lxml: No matching distribution found for lxml; is there a network")


def test_list_names_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` names each row once, in the order of the table."""
    assert cli.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == rows.NAMES
    assert len(set(rows.NAMES)) == len(rows.NAMES)


def test_only_strict_fails_for_missed_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], workshop: Workshop
) -> None:
    """A missed target is said, and fails only if that is asked for."""
    missed = result(measures.compared(side(1.0), side(2.0), Target(50)), workshop)
    monkeypatch.setattr(cli, "measured", lambda *_: [missed])
    monkeypatch.setattr(cli, "versions", lambda *_: {"usp": "1"})
    assert cli.main(["--only", "import"]) == 0
    assert cli.main(["--only", "import", "--strict"]) == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["--only", "nothing"], ["--rounds", "0"], ["--write", "--only", "urls"], ["--write", "--against", "."]],
)
def test_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong options are refused before anything is installed or measured."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "bench: error: " in capsys.readouterr().err


# Two checkouts


def samples(*numbers: float) -> tuple[Sample, ...]:
    return tuple(map(Sample, numbers))


@pytest.mark.parametrize(
    ("here", "there", "is_slower"),
    [((1.0, 1.2), (1.0, 1.1), False), ((1.02, 1.3), (1.0, 1.0), False), ((1.04, 1.04), (1.0, 1.0), True)],
)
def test_more_than_three_percent_is_slower(here: tuple[float, ...], there: tuple[float, ...], is_slower: bool) -> None:
    """A checkout is slower if its best round takes over 3% longer than the best round of the other."""
    comparison = against.Comparison("urls", samples(*here), samples(*there))
    assert comparison.is_slower is is_slower
    assert ("SLOWER" in str(comparison)) is is_slower


def test_row_that_fails_in_a_checkout_is_said(workshop: Workshop) -> None:
    """A row that cannot be measured in one of the checkouts has failed; the others are measured."""

    def fail(workshop: Workshop) -> Sample:
        raise NotMeasured("no such task")

    good = row(Outcome(None, "", ""))
    bad = rows.Row("bad", "", "", None, good.measure, fail)
    failed, measured = against.compare([bad, good], workshop, ROOT.parent / ROOT.name, lambda _: None)
    assert (failed.is_slower, failed.failure) == (True, f"{ROOT}: no such task")
    assert (measured.is_slower, len(measured.here)) == (False, 2)


def test_checkouts_are_compared_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--against` measures this checkout and another one; a folder that is no checkout is refused in one line."""
    monkeypatch.setattr(measures, "IMPORTS_PER_ROUND", 1)
    (tmp_path / "src").symlink_to(ROOT / "src")
    assert cli.main(["--against", str(tmp_path), "--only", "import", "--rounds", "1"]) == 0
    _, _, heading, line, _, summary = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["row", "here", "there"]
    assert re.match(r"import +[\d.]+ m?s +[\d.]+ m?s +[\d.]+  [\d.]+\.\.[\d.]+ in 1", line)
    assert summary.startswith("1 rows: ")
    assert cli.main(["--against", str(tmp_path / "src"), "--only", "import"]) == 1
    assert "is no checkout of usp" in capsys.readouterr().err

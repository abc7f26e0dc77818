"""What reading may cost: documents that are cut, and the budgets that cut them, with clocks that are moved by hand."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from scanners import FAST, GENERAL
from support import SITEMAP_XMLNS, index, urlset
from usp.documents import Document
from usp.drivers.budget import LateReading, ReadingBudget
from usp.export.formats.cells import texts_of
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.opening import parse_document, parser_of
from usp.fetch_parse.parsed import ParsedSitemap
from usp.inflate import PIECE_BYTES, inflated
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.page import Pages
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import InvalidSitemap

URL = "http://h/sitemap.xml"
_PAGES = [f"http://h/{'a-page-with-a-long-name/' * 4}{number}" for number in range(2_500)]
_XML = urlset(*_PAGES).encode()
_ODD = _XML.replace(b"</url>", b"<odd></url>")  # for the general scanner
DOCUMENTS = {
    "XML": _XML,
    "gzip": gzip.compress(_XML),
    "gzip twice": gzip.compress(gzip.compress(_XML)),
    "gzip, damaged": gzip.compress(_XML)[:-9],
    "odd XML": _ODD,
    "UTF-16": _XML.decode().encode("utf-16"),
    "text": "\n".join(_PAGES).encode(),
    "feed": b"<rss><channel>"
    + b"".join(f"<item><link>{url}</link></item>".encode() for url in _PAGES)
    + b"</channel></rss>",
    "urlset with sitemaps": _XML.replace(b"</urlset>", b"<sitemap><loc>http://h/s.xml</loc></sitemap></urlset>"),
}
LARGEST = PIECE_BYTES * 3 // 2  # pieces that are inflated are joined if they are small
each_document = pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS.keys())


class Clock:
    """A clock that is moved by hand, or by `step` each time somebody looks at it."""

    def __init__(self, now: float = 0.0, step: float = 0.0) -> None:
        self.now = now
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def after(count: int) -> Callable[[], Callable[[int], str]]:
    """Return a budget of this many pieces for each read."""

    def start() -> Callable[[int], str]:
        left = count + 1  # the first question comes before the first piece

        def spend(size: int) -> str:
            nonlocal left
            left -= 1
            return "it is enough" if left < 0 else ""

        return spend

    return start


def text_of(document: Document) -> bytes:
    return b"".join(document.pieces(lambda code: None))


def column_of(parsed: ParsedSitemap) -> list[str]:
    assert isinstance(parsed.pages, Pages)
    assert parsed.pages.columns is not None
    return [url for columns in parsed.pages.columns(("url",)) for url in texts_of(columns.columns["url"])]


# Documents


@each_document
def test_a_cut_holds_for_all_reads(data: bytes) -> None:
    """Where one read had to stop, all later reads end, whether or not they are bounded."""
    whole = text_of(Document(URL, data))
    for count in range(6):
        document = Document(URL, data)
        document.bound(after(count))
        cut = text_of(document)
        assert whole.startswith(cut)
        assert len(cut) <= count * LARGEST
        assert bool(document.cut_reason) == (len(cut) < len(whole))
        assert document.is_unread == (not count)
        document.bound(None)
        assert text_of(document) == text_of(document) == cut
        document.read_ahead()
        assert text_of(document) == cut


def test_pieces_are_small() -> None:
    """No piece of a document is large, however it is stored: its reader can stop between two of them."""
    for data in DOCUMENTS.values():
        document = Document(URL, data)
        assert max(map(len, document.pieces(lambda code: None))) <= LARGEST
        document.read_ahead()
        assert max(map(len, document.pieces(lambda code: None))) <= LARGEST


def test_many_empty_gzip_members_have_pieces() -> None:
    """Gzip members that hold nothing give empty pieces now and then, so that their reader can stop."""
    data = gzip.compress(b"http://h/\n") + gzip.compress(b"") * 20_000
    assert len(list(inflated([data], lambda code: None))) > 3


@each_document
def test_pages_of_a_cut_document(data: bytes) -> None:
    """A cut document lists the pages before the cut, each time, as objects and as columns; and none of half a URL."""
    for count in (0, 2, 3, 9):
        document = Document(URL, data)
        parsed = parse_document(document)
        assert parsed.sitemap_class is not InvalidSitemap
        document.bound(after(count))
        first = [page.url for page in parsed.pages]
        document.bound(None)
        assert first == _PAGES[: len(first)]
        assert [page.url for page in parsed.pages] == first
        assert column_of(parsed) == first
        assert len(first) < len(_PAGES) or not document.cut_reason
        assert bool(first) == (count > 1)


@each_document
def test_problems_of_a_cut_document(data: bytes) -> None:
    """A cut document has problem C901, with the reason. That its tags are not closed is no problem of its own."""
    document = Document(URL, data)
    document.bound(after(2))
    sitemap = SitemapFetcher(URL, 0).receive(document).unfetched_sitemap()
    assert [page.url for page in sitemap.pages]
    cuts = [problem for problem in sitemap.problems if problem.code == "C901"]
    assert [problem.message for problem in cuts] == ["it is enough; the rest was skipped"]
    assert not sitemap.problem_counts["X113"]
    assert not sitemap.problem_counts["T801"]


@each_document
def test_an_unread_document(data: bytes) -> None:
    """A document that was not read at all is not taken for an empty one."""
    document = Document(URL, data)
    document.bound(after(0))
    for url in (URL, "http://h/robots.txt"):
        parsed = SitemapFetcher(url, 0).receive(document)
        assert (parsed.reason, parsed.cause) == ("Not read: it is enough.", Cause.LIMIT)


def test_children_of_a_cut_index() -> None:
    """An index that is cut lists the sitemaps before the cut."""
    document = Document(URL, index(*_PAGES).encode())
    document.bound(after(2))
    parsed = SitemapFetcher(URL, 0).receive(document)
    assert [child.url for child in parsed.children] == _PAGES[: len(parsed.children)]
    assert 0 < len(parsed.children) < len(_PAGES)


def test_robots_txt_that_is_cut() -> None:
    """A robots.txt that is cut names no sitemap of which only a part of the URL was read."""
    text = "".join(f"Sitemap: {url}\n" for url in _PAGES)
    document = Document("http://h/robots.txt", text.encode())
    document.bound(after(2))
    parsed = SitemapFetcher("http://h/robots.txt", 0).receive(document)
    assert [child.url for child in parsed.children] == _PAGES[: len(parsed.children)]
    assert 0 < len(parsed.children) < len(_PAGES)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_lines_that_a_limit_cuts(compress: Callable[[bytes], bytes]) -> None:
    """Where a document is larger than its limit, the line that the limit cuts is no URL, and names no sitemap."""
    for url, before in ((URL, ""), ("http://h/robots.txt", "Sitemap: ")):
        text = "".join(f"{before}{page}\n" for page in _PAGES[:3]).encode()
        for limit in range(len(text) - 20, len(text) + 1):
            parsed = SitemapFetcher(url, 0).receive(Document(url, compress(text), limit=limit))
            found = [page.url for page in parsed.pages] or [child.url for child in parsed.children]
            assert found == _PAGES[: 3 if limit == len(text) else 2]
    received = Document(URL, text[:-9].replace(b"Sitemap: ", b""), transport_problems=("T804",))
    assert [page.url for page in parse_document(received).pages] == _PAGES[:2]


@pytest.mark.parametrize("section", ["<!-- {} -->", "<![CDATA[ {} ]]>"])
def test_a_section_that_is_cut(section: str) -> None:
    """What stands in a comment or a CDATA section is not read as entries if a limit cuts the section."""
    entry = "<url><loc>http://h/{}</loc></url>"
    hidden = section.format(entry.format("hidden"))
    data = f"<urlset {SITEMAP_XMLNS}>{entry.format(1)}{hidden}{entry.format(2)}</urlset>".encode()
    first, last = data.index(b"</loc>") + 6, data.rindex(b"</loc>") + 6
    for end in range(1, len(data)):
        documents = Document(URL, data[:end], cut_reason="it is enough"), Document(URL, data, limit=end)
        for document in documents:
            found = []
            for readers in (GENERAL, *FAST.values()):
                parser = parser_of(document)
                assert isinstance(parser, AbstractPagesParser)
                parser.readers = readers
                log = ProblemLog(URL)
                parser.inspect(log)
                found.append(([page.url for page in parser.pages()], log.counts))
            assert found[0] == found[1] == found[2]
            urls, counts = found[0]
            assert urls == ["http://h/1", "http://h/2"][: (end >= first) + (end >= last)]
            assert not counts["X104"] + counts["X112"]


def _truncated(text: bytes) -> bytes:
    """A gzip file whose end is missing, of which this text is left."""
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)


def _damaged(text: bytes) -> bytes:
    """The same, with bytes behind it that are no deflate data."""
    return _truncated(text) + b"\xff" * 20


@pytest.mark.parametrize(
    ("send", "codes"),
    [(bytes, ("T805",)), (_truncated, ()), (_damaged, ()), (_truncated, ("T805",))],
    ids=["broken off", "truncated", "damaged", "both"],
)
def test_lines_that_a_transfer_cuts(send: Callable[[bytes], bytes], codes: tuple[str, ...]) -> None:
    """Where a document is known to be cut short, half of a line is no URL, and names no sitemap. Whole lines stay."""
    for url, before in ((URL, ""), ("http://h/robots.txt", "Sitemap: ")):
        text = "".join(f"{before}{page}\n" for page in _PAGES[:3]).encode()
        for size in range(len(text) - 20, len(text) + 1):
            document = Document(url, send(text[:size]), transport_problems=codes)
            parsed = SitemapFetcher(url, 0).receive(document)
            for _ in range(2):  # it is the same for every read
                found = [page.url for page in parsed.pages] or [child.url for child in parsed.children]
                assert found == _PAGES[: 3 if size == len(text) else 2]


def test_bytes_that_are_read_again() -> None:
    """Only bytes that nobody has read before are counted."""
    counted: list[int] = []

    def start() -> Callable[[int], str]:
        return lambda size: counted.append(size) or ""  # type: ignore[func-returns-value]

    document = Document(URL, DOCUMENTS["gzip"])
    document.bound(start)
    parsed = parse_document(document)
    assert len(list(parsed.pages)) == len(_PAGES)
    assert sum(counted) == len(_XML)


# Budgets


def budget_of(now: Clock, cpu: Clock | None = None, **limits: float) -> ReadingBudget:
    all_limits = Limits(**{"tree_seconds": 100.0, **limits})  # type: ignore[arg-type]
    return ReadingBudget(all_limits, ends_at=100.0, now=now, cpu=cpu or Clock())


def test_the_time_of_a_tree() -> None:
    """Every document ends when the tree's time is up, and the budget says why."""
    now = Clock()
    budget = budget_of(now)
    spend = budget.document(lambda: 0)
    now.now = 99.0
    assert (spend(1), budget.reason) == ("", "")
    now.now = 100.0
    assert spend(1) == budget.reason == "the tree's time is up, after 100 seconds (limits.tree_seconds)"
    assert budget.document(lambda: 0)(1) == budget.reason


def test_the_time_of_a_document() -> None:
    """A document ends after `document_seconds` of CPU time; time in which it waits does not count. Others go on."""
    now, cpu = Clock(), Clock(50.0)
    budget = budget_of(now, cpu, document_seconds=2)
    spend = budget.document(lambda: 0)
    assert spend(1) == ""
    now.now, cpu.now = 0.1, 50.1
    assert spend(1) == ""
    now.now, cpu.now = 40.0, 51.9
    assert spend(1) == ""
    now.now, cpu.now = 41.0, 52.0
    assert spend(1) == "parsing a sitemap took 2 seconds (limits.document_seconds)"
    assert budget.reason == ""
    assert budget.document(lambda: 0)(1) == ""


@pytest.mark.parametrize(("waiting", "ends"), [(0, 100.0), (1, 70.0), (3, 55.0)])
def test_the_share_of_a_document(waiting: int, ends: float) -> None:
    """While others wait, a document ends after an equal share of the time that was left when it started."""
    now = Clock(40.0)
    spend = budget_of(now).document(lambda: waiting)
    now.now = ends - 0.1
    assert spend(1) == ""
    now.now = ends
    assert "limits.tree_seconds" in spend(1)


def test_a_document_that_starts_in_the_last_moment() -> None:
    """A small document that starts just before the time is up is read, even while others wait."""
    now = Clock(99.9)
    spend = budget_of(now).document(lambda: 10_000)
    now.now = 99.94
    assert spend(1) == ""
    now.now = 99.96
    assert "while others waited" in spend(1)


def test_inflated_bytes_of_a_tree() -> None:
    """All documents together have `max_total_inflated_bytes`."""
    budget = budget_of(Clock(), max_total_inflated_bytes=100)
    first, second = budget.document(lambda: 0), budget.document(lambda: 0)
    assert (first(60), second(40), first(0), budget.reason) == ("", "", "", "")
    assert second(1) == first(0) == "the tree's sitemaps have 100 bytes, inflated (limits.max_total_inflated_bytes)"


def test_a_budget_that_is_cancelled() -> None:
    """A cancelled budget ends what is being parsed. The first reason counts."""
    budget = budget_of(Clock())
    spend = budget.document(lambda: 0)
    budget.cancel("it was interrupted")
    budget.cancel("the stream was closed early")
    assert spend(1) == "it was interrupted"
    assert budget.later is None


def pieces_read(late: LateReading, cpu: Clock, seconds: float) -> int:
    """Read a document of pieces that take so long, and return how many there were."""
    spend = late.start()
    count = 0
    while count < 1_000 and not spend(1):
        cpu.now += seconds
        count += 1
    return count


def late_reading() -> tuple[LateReading, Clock, Clock]:
    now, cpu = Clock(), Clock()
    return LateReading(Limits(tree_seconds=10), 10.0, now=now, cpu=cpu), now, cpu


def test_reads_before_the_time_is_up() -> None:
    """Until a command's time is up, its reads may take any time."""
    late, _, cpu = late_reading()
    assert pieces_read(late, cpu, 10.0) == 1_000


def test_reads_after_the_time_is_up() -> None:
    """After that, small documents are read beside slow ones, and all together take a few CPU seconds."""
    late, now, cpu = late_reading()
    now.now, cpu.now = 10.0, 500.0
    for _ in range(10):
        assert pieces_read(late, cpu, 0.05) >= 1, "a slow one gets a part of what is left"
        assert pieces_read(late, cpu, 0.0) == 1_000, "a quick one is read to its end"
    while pieces_read(late, cpu, 0.05):
        pass
    assert 2 < cpu.now - 500 < 4
    assert late.start()(1) == "the tree's time is up, after 10 seconds (limits.tree_seconds)"


def test_a_slow_reader_of_the_output() -> None:
    """Time in which a command waits for others does not count."""
    late, now, cpu = late_reading()
    now.now = 10.0
    spend = late.start()
    for _ in range(1_000):
        now.now += 60
        assert spend(1) == ""
    assert cpu.now == 0


def test_reads_after_an_interrupt() -> None:
    """After Ctrl-C, what was read is read again for the output, but no slow document holds it up."""
    late, now, cpu = late_reading()
    now.now = 2.0
    late.interrupt()
    assert pieces_read(late, cpu, 0.0) == 1_000
    assert pieces_read(late, cpu, 0.01) < 100
    while pieces_read(late, cpu, 0.05):
        pass
    assert cpu.now < 3
    assert late.start()(1) == "it was interrupted"

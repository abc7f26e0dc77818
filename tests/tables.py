"""Trees with odd content, the rows that their pages must become, and helpers to write and read tables."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

from support import SITEMAP_XMLNS, FakeClient, index, urlset
from usp.cli.demo import demo_site
from usp.export.batches import Batch, page_columns, pages_of
from usp.export.formats.base import Writer
from usp.export.formats.cells import values_of
from usp.export.schema import PAGES, flattened, type_name
from usp.objects.page import (
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
    stated_change_frequency,
    stated_priority,
)
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.origins import normalized_host
from usp.scan.columns import Columns, List, Scalar, Type, column_of
from usp.scan.url_parts import URL_PARTS, pure_split_urls
from usp.tree import sitemap_tree_for_homepage

Row = dict[str, Any]
HOME = "http://h.example/"
NOT_KNOWN = ("last_modified_text", "problems")  # page objects do not have them
LISTS = [path for path, kind in flattened(PAGES).items() if isinstance(kind, List)]
ODD_TEXTS = [
    "",
    *(" ", "'", '"', '""', "a,b", 'a "b" c', "a\nb", "a\tb", "\n", "\t", "a\r\nb", "\r", " a ", "#a", "a;b", "NULL"),
    *("nan", "0012", "true", "1e5", "2024-05-08", "\\", "\\N", "\\x00", "\\x5c", "\\\\x41", "\\u2028", "\\xZZ"),
    *("=1+1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", " =1", '"=1', "'=1", "''=1", "' =1", "\uff1d1", "\uff0b1"),
    *("\uff0d1", "\uff20a", "\xa0=1", "\ufeff=1", "\u200b=1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")'),
    *("'\t", "'a", "a=1", "C:\\x", "\x00", "a\x00b", "\x1b[31m", "\x7f", "\x85", "\x9b31m", "\u2028", "\u2029"),
    *("\x0b", "\x0c", "\x1c", "\U0001f469\u200d\U0001f680", "é", "e\u0301", "漢字", "\u202eabc", "\ufeff", "\ufffd"),
    *('"\0\r\n\t\u2028', "ß" * 1_000),
]
_EAST, _WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))
_ODD_TIMES = [
    *(datetime.min, datetime.max, datetime.min.replace(tzinfo=_EAST), datetime.max.replace(tzinfo=_WEST)),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1969, 12, 31, 23)),
    *(datetime(1900, 2, 28, 1, 2, 3, 4, UTC), datetime(2024, 2, 29, 10, tzinfo=_EAST), datetime(2024, 5, 8)),
]
_WRITTEN = [
    *(("=1+1", "2024-05-08"), ('a "b", c', "2024-05-08T10:00:00.5+02:00"), ("a\nb", "0001-01-01T00:00:00Z")),
    *(("a\0b", "9999-12-31T23:59:59Z"), ("\U0001f600", "2024-05-08T10:00"), ("'=1", "never"), ("", "2024")),
]
_ENTRIES = "".join(
    f"<url><loc>{HOME}{number}</loc><lastmod>{lastmod}</lastmod><priority>{number / 10}</priority>"
    f"<news:news><news:title><![CDATA[{text}]]></news:title></news:news>"
    f"<image:image><image:loc>{HOME}i?a=1,2&amp;b</image:loc><image:caption>{text}</image:caption></image:image></url>"
    for number, (text, lastmod) in enumerate(_WRITTEN)
)
_IMAGES = "".join(
    f"<image:image><image:loc>{HOME}{i}.jpg</image:loc>"
    f"<image:title>{'&quot;no. ' + str(i) if i % 2 else ''}</image:title></image:image>"
    for i in range(100)
)
_URLSET = f"""\
<urlset {SITEMAP_XMLNS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
  xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"
  xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc>{HOME}no-zone</loc><lastmod>2024-05-08T10:00:00</lastmod><priority>0.9</priority></url>
<url><loc>{HOME}zone</loc><lastmod>2024-05-08T10:00:00.123456+05:30</lastmod></url>
<url><loc>{HOME}first</loc><lastmod>0001-01-01T00:00:00Z</lastmod><changefreq>never</changefreq></url>
<url><loc>{HOME}last</loc><lastmod>9999-12-31T23:59:59.999999Z</lastmod></url>
<url><loc>{HOME}beyond</loc><lastmod>9999-12-31T23:59:59-11:00</lastmod></url>
<url><loc>{HOME}100-images</loc>{_IMAGES}</url>
<url><loc>{HOME}&#x1F600;?a=1&amp;b="2"</loc>
 <news:news><news:publication><news:name>"The
 Times", 'et al'</news:name><news:language>en</news:language></news:publication>
 <news:publication_date>0001-01-01</news:publication_date><news:title>&#x1F680; a, b; "c" &#0; &lt;d&gt;</news:title>
 <news:keywords>one, two</news:keywords></news:news></url>
<url><loc>{HOME}video</loc><video:video><video:title>=1+1</video:title><video:duration>600</video:duration>
 <video:rating>4.2</video:rating><video:live>yes</video:live><video:price currency="EUR" type="rent">1.99</video:price>
 <video:tag>a</video:tag><video:tag>b</video:tag>
 <video:publication_date>9999-12-31T23:59:59Z</video:publication_date></video:video></url>
<url><loc>{HOME}alternates</loc><xhtml:link rel="alternate" hreflang="de" href="{HOME}de"/></url>
{_ENTRIES}</urlset>"""
_SITE: dict[str, str] = {
    f"{HOME}robots.txt": f"Sitemap: {HOME}index.xml\nSitemap: {HOME}none.xml",
    f"{HOME}index.xml": index(f"{HOME}odd.xml", f"{HOME}no.xml", f"{HOME}urls.txt"),
    f"{HOME}odd.xml": _URLSET,
    f"{HOME}no.xml": urlset(),
    f"{HOME}urls.txt": f"{HOME}no-zone\n{HOME}text\n",
}


@cache
def odd_tree() -> AbstractSitemap:
    """Return a tree read from documents with odd content."""
    return sitemap_tree_for_homepage(HOME, FakeClient(_SITE), use_known_paths=False)


@cache
def demo_tree() -> AbstractSitemap:
    with demo_site() as url:
        return sitemap_tree_for_homepage(url)


@cache
def made_tree() -> AbstractSitemap:
    """Return a tree of values that no document can have: every odd text and time in every place."""
    story = SitemapNewsStory("", datetime(1, 1, 1), None, "", genres=["", "\0"])
    first = SitemapVideo(
        title='"\U0001f600"\n',
        duration=1 << 62,
        publication_date=datetime(2024, 5, 8, 10, 0, 0, 123_000, UTC),
        rating=Decimal("4.5"),
        family_friendly=True,
        player_allow_embed=False,
        live=False,
        tags=["a", "", "=1"],
        prices=[("1.99", {"currency": "EUR"}), ("", {})],
        tv_show=SitemapVideoTvShow(season_number=0, premier_date=datetime(9999, 12, 31, tzinfo=UTC)),
    )
    show = SitemapVideoTvShow("Show", season_number=1, premier_date=datetime(2020, 1, 1, tzinfo=UTC))
    videos = [first, SitemapVideo(tv_show=show), SitemapVideo()]
    date, hourly = datetime(2024, 5, 8, tzinfo=timezone(timedelta(hours=2))), SitemapPageChangeFrequency.HOURLY
    pages = [
        SitemapPage(f"{HOME}\0\n'\""),
        SitemapPage("", Decimal("0.1"), date, hourly, story, [SitemapImage("", license_="x")], [("de", "")], videos),
        SitemapPage(f"{HOME}often", Decimal(1), None, SitemapPageChangeFrequency.ALWAYS, images=[]),
        SitemapPage(f"{HOME}images", Decimal("0.25"), images=[SitemapImage(f"{HOME}{i}.jpg") for i in range(100)]),
        *(SitemapPage(f"{HOME}time/{number}", last_modified=time) for number, time in enumerate(_ODD_TIMES)),
        *(_page_with(text, f"{HOME}{number}{text}") for number, text in enumerate(ODD_TEXTS)),
    ]
    text = PagesTextSitemap(f"{HOME}t", [SitemapPage(f"{HOME}{i}") for i in range(20)])
    below = IndexXMLSitemap(f"{HOME}i", [text, InvalidSitemap(f"{HOME}gone", "no such file")])
    return IndexWebsiteSitemap(HOME, [PagesXMLSitemap(f"{HOME}s", pages), below])


def _page_with(text: str, url: str) -> SitemapPage:
    story = SitemapNewsStory(text, None, text, None, text, [text], [text, "a"], [])
    return SitemapPage(
        url, news_story=story, images=[SitemapImage(HOME, text, None, text)], alternates=[("de", HOME + text)]
    )


def empty_tree() -> AbstractSitemap:
    return IndexWebsiteSitemap(HOME, [])


def unpickled_tree() -> AbstractSitemap:
    found: AbstractSitemap = pickle.loads(pickle.dumps(odd_tree()))
    return found


TREES_WITH_PAGES = [odd_tree, demo_tree, made_tree, unpickled_tree]
TREES = [*TREES_WITH_PAGES, empty_tree]


def tree_of(*pages: SitemapPage) -> AbstractSitemap:
    return IndexWebsiteSitemap(HOME, [PagesXMLSitemap(f"{HOME}s.xml", list(pages))])


def page_rows(tree: AbstractSitemap) -> list[Row]:
    """Return the table of pages, built from page objects, without the columns that these do not have."""
    return [row for sitemap in (tree, *tree.all_sitemaps()) for row in _rows_of(sitemap)]


def json_rows(tree: AbstractSitemap) -> list[Row]:
    """Return the table of pages as JSON has it: times are texts."""
    text = json.dumps(page_rows(tree), default=lambda time: time.replace(tzinfo=None).isoformat() + "Z")
    found: list[Row] = json.loads(text)
    return found


def flat(row: Row, dot: str = ".") -> Row:
    """Return a row with a column for each field of its news, for formats without structs."""
    news = row["news"] or dict.fromkeys(SitemapNewsStory.__slots__)
    parts = {f"news{dot}{name}": value for name, value in news.items()}
    return {name: value for name, value in row.items() if name != "news"} | parts


def known(row: Row) -> Row:
    """Return a row without the columns that `page_rows` does not have."""
    return {name: value for name, value in row.items() if name not in NOT_KNOWN}


def plain_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows of any reader in the form of `page_rows`."""
    return [plain_value(known(row)) for row in rows]


def _rows_of(sitemap: AbstractSitemap) -> Iterator[Row]:
    for position, page in enumerate(sitemap.pages, 1):
        frequency = stated_change_frequency(page)
        yield {
            "url": page.url,
            "last_modified": plain_value(page.last_modified),
            "change_frequency": frequency and frequency.value,
            "priority": plain_value(stated_priority(page)),
            **_url_parts(page.url),
            "sitemap_url": sitemap.url,
            "sitemap_type": type_name(type(sitemap)),
            "position": position,
            "news": page.news_story and plain_value(page.news_story.to_dict()),
            "images": page.images and [plain_value(image.to_dict()) for image in page.images],
            "videos": page.videos and [_video(video) for video in page.videos],
            "alternates": [{"hreflang": code, "url": url} for code, url in page.alternates or ()] or None,
        }


def _url_parts(url: str) -> Row:
    columns = pure_split_urls(column_of(Scalar.TEXT, [url]), URL_PARTS, normalized_host)
    return {name: values_of(Scalar.TEXT, columns.get(name), 1)[0] for name in URL_PARTS}


def _video(video: SitemapVideo) -> Row:
    described = {
        name: [
            {"text": text, "attributes": [{"name": key, "value": value} for key, value in attributes.items()]}
            for text, attributes in getattr(video, name)
        ]
        for name in ("prices", "content_segments", "ids")
    }
    found: Row = plain_value(video.to_dict() | described)
    return found


def plain_value(value: Any) -> Any:
    """Return a value of any reader in one form: lists, no special nulls, times in UTC, numbers as floats and ints."""
    if value is None or type(value) in (str, int, bool):
        return value
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, dict):
        return {name: plain_value(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, datetime) and value == value:  # a missing time of pandas is a datetime, too
        return _in_utc(value)
    if isinstance(value, Decimal):
        return float(value)
    return None if type(value).__name__ in ("NAType", "NaTType") or value != value else value


def _in_utc(time: datetime) -> datetime:
    if hasattr(time, "to_pydatetime"):
        time = time.to_pydatetime()
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:  # a time outside the years 1 to 9999 is moved to the nearest
        return (datetime.max if time.year > 1 else datetime.min).replace(tzinfo=UTC)


def columns_with(types: Mapping[str, Type], **values: Sequence[Any]) -> Columns:
    """Return columns with these values."""
    (length,) = {len(column) for column in values.values()}
    return Columns(length, {name: column_of(types[name], column) for name, column in values.items()})


def batches_of(tree: AbstractSitemap) -> list[Batch]:
    sitemaps = (tree, *tree.all_sitemaps())
    return [Batch(columns) for sitemap in sitemaps for columns in page_columns(pages_of(sitemap), PAGES)]


def write(writer: Writer, *batches: Batch) -> None:
    for batch in batches:
        writer.write(writer.encode(batch))
    writer.close()


def named_rows(cursor: Any) -> list[Row]:
    """Return the rows of a DuckDB query."""
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

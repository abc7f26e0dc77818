"""Trees with odd content, what is to be read back from the tables of a tree, and what writes them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, BinaryIO

from support import SITEMAP_XMLNS
from usp.export.batches import Batch, listing_of, page_columns
from usp.export.schema import PAGES, path_types, type_name
from usp.export.writing import Writer
from usp.objects.page import (
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
)
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, PagesXMLSitemap
from usp.scan.columns import Type
from usp.tree import sitemap_from_bytes

W = "https://www.example.com/"
ODD_TEXTS = [
    "",
    *(" ", "'", '"', '""', "a,b", 'a "b" c', "a\nb", "a\tb", "\n", "\t", "a\r\nb", "\r", " a ", "#a", "a;b", "NULL"),
    *("nan", "0012", "true", "1e5", "2024-05-08", "\\", "\\N", "\\x00", "\\x5c", "\\\\x41", "\\u2028", "\\xZZ"),
    *("=1+1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", " =1", '"=1', "'=1", "''=1", "' =1", "\uff1d1", "\uff0b1"),
    *("\uff0d1", "\uff20a", "\xa0=1", "\ufeff=1", "\u200b=1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")'),
    *("'\t", "'a", "a=1", "C:\\x", "\x00", "a\x00b", "\x1b[31m", "\x7f", "\x85", "\x9b31m", "\u2028", "\u2029"),
    *("\x0b", "\x0c", "\x1c", "\U0001f469\u200d\U0001f680", "é", "e\u0301", "漢字", "\u202eabc", "\ufeff", "\ufffd"),
    "ß" * 1_000,
]


def iso(date: datetime | None) -> str | None:
    if date is None:
        return None
    try:
        date = date.astimezone(UTC) if date.tzinfo else date
    except OverflowError:
        date = datetime.min if date.year == 1 else datetime.max
    return date.replace(tzinfo=None).isoformat() + "Z"


def plain(value: Any) -> Any:
    """A value of a page as JSON has it."""
    match value:
        case datetime():
            return iso(value)
        case Decimal():
            return float(value)
        case SitemapPageChangeFrequency():
            return value.value
        case SitemapImage() | SitemapVideo() | SitemapNewsStory() | SitemapVideoTvShow():
            found = {name: plain(getattr(value, name)) for name in value.__slots__}
            for name in {"prices", "content_segments", "ids"} & found.keys():
                found[name] = [
                    {"text": text, "attributes": [{"name": key, "value": of} for key, of in attributes.items()]}
                    for text, attributes in getattr(value, name)
                ]
            return found
        case list():
            return [plain(item) for item in value]
        case _:
            return value


def page_rows(tree: AbstractSitemap) -> Iterator[dict[str, Any]]:
    """The pages of a tree as rows, made of its page objects; without what these do not know."""
    for sitemap in (tree, *tree.all_sitemaps()):
        for number, page in enumerate(sitemap.pages, 1):
            yield {
                "url": page.url,
                "last_modified": iso(page.last_modified),
                "change_frequency": plain(page.change_frequency),
                "priority": float(page.priority),
                "sitemap_url": sitemap.url,
                "sitemap_type": type_name(type(sitemap)),
                "position": number,
                "news": plain(page.news_story),
                "images": plain(page.images),
                "videos": plain(page.videos),
                "alternates": [{"hreflang": code, "url": url} for code, url in page.alternates or []] or None,
            }


def write_pages(tree: AbstractSitemap, writer: Writer) -> None:
    for sitemap in (tree, *tree.all_sitemaps()):
        columns = page_columns(listing_of(sitemap), PAGES)
        writer.write(writer.encode(Batch(columns)))
    writer.close()


def pages_as(make: Callable[[BinaryIO, Any, Any], Writer], tree: AbstractSitemap, *paths: str) -> bytes:
    """The pages of a tree as a writer of a stream writes them."""
    stream = io.BytesIO()
    chosen: dict[str, Type] = path_types(PAGES, paths or None)
    write_pages(tree, make(stream, PAGES, chosen))
    return stream.getvalue()


def tree_of(*pages: SitemapPage) -> AbstractSitemap:
    return IndexWebsiteSitemap(W, [PagesXMLSitemap(W + "s.xml", list(pages))])


def odd_tree() -> AbstractSitemap:
    """Every odd text in every place for one; times at both ends of the calendar; a page with 100 images."""
    pages = [
        SitemapPage(
            W + str(number) + text,
            news_story=SitemapNewsStory(text, None, text, None, text, [text], [text, "a"], []),
            images=[SitemapImage(W, text, None, text)],
            alternates=[("de", W + text)],
        )
        for number, text in enumerate(ODD_TEXTS)
    ]
    east, west = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))
    times = [
        *(datetime.min, datetime.max, datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west)),
        *(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1969, 12, 31, 23)),
        *(datetime(1900, 2, 28, 1, 2, 3, 4, UTC), datetime(2024, 2, 29, 10, tzinfo=east), datetime(2024, 5, 8)),
    ]
    pages += [SitemapPage(f"{W}time/{number}", last_modified=time) for number, time in enumerate(times)]
    pages.append(SitemapPage(W + "images", images=[SitemapImage(f"{W}{number}.jpg") for number in range(100)]))
    pages.append(SitemapPage(W + "video", Decimal("0.25"), videos=[odd_video(), SitemapVideo()]))
    pages.append(SitemapPage(W + "often", Decimal(1), None, SitemapPageChangeFrequency.ALWAYS, images=[]))
    return tree_of(*pages)


def odd_video() -> SitemapVideo:
    return SitemapVideo(
        title='a "b"\n',
        duration=1 << 62,
        publication_date=datetime(2024, 5, 8, 10, 0, 0, 123_000, UTC),
        rating=Decimal("4.5"),
        family_friendly=True,
        live=False,
        tags=["a", "", "=1"],
        prices=[("1.99", {"currency": "EUR"}), ("", {})],
        tv_show=SitemapVideoTvShow("Show", season_number=1, premier_date=datetime(2020, 1, 1, tzinfo=UTC)),
    )


def document_tree() -> AbstractSitemap:
    """The same kinds of things, as a site writes them."""
    entries = "".join(
        f"<url><loc>{W}{number}</loc><lastmod>{lastmod}</lastmod><priority>{number % 11 / 10}</priority>"
        f"<news:news><news:title><![CDATA[{text}]]></news:title></news:news>"
        f"<image:image><image:loc>{W}i?a=1,2&amp;b</image:loc><image:caption>{text.strip()}</image:caption></image:image>"
        "</url>"
        for number, (text, lastmod) in enumerate(
            [
                *(
                    ("=1+1", "2024-05-08"),
                    ('a "b", c', "2024-05-08T10:00:00.5+02:00"),
                    ("a\nb", "0001-01-01T00:00:00Z"),
                ),
                *(("a\0b", "9999-12-31T23:59:59Z"), ("\U0001f600", "2024-05-08T10:00"), ("'=1", "never"), ("", "2024")),
            ]
        )
    )
    namespaces = "".join(
        f' xmlns:{name}="http://www.google.com/schemas/sitemap-{name}/{version}"'
        for name, version in (("news", "0.9"), ("image", "1.1"))
    )
    return sitemap_from_bytes(f"<urlset {SITEMAP_XMLNS}{namespaces}>{entries}</urlset>".encode(), W + "odd.xml")

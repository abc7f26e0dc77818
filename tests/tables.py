"""What tests of tables share: trees with odd content, and the rows that their pages must become."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

from support import SITEMAP_XMLNS, FakeClient, index, urlset
from usp.cli.demo_site import demo_site
from usp.export.schema import type_name
from usp.objects.page import (
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
)
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.tree import sitemap_tree_for_homepage

_IMAGES = "".join(
    f"<image:image><image:loc>http://h.example/{i}.jpg</image:loc>"
    f"<image:title>{'&quot;no. ' + str(i) if i % 2 else ''}</image:title></image:image>"
    for i in range(100)
)
_ODD = f"""\
<urlset {SITEMAP_XMLNS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
  xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"
  xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc>http://h.example/no-zone</loc><lastmod>2024-05-08T10:00:00</lastmod><priority>0.9</priority></url>
<url><loc>http://h.example/zone</loc><lastmod>2024-05-08T10:00:00.123456+05:30</lastmod></url>
<url><loc>http://h.example/first</loc><lastmod>0001-01-01T00:00:00Z</lastmod><changefreq>never</changefreq></url>
<url><loc>http://h.example/last</loc><lastmod>9999-12-31T23:59:59.999999Z</lastmod></url>
<url><loc>http://h.example/beyond</loc><lastmod>9999-12-31T23:59:59-11:00</lastmod></url>
<url><loc>http://h.example/100-images</loc>{_IMAGES}</url>
<url><loc>http://h.example/&#x1F600;?a=1&amp;b="2"</loc>
 <news:news><news:publication><news:name>"The
 Times", 'et al'</news:name><news:language>en</news:language></news:publication>
 <news:publication_date>0001-01-01</news:publication_date><news:title>&#x1F680; a, b; "c" &#0; &lt;d&gt;</news:title>
 <news:keywords>one, two</news:keywords></news:news></url>
<url><loc>http://h.example/video</loc><video:video><video:title>=1+1</video:title><video:duration>600</video:duration>
 <video:rating>4.2</video:rating><video:live>yes</video:live><video:price currency="EUR" type="rent">1.99</video:price>
 <video:tag>a</video:tag><video:tag>b</video:tag>
 <video:publication_date>9999-12-31T23:59:59Z</video:publication_date></video:video></url>
<url><loc>http://h.example/alternates</loc><xhtml:link rel="alternate" hreflang="de" href="http://h.example/de"/></url>
</urlset>"""
_ROBOTS = "Sitemap: http://h.example/index.xml\nSitemap: http://h.example/none.xml"
_SITE: dict[str, str] = {
    "http://h.example/robots.txt": _ROBOTS,
    "http://h.example/index.xml": index(*(f"http://h.example/{name}" for name in ("odd.xml", "no.xml", "urls.txt"))),
    "http://h.example/odd.xml": _ODD,
    "http://h.example/no.xml": urlset(),
    "http://h.example/urls.txt": "http://h.example/no-zone\nhttp://h.example/text\n",
}


@cache
def odd_tree() -> AbstractSitemap:
    """A tree that was read from documents with odd content."""
    return sitemap_tree_for_homepage("http://h.example/", FakeClient(_SITE), use_known_paths=False)


@cache
def demo_tree() -> AbstractSitemap:
    with demo_site() as url:
        return sitemap_tree_for_homepage(url)


@cache
def made_tree() -> AbstractSitemap:
    """A tree that was made by hand, of values that no document can have."""
    story = SitemapNewsStory('"\0\r\n\t\u2028', datetime(1, 1, 1), None, "", genres=["", "\0"])
    video = SitemapVideo(
        title="\U0001f600",
        player_allow_embed=False,
        rating=Decimal("1.5"),
        prices=[("1", {"currency": "EUR"}), ("", {})],
        tv_show=SitemapVideoTvShow(season_number=0, premier_date=datetime(9999, 12, 31, tzinfo=UTC)),
    )
    pages = [
        SitemapPage("http://h.example/\0\n'\""),
        SitemapPage(
            "",
            Decimal("0.1"),
            datetime(2024, 5, 8, tzinfo=timezone(timedelta(hours=2))),
            SitemapPageChangeFrequency.HOURLY,
            story,
            [SitemapImage("", license_="x")],
            [("de", "")],
            [video, SitemapVideo()],
        ),
        SitemapPage("http://h.example/naive", last_modified=datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ]
    text = PagesTextSitemap("http://h.example/t", [SitemapPage(f"http://h.example/{i}") for i in range(20)])
    below = IndexXMLSitemap("http://h.example/i", [text, InvalidSitemap("http://h.example/gone", "no such file")])
    return IndexWebsiteSitemap("http://h.example/", [PagesXMLSitemap("http://h.example/s", pages), below])


def empty_tree() -> AbstractSitemap:
    return IndexWebsiteSitemap("http://h.example/", [])


def unpickled_tree() -> AbstractSitemap:
    found: AbstractSitemap = pickle.loads(pickle.dumps(odd_tree()))
    return found


TREES = [odd_tree, demo_tree, made_tree, empty_tree, unpickled_tree]


def page_rows(tree: AbstractSitemap) -> list[dict[str, Any]]:
    """The table of pages, but for what pages do not know: `last_modified_text` and `problems`."""
    return [row for sitemap in (tree, *tree.all_sitemaps()) for row in _rows_of(sitemap)]


def _rows_of(sitemap: AbstractSitemap) -> Iterator[dict[str, Any]]:
    for position, page in enumerate(sitemap.pages, 1):
        as_dict = page.to_dict()
        alternates = [{"hreflang": language, "url": url} for language, url in page.alternates or ()]
        yield {
            "url": page.url,
            "last_modified": plain_value(page.last_modified),
            "change_frequency": as_dict["change_frequency"],
            "priority": float(page.priority),
            "sitemap_url": sitemap.url,
            "sitemap_type": type_name(type(sitemap)),
            "position": position,
            "news": plain_value(as_dict["news_story"]),
            "images": plain_value(as_dict["images"]),
            "videos": [_video(video) for video in page.videos] if page.videos else None,
            "alternates": alternates or None,
        }


def _video(video: SitemapVideo) -> dict[str, Any]:
    described = {
        name: [
            {"text": text, "attributes": [{"name": key, "value": value} for key, value in attributes.items()]}
            for text, attributes in getattr(video, name)
        ]
        for name in ("prices", "content_segments", "ids")
    }
    found: dict[str, Any] = plain_value(video.to_dict() | described)
    return found


def plain_value(value: Any) -> Any:
    """A value of any reader as all have it: lists, no special nulls, times in UTC, numbers as floats and ints."""
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
    except OverflowError:  # what is in no year that there is, is moved to the nearest
        return (datetime.max if time.year > 1 else datetime.min).replace(tzinfo=UTC)


def without_texts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a reader, of the columns that `page_rows` has."""
    return [
        {name: plain_value(value) for name, value in row.items() if name not in ("last_modified_text", "problems")}
        for row in rows
    ]

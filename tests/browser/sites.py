"""What the tests explore: a folder of sitemaps with hostile texts, a crawl of three runs, and a large folder."""

from __future__ import annotations

from html import escape
from pathlib import Path

from many_sites import Answer, serve_sites
from support import SITEMAP_XMLNS
from usp.crawl import crawl

__all__ = [
    "ATTACKS",
    "CHANGES",
    "GLOBES",
    "HOST",
    "LARGE",
    "MAPS",
    "NEWS",
    "RIGHT_TO_LEFT",
    "write_crawl",
    "write_large",
    "write_rich",
]

HOST = "https://www.example.org"
MAPS, GLOBES, NEWS, LARGE = 30, 12, 4, 300_000
#: What each run of the crawl changes, against the one before it.
CHANGES = {2: {"added": 3, "removed": 1, "changed": 0}, 3: {"added": 1, "removed": 2, "changed": 1}}
#: Texts that run a script where a page takes them for HTML.
ATTACKS = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "javascript:window.ran=1",
    "<svg onload=window.ran=1>",
)
RIGHT_TO_LEFT = "/sale\u202egnp.exe"
_XMLNS = (
    f'{SITEMAP_XMLNS} xmlns:xhtml="http://www.w3.org/1999/xhtml"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    ' xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"'
)


def write_rich(folder: Path) -> Path:
    """Write a folder of sitemaps that has everything: news, images, videos, languages, dates, problems, attacks."""
    names = ("maps.xml", "globes.xml", "news.xml", "hostile.xml", "broken.xml")
    entries = "".join(f"<sitemap><loc>{HOST}/{name}</loc></sitemap>\n" for name in names)
    files = {
        "robots.txt": f"User-agent: *\nDisallow: /private/\n\nSitemap: {HOST}/index.xml\nSitemap: {HOST}/gone.xml\n",
        "index.xml": f"<sitemapindex {SITEMAP_XMLNS}>\n{entries}</sitemapindex>\n",
        "maps.xml": _urlset(*(_map(number) for number in range(MAPS))),
        "globes.xml": _urlset(*(_globe(number) for number in range(GLOBES))),
        "news.xml": _urlset(*(_story(number) for number in range(NEWS))),
        "hostile.xml": _urlset(*_hostile()),
        "broken.xml": _urlset(
            f"<loc>{HOST}/search?q=maps&lang=en</loc><lastmod>08/05/2026</lastmod>",
            f"<loc>{HOST}/pens</loc><priority>7</priority>",
            f"<loc>{HOST}/{'<script>window.ran = 1</script>'}</loc>",
        ),
    }
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def _urlset(*entries: str) -> str:
    urls = "".join(f"<url>{entry}</url>\n" for entry in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_XMLNS}>\n{urls}</urlset>\n'


def _map(number: int) -> str:
    """Return a page with a date in one of 30 months, and alternates in two languages."""
    url = f"{HOST}/shop/maps/{number:02}"
    links = "".join(
        f'<xhtml:link rel="alternate" hreflang="{language}" href="{url}?{language}"/>' for language in ("de", "fr")
    )
    return f"<loc>{url}</loc><lastmod>{2023 + number // 12}-{number % 12 + 1:02}-15</lastmod>{links}"


def _globe(number: int) -> str:
    """Return a page without a date, with an image; the first has a video, too."""
    url = f"{HOST}/shop/globes/{number:02}"
    video = (
        f"<video:video><video:thumbnail_loc>{url}.jpg</video:thumbnail_loc><video:title>It turns</video:title>"
        f"<video:description>A globe</video:description><video:content_loc>{url}.mp4</video:content_loc></video:video>"
    )
    image = f"<image:image><image:loc>{url}.png</image:loc></image:image>"
    return f"<loc>{url}</loc><priority>0.{number % 9 + 1}</priority>{image}{'' if number else video}"


def _story(number: int) -> str:
    """Return news whose title is an attack."""
    return (
        f"<loc>{HOST}/news/{number}</loc><news:news><news:publication><news:name>{escape(ATTACKS[1])}</news:name>"
        "<news:language>en</news:language></news:publication><news:publication_date>2026-01-02</news:publication_date>"
        f"<news:title>{escape(ATTACKS[number])}</news:title></news:news>"
    )


def _hostile() -> list[str]:
    """Return pages whose URLs and images are attacks, long, or written from right to left."""
    paths = (f"/?x={ATTACKS[0]}", f"/?x={ATTACKS[1]}", RIGHT_TO_LEFT, "/" + "long/" * 380)
    images = "".join(f"<image:image><image:loc>{escape(text)}</image:loc></image:image>" for text in ATTACKS)
    return [f"<loc>{escape(HOST + path)}</loc>{images}" for path in paths]


def write_crawl(folder: Path) -> Path:
    """Crawl a site three times, and change it between the runs."""
    runs = (
        {f"/{number}": "2026-01-01" for number in range(10)},
        {f"/{number}": "2026-01-01" for number in range(1, 13)},
        {f"/{number}": "2026-02-01" if number == 5 else "2026-01-01" for number in range(3, 14)},
    )
    with serve_sites() as sites:
        site = sites.add("127.0.7.1", {"/a.xml": []})
        for run in runs:
            entries = [
                f"<loc>{sites.url('127.0.7.1', path)}</loc><lastmod>{day}</lastmod>" for path, day in run.items()
            ]
            sites.answers["127.0.7.1"]["/a.xml"] = Answer(_urlset(*entries))
            crawl([site], folder)
    return folder


def write_large(folder: Path) -> Path:
    """Write a folder of text sitemaps. The URL of a page ends with its number."""
    folder.mkdir()
    size = 50_000
    for first in range(0, LARGE, size):
        text = "".join(f"{HOST}/p/{number:06}\n" for number in range(first, first + size))
        (folder / f"sitemap{first // size}.txt").write_text(text)
    names = "".join(f"Sitemap: {HOST}/sitemap{number}.txt\n" for number in range(LARGE // size))
    (folder / "robots.txt").write_text(names)
    return folder

"""A small example website on loopback, with one of everything: what `usp demo` reads.

Two of its sitemaps are as found in the wild, one broken and one missing; without them, nothing is wrong with it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

__all__ = ["demo_site"]

_XML = "application/xml"

_ROBOTS = """\
# The example website of usp
User-agent: *
Disallow: /private/

Sitemap: {base}/sitemap_index.xml
Sitemap: {base}/urls.txt
"""

_INDEX = """\
<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <sitemap><loc>{base}/articles.xml.gz</loc><lastmod>2024-05-08</lastmod></sitemap>
  <sitemap><loc>{base}/news.xml</loc><lastmod>2024-05-08T09:30:00+02:00</lastmod></sitemap>
  <sitemap><loc>{base}/feed.rss</loc></sitemap>
{faulty}</sitemapindex>
"""

_FAULTY = """\
  <sitemap><loc>{base}/broken.xml</loc></sitemap>
  <sitemap><loc>{base}/missing.xml</loc></sitemap>
"""

_ARTICLES = """\
<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url>
    <loc>{base}/</loc><lastmod>2024-05-08</lastmod><changefreq>daily</changefreq><priority>1.0</priority>
    <xhtml:link rel="alternate" hreflang="de" href="{base}/de/"/>
    <xhtml:link rel="alternate" hreflang="en" href="{base}/"/>
    <xhtml:link rel="alternate" hreflang="x-default" href="{base}/"/>
  </url>
  <url>
    <loc>{base}/articles/rivers</loc><lastmod>2024-04-30T18:00:00Z</lastmod><priority>0.8</priority>
    <image:image><image:loc>{base}/images/rivers.jpg</image:loc><image:title>Rivers</image:title></image:image>
  </url>
  <url><loc>{base}/articles/mountains?view=full&amp;page=2</loc><lastmod>2024-04-12</lastmod></url>
</urlset>
"""

_NEWS = """\
<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
  <url>
    <loc>{base}/news/bridge-opens</loc>
    <news:news>
      <news:publication><news:name>The Example</news:name><news:language>en</news:language></news:publication>
      <news:publication_date>{recently}</news:publication_date>
      <news:title>The new bridge opens</news:title>
      <news:keywords>bridge, traffic</news:keywords>
    </news:news>
  </url>
</urlset>
"""

_RSS = """\
<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel>
  <title>Notes</title><link>{base}/</link><description>Short notes</description>
  <item>
    <title>First note</title><link>{base}/notes/1</link><pubDate>Wed, 08 May 2024 10:00:00 GMT</pubDate>
  </item>
</channel></rss>
"""

_TEXT = """\
{base}/about
{base}/contact
"""

# A bare "&", an end tag that was forgotten, a date that is none, and no end: as found in the wild.
_BROKEN = """\

<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>{base}/search?q=maps&lang=en</loc><lastmod>08/05/2024</lastmod>
  <url><loc>{base}/kept</loc></url>
  <url><loc>{base}/cut-o"""

_FILES = {
    "/robots.txt": ("text/plain", _ROBOTS),
    "/sitemap_index.xml": (_XML, _INDEX),
    "/articles.xml.gz": ("application/gzip", _ARTICLES),
    "/news.xml": (_XML, _NEWS),
    "/feed.rss": ("application/rss+xml", _RSS),
    "/urls.txt": ("text/plain", _TEXT),
    "/broken.xml": (_XML, _BROKEN),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    is_clean = False

    def do_GET(self) -> None:
        content_type, text = _FILES.get(self.path, ("text/plain", ""))
        values = {"base": f"http://{self.headers['Host']}", "recently": _recently()}
        values["faulty"] = "" if self.is_clean else _FAULTY.format(**values)
        body = text.format(**values).encode()
        if self.path.endswith(".gz") and body:
            body = gzip.compress(body)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the output is the tree."""


class _CleanHandler(_Handler):
    is_clean = True


def _recently() -> str:
    """When the news was published: news is two days old at most."""
    return (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="seconds")


@contextmanager
def demo_site(port: int = 0, *, is_clean: bool = False) -> Iterator[str]:
    """Serve the example website while the context is open; gives its homepage. `is_clean`: without what is wrong."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _CleanHandler if is_clean else _Handler)
    except OSError as error:
        raise OSError(f"cannot serve on port {port}: {error.strerror}; choose another with --port") from error
    with server:
        server.daemon_threads = True  # a connection that a client keeps open must not hold up the end
        thread = Thread(target=server.serve_forever, args=(0.05,), name="usp-demo", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()

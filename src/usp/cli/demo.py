"""`usp demo`: read a small example website that runs on this machine.

The website has one sitemap of every kind. Two are defective, as in the wild: one broken, one missing. `demo_site` also
serves a clean version without those two.
"""

from __future__ import annotations

import argparse
import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from usp.cli.output import log_to
from usp.cli.pages import ChosenPages
from usp.cli.trees import tabtree
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.sources import find_sources
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["demo_site", "register"]

_DEFAULT_PORT = 8000


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    demo = commands.add_parser(
        "demo",
        help="try usp on a built-in example website, without a network",
        description="Start a small example website on this machine, read its sitemap tree, print the tree and a"
        " summary, and stop the website.",
        epilog=f"With --serve, try any command on it in another terminal: usp ls http://127.0.0.1:{_DEFAULT_PORT}/",
    )
    demo.add_argument("--serve", action="store_true", help="serve the website until Ctrl-C, without reading it")
    demo.add_argument(
        "--port", type=_port, help=f"port of the website (default: any free port; with --serve: {_DEFAULT_PORT})"
    )
    demo.add_argument("--view", action="store_true", help="explore the website in the browser, until Ctrl-C")
    demo.add_argument("--no-open", action="store_true", help="with --view: print the address, and open no browser")
    demo.set_defaults(command=run, host="127.0.0.1")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve the website, and read it unless --serve is given. Return the exit code."""
    log_to(None, 0)
    port = arguments.port if arguments.port is not None else _DEFAULT_PORT if arguments.serve else 0
    with demo_site(port) as homepage:
        if arguments.serve:
            print(f"Serving {homepage} (Ctrl-C to stop)", flush=True)
            threading.Event().wait()
        if arguments.view:
            return _view(arguments, homepage)
        tree = sitemap_tree_for_homepage(homepage)
    for _, lines in tabtree(tree, ChosenPages()):
        print(lines, end="")
    print("", *summary_lines(tree), "", "Explore this website in the browser: usp demo --view", sep="\n")
    return 0


def _view(arguments: argparse.Namespace, homepage: str) -> int:
    """Explore the website. `--port` is that of the website; the page has any free one."""
    from usp.cli.view import explore

    arguments.port = 0
    sources = find_sources(homepage)
    explore(arguments, sources, ((source, source.stream(None, pages_once=True)) for source in sources), {})
    return 0


def summary_lines(tree: AbstractSitemap) -> Iterator[str]:
    """Yield the lines of the summary: what the tree holds, which sitemaps failed, and which problems there are."""
    sitemaps = list(tree.all_sitemaps())
    kinds = Counter(type(sitemap).__name__ for sitemap in sitemaps)
    invalid = [sitemap for sitemap in sitemaps if isinstance(sitemap, InvalidSitemap)]
    problems = list(tree.all_problems())
    yield f"sitemaps: {len(sitemaps)} ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
    yield f"pages: {sum(1 for _ in tree.all_pages())}"
    yield f"sitemaps that failed: {len(invalid)}"
    yield from (f"  {printable(sitemap.reason)}" for sitemap in invalid)
    yield f"problems in the others, repaired or skipped: {len(problems)}"
    yield from (f"  {printable(str(problem))}" for problem in problems)


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
  <sitemap><loc>{base}/news.xml</loc></sitemap>
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

# A bare "&", a missing end tag, an ambiguous date, and truncated: as found in the wild.
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
        """Log nothing: the output is the tree."""


class _CleanHandler(_Handler):
    is_clean = True


def _recently() -> str:
    """Return when the news was published. News sitemaps list only the last two days."""
    return (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="seconds")


@contextmanager
def demo_site(port: int = 0, *, is_clean: bool = False) -> Iterator[str]:
    """Serve the example website while the context is open, and give its homepage.

    :param is_clean: leave the two defective sitemaps out.
    """
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _CleanHandler if is_clean else _Handler)
    except OSError as error:
        raise OSError(f"cannot serve on port {port}: {error.strerror}; choose another with --port") from error
    with server:
        server.daemon_threads = True  # an open keep-alive connection must not delay the end
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="usp-demo", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()

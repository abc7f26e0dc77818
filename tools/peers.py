"""Runs the examples of the documentation that need other packages, and measures what the README says of these.

pip installs them into `.peers/`: ultimate-sitemap-parser 1.8.1 into an environment of its own, because it has the
same import name; all others beside usp. Examples read a small website on this machine.

- On the pages about migrating, both sides of an example must print the same lines, in any order. Examples for 1.8.1 run
  with usp, too: it is a drop-in replacement.
- Examples of the recipe for crawlers must print something.
- Each package reads small documents, some of them damaged. The README's table must have what comes out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from usp.cli.demo import demo_site

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".peers"
DOCS = ROOT / "docs"
_ENVIRONMENTS = {
    "new": [f"{ROOT}[all]", "scrapy", "advertools", "crawlee[parsel]", "trafilatura", "lxml_html_clean"],
    "old": ["ultimate-sitemap-parser==1.8.1", "pandas"],
}
_SECONDS = 120
_PAIR = re.compile(r'<div class="grid" markdown>\n(.*?)</div>', re.DOTALL)
_EXAMPLE = re.compile(r"^```python(?: title=\"(.*?)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OLD = "ultimate-sitemap-parser"
_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
#: Documents about which the README's table says something, by name; `{base}` is the URL of the website.
_DOCUMENTS = {
    "amp.xml": f"<urlset {_NS}><url><loc>{{base}}1</loc></url><url><loc>{{base}}2?a=1&b=2</loc></url>"
    "<url><loc>{base}3</loc></url></urlset>",
    "cut.xml": f"<urlset {_NS}><url><loc>{{base}}1</loc></url><url><loc>{{base}}2</loc></url><url><loc>{{base}}3</loc>",
    "items.rss": '<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><link>{base}</link>'
    "<description>d</description><item><title>a</title><link>{base}1</link></item></channel></rss>",
    "entries.atom": '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>'
    '<entry><title>a</title><link href="{base}1"/></entry></feed>',
    "list.txt": "{base}1\n{base}2\n",
}
_ALL = tuple(_DOCUMENTS)
#: A program for each package: it prints the URLs of the document that its argument names.
_READERS = {
    "usp": "import sys, usp\nprint(*(page.url for page in usp.open(sys.argv[1]).read().all_pages()), sep='\\n')",
    _OLD: "import sys\nfrom urllib.request import urlopen\nfrom usp.tree import sitemap_from_str\n"
    "print(*(page.url for page in sitemap_from_str(urlopen(sys.argv[1]).read().decode()).all_pages()), sep='\\n')",
    "advertools": "import sys, advertools\nprint(*advertools.sitemap_to_df(sys.argv[1])['loc'].dropna(), sep='\\n')",
    "Scrapy": """\
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider
class Urls(SitemapSpider):
    name = "urls"
    sitemap_urls = [sys.argv[1]]
    custom_settings = {"LOG_ENABLED": False}
    def sitemap_filter(self, entries):
        print(*(entry["loc"] for entry in entries), sep="\\n")
        return ()
process = CrawlerProcess()
process.crawl(Urls)
process.start()
""",
}


class Run(NamedTuple):
    """What a program printed, line by line, and its messages if it failed."""

    lines: list[str]
    failure: str


def install() -> None:
    """Make the environments, if they are not there."""
    for name, packages in _ENVIRONMENTS.items():
        done = FOLDER / name / "installed"
        if not done.exists():
            venv.create(FOLDER / name, clear=True, with_pip=True)
            command = [str(_python(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            subprocess.run(command, check=True, env={**os.environ, "USP_PURE": "1"})  # noqa: S603 -- built here
            done.touch()


def _python(environment: str) -> Path:
    return FOLDER / environment / "bin" / "python"


def run(environment: str, program: str, *arguments: str) -> Run:
    """Run a program in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.py"
        path.write_text(program, "utf-8")
        command = [str(_python(environment)), str(path), *arguments]
        try:
            ran = subprocess.run(  # noqa: S603 -- built here
                command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return Run([], f"not finished after {_SECONDS} seconds")
        written = sorted(line for file in Path(folder).glob("*.jsonl") for line in file.read_text("utf-8").splitlines())
    return Run([*filter(None, ran.stdout.splitlines()), *written], ran.stderr if ran.returncode else "")


def pairs() -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Yield each pair of examples: the page, and the title and program of both."""
    for page in sorted((DOCS / "migrating").glob("*.md")):
        for pair in _PAIR.findall(page.read_text("utf-8")):
            before, after = _EXAMPLE.findall(pair)
            yield page.name, before, after


def compare_pairs(homepage: str) -> Iterator[str]:
    """Run both sides of each pair, and give what is wrong."""
    for page, (title, before), (_, after) in pairs():
        sides = [("old" if title == _OLD else "new", before), ("new", after), *([("new", before)] * (title == _OLD))]
        runs = [run(name, program.replace("https://www.example.org/", homepage)) for name, program in sides]
        failures = [one.failure for one in runs if one.failure]
        if failures:
            yield f"{page}: an example of {title} fails:\n{before}\n{failures[0]}"
        elif not runs[0].lines or len({tuple(sorted(one.lines)) for one in runs}) > 1:
            printed = "\n".join(f"  {lines}" for lines, _ in runs)
            yield f"{page}: the sides of an example print different lines:\n{before}\n{printed}"
        else:
            print(f"{page}: {title}: {len(runs[0].lines)} lines on both sides")


def run_recipes(homepage: str) -> Iterator[str]:
    """Run the recipes for crawlers, and give what is wrong."""
    for _, program in _EXAMPLE.findall((DOCS / "recipes" / "crawlers.md").read_text("utf-8")):
        name = re.findall(r"^(?:import|from) (scrapy|crawlee|trafilatura)", program, re.MULTILINE)[0]
        ran = run("new", program.replace("https://www.example.org/", homepage))
        titles = [line for line in ran.lines if "The page" in line or "characters" in line]
        if ran.failure or not titles:
            yield f"crawlers.md: the example of {name} fails, or prints nothing:\n{ran.failure}"
        else:
            print(f"crawlers.md: {name}: {len(titles)} pages")


def measured(package: str, homepage: str) -> list[str]:
    """Return what the table of the README says of a package: a cell for each of its rows."""
    found = {
        name: run("old" if package == _OLD else "new", _READERS[package], f"{homepage}{name}").lines for name in _ALL
    }
    good = {f"{homepage}1", f"{homepage}2", f"{homepage}3", f"{homepage}2?a=1&b=2"}

    def kept(name: str) -> str:
        wrong = len(set(found[name]) - good)
        return f"{len(found[name])}{', one with a wrong URL' if wrong == 1 else ''}"

    has_all = all(found[name] for name in ("items.rss", "entries.atom", "list.txt"))
    has_none = not any(found[name] for name in ("items.rss", "entries.atom", "list.txt"))
    return [kept("amp.xml"), kept("cut.xml"), "yes" if has_all else "no" if has_none else "some"]


def compare_table(homepage: str) -> Iterator[str]:
    """Measure what the README says of other packages, and give what it should say."""
    columns = [measured(package, homepage) for package in _READERS]
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*?) ² \| (.*) \|$", readme, re.MULTILINE)
    for (what, cells), values in zip(rows, zip(*columns, strict=True), strict=True):
        if cells != " | ".join(values):
            yield f"README.md: {what}: it says {cells}; found {' | '.join(values)}"
        else:
            print(f"README.md: {what}: {cells}")


class _Handler(BaseHTTPRequestHandler):
    """Answers with a document, else as the example website does, else with a page."""

    demo = ""

    def do_GET(self) -> None:
        """Answer a request."""
        base = f"http://{self.headers['Host']}/"
        name = self.path.removeprefix("/")
        status, kind, body = (
            200,
            "text/html",
            f"<title>The page {name}</title><p>{'Rivers and maps. ' * 40}</p>".encode(),
        )
        if name in _DOCUMENTS:
            kind, body = "text/plain" if name.endswith(".txt") else "application/xml", _DOCUMENTS[name].encode()
            body = body.replace(b"{base}", base.encode())
        else:
            connection = HTTPConnection(urlsplit(self.demo).netloc, timeout=10)
            connection.request("GET", self.path, headers={"Host": self.headers["Host"]})
            response = connection.getresponse()
            answer = response.read()
            if response.status == 200:
                kind, body = response.getheader("Content-Type", kind), answer
                if name == "robots.txt":  # for the example of what failed
                    body += f"Sitemap: {base}missing.xml\n".encode()
            elif "." in name or name.startswith("sitemap"):
                status, body = 404, b""
            connection.close()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def website() -> Iterator[str]:
    """Serve the example website with pages, and the documents of the README's table."""
    with demo_site(is_clean=True) as demo:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"demo": demo}))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with server:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
            server.shutdown()


def main() -> int:
    """Run everything. Return the exit code."""
    install()
    with website() as homepage:
        wrong = [*compare_pairs(homepage), *run_recipes(homepage), *compare_table(homepage)]
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

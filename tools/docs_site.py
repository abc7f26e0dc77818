"""Builds the documentation site in `.site/html`, without a network.

python tools/docs_site.py            builds and checks it
python tools/docs_site.py --serve    builds it, and serves it on this machine until Ctrl-C

Pages are collected in `.site/docs` first: those in docs/, the README as the home page, the changelog, a page for each
check rule, and the notebooks. Links in them are rewritten, because they name files of the repository. zensical makes
HTML of them. Then every link of the HTML is followed: it is an error if a page, a place in a page, an image or a script
is missing. It is one, too, if the navigation lacks a page, or if a browser would load anything from another host.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs_pages import notebook_page, rule_page_of_site, rules_index
from usp.objects.codes import CODES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STAGE = ROOT / ".site" / "docs"
HTML = ROOT / ".site" / "html"
CONFIGURATION = ROOT / "mkdocs.yml"
_PORT = 8001
_PAGES_OF_RULES = "src/usp/check/pages"
#: Pages of the site that are elsewhere in the repository. Those that do not exist are left out.
_ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
_UNTRACKED = {"problems.md"}  # the rules in one page, which `make docs` writes
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^ *(`{3,}).*?^ *\1$", re.MULTILINE | re.DOTALL)  # four of them may hold three


class SiteError(Exception):
    """The site cannot be built. The message says what to change."""


def collect() -> None:
    """Write all pages to `.site/docs`."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(DOCS, STAGE, ignore=shutil.ignore_patterns(*_UNTRACKED))
    places = _places()
    for source, page in places.items():
        if source.endswith(".md") and not source.startswith(_PAGES_OF_RULES):
            text = (ROOT / source).read_text("utf-8")
            _write(page, relinked(text, source, places))
    for code in CODES:
        _write(f"rules/{code}.md", rule_page_of_site(code))
    _write("rules.md", rules_index())
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        _write(f"notebooks/{notebook.stem}.md", notebook_page(notebook))


def _write(page: str, text: str) -> None:
    path = STAGE / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _places() -> dict[str, str]:
    """Return the page of the site for each file of the repository that has one."""
    places = {source: page for source, page in _ELSEWHERE.items() if (ROOT / source).exists()}
    places |= {
        f"docs/{path.relative_to(DOCS).as_posix()}": path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*")
        if path.is_file() and path.name not in _UNTRACKED
    }
    places |= {f"{_PAGES_OF_RULES}/{code}.md": f"rules/{code}.md" for code in CODES}
    places |= {_PAGES_OF_RULES: "rules.md", "docs/decisions": "decisions/README.md", "docs": "index.md"}
    places |= {f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    return places


def relinked(text: str, source: str, places: dict[str, str]) -> str:
    """Return a document with links to pages of the site in place of links to files of the repository.

    :param source: the path of the document in the repository.
    :param places: the page for each file.
    """
    page = places[source]
    repository = _repository()

    def replaced(found: re.Match[str]) -> str:
        is_image, label, target, fragment = found[1], found[2], found[3], found[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target)).rstrip("/")
        if path in places:
            return f"{is_image}[{label}]({posixpath.relpath(places[path], posixpath.dirname(page) or '.')}{fragment})"
        if not (ROOT / path).exists():
            raise SiteError(f"{source}: the link to {target} leads nowhere")
        if repository:  # a file of the source code
            return f"[{label}]({repository}/blob/main/{path}{fragment})"
        return label

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(replaced, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(replaced, text[end:])])


@functools.cache
def _repository() -> str:
    """Return the URL of the repository that pyproject.toml states, or an empty text."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    return next((str(urls[name]).rstrip("/") for name in ("Source", "Repository", "Homepage") if name in urls), "")


def in_navigation() -> set[str]:
    """Return the pages that the navigation has."""
    navigation = CONFIGURATION.read_text("utf-8").partition("\nnav:\n")[2]
    return set(re.findall(r"^ *- (?:[^#\n]*: )?([\w/-]+\.md)$", navigation, re.MULTILINE))


def missing_from_navigation() -> list[str]:
    """Return the pages that the navigation should have, or has and should not. Decisions and rules have an index."""
    pages = {page for page in _places().values() if page.endswith(".md")} | {"rules.md"}
    single = {page for page in pages if page.startswith(("decisions/", "rules/"))}
    single.discard("decisions/README.md")
    named = in_navigation()
    messages = [f"{page} is not in the navigation; add it to mkdocs.yml" for page in sorted(pages - single - named)]
    return messages + [f"mkdocs.yml names {page}, which does not exist" for page in sorted(named - pages)]


def build() -> None:
    """Make HTML of the collected pages."""
    shutil.rmtree(HTML, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical), "build", "--clean", "--strict", "-f", str(CONFIGURATION)]
    run = subprocess.run(  # noqa: S603 -- built here
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}
    )
    if run.returncode:
        raise SiteError(f"{run.stdout}{run.stderr}".strip())


class _Page(HTMLParser):
    """The ids of a page, the links in it, and what a browser loads for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag defines and needs."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(values["href"])
        if "src" in values:
            self.loads.append(values["src"])


def problems_of(folder: Path) -> Iterator[str]:
    """Give everything that is wrong with the links of a site in a folder."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        for url in page.loads:
            if urlsplit(url).scheme not in ("", "data") or urlsplit(url).netloc:
                yield f"{name}: loads {url} from another host"
        for url in [*page.loads, *page.links]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            target = _target(path, unquote(parts.path))
            if not target.is_file():
                yield f"{name}: {url} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids | {"__top"}:
                yield f"{name}: there is no #{parts.fragment} in {target.relative_to(folder).as_posix()}"


def _target(page: Path, path: str) -> Path:
    """Return the file of a relative path in a page."""
    if not path:
        return page
    target = Path(os.path.normpath(page.parent / path))
    return target / "index.html" if path.endswith("/") or target.is_dir() else target


def serve() -> None:
    """Serve the site on loopback until Ctrl-C."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", _PORT), handler) as server:
        print(f"Serving http://127.0.0.1:{_PORT}/ (Ctrl-C to stop)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main() -> int:
    """Build and check the site. Return the exit code."""
    try:
        if messages := missing_from_navigation():
            raise SiteError("\n".join(messages))
        collect()
        build()
        if messages := list(problems_of(HTML)):
            raise SiteError("\n".join(messages))
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    count = len(list(HTML.rglob("*.html")))
    print(f"{count} pages in {HTML.relative_to(ROOT)}; to read them: make site-serve")
    if "--serve" in sys.argv[1:]:
        serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())

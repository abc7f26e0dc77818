"""The documentation cannot drift: its examples run, and generated pages are current."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml  # type: ignore[import-untyped]  # vcrpy brings it, without types

import docs_pages
import docs_site
from support import write_archive
from test_rooms import ROOMS
from usp.check import check
from usp.check.formats import render
from usp.check.rules import RULES
from usp.check.rules.page import rule_page
from usp.cli.demo import demo_site
from usp.export.schema import ITEM_TABLES, PAGES, SCHEMA_VERSION, SITEMAPS, TABLES
from usp.objects.codes import CODES
from usp.scan.columns import List, Scalar, Struct, Type

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[1]
EXPORT = (ROOT / "docs" / "export.md").read_text("utf-8")
SCHEMA = (ROOT / "docs" / "schema.md").read_text("utf-8")
#: Examples that run elsewhere: `make test-cluster` has those of clusters, `make peers` those with other packages.
ELSEWHERE = re.compile(r"^(?:import|from) (?:advertools|crawlee|pyspark|ray|scrapy|trafilatura)\b", re.MULTILINE)
EXAMPLES = {
    f"{path.relative_to(ROOT)}-{number}": example
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, example in enumerate(
        re.findall(r"^```python.*?\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
    if not ELSEWHERE.search(example)
}


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python example of the README and of the guides runs on the example website, after those before it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public").mkdir()
    for file in ("sitemap.xml", "public/sitemap.xml"):
        (tmp_path / file).write_text("<urlset><url><loc>https://www.example.org/a</loc></url></urlset>")
    page, _, number = name.rpartition("-")
    with demo_site() as homepage:
        write_archive(tmp_path / "crawl.warc.gz", homepage)
        (tmp_path / "sites.txt").write_text(f"{homepage}\n")
        # A recipe goes on with the folder that its first example has made.
        first = 0 if page.endswith("hundred-sites.md") else int(number)
        for one in range(first, int(number) + 1):
            capsys.readouterr()
            run_example(EXAMPLES[f"{page}-{one}"], page, homepage)
    if "print(" in EXAMPLES[name]:
        assert capsys.readouterr().out


def run_example(example: str, page: str, homepage: str) -> None:
    """Run an example on a website. It may await, as in a notebook."""
    example = example.replace("https://www.example.org/", homepage)
    example = example.replace('"example.org"', repr(homepage.removeprefix("http://")))
    code = compile(example, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    run = eval(code, {"__name__": "example"})  # noqa: S307 -- running it is the test
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(run)


def test_reports_are_those_of_usp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reports that the README and the guide show are what `usp check` prints about such files."""
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs" / "check.md").read_text("utf-8")
    (example,) = re.findall(
        r"^```xml\n(.*?)^```\n\n```console\n\$ usp check sitemap.xml\n", guide, re.DOTALL | re.MULTILINE
    )
    Path("sitemap.xml").write_text(example)
    assert f"$ usp check sitemap.xml\n{''.join(render('text', check('sitemap.xml')))}$ echo $?\n1\n" in guide

    pages = [
        f"<url><loc>https://www.example.org/{number:05}</loc><lastmod>2026-11-01</lastmod></url>"
        for number in range(48_201)
    ]
    pages[4_316] = pages[4_316].replace("org/", "org/?a=1&b=")
    Path("public").mkdir()
    Path("public/robots.txt").write_text("User-agent: *\nSitemap: https://www.example.org/sitemap.xml\n")
    Path("public/sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        + "\n".join([*pages, "</urlset>\n"])
    )
    report = "".join(render("text", check("public", url="https://www.example.org/")))
    assert f"```text\n{report.replace('public/', '')}```" in (ROOT / "README.md").read_text("utf-8")


def test_files_for_ci_are_complete() -> None:
    """YAML examples are valid, use the actions of our workflows, and have usp before they run it."""
    ours = "".join(path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    versions = dict(re.findall(r"uses: ([\w-]+/[\w-]+)[\w/-]*@(\S+)", ours))
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for block in blocks:
        assert yaml.safe_load(block)
        for action, version in re.findall(r"uses: ([\w-]+/[\w-]+)[\w/-]*@(\S+)", block):
            assert versions[action] == version
        if "runs-on:" in block:
            places = [block.index(text) for text in ("submodules: true", "pip install ./tools/usp", "run: usp ")]
            assert places == sorted(places)
    commits = [hook["rev"] for block in blocks for hook in yaml.safe_load(block).get("repos", []) if "rev" in hook]
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in commits)  # a tag need not exist


def test_figures_are_those_of_the_benchmarks() -> None:
    """The figures in the README's comparison are those that `make bench` has found."""
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    found = dict(re.findall(r"^\| ([\w-]+) \|.*?\| ([\d.]+)x as fast \|", benchmarks, re.MULTILINE))
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"¹ | 1 | {found['urls']} | {found['advertools']} | {found['scrapy']} |" in readme
    assert f"¹ | 1 | {found['network']} | | {found['network-scrapy']} |" in readme
    assert re.search(r"^\| memory \|.*\| (147 MB) \|", benchmarks, re.MULTILINE)
    versions = {"ultimate-sitemap-parser": "1.8.1", "advertools": "0.18.0", "scrapy": "2.19.0"}
    assert all(f"{package} {version}" in benchmarks for package, version in versions.items())
    assert len(readme.splitlines()) <= 150


def test_every_page_is_in_the_navigation() -> None:
    """The navigation of the documentation site has every page but the decisions, and no page that does not exist."""
    assert docs_site.missing_from_navigation() == []


def test_links_of_the_site_lead_somewhere() -> None:
    """Every link of a page leads to a page of the site, also from a folder, and to files of the repository."""
    places = {"README.md": "index.md", "docs/a.md": "a.md", "docs/more/b.md": "more/b.md", "docs": "index.md"}
    text = "[b](docs/more/b.md#x) [c](https://c.example) ![i](docs/a.md)\n```\n[b](nowhere.md)\n```\n"
    relinked = docs_site.relinked(text, "README.md", places)
    assert relinked == "[b](more/b.md#x) [c](https://c.example) ![i](a.md)\n```\n[b](nowhere.md)\n```\n"
    assert docs_site.relinked("[a](../a.md)", "docs/more/b.md", places) == "[a](../a.md)"
    nested = "````\n```\n[b](no.md)\n```\n````\n"
    assert docs_site.relinked(f"{nested}[a](../a.md)", "docs/more/b.md", places) == f"{nested}[a](../a.md)"
    assert docs_site.relinked("[home](../../README.md)", "docs/more/b.md", places) == "[home](../index.md)"
    with pytest.raises(docs_site.SiteError, match=r"the link to nowhere\.md leads nowhere"):
        docs_site.relinked("[b](nowhere.md)", "README.md", places)


def test_broken_links_of_the_site_are_found(tmp_path: Path) -> None:
    """A missing page, place or script is found, and so is anything that comes from another host."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<h1 id="here"></h1><a href="../">up</a><a href="#there">there</a>')
    (tmp_path / "index.html").write_text(
        '<a href="b/#here">b</a><a href="b/#gone">b</a><a href="c/">c</a><a href="https://c.example/">c</a>'
        '<script src="x.js"></script><link rel="stylesheet" href="https://cdn.example/a.css">'
    )
    assert sorted(docs_site.problems_of(tmp_path)) == [
        "b/index.html: there is no #there in b/index.html",
        "index.html: c/ leads nowhere",
        "index.html: loads https://cdn.example/a.css from another host",
        "index.html: there is no #gone in b/index.html",
        "index.html: x.js leads nowhere",
    ]


def test_every_rule_has_a_page_of_the_site() -> None:
    """The index of rules links to the page of each, and a page highlights the line of the problem."""
    index = docs_pages.rules_index()
    assert [code for code in CODES if f"[{code}](rules/{code}.md)" not in index] == []
    page = docs_pages.rule_page_of_site("X102")
    assert '```xml title="sitemap.xml" linenums="1" hl_lines="4"\n' in page
    assert "**Severity:** error" in page
    assert "<https://www.w3.org/TR/xml/#syntax>" in page


def test_every_public_module_is_in_the_reference() -> None:
    """The API reference has every name that `usp` and its front doors export, and names nothing that does not exist."""
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    named = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    found = {name: pkgutil.resolve_name(name) for name in named if not name.startswith(("usp.spark", "usp.ray"))}
    documented = {id(value) for value in found.values()}
    for value in found.values():
        if isinstance(value, ModuleType):
            documented |= {id(getattr(value, name)) for name in getattr(value, "__all__", vars(value))}
    doors = [
        importlib.import_module(name) for name in ("usp", "usp.aio", "usp.tree", "usp.check", "usp.export", "usp.crawl")
    ]
    undocumented = {
        f"{door.__name__}.{name}"
        for door in doors
        for name in door.__all__
        if inspect.isclass(value := getattr(door, name)) or inspect.isfunction(value)
        if id(value) not in documented
    }
    assert sorted(undocumented) == []


def test_the_schema_is_documented() -> None:
    """The export guide lists every column of every table in order, with its type, and the schema version."""
    words = {
        Scalar.TEXT: "text",
        Scalar.FREQUENCY: "text",
        Scalar.TIME: "time",
        Scalar.NUMBER: "number",
        Scalar.INTEGER: "integer",
    }

    def word(kind: Type) -> str:
        if isinstance(kind, List):
            return f"list of {word(kind.item)}s"
        return "struct" if isinstance(kind, Struct) else words[kind]

    documented = re.findall(r"^\| `(\w+)` \| (text|time|struct|number|integer|list of .*?) \|", SCHEMA, re.MULTILINE)
    shared = dict(list(TABLES["images"].items())[:4])  # the other columns are the fields of the items
    tables = (PAGES, SITEMAPS, shared)
    assert documented == [(name, word(kind)) for types in tables for name, kind in types.items()]
    for table in ITEM_TABLES:
        fields = ", ".join(f"`{name}`" for name in TABLES[table] if name not in shared)
        assert f"- `{table}`: {fields}\n" in SCHEMA
    assert f"This is version {SCHEMA_VERSION}." in SCHEMA


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays help out otherwise since Python 3.13")
def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated pages match the code."""
    monkeypatch.setenv("COLUMNS", "100")
    module = generator()
    for name, page in module.PAGES.items():
        assert (ROOT / name).read_text("utf-8") == page(), f"{name} is out of date; run: make docs"


def test_every_problem_is_documented_and_used() -> None:
    """Every problem code is documented. What a rule does not find itself, other code reports."""
    documented = generator().problems_page()
    paths = [path for path in (ROOT / "src").rglob("*.py") if path.parent.name != "rules"]
    source = "".join(path.read_text("utf-8") for path in paths)
    assert [code for code in CODES if f"| [{code}](#{code.lower()}) |" not in documented] == []
    reported = [code for code, rule in RULES.items() if rule.looks_at == "document"]
    assert [code for code in reported if f'"{code}"' not in source] == []


def test_every_problem_is_tested() -> None:
    """Every problem code is expected by a fixture or a test, or has a page whose bad example is run."""
    tests = Path(__file__).parent
    paths = [*tests.glob("*.py"), *tests.glob("fixtures/*.json")]
    # That one names the codes whose examples are not run.
    expectations = "".join(path.read_text("utf-8") for path in paths if path.name != "test_check_pages.py")
    run = {code for code in CODES if all(example.file for example in rule_page(code).examples("Bad"))}
    assert [code for code in CODES if code not in run and f'"{code}"' not in expectations] == []


def test_links_lead_somewhere() -> None:
    """Links between documents point to existing files."""
    for document in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_decision_is_in_the_index() -> None:
    """The index of decisions links to each record once."""
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    assert (
        sorted(re.findall(r"^- \[.*?\]\(([^)/]+)\)", (folder / "README.md").read_text("utf-8"), re.MULTILINE))
        == records
    )


def test_every_room_is_in_the_design() -> None:
    """The table of rooms in design.md is the table that the tests hold."""
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    documented = {}
    for rooms, imports in re.findall(r"^\| (`usp/.*?) \|.*\| (.*?) \|$", design, re.MULTILINE):
        for room in re.findall(r"`usp/(\w+)(?:\.py|/)`", rooms):
            documented[room] = imports
    assert documented.keys() == ROOMS.keys() - {"__init__", "__main__"}
    for room, imports in documented.items():
        if not imports.startswith("all above"):
            assert {name for name in imports.split(", ") if name != "nothing"} == ROOMS[room], room


@pytest.mark.parametrize("name", ["design.md", "glossary.md"])
def test_names_exist(name: str) -> None:
    """Files, and names in code font, that the design and the glossary mention exist in the code."""
    text = (ROOT / "docs" / name).read_text("utf-8")
    paths = set(re.findall(r"\busp/[\w/]+(?:\.\w+)?", text))
    assert [path for path in sorted(paths) if not (ROOT / "src" / path).exists()] == []
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = {found.rpartition(".")[2] for found in re.findall(r"`([A-Za-z_][\w.]*)(?:\(.*?\))?`", text)}
    names = {found for found in names if re.search(r"[A-Z].*[a-z]|\w_\w", found)}
    assert [found for found in sorted(names) if found not in source] == []


def test_pictures_are_shown() -> None:
    """Every picture in docs/images is in the README or the documentation."""
    texts = [path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    shown = {name for text in texts for name in re.findall(r"images/([\w.-]+)", text)}
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} == shown

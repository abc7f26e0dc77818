"""The documentation cannot drift: its examples run, and generated pages are current."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support import write_archive
from test_rooms import ROOMS
from usp.check.rules import RULES
from usp.check.rules.page import rule_page
from usp.cli.demo import demo_site
from usp.export.schema import ITEM_TABLES, PAGES, SCHEMA_VERSION, SITEMAPS, TABLES
from usp.objects.codes import CODES
from usp.scan.columns import List, Scalar, Struct, Type

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
EXPORT = (ROOT / "docs" / "export.md").read_text("utf-8")
GUIDES = [(ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("fetching", "outcomes", "choosing", "sources")]
EXAMPLES = re.findall(r"```python\n(.*?)```", "".join([README, EXPORT, *GUIDES]), re.DOTALL)


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(
    example: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python example of the README and of the guides runs on the example website."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public").mkdir()
    for name in ("sitemap.xml", "public/sitemap.xml"):
        (tmp_path / name).write_text("<urlset><url><loc>https://www.example.org/a</loc></url></urlset>")
    with demo_site() as homepage:
        write_archive(tmp_path / "crawl.warc.gz", homepage)
        example = example.replace("https://www.example.org/", homepage)
        example = example.replace('"example.org"', repr(homepage.removeprefix("http://")))
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102 -- running it is the test
    if "print(" in example:
        assert capsys.readouterr().out


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

    documented = re.findall(r"^\| `(\w+)` \| (text|time|struct|number|integer|list of .*?) \|", EXPORT, re.MULTILINE)
    shared = dict(list(TABLES["images"].items())[:4])  # the other columns are the fields of the items
    tables = (PAGES, SITEMAPS, shared)
    assert documented == [(name, word(kind)) for types in tables for name, kind in types.items()]
    for table in ITEM_TABLES:
        fields = ", ".join(f"`{name}`" for name in TABLES[table] if name not in shared)
        assert f"- `{table}`: {fields}\n" in EXPORT
    assert f"This is version {SCHEMA_VERSION}." in EXPORT


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

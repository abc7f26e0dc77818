"""The rooms of the code: imports go downwards only, and files stay readable."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import usp
import usp.scan

SOURCE = Path(usp.__file__).parent
LONG_FILE = 400  # a reason to look, not to split
MAX_LINES = 700
MAX_FUNCTION_LINES = 50

# Each room may import itself and those named: the table of docs/design.md.
FOUNDATION = {"version", "compiled", "logs", "keywords", "exceptions", "objects", "inflate", "origins", "limits"}
MIDDLE = FOUNDATION | {"scan", "bodies", "documents", "fetch_parse", "walk"}
FETCHING = MIDDLE | {"politeness", "progress", "web_client", "drivers", "workers"}
ROOMS = {
    "version": set(),
    "compiled": set(),
    "logs": set(),
    "keywords": set(),
    "exceptions": set(),
    "extras": {"exceptions"},
    "origins": {"exceptions"},
    "objects": {"compiled", "exceptions", "origins"},
    "inflate": {"exceptions", "limits"},
    "limits": {"exceptions"},
    "politeness": {"exceptions"},
    "progress": set(),
    "scan": {"compiled", "exceptions", "objects", "origins"},
    "bodies": {"exceptions", "inflate", "limits", "logs"},
    "documents": {"bodies", "exceptions", "inflate", "limits", "logs"},
    "fetch_parse": FOUNDATION | {"scan", "documents"},
    "walk": {"objects", "origins", "limits", "documents", "fetch_parse"},
    "web_client": {"version", "exceptions", "objects", "inflate", "origins", "limits", "bodies"},
    "drivers": FETCHING,
    "workers": set(),
    "stream": {
        "exceptions",
        "objects",
        "origins",
        "limits",
        "scan",
        "documents",
        "fetch_parse",
        "walk",
        "web_client",
        "drivers",
    },
    "webpages": {"exceptions", "objects", "origins", "limits", "documents", "fetch_parse", "walk", "drivers", "stream"},
    "warc": {"version", "exceptions", "extras", "objects", "inflate", "origins", "limits", "web_client"},
    "tree": {"exceptions", "objects", "origins", "limits", "documents", "fetch_parse", "drivers", "stream"},
    "sources": {
        *("keywords", "exceptions", "objects", "scan", "origins", "limits", "web_client", "warc", "stream", "tree"),
    },
    "aio": {"drivers", "stream", "sources"},
    "helpers": FETCHING,
    "check": {
        "version",
        "exceptions",
        "objects",
        "scan",
        "origins",
        "limits",
        "web_client",
        "workers",
        "stream",
        "tree",
        "sources",
        "notebook",
        *("extras", "webpages", "export"),  # for probing
    },
    "notebook": {"objects"},
    "export": {"keywords", "exceptions", "extras", "objects", "scan", "origins", "limits", "stream"},
    "crawl": {
        *(
            "version",
            "keywords",
            "exceptions",
            "extras",
            "objects",
            "scan",
            "origins",
            "limits",
            "politeness",
            "web_client",
            "warc",
        ),
        *("stream", "tree", "sources", "export"),
    },
    "spark": {"exceptions", "extras", "export", "crawl"},
    "ray": {"exceptions", "extras", "export", "crawl"},
    "view": {"exceptions", "extras", "objects", "scan", "sources", "check", "export", "crawl"},
    "cli": {
        *("version", "compiled", "exceptions", "objects", "limits", "politeness", "progress", "origins", "web_client"),
        *("tree", "sources", "check", "export", "crawl", "view"),
    },
    "__init__": {"version", "exceptions", "objects", "limits", "politeness", "progress", "tree", "sources"},
    "__main__": {"cli"},
}
# These import upwards, inside a function: `SitemapFetcher.sitemap()` runs a walk with the blocking driver,
# `tree.to_arrow()` and its siblings call the exports, `_repr_html_` calls `usp.notebook`, and the table of problem
# codes is made of the rules. A crawl folder is a source, and crawls read lists of sources.
EXCEPTIONS = {
    ("fetch_parse/fetcher.py", "drivers"),
    ("objects/sitemap.py", "export"),
    ("objects/sitemap.py", "notebook"),
    ("objects/page.py", "notebook"),
    ("objects/codes.py", "check"),
    ("sources/targets.py", "crawl"),
}
PURE = ("scan", "fetch_parse", "walk", "inflate", "objects", "origins", "limits", "politeness", "progress")
IMPURE_MODULES = {"socket", "requests", "urllib3", "time", "subprocess", "os", "io", "tempfile", "threading", "asyncio"}


def files(*rooms: str) -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if not rooms or room_of(path) in rooms:
            yield path


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Give the modules that a file imports when it runs, including those imported inside functions."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_go_downwards() -> None:
    """A room imports only what the table allows."""
    wrong = []
    for path in files():
        name = str(path.relative_to(SOURCE))
        for module in imports(path):
            parts = module.split(".")
            if parts[0] != "usp" or len(parts) < 2:
                continue
            allowed = ROOMS[room_of(path)] | {room_of(path)}
            if parts[1] not in allowed and (name, parts[1]) not in EXCEPTIONS:
                wrong.append(f"{name} imports {module}")
    assert wrong == []


def test_checks_and_exports_use_doors() -> None:
    """Checks and exports import from the scanner what it declares, and from the clients only their interface."""
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in files("check", "export")
        for module in imports(path)
        if (module.startswith("usp.scan.") and module.removeprefix("usp.scan.") not in usp.scan.__all__)
        or (module.startswith("usp.web_client.") and not module.startswith("usp.web_client.abstract_client."))
    ]
    assert wrong == []
    assert all(hasattr(usp.scan, name) for name in usp.scan.__all__)


def test_every_room_is_in_the_table() -> None:
    """Every room is in the table."""
    assert {room_of(path) for path in files()} == set(ROOMS)


def test_the_middle_is_pure() -> None:
    """The rooms between the drivers and the bytes, and the schedule, do no I/O and read no clock."""
    schedule = (SOURCE / "drivers" / name for name in ("schedule.py", "tasks.py", "hosts.py", "reporting.py"))
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in (*files(*PURE), *schedule)
        for module in imports(path)
        if module.split(".")[0] in IMPURE_MODULES
    ]
    assert wrong == []


@pytest.mark.filterwarnings("default:.* lines; is it one idea:UserWarning")
def test_files_stay_readable() -> None:
    """A file of over 400 lines is listed among the warnings; none is over 700."""
    compiled = SOURCE.rglob("*.p[xy][xid]")  # not there once installed
    lengths = {str(p.relative_to(SOURCE)): p.read_text("utf-8").count("\n") for p in {*files(), *compiled}}
    for name, lines in sorted(lengths.items()):
        if LONG_FILE < lines <= MAX_LINES:
            warnings.warn(f"src/usp/{name} has {lines} lines; is it one idea?", stacklevel=1)
    assert [f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MAX_LINES] == []


def test_functions_stay_short() -> None:
    """No function is over 50 lines."""
    long = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in files()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


def test_every_module_says_what_it_is() -> None:
    """Every module opens with a docstring."""
    assert [str(path) for path in files() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []

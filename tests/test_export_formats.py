"""The registry of formats: it is complete, and what is wrong with it is an error at import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

from commands import environment
from usp.export import formats
from usp.export.formats import ANSWER_FORMATS, FORMATS, TABLE_FORMATS, file_help
from usp.export.formats.base import Format, FormatOptions

pytestmark = pytest.mark.export

ROOT = Path(__file__).parents[1]


def never(*arguments: object) -> Any:
    raise AssertionError(arguments)


def test_both_commands_have_one_registry() -> None:
    """`usp export` and `usp sql` offer the same formats; an aligned table is only for answers."""
    names = ["parquet", "arrow", "csv", "tsv", "duckdb", "jsonl", "json", "sqlite", "xlsx"]
    assert list(TABLE_FORMATS) == names
    assert set(ANSWER_FORMATS) == {*names, "table"}
    assert {**TABLE_FORMATS, **ANSWER_FORMATS} == FORMATS


def test_help_names_the_endings() -> None:
    """The help of -o has every format, and says which files may be gzipped, from the registry."""
    said = file_help(TABLE_FORMATS).replace("\n", " ")
    assert said == (
        "write to this file: .parquet, .arrow, .csv, .tsv, .duckdb, .jsonl, .json, .db, .xlsx;"
        " .csv, .tsv, .jsonl and .json also with .gz"
    )


def test_every_format_is_documented() -> None:
    """The guide has every format that files can have, with all its suffixes."""
    guide = (ROOT / "docs" / "export.md").read_text("utf-8")
    assert [one.name for one in FORMATS.values() if any(f"`{suffix}`" not in guide for suffix in one.suffixes)] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yaml", "text", (".yaml",)), "needs a table_writer or an answer_writer"),
        (("yaml", "text", (".yaml",), never), "needs answer_writer, or a reason"),
        (("yaml", "text", (".yaml",), None, never), "needs table_writer, or a reason"),
        (("yaml", "text", (".yaml",), never, never, "why"), "leave out `lacks`"),
        (("yaml", "text", (), never, never), "needs suffixes like"),
        (("yaml", "text", ("yaml",), never, never), "needs suffixes like"),
    ],
)
def test_incomplete_formats(arguments: tuple[object, ...], message: str) -> None:
    """A format that lacks something cannot be made."""
    with pytest.raises(TypeError, match=message):
        Format(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formats_of_module", "message"),
    [
        ((Format("csv", "again", (".x",), never, never),), "two formats are called 'csv'"),
        ((Format("x", "x", (".csv",), never, never),), re.escape(".csv is a suffix of both 'csv' and 'x'")),
        (None, "has no attribute 'FORMATS'"),
    ],
)
def test_modules_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, formats_of_module: tuple[Format, ...] | None, message: str
) -> None:
    """A module without formats, or with a name or a suffix that is taken, is an error at import."""
    module = ModuleType("usp.export.formats.zzz")
    if formats_of_module is not None:
        module.FORMATS = formats_of_module  # type: ignore[attr-defined]
    known = list(iter_modules(formats.__path__))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(formats, "iter_modules", lambda path: [*known, (None, "zzz", False)])
    with pytest.raises((TypeError, AttributeError), match=message):
        formats._all_formats()


def test_no_format_imports_its_package() -> None:
    """The registry is there without the packages that formats need."""
    packages = {"pyarrow", "duckdb", "pandas", "rich", "xlsxwriter"}
    code = f"import sys, usp.export.formats; sys.exit(bool({packages} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0


def test_options_have_defaults() -> None:
    """Formats have options of their own; none has to be given."""
    assert FormatOptions() == FormatOptions(keep_formulas=False, width=None)

"""The compiled modules: used all together or not at all, and held to the tables of plain Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

import usp
from usp import compiled
from usp.compiled import IS_COMPILED
from usp.scan import columns, grammar, survey
from usp.scan.columns import PAGE_COLUMNS, PAGE_TYPES, PageColumn, Scalar, check_names, check_page_columns, check_types
from usp.scan.vocabulary import DIALECTS, VIDEO_FIELDS, Dialect, Form, Kind, VideoField, check_namespaces

pytestmark = pytest.mark.compare

if IS_COMPILED:
    from usp.scan import _columns, _entries, _extensions, _survey, _texts  # type: ignore[attr-defined] # not there for mypy

SOURCE = Path(usp.__file__).parent
needs_compiled = pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
READ = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from usp.tree import sitemap_from_bytes
    page = next(iter(sitemap_from_bytes(b"<urlset><url><loc>http://h/</loc><priority>1</priority></url></urlset>").pages))
    from usp.compiled import IS_COMPILED
print(IS_COMPILED, page.url, page.priority, [f"{warning.category.__name__}: {warning.message}" for warning in caught])
"""


def truncate(package: Path) -> None:
    for library in package.rglob("_lazy*.so"):
        library.write_bytes(library.read_bytes()[:-100])


def truncate_scanner(package: Path) -> None:
    for library in (package / "scan").rglob("*.so"):
        library.write_bytes(library.read_bytes()[:1_000])


def empty(package: Path) -> None:
    next((package / "scan").rglob("*.so")).write_bytes(b"")


def change_number(package: Path) -> None:
    module = package / "compiled.py"
    module.write_text(module.read_text("utf-8").replace("\nINTERFACE = ", "\nINTERFACE = 9"), "utf-8")


def remove_one(package: Path) -> None:
    next(package.rglob("_lazy*.so")).unlink()


def remove_all(package: Path) -> None:
    for library in package.rglob("*.so"):
        library.unlink()


def python(package: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a copy of usp."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "USP_PURE": "", "PYTHONWARNINGS": "", **variables}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120, cwd=package.parent
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of usp, without modules that were compiled for other Pythons."""
    copy = shutil.copytree(SOURCE, tmp_path / "usp", ignore=shutil.ignore_patterns("__pycache__", "*.pyx", "*.px[id]"))
    for library in copy.rglob("*.so"):
        if not library.name.endswith(EXTENSION_SUFFIXES[0]):
            library.unlink()
    return copy


@needs_compiled
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "is truncated"),
        (truncate_scanner, "is truncated"),
        (empty, "file too short"),
        (change_number, "was built for another version of usp"),
        (remove_one, "usp.objects._lazy is missing"),
    ],
)
def test_compiled_modules_that_cannot_be_loaded(package: Path, damage: Callable[[Path], None], reason: str) -> None:
    """Modules that are damaged, of another version or incomplete are not used, and one warning says why."""
    damage(package)
    run = python(package, "-c", READ)
    assert run.stderr == ""
    assert run.stdout.startswith("False http://h/ 1 ['RuntimeWarning: the compiled modules of usp cannot be loaded")
    assert run.stdout.count("RuntimeWarning") == 1
    assert reason in run.stdout
    version = python(package, "-m", "usp", "--version")
    assert version.returncode == 0
    assert "(pure Python scanner)" in version.stdout
    assert version.stderr.count("RuntimeWarning") == 1


@needs_compiled
@pytest.mark.parametrize("variables", [{"USP_PURE": "1"}, {}], ids=["USP_PURE=1", "not built"])
def test_plain_python_by_choice(package: Path, variables: dict[str, str]) -> None:
    """Nothing warns where plain Python was asked for, or nothing was built."""
    (truncate if variables else remove_all)(package)
    run = python(package, "-c", READ, **variables)
    assert (run.stdout, run.stderr) == ("False http://h/ 1 []\n", "")


def test_what_is_built_is_used() -> None:
    """Where modules were built, they are used; and every source that there is, is one of them."""
    sources = {
        f"usp.{path.parent.name}.{path.stem}" for path in SOURCE.rglob("*.pyx") if SOURCE.parent.name == "src"
    } or set(compiled._MODULES)
    assert sources == set(compiled._MODULES)
    is_pure = os.environ.get("USP_PURE", "") not in ("", "0")
    assert (not is_pure and any(SOURCE.rglob("_lazy*.*[od]"))) == IS_COMPILED


# Tables that must agree


def test_tables_with_other_names() -> None:
    """An error says which name is missing, and where to add it."""
    check_names("A in a.py", ["x", "y"], "B in b.py", ["y", "x"])
    with pytest.raises(TypeError, match=r"A in a.py has no 'z', but B in b.py has: add it to A in a.py"):
        check_names("A in a.py", ["x"], "B in b.py", ["x", "z"])
    with pytest.raises(TypeError, match=r"B in b.py has no 'z', but A in a.py has: add it to B in b.py"):
        check_names("A in a.py", ["x", "z"], "B in b.py", ["x"])


def test_every_field_of_a_page_has_a_column() -> None:
    """A field without a column, a column without a field, and an extension that no entry has, are errors."""
    check_page_columns()
    without = {name: column for name, column in PAGE_COLUMNS.items() if name != "videos"}
    with pytest.raises(TypeError, match=r"PAGE_COLUMNS in usp/scan/columns.py has no 'videos'"):
        check_page_columns(without)
    with pytest.raises(TypeError, match=r"SitemapPage in usp/objects/page.py has no 'depth'"):
        check_page_columns({**PAGE_COLUMNS, "depth": PageColumn(Scalar.INTEGER, "depth")})
    unknown = replace(PAGE_COLUMNS["videos"], element="pagemap")
    with pytest.raises(TypeError, match=r"of <pagemap>, which entries do not have: add it to usp/scan/vocabulary.py"):
        check_page_columns({**PAGE_COLUMNS, "videos": unknown})


def test_types_of_columns() -> None:
    """Who writes a column must know it, with its type and the order of its fields."""
    check_types("here", PAGE_TYPES)
    with pytest.raises(TypeError, match=r"here has a column 'depth', but PAGE_COLUMNS in usp/scan/columns.py has none"):
        check_types("here", {"depth": Scalar.INTEGER})
    with pytest.raises(
        TypeError, match=r"here writes the column 'url' as Scalar.INTEGER, not as Scalar.TEXT: change here"
    ):
        check_types("here", {"url": Scalar.INTEGER})
    news = PAGE_TYPES["news"]
    assert isinstance(news, columns.Struct)
    with pytest.raises(TypeError, match=r"here writes the column 'news'"):
        check_types("here", {"news": columns.Struct(dict(reversed([*news.fields.items()])))})


@needs_compiled
def test_the_compiled_reader_writes_the_types_of_the_table() -> None:
    """The compiled reader is compared with the table of columns when it is imported."""
    written = _columns.written_types()
    check_types("here", written)
    assert written.keys() == PAGE_TYPES.keys() - {"videos"}


@needs_compiled
def test_forms_of_videos() -> None:
    """The compiled reader knows each form of an attribute, one field for each element, and so many fields."""
    check: Callable[[Any], object] = _extensions.check_video_fields
    check(VIDEO_FIELDS)
    check({**VIDEO_FIELDS, "new": VideoField("new", Form.INTEGER)})
    for wrong, message in {
        VideoField(
            "player_loc", Form.INTEGER, "new"
        ): "put_attribute in .* cannot read Form.INTEGER, the form of 'new'",
        VideoField("new", Form.TEXT, "new"): "'new', an attribute of <new>, but no field for its text",
        VideoField("title", Form.TEXT, "n" * 17): "the attribute of 'new' is too long for VideoAttribute",
        VideoField("title"): "knows one field for each element of a video",
    }.items():
        with pytest.raises(TypeError, match=message):
            check({**VIDEO_FIELDS, "new": wrong})
    with pytest.raises(TypeError, match=r"videos have too many fields: raise MAX_VIDEO_FIELDS"):
        check({**VIDEO_FIELDS, **{f"new{i}": VideoField(f"new{i}") for i in range(20)}})


@needs_compiled
def test_codes_facts_and_options_of_a_survey() -> None:
    """The compiled survey knows the codes, stats and options of the other, and the order of the codes."""
    stats, options = ([field.name for field in fields(made)] for made in (survey.SitemapStats, survey.SurveyOptions))
    check: Callable[[Any, Any, Any], object] = _survey.check_survey
    check(survey.SURVEYED, stats, options)
    with pytest.raises(TypeError, match=r"CODE_BITS in usp/scan/_\w+.p\w+ has no 'U599'"):
        check((*survey.SURVEYED, "U599"), stats, options)
    with pytest.raises(TypeError, match=r"the codes have another order"):
        check(survey.SURVEYED[::-1], stats, options)
    with pytest.raises(TypeError, match=r"STATS in usp/scan/_survey.p\w+ has no 'new'"):
        check(survey.SURVEYED, [*stats, "new"], options)
    with pytest.raises(TypeError, match=r"OPTIONS in usp/scan/_survey.p\w+ has no 'new'"):
        check(survey.SURVEYED, stats, [*options, "new"])


@needs_compiled
def test_rules_of_the_grammar() -> None:
    """The compiled scanner has the numbers of rules, and the words for frequencies, that plain Python has."""
    _entries.check_rules(vars(grammar))
    with pytest.raises(TypeError, match=r"GROUP is 4 in usp/scan/grammar.py, but 3 in usp/scan/_\w+.p\w+"):
        _entries.check_rules({**vars(grammar), "GROUP": 4})
    with pytest.raises(TypeError, match=r"knows 7 words of 5 to 7 letters"):
        _texts.set_frequencies(["daily"] * 8)


#: The changes that a new extension and a new column need: file -> lines, and what is added behind each.
NEW_EXTENSION: dict[str, tuple[str, ...]] = {
    "objects/page.py": ("    videos: list[SitemapVideo] | None = None\n", "    pagemap: str | None = None\n"),
    "scan/vocabulary.py": (
        '_EXTENSIONS = {"image": _image, "news": _news, "video": _video}\n',
        '_EXTENSIONS["pagemap"] = lambda prefix: Kind(_named(prefix, "template"))\n',
        "_NAMESPACES = (\n",
        '    Namespace("pagemap", ("sitemap-pagemap",), is_known_by_prefix=True),\n',
    ),
    "scan/columns.py": (
        "PAGE_COLUMNS: dict[str, PageColumn] = {\n",
        '    "pagemap": PageColumn(_TEXT, "pagemap", "pagemap"),\n'
        '    "scheme": PageColumn(_TEXT, "url", value=lambda page: page.url.partition(":")[0]),\n',
    ),
    "fetch_parse/pages.py": (
        "_URLSET_FIELDS: dict[str, Callable[[URLSetPage], Any]] = {\n",
        '    "pagemap": lambda page: next((group.get("template") for group in page.entry.all("pagemap")), None),\n',
    ),
}
#: The changes that new fields of a video need.
NEW_VIDEO_FIELDS: dict[str, tuple[str, ...]] = {
    "objects/page.py": (
        "    tv_show: SitemapVideoTvShow | None = None\n",
        "    likes: int | None = None\n    likes_unit: str | None = None\n",
    ),
    "scan/vocabulary.py": (
        '    "tv_show": VideoField("tvshow", Form.TV_SHOW),\n',
        '    "likes": VideoField("likes", Form.INTEGER),\n    "likes_unit": VideoField("likes", Form.TEXT, "unit"),\n',
    ),
}
READ_NEW = """
import sys
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.export.formats.cells import values_of
from usp.fetch_parse.opening import parser_of
from usp.scan.columns import PAGE_TYPES
from usp.tree import sitemap_from_bytes

bodies = ["", "<priority>0.7</priority>", "<pagemap:pagemap><pagemap:template>T</pagemap:template></pagemap:pagemap>",
    "<video:video><video:title>V</video:title><video:likes unit='k'>7</video:likes></video:video>"]
entries = "".join(f"<url><loc>http://h/{number}</loc>{body}</url>" for number, body in enumerate(bodies))
data = ('<urlset xmlns:pagemap="http://www.google.com/schemas/sitemap-pagemap/1.0" '
    f'xmlns:video="http://www.google.com/schemas/sitemap-video/1.1">{entries}</urlset>').encode()
(found,) = parser_of(Document("http://h/s.xml", data)).columns()
rows = {name: values_of(PAGE_TYPES[name], found.columns.get(name), found.length) for name in sys.argv[1:]}
print(IS_COMPILED, rows, [getattr(page, "pagemap", None) for page in sitemap_from_bytes(data).pages])
"""


def add(package: Path, changes: dict[str, tuple[str, ...]]) -> None:
    for name, additions in changes.items():
        text = (package / name).read_text("utf-8")
        for line, added in zip(additions[::2], additions[1::2], strict=True):
            assert text.count(line) == 1, f"{name} has no {line!r} any more: change this test"
            text = text.replace(line, line + added)
        (package / name).write_text(text, "utf-8")


@needs_compiled
def test_a_new_extension_needs_four_files(package: Path) -> None:
    """A new extension and its columns have their values whoever reads the entries."""
    add(package, NEW_EXTENSION)
    expected = (
        "{'pagemap': [None, None, 'T', None], 'scheme': ['http', 'http', 'http', 'http']} [None, None, 'T', None]"
    )
    for pure in ("", "1"):
        run = python(package, "-c", READ_NEW, "pagemap", "scheme", USP_PURE=pure)
        assert run.stdout == f"{not pure} {expected}\n", run.stderr


def test_elements_of_an_unknown_namespace() -> None:
    """An element whose namespace is not in the table is an error: it would never be read."""
    check_namespaces(DIALECTS.values())
    pagemap = Kind(groups={"image:image": Kind(frozenset({"pagemap:data"}))})
    with pytest.raises(TypeError, match=r"usp/scan/vocabulary.py: _NAMESPACES has no pagemap"):
        check_namespaces([Dialect("sitemap", {"url": pagemap})])


@needs_compiled
@pytest.mark.parametrize("forgotten", NEW_EXTENSION)
def test_a_new_extension_with_a_file_forgotten(package: Path, forgotten: str) -> None:
    """To forget a file is an error that names it."""
    add(package, {name: change for name, change in NEW_EXTENSION.items() if name != forgotten})
    run = python(package, "-c", READ_NEW, "url")
    assert run.returncode == 1
    assert f"usp/{forgotten}" in run.stderr.splitlines()[-1]


@needs_compiled
def test_a_new_field_of_a_video_needs_two_files(package: Path) -> None:
    """A new element of a video, and a new attribute, have their values whoever reads the entries."""
    add(package, NEW_VIDEO_FIELDS)
    for pure in ("", "1"):
        run = python(package, "-c", READ_NEW, "videos", USP_PURE=pure)
        assert run.stdout.startswith(f"{not pure} "), run.stderr
        assert "'tv_show': None, 'likes': 7, 'likes_unit': 'k'}" in run.stdout


@needs_compiled
@pytest.mark.parametrize("forgotten", NEW_VIDEO_FIELDS)
def test_a_new_field_of_a_video_with_a_file_forgotten(package: Path, forgotten: str) -> None:
    """To forget a file is an error that names it."""
    add(package, {name: change for name, change in NEW_VIDEO_FIELDS.items() if name != forgotten})
    run = python(package, "-c", READ_NEW, "videos")
    assert run.returncode == 1
    assert f"usp/{forgotten}" in run.stderr.splitlines()[-1]

"""The check of releases, and the files that a project has beside its code."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copy

import pytest

import release

ROOT = Path(__file__).parents[1]
CHECKED = ("CITATION.cff", "CHANGELOG.md", "pyproject.toml", "src/usp/version.py", ".github/workflows/tests.yml")
VERSION = release.version_of(ROOT)

pytestmark = pytest.mark.tools


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of what the check reads."""
    for name in CHECKED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    def replace(root: Path) -> None:
        text = (root / file).read_text("utf-8")
        assert old in text
        (root / file).write_text(text.replace(old, new), "utf-8")

    return replace


def set_unreleased(root: Path, entries: str) -> None:
    """Write entries under Unreleased in the changelog, in place of those that are there."""
    path = root / "CHANGELOG.md"
    start, *versions = re.split(r"^(?=## \[)", path.read_text("utf-8"), flags=re.MULTILINE)
    released = [section for section in versions if not section.startswith("## [Unreleased]")]
    path.write_text("".join([start, f"## [Unreleased]\n\n{entries}", *released]), "utf-8")


def test_this_version_is_complete(root: Path) -> None:
    """The version stands everywhere, and the classifiers are those that are tested."""
    assert [*release.check_version(root, VERSION), *release.check_metadata(root)] == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (replaced("src/usp/version.py", VERSION, "2.dev0"), "src/usp/version.py: '2.dev0' is no version"),
        (replaced("CITATION.cff", VERSION, "1.0"), f"CITATION.cff: write `version: {VERSION}`"),
        (replaced("CHANGELOG.md", f"## [{VERSION}] - 2", f"## [{VERSION}] - soon 2"), "CHANGELOG.md: there is no"),
        (replaced("pyproject.toml", "Python :: 3.13", "Python :: 3.15"), "pyproject.toml claims Python 3.11"),
        (replaced("pyproject.toml", '">=3.11"', '">=3.12"'), "pyproject.toml: requires-python is not >=3.11"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(root: Path, damage: Callable[[Path], None], reason: str) -> None:
    """Each mistake has a message that says where it is."""
    damage(root)
    found = [*release.check_version(root, release.version_of(root)), *release.check_metadata(root)]
    assert [message for message in found if message.startswith(reason)] != []


def test_the_tag_is_the_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow that runs for a tag fails if the tag is another version."""
    set_unreleased(root, "")
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", f"v{VERSION}")
    assert list(release.check_version(root, VERSION)) == []
    monkeypatch.setenv("GITHUB_REF_NAME", "v1.0.0")
    assert list(release.check_version(root, VERSION)) == [
        f"the tag is v1.0.0, and the version {VERSION}; delete the tag, and make v{VERSION}"
    ]


def test_a_tagged_version_leaves_nothing_unreleased(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow that runs for a tag fails if the changelog still has entries under Unreleased."""
    set_unreleased(root, "### Fixed\n\n- A bug.\n\n")
    assert list(release.check_version(root, VERSION)) == []
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", f"v{VERSION}")
    (found,) = release.check_version(root, VERSION)
    assert found.startswith("CHANGELOG.md: move what is under Unreleased")


def test_incomplete_files_are_named(tmp_path: Path) -> None:
    """A source without files and a wheel without compiled parts, or with sources of them, are not published."""
    assert len(list(release.check_files(tmp_path, VERSION))) == 2
    (tmp_path / "file").write_bytes(b"")
    with tarfile.open(tmp_path / f"usp-{VERSION}.tar.gz", "w:gz") as source:
        source.add(tmp_path / "file", f"usp-{VERSION}/setup.py")
    with zipfile.ZipFile(tmp_path / "usp.whl", "w") as wheel:
        wheel.writestr("usp/scan/_tokens.pyx", b"")
    found = "\n".join(release.check_files(tmp_path, VERSION))
    for reason in (
        "LICENSE is missing",
        "usp/py.typed is missing",
        "_tokens.pyx is of no use",
        "_tokens is not compiled",
    ):
        assert reason in found


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/releasing.md", "docs/platforms.md"]
)
def test_links_lead_somewhere(name: str) -> None:
    """Every link to a file leads to one, and every target of `make` that is named exists."""
    path = ROOT / name
    text = path.read_text("utf-8")
    prose = re.sub(r"^(````?)\w.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose) if not link.startswith("https://")]
    assert [link for link in links if not (path.parent / link.replace("\\", "")).exists()] == []
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {word for words in re.findall(r"`make ([a-z -]+)`", text) for word in words.split()}
    assert named - targets == set()

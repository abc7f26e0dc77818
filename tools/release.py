"""Check that a release is complete: version, changelog, classifiers, source and wheels. `make release-check` calls it.

python tools/release.py        names what is wrong, and fails if there is anything
python tools/release.py dist   looks into the source and the wheels in dist/, too
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED_IN_SOURCE = (
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "pyproject.toml",
    "setup.py",
    "docs/design.md",
    "tests/conftest.py",
)
#: A part of PEP 440: a release, a candidate, or a version that is being developed.
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


def version_of(root: Path) -> str:
    """Return the version that the package states."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/usp/version.py").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else ""


def check_version(root: Path, version: str) -> Iterator[str]:
    """Check the version, where it is repeated, and the tag of the commit, if a workflow runs for one.

    The changelog of a tagged version has nothing under Unreleased; between releases it may.
    """
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    if not VERSION.fullmatch(version):
        yield f"src/usp/version.py: {version!r} is no version of a release; write one like 2.1.0 or 2.1.0rc1"
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text("utf-8"):
        yield f"CITATION.cff: write `version: {version}`"
    if not re.search(rf"^## \[{re.escape(version)}] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: there is no section `## [{version}] - YYYY-MM-DD`"
    is_tagged = os.environ.get("GITHUB_REF_TYPE") == "tag"
    if is_tagged and re.search(r"^## \[Unreleased]\s+(?!## )\S", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: move what is under Unreleased below {version}, delete the tag, and make it again"
    tag = os.environ.get("GITHUB_REF_NAME", "") if is_tagged else f"v{version}"
    if tag != f"v{version}":
        yield f"the tag is {tag}, and the version {version}; delete the tag, and make v{version}"


def check_metadata(root: Path) -> Iterator[str]:
    """Check the classifiers of Python against the workflow that tests them."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)\n", "\n".join(project["classifiers"]) + "\n")
    workflow = (root / ".github/workflows/tests.yml").read_text("utf-8")
    tested = re.findall(r"3\.\d+", workflow[workflow.index("\n        python: [") :].split("\n", 2)[1])
    if claimed != tested:
        yield f"pyproject.toml claims Python {' '.join(claimed)}; .github/workflows/tests.yml tests {' '.join(tested)}"
    if project["requires-python"] != f">={claimed[0]}":
        yield f"pyproject.toml: requires-python is not >={claimed[0]}, the first Python of the classifiers"


def check_files(dist: Path, version: str) -> Iterator[str]:
    """Check what the source and the wheels have in them."""
    sources, wheels = sorted(dist.glob("*.tar.gz")), sorted(dist.glob("*.whl"))
    if [path.name for path in sources] != [f"usp-{version}.tar.gz"]:
        yield f"{dist}: there must be one source, usp-{version}.tar.gz; run: make release-check"
    if not wheels:
        yield f"{dist}: there is no wheel; run: make release-check"
    for source in sources:
        with tarfile.open(source) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        yield from (f"{source}: {name} is missing" for name in NEEDED_IN_SOURCE if name not in names)
        needed = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / "src").rglob("*.p[xy]*")
            if path.suffix in (".pyx", ".pxd", ".py")
        }
        yield from (f"{source}: {name} is missing" for name in sorted(needed - names))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as contents:
            names = set(contents.namelist())
        needed = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/usp").rglob("*.py")}
        yield from (f"{wheel}: {name} is missing" for name in sorted({"usp/py.typed", *needed} - names))
        yield from (
            f"{wheel}: {name} is of no use there" for name in sorted(names) if name.endswith((".pyx", ".pxd", ".c"))
        )
        compiled = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
        expected = {path.relative_to(ROOT / "src").with_suffix("").as_posix() for path in (ROOT / "src").rglob("*.pyx")}
        yield from (f"{wheel}: {name} is not compiled" for name in sorted(expected - compiled))


def main(arguments: list[str]) -> int:
    """Print what is wrong."""
    version = version_of(ROOT)
    found = [*check_version(ROOT, version), *check_metadata(ROOT)]
    for folder in arguments:
        found += check_files(Path(folder), version)
    print("\n".join(found) if found else f"usp {version} is complete")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

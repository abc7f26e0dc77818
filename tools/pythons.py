"""Print the path of a Python of the version that is asked for: `tools/pythons.py 3.14`, as `make test-python` does.

It takes one that is installed, or gets one into .pythons/: from uv, or else from the packages of Debian's unstable
distribution, which has the newest Pythons. The system stays as it is.
"""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

HOME = Path(".pythons").absolute()
TOOLS = HOME / "tools" / "bin"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class NotThereError(Exception):
    """A Python cannot be had in one of the ways; the text says why."""


def installed(version: str) -> Path:
    """Return a Python that is on PATH, in pyenv, or already in .pythons/."""
    for path in candidates(version):
        try:
            # A shim of pyenv is there for versions that are not selected, and fails.
            found = run(
                path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2], getattr(sys, 'abiflags', ''))"
            ).split()
        except (NotThereError, OSError):
            continue
        if "".join(found) == version:
            return Path(path)
    raise NotThereError(f"no python{version} is on PATH or in pyenv")


def candidates(version: str) -> Iterator[str]:
    """Give paths where a Python of this version may be."""
    yield sys.executable
    for name in (f"python{version}", "python3", "python"):
        if path := shutil.which(name):
            yield path
    yield from sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}*/bin/python")), reverse=True)
    yield str(HOME / version / "usr" / "bin" / f"python{version}")


def from_uv(version: str) -> Path:
    """Return a Python that uv downloads."""
    uv = shutil.which("uv") or tool("uv")
    os.environ["UV_PYTHON_INSTALL_DIR"] = str(HOME / "uv")
    run(uv, "python", "install", "--no-bin", version)
    return Path(run(uv, "python", "find", "--managed-python", version).strip())


def from_debian(version: str) -> Path:
    """Return a Python unpacked from Debian's packages, with the C library that it was built with."""
    if not shutil.which("apt-get"):
        raise NotThereError("there is no apt-get")
    packages = HOME / "packages"
    options = apt_options(packages)
    run("apt-get", *options, "-qq", "update")
    names = (f"python{version}-venv", f"python{version}-dev")
    run("apt-get", *options, "-qq", "-y", "--no-install-recommends", "--download-only", "install", *names)
    place = HOME / version
    shutil.rmtree(place, ignore_errors=True)
    for package in (packages / "archives").glob("*.deb"):
        run("dpkg-deb", "-x", package, place)
    return relocate(place, version)


def apt_options(folder: Path) -> list[str]:
    """Return options with which apt keeps everything in a folder, and takes nothing for installed."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {debian_mirror()} unstable main\n")
    settings = {
        "APT::Sandbox::User": "root",  # the user who runs this, that is: _apt may not write here
        "Debug::NoLocking": "1",  # nobody else uses this folder
        "Dir::Cache": folder,
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
    }
    return [f"-o{name}={value}" for name, value in settings.items()]


def debian_mirror() -> str:
    """Return the address that this Debian takes its packages from."""
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    if not (mirrors := [uri for uri in found if uri.endswith("/debian/")]):
        raise NotThereError("this is no Debian, or apt has no mirror of it")
    return mirrors[0]


def relocate(place: Path, version: str) -> Path:
    """Make an unpacked Python use the C library and the other libraries beside it."""
    python = place / "usr" / "bin" / f"python{version}"
    libraries = place / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    (loader,) = libraries.glob("ld-linux*.so.*")
    patchelf = tool("patchelf")
    run(patchelf, "--force-rpath", "--set-rpath", libraries, python)
    run(patchelf, "--set-interpreter", loader, python)  # apart: both at once damage a program that is not PIE
    for path in (place / "usr" / "lib" / f"python{version}").glob("_sysconfigdata_*.py"):  # says where pip's wheel is
        path.write_text(
            re.sub(r"'/usr/share/python-wheels/'", repr(f"{place}/usr/share/python-wheels/"), path.read_text())
        )
    include = place / "usr" / "include"
    # Debian's header includes the one of the machine, from the system's folder.
    shutil.copy(include / f"{platform.machine()}-linux-gnu/python{version}/pyconfig.h", include / f"python{version}")
    return python


def tool(name: str) -> Path:
    """Return the path of a program that PyPI has, and install it if need be."""
    if not TOOLS.exists():
        venv.create(TOOLS.parent, with_pip=True)
    run(TOOLS / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name)
    return TOOLS / name


def run(*command: object) -> str:
    """Run a command, and return what it prints."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}").splitlines()[-1]
        raise NotThereError(f"{Path(str(command[0])).name}: {reason.strip()}")
    return done.stdout


WAYS: tuple[Callable[[str], Path], ...] = (installed, from_uv, from_debian)


def main(arguments: list[str]) -> int:
    """Print a path, or say why none of the ways works."""
    if len(arguments) != 1 or not re.fullmatch(r"3\.\d+t?", arguments[0]):
        print("name one version: tools/pythons.py 3.14", file=sys.stderr)
        return 2
    (version,) = arguments
    for way in WAYS:
        try:
            print(way(version))
        except NotThereError as error:
            print(f"Python {version}, {way.__name__.replace('_', ' ')}: {error}", file=sys.stderr)
        else:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

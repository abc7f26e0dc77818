"""Makes `.fuzz/`: an environment with atheris, and a copy of usp whose compiled parts report the code that they reach.

The compiled parts are built with AddressSanitizer, which finds reads and writes beyond a buffer. The runtimes of both
come with atheris.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from fuzz.seeds import seeds, write_dictionary

__all__ = ["FOLDER", "FOUND", "ROOT", "CannotPrepare", "arguments", "environment", "prepare"]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".fuzz"
FOUND = FOLDER / "found"
_VENV, _TREE, _SEEDS, _CORPUS = (FOLDER / name for name in ("venv", "tree", "seeds", "corpus"))
_DICTIONARY = FOLDER / "dictionary"
_PYTHON = _VENV / "bin" / "python"
_FUZZER = "atheris>=3"
_RUNTIME = "asan_with_fuzzer.so"
_SECONDS = 600
_MAX_BYTES = 2_048
_SLOW_SECONDS = 30
_MAX_MEGABYTES = 4_096
_CFLAGS = "-O1 -g1 -fsanitize=address -fno-omit-frame-pointer -fsanitize-coverage=trace-pc,trace-cmp"


class CannotPrepare(Exception):
    """Something is missing; the text is a line or two for people."""


def prepare(seconds: int) -> None:
    """Make everything that a search of this many seconds needs, unless it is there already."""
    _install()
    _build()
    shutil.rmtree(_SEEDS, ignore_errors=True)
    for folder in (_SEEDS, _CORPUS, FOUND):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds().items():
        if len(data) <= _MAX_BYTES:
            (_SEEDS / name).write_bytes(data)
    write_dictionary(_DICTIONARY)
    _thin_out(_CORPUS, seconds)


def _thin_out(corpus: Path, most: int) -> None:
    """Keep only the latest inputs of earlier searches: they are all read first, and must leave time for new ones."""
    by_age = sorted(corpus.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in by_age[most:]:
        path.unlink()


def arguments(seconds: int, inputs: list[Path]) -> list[str]:
    """Build the command that searches, or that reads only these inputs."""
    command = [str(_PYTHON), str(ROOT / "tools" / "fuzz" / "worker.py"), f"-artifact_prefix={FOUND}/"]
    command += [f"-timeout={_SLOW_SECONDS}", f"-rss_limit_mb={_MAX_MEGABYTES}", "-print_final_stats=1"]
    command += ["-detect_leaks=0"]  # else every input is read twice, as Python keeps objects between runs
    if inputs:
        return [*command, *map(str, inputs)]
    command += [f"-max_total_time={seconds}", f"-max_len={_MAX_BYTES}", f"-dict={_DICTIONARY}"]
    return [*command, "-report_slow_units=1000000", str(_CORPUS), str(_SEEDS)]


def environment() -> dict[str, str]:
    """Return the environment variables of the worker."""
    paths = [str(folder) for folder in (_TREE / "src", ROOT / "tests")]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "USP_"))},
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        # A larger quarantine of freed memory would take most of the time.
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16",
        "LD_PRELOAD": str(_runtime()),
    }


def _runtime() -> Path:
    return next(_VENV.glob(f"lib/python*/site-packages/{_RUNTIME}"), _VENV / _RUNTIME)


def _install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [_FUZZER, *project["build-system"]["requires"], *project["project"]["dependencies"]]
    mark = _VENV / "installed"
    text = "\n".join([platform.python_version(), *wanted])
    if mark.exists() and mark.read_text("utf-8") == text:
        return
    print(f"fuzz: installing {_FUZZER} into {FOLDER.name}/venv", flush=True)
    _run("make an environment", [sys.executable, "-m", "venv", "--clear", str(_VENV)])
    pip = [str(_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=atheris"]
    _run(
        f"install atheris for Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        [*pip, *wanted],
        "It has wheels for Linux and some versions of CPython; name another with: make fuzz PYTHON=/path/to/python3.12",
    )
    if not _runtime().exists():
        raise CannotPrepare(f"cannot use this atheris: there is no {_RUNTIME} in it")
    mark.write_text(text, "utf-8")


def _build() -> None:
    """Copy usp, and build its compiled parts in the copy, so that those of the project stay as they are."""
    source, shim = _TREE / "src", _TREE / "coverage.o"
    _TREE.mkdir(parents=True, exist_ok=True)
    for name in ("setup.py", "pyproject.toml"):
        shutil.copy2(ROOT / name, _TREE / name)
    for old in source.rglob("*.p*"):
        if old.suffix in (".py", ".pyx", ".pxd", ".pxi") and not (ROOT / "src" / old.relative_to(source)).exists():
            old.unlink()
    ignored = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", source, ignore=ignored, dirs_exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    shim_source = ROOT / "tools" / "fuzz" / "coverage.c"
    _run("compile coverage.c", [compiler, "-O2", "-fPIC", "-c", str(shim_source), "-o", str(shim)])
    flags = {"USP_PURE": "", "USP_CFLAGS": _CFLAGS, "LDFLAGS": str(shim)}
    _run("build usp", [str(_PYTHON), "setup.py", "--quiet", "build_ext", "--inplace"], variables=flags, folder=_TREE)
    if not list(source.rglob("_survey.*.so")):
        raise CannotPrepare("cannot build the compiled parts; is there a compiler that knows -fsanitize-coverage?")


def _run(
    what: str,
    command: list[str],
    advice: str = "",
    variables: dict[str, str] | None = None,
    folder: Path = ROOT,
) -> None:
    try:
        done = subprocess.run(  # noqa: S603 -- the command is built here
            command,
            cwd=folder,
            env={**os.environ, **(variables or {})},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise CannotPrepare(f"cannot {what}: there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise CannotPrepare(f"cannot {what}: not done after {_SECONDS} seconds") from None
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "error" in line.lower()] or ["it failed"]
        raise CannotPrepare("\n".join(filter(None, [f"cannot {what}: {reasons[-1].removeprefix('ERROR: ')}", advice])))

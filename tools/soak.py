"""Crawl a great many sites on loopback, one in twenty of them with a fault, and see that none is lost or counted twice.

`make soak SITES=10000` runs it. One process serves all sites, each at an address of its own; another one crawls them.
Of the sites with a fault, some refuse connections or never answer. Some send errors, resets, half a body, a body
without an end, redirects without an end, or something that is neither HTTP nor a sitemap. Some names do not exist.

It fails if a site is missing from the table of sites, or is there twice; if a site without a fault is not complete, or
one with a fault is; if memory grows with the number of sites; or if unfinished files are left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.crowd import FAULTS, Crowd

HERE = Path(__file__).resolve().parent
_FAULT_EVERY = 20
_LIMITS = {"request_seconds": 20.0, "tree_seconds": 30.0}
#: What a site with a fault may end as. A body that ends too early, or never, is kept as far as it came.
_OUTCOMES = {
    "truncated": ("partial",),
    "stream": ("partial", "unreachable"),
    "missing": ("empty",),
    "noise": ("empty", "partial"),
}
_OTHER_OUTCOMES = ("unreachable", "blocked", "partial", "empty")
_GROWTH, _WARM_SITES = 1.15, 8_000  # memory must not grow by more after so many sites
_CRAWL = """
import json, logging, sys
logging.disable(logging.CRITICAL)
sys.path.append(sys.argv[1])
from bench.bounds import crawl_crowd
print(json.dumps(crawl_crowd(**json.load(sys.stdin))))
"""


def kind_of(number: int) -> str:
    """Return the kind of a site: one in twenty has a fault."""
    place, is_good = divmod(number, _FAULT_EVERY)
    return "small" if is_good else FAULTS[place % len(FAULTS)]


@contextmanager
def serving(seconds: float = 0.0, *kinds: str) -> Iterator[Crowd]:
    """Serve a crowd from a process of its own."""
    command = [sys.executable, "-P", str(HERE / "bench" / "crowd.py"), str(seconds), *kinds]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 -- built here
    try:
        assert server.stdout is not None
        yield Crowd(int(server.stdout.readline()))
    finally:
        server.communicate()  # which ends its standard input, and so the server


def crawl(arguments: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """Crawl in a process of its own. Return None if it has not ended after this long."""
    try:
        ran = subprocess.run(  # noqa: S603 -- built here
            [sys.executable, "-c", _CRAWL, str(HERE)],
            input=json.dumps(arguments),
            stdout=subprocess.PIPE,
            text=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def problems(folder: Path, expected: dict[str, str], *, is_over: bool) -> Iterator[str]:
    """Yield what is wrong with the tables of a crawl of these sites, which have these kinds."""
    import pyarrow.parquet

    files = sorted(map(str, (folder / "sites").glob("*.parquet")))  # not those that a killed process left
    table = pyarrow.parquet.read_table(files, columns=["site", "outcome", "reason"])
    rows = list(zip(*(table.column(name).to_pylist() for name in ("site", "outcome", "reason")), strict=True))
    times = Counter(site for site, _, _ in rows)
    yield from (f"{site} is there {count} times" for site, count in times.items() if count > 1)
    yield from (f"{site} is missing" for site in expected if is_over and site not in times)
    yield from (f"{site} was not asked for" for site in times if site not in expected)
    for site, outcome, reason in rows:
        kind = expected.get(site, "small")
        if outcome not in (("complete",) if kind == "small" else _OUTCOMES.get(kind, _OTHER_OUTCOMES)):
            yield f"{site}, of the kind {kind}, is {outcome}: {reason}"
    yield from (f"left behind: {path.relative_to(folder)}" for path in folder.rglob("*.partial") if is_over)


def growth(samples: dict[str, int]) -> Iterator[str]:
    """Yield that memory grows, if it does after the first few thousand sites."""
    sizes = {int(sites): size for sites, size in samples.items()}
    early = max((size for sites, size in sizes.items() if sites <= _WARM_SITES), default=0)
    late = max((size for sites, size in sizes.items() if sites > _WARM_SITES), default=0)
    if late > early * _GROWTH:
        yield f"memory grows from {early / 1e6:.0f} to {late / 1e6:.0f} MB"


def soak(sites: int, seconds: float, at_once: int, folder: Path) -> int:
    """Crawl this many sites. Return 1 if something is wrong."""
    with serving() as crowd:
        expected = {crowd.url(number, kind_of(number)): kind_of(number) for number in range(sites)}
        listed = folder / "sites.txt"
        listed.write_text("\n".join(expected))
        arguments = {
            "sites": str(listed),
            "warm_up": [crowd.url(0)],
            "at_once": at_once,
            "limits": _LIMITS,
            "folder": str(folder / "crawl"),
            "reports": True,
        }
        answer = crawl(arguments, seconds)
    found = list(problems(folder / "crawl", expected, is_over=answer is not None))
    if answer is None:
        found.append(f"not done after {seconds:.0f} s")
    else:
        print(
            f"{sites:,} sites in {answer['wall']:.0f} s, {answer['cpu'] / sites * 1e3:.1f} ms of CPU time each;"
            f" peak memory {answer['memory'] / 1e6:.0f} MB; longest stall {answer['stall'] * 1e3:.0f} ms"
        )
        print("outcomes:", ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(answer["outcomes"].items())))
        found += growth(answer["samples"])
    for problem in found[:20]:
        print(problem)
    print(f"{len(found):,} problems" if found else "every site is there once, and as it should be")
    return 1 if found else 0


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sites", type=int, default=2_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--at-once", type=int, default=200, metavar="N", help="sites at once; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=3_600, help="give up after this long; default: %(default)s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="usp-soak-") as folder:
        return soak(arguments.sites, arguments.seconds, arguments.at_once, Path(folder))


if __name__ == "__main__":
    sys.exit(main())

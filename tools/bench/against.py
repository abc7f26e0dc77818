"""Compares two checkouts of usp on the same rows, in turn, so that a change of speed can be seen and believed.

Both run under this Python, each in fresh processes with its own `src` first on the path. Each row is measured once
uncounted and then round by round, with the checkouts in turn and the first of them changing from round to round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.measures import Ratio, Sample
from bench.report import significant
from bench.rows import Row
from bench.workshop import OURS, ROOT, NotMeasured, Progress, Workshop

#: A row is slower if its best round takes this much longer than the best round of the other checkout.
TOLERANCE = 1.03


@dataclass(frozen=True)
class Comparison:
    """A row, as it was measured in both checkouts; `failure` says why it was not."""

    name: str
    here: tuple[Sample, ...] = ()
    there: tuple[Sample, ...] = ()
    failure: str = ""

    @property
    def ratio(self) -> Ratio:
        """How many times as fast, or as small, this checkout is: the numbers there over the numbers here."""
        return Ratio.of([sample.number for sample in self.there], [sample.number for sample in self.here])

    @property
    def is_slower(self) -> bool:
        """Whether this checkout is slower, or larger, than is tolerated."""
        return bool(self.failure) or self.ratio.best * TOLERANCE < 1

    def __str__(self) -> str:
        if self.failure:
            return f"{self.name:18} failed: {self.failure}"
        ratio, verdict = self.ratio, "SLOWER" if self.is_slower else ""
        cells = f"{min(self.here)!s:>10} {min(self.there)!s:>10} {ratio.best:8.3f}"
        return f"{self.name:18} {cells}  {ratio.least:.3f}..{ratio.most:.3f} in {len(self.here)}  {verdict}".rstrip()


def compare(rows: Iterable[Row], workshop: Workshop, there: Path, progress: Progress) -> list[Comparison]:
    """Measure rows in this checkout and in another one."""
    _check_alike(workshop, there)
    return [_compare(row, workshop, there, progress) for row in rows]


def _compare(row: Row, workshop: Workshop, there: Path, progress: Progress) -> Comparison:
    sides: list[tuple[Path, list[Sample]]] = [(ROOT, []), (there, [])]
    try:
        for number in range(workshop.rounds + 1):
            progress(f"{row.name}: round {number} of {workshop.rounds}")
            for checkout, samples in sides[:: -1 if number % 2 else 1]:
                workshop.checkout = checkout
                samples.append(row.sample(workshop))
    except NotMeasured as reason:
        return Comparison(row.name, failure=f"{workshop.checkout}: {reason}")
    finally:
        workshop.checkout = ROOT
    here, other = (tuple(samples[1:]) for _, samples in sides)  # the first round writes what is read, and warms up
    return Comparison(row.name, here, other)


def _check_alike(workshop: Workshop, there: Path) -> None:
    """Raise unless both are checkouts of usp, and both or neither have their compiled parts."""
    compiled = {}
    for checkout in (ROOT, there):
        if not (checkout / "src" / "usp").is_dir():
            raise NotMeasured(f"{checkout} is no checkout of usp: there is no src/usp in it")
        workshop.checkout = checkout
        compiled[checkout] = workshop.ask_fresh(OURS, "compiled")["compiled"]
    workshop.checkout = ROOT
    if len(set(compiled.values())) > 1:
        bare = next(checkout for checkout, is_compiled in compiled.items() if not is_compiled)
        raise NotMeasured(f"the compiled parts of {bare} are not built; run there: python setup.py build_ext --inplace")


def report(comparisons: list[Comparison], there: Path) -> str:
    """Return the comparisons as a table."""
    heading = f"{'row':18} {'here':>10} {'there':>10} {'there/here':>10}  spread of rounds"
    slower = sum(comparison.is_slower for comparison in comparisons)
    tolerance = significant(100 * (TOLERANCE - 1))
    summary = f"{len(comparisons)} rows: {slower} failed or are more than {tolerance}% slower here than in {there}"
    return "\n".join([heading, *map(str, comparisons), "", summary])

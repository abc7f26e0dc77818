"""A chart of problems by sitemap, as SVG inside a page. It needs no script, and takes its colours from the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from usp.check.formats.views import name_of
from usp.check.report import CheckedSitemap
from usp.notebook import escaped
from usp.objects.codes import CODES, Severity
from usp.objects.wording import plural

__all__ = ["MOST_BARS", "chart"]

#: How many sitemaps are shown: those with the most problems.
MOST_BARS = 20
_WIDTH, _ROW, _BAR = 900, 26, 16  # in units of the chart
_LABEL, _NUMBERS = 300, 200  # the widths of what stands before and after the bars
_LETTERS = 40  # of a name
_LEAST = 2.0  # the width of a bar that can be seen


def chart(sitemaps: Sequence[tuple[int, CheckedSitemap]], signs: dict[Severity, str]) -> Iterator[str]:
    """Yield a chart with a bar for each of the sitemaps with the most problems.

    :param sitemaps: each with the number of its row, which is the target of a link.
    :param signs: what stands for a severity, beside its colour.
    """
    worst = sorted(sitemaps, key=lambda item: -item[1].problems.counts.total())[:MOST_BARS]
    most = max((sitemap.problems.counts.total() for _, sitemap in worst), default=0)
    if not most:
        return
    height = len(worst) * _ROW
    yield (
        f'<div class="chart"><svg viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' aria-label="Problems of the {plural(len(worst), "sitemap")} with the most">\n'
    )
    for row, (number, sitemap) in enumerate(worst):
        yield from _bar(sitemap, number, row * _ROW, (_WIDTH - _LABEL - _NUMBERS) / most, signs)
    yield "</svg></div>\n"


def _bar(sitemap: CheckedSitemap, number: int, top: float, scale: float, signs: dict[Severity, str]) -> Iterator[str]:
    """Yield the name of a sitemap, a part of the bar for each severity, and the numbers."""
    counts = {
        severity: sum(count for code, count in sitemap.problems.counts.items() if CODES[code].severity is severity)
        for severity in reversed(Severity)
    }
    name = name_of(sitemap)
    shown = name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"
    middle = top + _ROW / 2
    words = ", ".join(plural(count, severity.noun) for severity, count in counts.items() if count)
    yield f"<g><title>{escaped(name)}: {words}</title>\n"
    yield f'<a href="#sitemap-{number}"><text x="{_LABEL - 10}" y="{middle + 4}" text-anchor="end">'
    yield f"{escaped(shown)}</text></a>\n"
    left = float(_LABEL)
    for severity, count in counts.items():
        if count:
            width = max(_LEAST, count * scale)
            yield f'<rect class="{severity}" x="{left:.1f}" y="{middle - _BAR / 2}" width="{width:.1f}"'
            yield f' height="{_BAR}"/>\n'
            left += width
    numbers = "  ".join(f"{count:,} {signs[severity]}" for severity, count in counts.items() if count)
    yield f'<text class="numbers" x="{left + 8:.1f}" y="{middle + 4}">{numbers}</text></g>\n'

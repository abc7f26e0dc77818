"""What a crawl does to keep its event loop responsive: settings of the process, which it restores."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from support import serve, urlset
from usp.crawl import crawl
from usp.crawl.responsive import responsive_threads
from usp.export.memory import release_memory


def test_settings_of_the_process_are_restored() -> None:
    """Threads take turns more often during a crawl, and the collector skips what was there before; then as before."""
    before = sys.getswitchinterval()
    with responsive_threads():
        assert sys.getswitchinterval() < 0.001
        assert gc.get_freeze_count() > 1_000
        with pytest.raises(LookupError), responsive_threads():  # another crawl in the same process
            raise LookupError
        assert sys.getswitchinterval() < 0.001
        assert gc.get_freeze_count() > 1_000
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() < 1_000


def test_what_the_caller_has_frozen_stays_so() -> None:
    """A process that has called `gc.freeze` itself keeps what it froze."""
    gc.freeze()
    try:
        with responsive_threads():
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


def test_memory_is_given_back() -> None:
    """It can be called at any time, on any system."""
    assert release_memory() is None  # type: ignore[func-returns-value]  # that it does not raise is what is tested


@pytest.mark.network
@pytest.mark.export
@pytest.mark.parametrize(("pages", "times"), [(3, 1), (20_000, 2)], ids=["small", "large"])
def test_memory_is_given_back_after_each_large_site(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pages: int, times: int
) -> None:
    """A site with large documents gives back what it took, and does not wait for the end of its part."""
    calls: list[None] = []
    monkeypatch.setattr("usp.crawl.crawler.release_memory", lambda: calls.append(None))
    with serve({"/sitemap.xml": (200, {}, urlset(*(f"{{base}}/{page}" for page in range(pages))).encode())}) as server:
        crawl(f"{server.url}/sitemap.xml", tmp_path / "c")
    assert len(calls) == times  # once for the part

"""Checking real files never raises and never takes long, and the counts are right."""

from __future__ import annotations

import re
import time
import zlib
from collections import Counter

from checks import NOW
from corpus import files, needs_corpus, read
from usp.check import check_tree
from usp.objects.codes import CODES
from usp.objects.sitemap import InvalidSitemap

pytestmark = needs_corpus
SECONDS_PER_MEGABYTE = 20.0  # some hundred times what it takes
FEW_SECONDS = 2.0


def test_every_file_is_checked() -> None:
    """Nothing raises, the time is bounded, and a check finds all problems that the sitemap has."""
    seen: Counter[str] = Counter()
    for name, kind, data in files("urlset", "index", "rss", "atom", "text", "robots", "other"):
        sitemap = read(kind, data)
        started = time.process_time()
        report = check_tree(sitemap, now=NOW)
        seconds = time.process_time() - started
        assert seconds < FEW_SECONDS + SECONDS_PER_MEGABYTE * len(data) / 1e6, name
        counts = report.counts()
        assert counts.keys() <= CODES.keys()
        assert report.pages == len(sitemap.pages), name
        if isinstance(sitemap, InvalidSitemap):
            assert counts == {"T807": 1}, name
        else:
            assert sitemap.problem_counts <= counts, name
        seen.update(counts.keys())
        seen["files"] += 1
    assert seen["files"] > 3_000
    assert seen["L301"] > 10
    assert seen["P418"] > 10


def test_duplicates_are_those_that_there_are() -> None:
    """The number of duplicates equals an independent count."""
    seen = 0
    for name, kind, data in files("urlset"):
        if data.startswith(b"\x1f\x8b"):
            data = zlib.decompressobj(31).decompress(data)
        if b"<url>" not in data or re.search(rb"<!--|CDATA|:loc>", data):
            continue  # what is no plain list of URLs is hard to count in another way
        urls = re.findall(rb"<url>\s*<loc>\s*(https?://[^<&\s]+)\s*</loc>", data)
        if len(urls) != data.count(b"<loc>") or not urls:
            continue
        twice = len(urls) - len(set(urls))
        assert check_tree(read(kind, data), now=NOW).counts()["P418"] == twice, name
        seen += len(urls)
    assert seen > 50_000

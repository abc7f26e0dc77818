"""Probing: fetch a sample of the pages that sitemaps list, and look at each as a search engine would.

sample.py     which pages
page.py       what a page says: its title, robots rules, canonical URL, date and alternates, read as HTML
prober.py     fetch the pages of a sample, and run the rules of `usp.check.rules.webpages` over them
cache.py      what was fetched before, so that a probe can go on where it ended
table.py      the table of probed pages
"""

from __future__ import annotations

from usp.check.probing.probe import Probe, ProbeProgress

__all__ = ["Probe", "ProbeProgress"]

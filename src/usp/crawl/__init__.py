"""Crawls of many sites: kept, resumed, repeated and compared.

    from usp.crawl import crawl, open_crawl

    crawl(["example.org", "sites.txt"], "crawl/")     # again tomorrow: only what changed is downloaded
    changes = open_crawl("crawl/").changes()

A crawl folder has the documents as WARC files and four tables as Parquet files; see `docs/crawls.md`.
"""

from __future__ import annotations

from usp.crawl.changes import Change, ChangeCounts, ChangeKind, Changes
from usp.crawl.client import Reuse
from usp.crawl.crawler import CrawlOptions, CrawlProgress
from usp.crawl.crawls import Crawl, crawl, crawl_async, open_crawl
from usp.crawl.deliveries import DeliveryError, RunChanges
from usp.crawl.destinations import AtomFeed, Command, Webhook
from usp.crawl.folder import Run
from usp.crawl.hosts import RequestLimits
from usp.crawl.reading import CrawlTable
from usp.crawl.watching import watch

__all__ = [
    "AtomFeed",
    "Change",
    "ChangeCounts",
    "ChangeKind",
    "Changes",
    "Command",
    "Crawl",
    "CrawlOptions",
    "CrawlProgress",
    "CrawlTable",
    "DeliveryError",
    "RequestLimits",
    "Reuse",
    "Run",
    "RunChanges",
    "Webhook",
    "crawl",
    "crawl_async",
    "open_crawl",
    "watch",
]

"""Real files, as found on the web, where there is a corpus of them."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from usp.objects.sitemap import AbstractSitemap
from usp.tree import sitemap_from_bytes

# A folder with zip files of sitemaps, feeds and robots.txt as found, and a MANIFEST.tsv: zip, name, kind, ...
CORPUS = Path(os.environ.get("USP_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
URL = "http://site.example/sitemap.xml"

needs_corpus = pytest.mark.corpus  # conftest skips what it marks where there is no corpus


def files(*kinds: str, most: float = float("inf")) -> Iterator[tuple[str, str, bytes]]:
    """Yield the name, kind and data of each file of these kinds with at most this many bytes."""
    with (CORPUS / "MANIFEST.tsv").open(encoding="utf-8") as manifest:
        rows = [row for row in csv.DictReader(manifest, delimiter="\t") if row["kind"] in kinds]
    for archive in sorted({row["zip"] for row in rows}):
        with zipfile.ZipFile(CORPUS / archive) as opened:
            for row in rows:
                if row["zip"] == archive and opened.getinfo(row["name"]).file_size <= most:
                    yield f"{archive}/{row['name']}", row["kind"], opened.read(row["name"])


def read(kind: str, data: bytes) -> AbstractSitemap:
    return sitemap_from_bytes(data, "http://site.example/robots.txt" if kind == "robots" else URL)


def trees(*kinds: str, most: float) -> Iterator[tuple[str, AbstractSitemap]]:
    """Yield the name and the sitemap of each of these files."""
    return ((name, read(kind, data)) for name, kind, data in files(*kinds, most=most))

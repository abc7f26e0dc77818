"""Rows to select from: a table that has a column of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from tables import columns_with
from usp.export.batches import Batch
from usp.export.selection import select
from usp.objects.page import SitemapPageChangeFrequency as Frequency
from usp.scan.columns import Columns, List, Scalar, Struct, Type

TYPES: MappingProxyType[str, Type] = MappingProxyType(
    {
        "url": Scalar.TEXT,
        "last_modified": Scalar.TIME,
        "change_frequency": Scalar.FREQUENCY,
        "priority": Scalar.NUMBER,
        "position": Scalar.INTEGER,
        "live": Scalar.BOOLEAN,
        "news": Struct({"title": Scalar.TEXT, "publish_date": Scalar.TIME}),
        "images": List(Scalar.TEXT),
    }
)


@dataclass(frozen=True)
class News:
    title: str | None = None
    publish_date: datetime | None = None


@dataclass(frozen=True)
class Row:
    url: str | None = None
    last_modified: datetime | None = None
    change_frequency: Frequency | None = None
    priority: float | None = None
    position: int | None = None
    live: bool | None = None
    news: News | None = None
    images: list[str] | None = None


def columns_of(rows: list[Row]) -> Columns:
    return columns_with(TYPES, **{name: [getattr(row, name) for row in rows] for name in TYPES})


def kept_rows(batch: Batch) -> list[int]:
    """The numbers of the rows that are kept."""
    kept = b"\1" * batch.columns.length if batch.kept is None else batch.kept
    return [number for number, is_kept in enumerate(kept) if is_kept]


def selected(where: str, *rows: Row) -> list[int]:
    return kept_rows(select(TYPES, where=where).batch(columns_of(list(rows))))

"""What the explorer answers: a method for each kind of question, with plain values in and out. It knows no HTTP."""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from usp.check.rules.page import rule_page
from usp.exceptions import InvalidArgumentError, MissingExtraError
from usp.export.formats import ANSWER_FORMATS, TABLE_FORMATS
from usp.export.formats.base import Answer, FormatOptions
from usp.extras import extra
from usp.objects.codes import CODES
from usp.objects.outcome import Outcome, OutcomeKind
from usp.objects.problem import UNLOGGED
from usp.scan import with_line_feeds
from usp.view.filters import Condition, condition_of, is_set, known_code
from usp.view.loading import Loader
from usp.view.overview import overview
from usp.view.store import SITEMAP_ROWS, Store

if TYPE_CHECKING:
    from usp.crawl.crawls import Crawl
    from usp.sources import Source
    from usp.stream import HomepageOptions, SitemapStream

__all__ = ["EXAMPLES", "Explorer", "NotFound", "json_numbers", "json_value", "lines_around"]

_MAX_LIMIT = 1_000
_MAX_LINE = 2_000  # characters of a line that are shown
_MAX_LINE_BYTES = 5 * _MAX_LINE  # kept of a line, so that no line fills the memory
_MAX_CONTEXT = 50
_CONTINUATION = bytes(range(0x80, 0xC0))  # of a character in UTF-8
_MAX_RUNS = 30  # of a chart
_SORTS = ("url", "last_modified", "priority", "change_frequency")
_NO_EXPRESSION = (
    '"{}" is not a regular expression. To search for a character such as ( [ * + ? as it is, write a backslash before'
    " it. Look-around, such as (?=a), and references, such as \\1, do not work here."
)
_WORST_FIRST = ("error", "warning", "info")
_PAGE_COLUMNS = (
    "row, url, last_modified, last_modified_text, change_frequency, priority, sitemap_url, {source} as source,"
    " news is not null as news, coalesce(len(images), 0) as images, coalesce(len(videos), 0) as videos,"
    " coalesce(len(alternates), 0) as alternates, coalesce(problems, []) as problems"
)
EXAMPLES = (
    (
        "How often pages say that they change",
        "select change_frequency, count(*) as pages from pages group by 1 order by 2 desc",
    ),
    (
        "Sitemaps by type and status",
        "select type, status, count(*) as sitemaps, sum(pages) as pages from sitemaps group by all",
    ),
    (
        "Pages that several sitemaps list",
        "select url, list(sitemap_url) as sitemaps from pages group by 1 having count(*) > 1 limit 100",
    ),
    (
        "Pages by section and year",
        "select section, year(last_modified) as year, count(*) as pages\n"
        "from pages group by all order by 3 desc limit 100",
    ),
    ("Every image", "select page_url, loc, title from images limit 100"),
    (
        "News by publication",
        "select news.publication_name as publication, count(*) as stories, max(news.publish_date) as newest\n"
        "from pages where news is not null group by 1 order by 2 desc",
    ),
    (
        "The largest sitemaps",
        "select url, pages, bytes_inflated, seconds from sitemaps order by pages desc nulls last limit 20",
    ),
    ("Problems by code", "select code, severity, count(*) as problems from problems group by all order by 3 desc"),
)


class NotFound(InvalidArgumentError):
    """There is nothing of that name or number."""


class Explorer:
    """The data of the targets, and the answers to questions about them. Any thread may ask.

    :param streams: each source with its stream, opened lazily.
    :param options: those that the streams are opened with.
    :param advice: returns what to try after an outcome, with a semicolon before it; an empty text for nothing.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        streams: Iterable[tuple[Source, SitemapStream]],
        options: HomepageOptions | None = None,
        advice: Callable[[Outcome], str] = lambda outcome: "",
    ) -> None:
        self._advice = advice
        self._targets = [source.target for source in sources]
        self._has_source = len(sources) > 1
        self.store = Store(has_source=self._has_source)
        self.loader = Loader(self.store, streams, options or {}, has_source=self._has_source)
        self._crawl = _crawl_of(sources)
        self._overview = lru_cache(maxsize=32)(self._overview_of)
        self._run_rows: list[dict[str, Any]] | None = None
        self._changes: tuple[int, int] | None = None  # the runs whose changes are in the table
        self._runs_lock = threading.Lock()  # there is one such table, whoever asks

    def start(self) -> None:
        """Start to read the targets."""
        self.loader.start()

    def close(self) -> None:
        """Stop reading, and remove everything."""
        self.loader.stop()
        self.store.close()

    def status(self) -> dict[str, Any]:
        """Return how far reading is, and what there is."""
        loader, outcome = self.loader, self.loader.outcome
        return {
            "targets": self._targets[:20],
            "state": loader.state,
            "error": loader.error or None,
            "version": self.store.version,
            "pages": loader.pages,
            "sitemaps": len(loader.sitemaps),
            "failed": loader.failed,
            "bytes": loader.bytes,
            "seconds": round(loader.seconds, 1),
            "outcome": None if outcome is None else _outcome(outcome, self._advice(outcome)),
            "notes": loader.notes[:20],
            "has_problems": loader.has_problems,
            "has_changes": self._crawl is not None and len(self._crawl.runs) > 1,
            "formats": _formats(),
            "codes": {
                code: {"title": rule_page(code).title, "severity": str(CODES[code].severity)}
                for code in loader.code_counts
            },
        }

    def _condition(self, parameters: Mapping[str, str]) -> Condition:
        text = parameters.get("q", "")
        if text and is_set("regex", parameters.get("regex", "")) and not self.store.is_expression(text):
            raise InvalidArgumentError(_NO_EXPRESSION.format(text[:60]))
        return condition_of(parameters, self._sitemap_url)

    def _sitemap(self, text: str) -> int:
        """Return the number of a sitemap that is given by its number, or by its URL."""
        if text.isascii() and text.isdigit():
            number: int | None = _number("sitemap", text)
        else:
            sources = self._targets if self._has_source else [None]
            number = next((found for one in sources if (found := self._sitemap_id(text, one)) is not None), None)
        if number is None or number >= len(self.loader.rows):
            raise NotFound(f"there is no sitemap {text!r:.200}")
        return number

    def _sitemap_url(self, text: str) -> tuple[str, str | None]:
        row = self.loader.rows[self._sitemap(text)]
        return row["url"], row["source"]

    def overview(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the figures of the overview."""
        key = tuple(sorted((name, text) for name, text in parameters.items() if text))
        return {**self._overview(key, self.store.version), "severities": dict(self.loader.severities)}

    def _overview_of(self, key: tuple[tuple[str, str], ...], version: int) -> dict[str, Any]:
        parameters = dict(key)
        return overview(self.store, self._condition(parameters), parameters)

    def sitemaps(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return rows of the table of sitemaps."""
        sort = _sort(parameters.get("sort", ""), tuple(SITEMAP_ROWS)) or "id"
        text = parameters.get("q", "")
        where = "contains(lower(url), lower(?))" if text else "true"
        values = [text] if text else []
        offset, limit = _window(parameters)
        ((total,),) = self.store.tuples(f"select count(*) from sitemaps where {where}", values)
        rows = self.store.rows(f"from sitemaps where {where} order by {sort}, id limit {limit} offset {offset}", values)
        for row in rows:
            row["parent"] = None if row["parent"] is None else self._sitemap_id(row["parent"], row["source"])
        return {"total": total, "rows": rows}

    def pages(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return rows of the table of pages."""
        offset, limit = _window(parameters)
        sort = _sort(parameters.get("sort", ""), _SORTS)
        columns = _PAGE_COLUMNS.format(source="source" if self._has_source else "null")
        total, rows = self.store.page_rows(columns, self._condition(parameters), sort, offset, limit)
        for row in rows:
            row["sitemap"] = self._sitemap_id(row.pop("sitemap_url"), row.pop("source"))
        return {"total": total, "rows": rows}

    def _sitemap_id(self, url: str, source: str | None) -> int | None:
        return self.loader.ids.get((url, source))

    def page(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return every field of a page."""
        row = _number("row", parameters.get("row", ""))
        found = self.store.rows("from all_pages where row = ?", [row])
        if not found:
            raise NotFound(f"there is no page {row}")
        url, source = found[0]["sitemap_url"], found[0].get("source")
        values = _without_nulls(found[0])
        return {**values, "sitemap": {"id": self._sitemap_id(url, source), "url": url}}

    def export(self, parameters: Mapping[str, str]) -> str:
        """Write the pages of a filter to a file, and return its path. The caller removes it."""
        sort = _sort(parameters.get("sort", ""), _SORTS)
        condition = self._condition(parameters)
        sql = f"select * exclude (row) from all_pages where {condition.sql}"  # DuckDB keeps the order of the parts
        sql += f" order by {sort}, row" if sort else ""
        return self._written(parameters, "pages", self.store.batches(sql, condition.values))

    def _written(self, parameters: Mapping[str, str], table: str, batches: AbstractContextManager[Any]) -> str:
        """Write the answer to a query to a file, in the format that the parameters name, and return its path."""
        name = parameters.get("format", "csv")
        if name not in {one["name"] for one in _formats()}:
            raise InvalidArgumentError(f"there is no format {name!r:.40}")
        one = ANSWER_FORMATS[name]
        path = os.path.join(self.store.downloads, f"{secrets.token_hex(8)}{one.suffixes[0]}")
        write = one.answer_writer
        assert write is not None
        try:
            with batches as (schema, found):
                answer = Answer(schema, found, table)
                with nullcontext(path) if one.is_named else open(path, "wb") as target, one.opener(target) as file:
                    write(answer, file, FormatOptions())
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(path)
            raise
        return path

    def problems(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return how many problems there are: by code, and by sitemap."""
        code = known_code(parameters["code"]) if parameters.get("code") else ""
        sitemap = self._sitemap(parameters["sitemap"]) if parameters.get("sitemap") else None
        counts = {name: found for name, found in self.loader.code_counts.items() if not code or name == code}
        codes: list[dict[str, Any]] = []
        for name, found in counts.items():
            count = found.total() if sitemap is None else found[sitemap]
            if count:
                severity, title = str(CODES[name].severity), rule_page(name).title
                sitemaps_with = len(found) - (None in found)  # some problems are of the site as a whole
                codes.append(
                    {"code": name, "title": title, "severity": severity, "count": count, "sitemaps": sitemaps_with}
                )
        codes.sort(key=lambda one: (_WORST_FIRST.index(one["severity"]), -one["count"], one["code"]))
        by_sitemap: dict[int, dict[str, int]] = {}
        for name, found in counts.items():
            for number, count in found.items():
                if number is not None:
                    row = by_sitemap.setdefault(number, dict.fromkeys(("errors", "warnings", "infos"), 0))
                    row[f"{CODES[name].severity}s"] += count
        worst = sorted(by_sitemap.items(), key=lambda item: tuple(-count for count in item[1].values()))
        sitemaps = [{"id": number, "url": self.loader.rows[number]["url"], **row} for number, row in worst[:_MAX_LIMIT]]
        return {"codes": codes, "sitemaps": sitemaps}

    def problem_list(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return problems: of a code, of a sitemap, or all."""
        offset, limit = _window(parameters)
        conditions, values = ["true"], []
        code = known_code(parameters["code"]) if parameters.get("code") else ""
        if code:
            conditions.append("code = ?")
            values.append(code)
        sitemap = self._sitemap(parameters["sitemap"]) if parameters.get("sitemap") else None
        where = " and ".join(conditions) + (f" and sitemap = {sitemap}" if sitemap is not None else "")
        ((total,),) = self.store.tuples(f"select count(*) from problems where {where}", values)
        rows = self.store.rows(f"from problems where {where} limit {limit} offset {offset}", values)
        counted = [found for name, found in self.loader.code_counts.items() if not code or name == code]
        count = sum(found.total() if sitemap is None else found[sitemap] for found in counted)
        return {"total": total, "count": count, "rows": rows}

    def rule(self, code: str) -> dict[str, Any]:
        """Return the page of a rule."""
        if code.upper() not in CODES:
            raise NotFound(f"there is no code {code!r:.20}")
        page = rule_page(code.upper())
        return {
            "code": page.code,
            "severity": str(page.severity),
            "title": page.title,
            "markdown": page.markdown,
        }

    def document(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return lines of the document of a sitemap, around a line."""
        number = self._sitemap(parameters.get("sitemap", ""))
        line = max(_number("line", parameters.get("line", "1")), 1)
        column = _number("column", parameters.get("column", "1"))
        context = min(_number("context", parameters.get("context", "6")), _MAX_CONTEXT)
        url = self.loader.rows[number]["url"]
        parser = self.loader.sitemaps[number].parser
        if parser is None:
            raise NotFound(f"{url} has no document")
        lines = lines_around(parser.open(UNLOGGED), line, context, column)
        return {"sitemap": number, "url": url, "lines": lines, "line": line}

    def runs(self) -> dict[str, Any]:
        """Return the runs of a crawl folder, with the number of changes of each."""
        if self._crawl is None:
            return {"runs": []}
        with self._runs_lock:
            if self._run_rows is None:
                self._run_rows = _run_rows(self._crawl)
        return {"runs": self._run_rows}

    def changes(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the changes between two runs."""
        condition, (offset, limit) = _changes_condition(parameters), _window(parameters)
        with self._compared(parameters):
            counted = dict(self.store.tuples("select change, count(*) from changes group by 1"))
            sql, values = f"from changes where {condition.sql}", condition.values
            ((total,),) = self.store.tuples(f"select count(*) {sql}", values)
            rows = self.store.rows(f"{sql} limit {limit} offset {offset}", values)
        return {"counts": dict.fromkeys(_KINDS, 0) | counted, "total": total, "rows": [_change(row) for row in rows]}

    @contextmanager
    def _compared(self, parameters: Mapping[str, str]) -> Iterator[None]:
        """Have the changes between two runs in the table of changes. Nobody else changes it within this block."""
        if self._crawl is None:
            raise NotFound("changes need a crawl folder with several runs; see usp crawl --help")
        old, new = (_number(name, parameters.get(name, "")) for name in ("old", "new"))
        with self._runs_lock:
            if self._changes != (old, new):
                self.store.write_arrow("changes", self._crawl.changes(old, new).to_arrow())
                self._changes = (old, new)
            yield

    def export_changes(self, parameters: Mapping[str, str]) -> str:
        """Write the changes between two runs to a file, and return its path. The caller removes it."""
        condition = _changes_condition(parameters)
        with ExitStack() as stack:
            with self._compared(parameters):  # a query that has started keeps the table that it reads
                sql = f"from changes where {condition.sql}"
                found = stack.enter_context(self.store.batches(sql, condition.values))
            return self._written(parameters, "changes", nullcontext(found))

    def sql(self, query: str, name: str) -> dict[str, Any]:
        """Run a query."""
        started = time.monotonic()
        table, is_cut = self.store.ask(query, name)
        columns = [{"name": field.name, "type": _kind(field.type)} for field in table.schema]
        rows = [list(row) for row in zip(*map(_values, table.columns), strict=True)]
        return {"columns": columns, "rows": rows, "is_cut": is_cut, "seconds": round(time.monotonic() - started, 3)}

    def tables(self) -> dict[str, Any]:
        """Return the tables and their columns, and queries to start with."""
        found: dict[str, list[tuple[str, str]]] = {}
        for table in ("pages", "sitemaps", "problems", "images", "videos", "alternates"):
            rows = self.store.tuples(f"describe {table}")
            found[table] = [(name, kind) for name, kind, *_ in rows]
        return {"tables": found, "examples": [{"title": title, "query": query} for title, query in EXAMPLES]}


#: What the page says about each outcome.
_OUTCOMES = {
    OutcomeKind.PARTIAL: "Some sitemaps are missing",
    OutcomeKind.BLOCKED: "The site refuses to answer, so there is nothing to show",
    OutcomeKind.UNREACHABLE: "The site does not answer, so there is nothing to show",
    OutcomeKind.EMPTY: "The site answers, but has no sitemap",
}
_KINDS = ("added", "removed", "changed", "moved")


def _crawl_of(sources: Sequence[Source]) -> Crawl | None:
    """Return the crawl folder that the targets are, if they are one."""
    from usp.sources import SourceKind

    paths = {source.path for source in sources}
    if len(paths) != 1 or not all(source.kind is SourceKind.CRAWL for source in sources):
        return None
    from usp.crawl import open_crawl

    return open_crawl(paths.pop())


def _outcome(outcome: Outcome, advice: str) -> dict[str, Any]:
    """Return an outcome, and what it means for the reader: nothing to say if everything could be read."""
    meaning = _OUTCOMES.get(outcome.kind, "")
    if meaning:
        meaning += f": {outcome.reason}{advice}" if outcome.reason else "."
    return {"kind": str(outcome.kind), "reason": outcome.reason, "meaning": meaning}


def _run_rows(crawl: Crawl) -> list[dict[str, Any]]:
    """Return the last runs of a crawl, with the number of changes since the run before."""
    runs = crawl.runs[-_MAX_RUNS:]
    counts = {later.run: crawl.changes(earlier.run, later.run).counts().total for earlier, later in pairwise(runs)}
    return [
        {
            "run": run.run,
            "started": run.started,
            "ended": run.ended,
            "sites": run.sites,
            **{kind: counts[run.run][kind] if run.run in counts else None for kind in _KINDS},
        }
        for run in runs
    ]


def _changes_condition(parameters: Mapping[str, str]) -> Condition:
    if parameters.get("kind", "") not in ("", *_KINDS):
        raise InvalidArgumentError(f"kind is one of {', '.join(_KINDS)}, not {parameters['kind']!r:.40}")
    given = {"change = ?": parameters.get("kind"), "contains(lower(url), lower(?))": parameters.get("q")}
    conditions = {sql: value for sql, value in given.items() if value}
    return Condition(" and ".join(["true", *conditions]), tuple(conditions.values()))


def _change(row: dict[str, Any]) -> dict[str, Any]:
    kind = row["change"]
    old = None if kind == "added" else {"last_modified": row["old_last_modified"]}
    new = None if kind == "removed" else {"last_modified": row["last_modified"], "title": row["title"]}
    return {
        "change": kind,
        "site": row["site"],
        "url": row["url"],
        "fields": row["fields"],
        "old": old,
        "new": new,
        "old_sitemap": row["old_sitemap_url"],
        "new_sitemap": row["sitemap_url"],
    }


@lru_cache(maxsize=1)
def _formats() -> list[dict[str, str]]:
    """Return the formats of `usp export` whose packages are installed."""
    found = []
    for name, one in TABLE_FORMATS.items():
        if name not in ANSWER_FORMATS:
            continue
        try:
            for module in one.needs[0] if one.needs is not None else ():
                extra(module, "view")
        except MissingExtraError:
            continue
        found.append({"name": name, "what": one.what})
    return found


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidArgumentError(f"{name} must be a number, not {text!r:.40}")
    return int(text)


def _window(parameters: Mapping[str, str]) -> tuple[int, int]:
    offset = _number("offset", parameters.get("offset") or "0")
    return offset, min(_number("limit", parameters.get("limit") or "100"), _MAX_LIMIT)


def _sort(text: str, allowed: Sequence[str]) -> str:
    """Return what stands behind `order by`; empty for no order. Rows without a value come last."""
    name = text.removeprefix("-")
    if not text:
        return ""
    if name not in allowed:
        raise InvalidArgumentError(f"rows are not sorted by {name!r:.40}; choose from {', '.join(allowed)}")
    return f'"{name}" {"desc" if text.startswith("-") else "asc"} nulls last'


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _kind(arrow_type: Any) -> str:
    types = extra("pyarrow", "view").types
    tests = (
        ("boolean", types.is_boolean),
        ("number", lambda kind: types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)),
        ("time", types.is_temporal),
        ("text", lambda kind: types.is_string(kind) or types.is_large_string(kind)),
    )
    return next((name for name, is_kind in tests if is_kind(arrow_type)), "other")


def _values(column: Any) -> list[Any]:
    """Return the values of a column. Times that Python does not have, such as the year 10000, become texts."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return list(map(_value, column))


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pa = extra("pyarrow", "view")
        try:
            return str(scalar.cast(pa.string()))
        except pa.ArrowException:  # it is within something else
            return "out of range"


def lines_around(pieces: Iterable[bytes], line: int, context: int, column: int = 1) -> list[tuple[int, str, bool, int]]:
    """Return the lines around a line: number, text, whether the end is left out, and how many characters at the start.

    A line that is too long is shown around the column. Lines end as they do where problems are placed.
    """
    first, last = max(line - context, 1), line + context
    starts = {line: max(column - _MAX_LINE // 2, 0)}
    found: list[tuple[int, str, bool, int]] = []
    number, text, skipped = 1, b"", 0
    for piece in with_line_feeds(pieces):
        parts = piece.split(b"\n")
        for index, part in enumerate(parts):
            if number >= first:
                start = starts.get(number, 0)
                part, skipped = _without_first(part, start, skipped)
                text = (text + part)[:_MAX_LINE_BYTES]
            if index == len(parts) - 1:
                continue
            if number >= first:
                found.append(_shown(number, text, skipped))
            number, text, skipped = number + 1, b"", 0
            if number > last:
                return found
    if text and number >= first:
        found.append(_shown(number, text, skipped))
    return found


def _without_first(data: bytes, count: int, skipped: int) -> tuple[bytes, int]:
    """Skip the first characters of a line, of which some were skipped before. Return the rest, and how many are now."""
    if skipped == count:
        return data, skipped
    characters = [at for at, byte in enumerate(data) if byte not in _CONTINUATION]
    if len(characters) <= count - skipped:
        return b"", skipped + len(characters)
    return data[characters[count - skipped] :], count


def _shown(number: int, data: bytes, skipped: int) -> tuple[int, str, bool, int]:
    if skipped:
        data = data.lstrip(_CONTINUATION)  # the rest of the last character that was skipped
    text = data.removesuffix(b"\r").decode("utf-8", "replace")
    return number, text[:_MAX_LINE], len(text) > _MAX_LINE, skipped


def json_numbers(value: Any) -> Any:
    """Return a value of JSON with the numbers that JSON does not have, such as NaN, as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: json_numbers(one) for name, one in value.items()}
    return [json_numbers(one) for one in value] if isinstance(value, (list, tuple)) else value


def json_value(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has: a time in UTC, or a text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)

"""The process that runs queries of people: `python -m usp.view.query_process PARTS SPILL`.

It writes an empty line once it is ready. A request is a line of JSON: the query, and the files of tables that have
changed. The answer is a line of JSON: an error, or the number of bytes of the Arrow stream behind it. The process ends
when its standard input does, whatever it is doing, so it never outlives the process that started it.

A query is a single SELECT in a transaction that only reads.
"""

from __future__ import annotations

import json
import os
import sys
from queue import SimpleQueue
from threading import Thread
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.extras import extra
from usp.view.database import load_table, open_database, open_pages

_MAX_ROWS = 10_000
_MAX_BYTES = 32 << 20  # of an answer; it is sent in one piece
_BATCH = 500  # rows that are read at once, before their size is known
_SELECTS = ("SELECT", "EXPLAIN", "MULTI")
_READS_ONLY = "Write one SELECT. The explorer changes nothing."


def main(parts: str, spill: str) -> None:
    """Answer requests until standard input ends."""
    connection = open_database(parts, spill)
    open_pages(connection, parts)
    requests: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(requests,), daemon=True).start()
    _send(b"\n")
    while True:
        request = json.loads(requests.get())
        for name, path in request["tables"].items():
            load_table(connection, name, path)
        try:
            table, is_cut = answer(connection, request["query"])
        except (InvalidArgumentError, extra("duckdb", "view").Error) as error:
            _send(json.dumps({"error": str(error)}).encode() + b"\n")
            continue
        data = _stream(table)
        _send(json.dumps({"size": data.size, "is_cut": is_cut}).encode() + b"\n", data)


def _receive(requests: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)  # the other thread may be at a query that cannot be interrupted


def _send(*pieces: Any) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _stream(table: Any) -> Any:
    """Return a table as a stream of Arrow."""
    pa = extra("pyarrow", "view")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def answer(connection: Any, query: str) -> tuple[Any, bool]:
    """Run a query. Return an Arrow table, and whether rows are missing because there are too many.

    :raises InvalidArgumentError: if it may not run.
    :raises duckdb.Error: if it is wrong.
    """
    duckdb = extra("duckdb", "view")
    with connection.cursor() as cursor:
        statements = cursor.extract_statements(query)
        if len(statements) != 1 or statements[0].type.name not in _SELECTS:
            raise InvalidArgumentError(_READS_ONLY)
        if _copies(query):
            raise InvalidArgumentError(f'{_READS_ONLY} A column "copy" needs its quotes.')
        try:
            cursor.execute("begin transaction read only")  # EXPLAIN ANALYZE and WITH run what is in them
            return _first_rows(cursor, query)
        except duckdb.TransactionException:
            raise InvalidArgumentError(_READS_ONLY) from None


def _copies(query: str) -> bool:
    """Return whether a query has the word COPY, which writes files even within a transaction that only reads."""
    duckdb, data = extra("duckdb", "view"), query.encode()
    words = (at for at, kind in duckdb.tokenize(query) if kind == duckdb.token_type.keyword)
    return any(data[at : at + 4].lower() == b"copy" for at in words)


def _first_rows(cursor: Any, query: str) -> tuple[Any, bool]:
    pa = extra("pyarrow", "view")
    found, rows, size, is_cut = [], 0, 0, False
    try:
        reader = cursor.sql(query).to_arrow_reader(_BATCH)
        for batch in reader:
            size += batch.nbytes
            is_cut = size > _MAX_BYTES or rows + batch.num_rows > _MAX_ROWS
            if size > _MAX_BYTES:
                break
            found.append(batch)
            rows += batch.num_rows
            if is_cut:
                break
    except (pa.ArrowException, OSError) as error:
        raise InvalidArgumentError(str(error)) from None
    if size > _MAX_BYTES and not rows:
        raise InvalidArgumentError("The first rows are too large to show. Select fewer columns, or left(column, 100).")
    return pa.Table.from_batches(found, reader.schema).slice(0, _MAX_ROWS), is_cut


if __name__ == "__main__":
    main(*sys.argv[1:])

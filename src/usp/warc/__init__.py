"""WARC files: the records that archives keep of the web, written and read.

`WarcWriter` writes WARC 1.1, one gzip member per record. `read_records` reads any WARC file, also a damaged one, and
`read_record` one record at its offset. `Message` is the HTTP message in a record. `usp.warc.archive` looks up responses
by their URLs.

https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
"""

from __future__ import annotations

from usp.warc.messages import Message, message_of, request_head, response_head
from usp.warc.reading import Record, body_of_member, open_block, open_body, read_record, read_records
from usp.warc.writing import Original, Payload, WarcWriter, Written

__all__ = [
    "Message",
    "Original",
    "Payload",
    "Record",
    "WarcWriter",
    "Written",
    "body_of_member",
    "message_of",
    "open_block",
    "open_body",
    "read_record",
    "read_records",
    "request_head",
    "response_head",
]

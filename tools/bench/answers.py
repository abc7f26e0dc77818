"""What workers answer with: the pages that were found, as a number and a checksum, and the memory that was used."""

from __future__ import annotations

import hashlib
import resource
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
_CHECKSUM_BYTES = 8


def summary(values: Iterable[str]) -> Answer:
    """How many pages there are, and a checksum of what was read of them."""
    digest, pages = hashlib.sha256(), 0
    for pages, value in enumerate(values, 1):  # noqa: B007 -- the last number is used
        digest.update(value.encode() + b"\n")
    return {"pages": pages, "checksum": digest.hexdigest()[:16]}


def unordered_summary(values: Iterable[str]) -> Answer:
    """The same of pages whose order is by chance: the sum of the checksums of each."""
    total = pages = 0
    for pages, value in enumerate(values, 1):  # noqa: B007 -- the last number is used
        total += int.from_bytes(hashlib.blake2b(value.encode(), digest_size=_CHECKSUM_BYTES).digest())
    return {"pages": pages, "checksum": f"{total % 256**_CHECKSUM_BYTES:016x}"}


def peak_memory() -> int:
    """The most memory that this process had, in bytes.

    Where there is /proc, not `ru_maxrss`: Linux starts that at the size of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

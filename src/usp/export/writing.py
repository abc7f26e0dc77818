"""What writes a table, whatever its format."""

from __future__ import annotations

from typing import Any, Protocol

from usp.export.batches import Batch

__all__ = ["Writer"]


class Writer(Protocol):
    """Writes one table in one format."""

    def encode(self, batch: Batch, /) -> Any:
        """The rows as they are to be written; called in any thread, several at once."""

    def write(self, encoded: Any, /) -> None:
        """Write what was encoded; called in one thread, in the order of the rows."""

    def close(self) -> None:
        """Write what comes at the end. What it was given to write into is left open."""

    def drop(self) -> None:
        """Let go of all that is held, whether it was closed or is never to be."""
        return  # most hold nothing

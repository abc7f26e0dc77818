"""The rules of robots.txt files, where they are wanted: what they disallow, and how long they ask to wait.

https://www.rfc-editor.org/rfc/rfc9309
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from usp.documents import Document, Failure
from usp.scan.lines import robots_text

if TYPE_CHECKING:
    from protego import Protego

__all__ = ["Rules"]


class Rules:
    """What a robots.txt, as it was answered, says to a user agent."""

    def __init__(self, answer: Document | Failure, user_agent: str) -> None:
        self._user_agent = user_agent
        self.unreachable: str | None = None
        text = ""
        if isinstance(answer, Document):
            text = robots_text(answer.pieces(lambda code: None)).decode("utf-8-sig", "replace")
        elif not 400 <= (answer.status or 0) < 500:  # 2.3.1.3: a 4xx means that there is none, and all is allowed
            self.unreachable = answer.message  # 2.3.1.4: nothing is allowed
        self._rules: Protego = _parsed(text)

    def refusal(self, url: str) -> str | None:
        """Why a URL is not to be fetched; None if it may be."""
        if self.unreachable is not None:
            return f"its host's robots.txt cannot be had ({self.unreachable}), so nothing is allowed there"
        if self._rules.can_fetch(url, self._user_agent):
            return None
        return f"its host's robots.txt disallows it to {self._user_agent!r}"

    def delay(self) -> float:
        """The seconds between requests that it asks for."""
        return float(self._rules.crawl_delay(self._user_agent) or 0)


@lru_cache(16)
def _parsed(text: str) -> Any:
    from protego import Protego  # imported only when needed

    return Protego.parse(text)

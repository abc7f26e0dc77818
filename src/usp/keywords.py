"""Keyword arguments of functions that hand them on: `**options`."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_keywords"]


def check_keywords(given: Iterable[str], known: Iterable[str], *others: str) -> None:
    """Raise an error for keyword arguments that a function does not have.

    :param known: the names of those that it has.
    :param others: the names of its other parameters, which the caller may have meant.
    :raises TypeError: with the nearest name, or with all names if none is near.
    """
    known = [*known, *others]
    for name in given:
        if name not in known:
            from difflib import get_close_matches  # only errors need it

            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            raise TypeError(f"unexpected keyword argument {name!r}; {hint}")

"""Fields that are converted when you first read them.

An object made by the scanner has a `_source` and no values in its lazy slots. Reading such a slot asks the source for
the value and stores it. An object made by its constructor has its values and no source. What the source reads from is
not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from usp.compiled import IS_COMPILED

__all__ = ["LazySlot", "Source", "maker_of"]

Made = TypeVar("Made")


class Source(Protocol):
    """Returns the values of an object."""

    def value(self, name: str, /) -> Any:
        """Return the value of a field. "sitemap_url" is the sitemap that the object was read from.

        "stated_priority" and "stated_change_frequency" are None where the document states none, or no valid one.
        """

    def last_modified_text(self) -> str:
        """Return the text of the last modification, as it was written."""


class PureLazySlot:
    """A slot of a class whose value comes from the slot `source` when it is first read."""

    __slots__ = ("_get_source", "_get_value", "_name", "_set_value")

    def __init__(self, slot: MemberDescriptorType, source: MemberDescriptorType) -> None:
        self._name = slot.__name__
        self._get_value = slot.__get__
        self._set_value = slot.__set__
        self._get_source = source.__get__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            return self._get_value(instance)
        except AttributeError:
            value = self._get_source(instance).value(self._name)
            self._set_value(instance, value)
            return value

    def __set__(self, instance: Any, value: Any) -> None:
        self._set_value(instance, value)

    def __delete__(self, instance: Any) -> None:
        raise AttributeError(f"{self._name!r} cannot be deleted")


def pure_maker_of(made: type[Made]) -> Callable[[dict[str, Any]], Made]:
    """Return what makes objects of a frozen dataclass with slots from a dictionary of its fields."""
    return lambda values: made(**values)


if TYPE_CHECKING or not IS_COMPILED:
    LazySlot, maker_of = PureLazySlot, pure_maker_of
else:
    from usp.objects._lazy import LazySlot
    from usp.objects._lazy import Maker as maker_of  # noqa: N813 -- a class that is called like the function

"""Meta of captures: plain data of which what is not of its type is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_COUNT: Final = 1 << 53
_MAX_TEXT: Final = 500
_MAX_TEXTS: Final = 50


class Meta:
    """One object of it. Files may hold anything: texts and lists are cut."""

    def __init__(self, data: Any) -> None:
        self._data: Mapping[str, Any] = data if isinstance(data, dict) else {}

    def count(self, key: str, most: int = MAX_COUNT) -> int | None:
        """A whole number that is not negative."""
        value = self._data.get(key)
        return value if type(value) is int and 0 <= value <= most else None

    def number(self, key: str, most: float) -> float | None:
        """A number that is not negative."""
        value = self._data.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) if 0 <= value < most else None

    def text(self, key: str, most: int = _MAX_TEXT) -> str:
        """A text; empty where there is none."""
        value = self._data.get(key)
        return value[:most] if isinstance(value, str) else ""

    def texts(self, key: str, most: int = _MAX_TEXTS) -> list[str]:
        """The texts of a list."""
        value = self._data.get(key)
        items = value[:most] if isinstance(value, (list, tuple)) else []
        return [item[:_MAX_TEXT] for item in items if isinstance(item, str)]

    def flag(self, key: str) -> bool | None:
        """Whether it is true or false."""
        value = self._data.get(key)
        return value if isinstance(value, bool) else None

    def part(self, key: str) -> Meta:
        """An object inside; one without anything where there is none."""
        return Meta(self._data.get(key))

    def flags_set(self, key: str) -> list[str]:
        """Names of the flags that are true in an object inside."""
        value = self._data.get(key)
        inside = value.items() if isinstance(value, dict) else ()
        names = [name[:_MAX_TEXT] for name, is_set in inside if is_set is True]
        return names[:_MAX_TEXTS]

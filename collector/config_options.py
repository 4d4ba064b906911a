"""A setting that is a mapping of its own: keys that are another package's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Options(Mapping[str, Any]):
    """What a file system is opened with: keys and values that nobody changes.

    The values may be secrets, so its text shows the keys alone.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == dict(other)

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(map(str, self._values)))})"

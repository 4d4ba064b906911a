"""What became of another tool's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from collector.config.values import UNCHANGED, Found, written

if TYPE_CHECKING:
    from collections.abc import Mapping

IDENTITY = "identity_lambda"
"""MemProfiler's word for a function that does nothing."""


class Key(NamedTuple):
    """A key of theirs: what it may be, its default, and what it becomes."""

    hint: Any
    default: Any
    leaves: tuple[str, ...]
    """Our settings, which get the key's value."""
    note: str = ""
    """Of a key that is in effect, or that nothing of ours takes the place of."""
    needs: str = ""
    """Another key, without which this one does nothing."""


class Became(NamedTuple):
    """What one key became."""

    key: str
    value: Any
    place: str
    given: bool
    """False: the key is not there, and their default counts."""
    leaves: Mapping[str, Any] = {}
    """Our settings, by path; none where MemBoard needs no such key."""
    note: str = ""

    def __str__(self) -> str:
        became = ", ".join(f"{p}: {written(v)}" for p, v in self.leaves.items())
        note = f" ({self.note})" if became and self.note else self.note
        value = written(self.value).replace(UNCHANGED, IDENTITY)
        return f"{self.key}: {value} -> {became or 'nothing: '}{note}"


class Imported(NamedTuple):
    """Another tool's settings in one file or mapping, as ours."""

    name: str
    """Of theirs, as users know it."""
    place: str
    leaves: Mapping[str, Found]
    """Our settings by path, with the place that each comes from."""
    entries: tuple[Became, ...]
    """Every key of theirs, in its order."""
    beside: tuple[str, ...] = ()
    """Keys beside them that are ours, and count."""
    left_out: tuple[str, ...] = ()
    """Those that are not."""

    def place_of(self, key: str) -> str:
        """One of their keys, with the name of what it is a key of."""
        return f"{self.name}{'.' if self.name.isidentifier() else ', '}{key}"

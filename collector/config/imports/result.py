"""The result of importing another tool's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memboard.collector.config.values import UNCHANGED, LocatedValue, describe, written
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.config.documents import Document

IDENTITY = "identity_lambda"
"""MemProfiler's word for a function that does nothing."""


UNPACKED = "**"
"""The name of arguments that a program unpacks from a mapping."""


class NotConstant(NamedTuple):
    """An argument whose value a program makes when it runs; `text`: how."""

    text: str

    def advice(self, leaves: Sequence[str]) -> str:
        """What is left to do where it would become these settings."""
        by_hand = f"; set {' and '.join(leaves)} yourself" if leaves else ""
        return f"the program makes it ({self.text}){by_hand}"


def is_unpacked(value: object) -> bool:
    """Whether it is not even known that a program gives this argument."""
    return isinstance(value, NotConstant) and value.text.startswith(UNPACKED)


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


class ConvertedKey(NamedTuple):
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
        converted = self.value
        value = (
            converted.text if isinstance(converted, NotConstant) else written(converted)
        )
        value = value.replace(UNCHANGED, IDENTITY)
        return f"{self.key}: {value} -> {became or 'nothing: '}{note}"


class ImportedSettings(NamedTuple):
    """Another tool's settings in one file or mapping, as ours."""

    name: str
    """Of theirs, as users know it."""
    place: str
    leaves: Mapping[str, LocatedValue]
    """Our settings by path, with the place that each comes from."""
    entries: tuple[ConvertedKey, ...]
    """Every key of theirs, in its order."""
    beside: tuple[str, ...] = ()
    """Keys beside them that are ours, and count."""
    left_out: tuple[str, ...] = ()

    def place_of(self, key: str) -> str:
        """One of their keys, with the name of what it is a key of."""
        return f"{self.name}{'.' if self.name.isidentifier() else ', '}{key}"


def mapping_at(document: Document, path: str, value: Any) -> Mapping[Any, Any]:
    """The keys and values at a path; none where it is left empty.

    Raises:
        ConfigError: it holds something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"'{path}' in {document.at(path)} must hold keys and values, got"
            f" {describe(value)}."
        )
    return value

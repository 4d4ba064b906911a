"""Attributes and dictionary entries that are replaced for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.plain import weakly

if TYPE_CHECKING:
    from collections.abc import Callable

_ABSENT: Final = object()


class Patches:
    """What was replaced, and how to put it back.

    What somebody else has replaced since is theirs: it stays, and ours below it.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], bool]] = []

    def attribute(self, owner: Any, attribute_name: str, replacement: Any) -> None:
        """Replace an attribute, or stand before the one of the owner's class."""
        original = vars(owner).get(attribute_name, _ABSENT)
        setattr(owner, attribute_name, replacement)
        reference = weakly(owner)

        def undo() -> bool:
            living = reference()
            if living is None:
                return True
            if vars(living).get(attribute_name) is not replacement:
                return False
            if original is _ABSENT:
                delattr(living, attribute_name)
            else:
                setattr(living, attribute_name, original)
            return True

        self._undo.append(undo)

    def entry(self, entries: dict[int, Any], key: int, replacement: Any) -> None:
        """Replace a value where it stands: key and order stay."""
        original = entries[key]
        entries[key] = replacement

        def undo() -> bool:
            if entries.get(key) is not replacement:
                return False
            entries[key] = original
            return True

        self._undo.append(undo)

    def remove(self) -> bool:
        """Put everything back, the last one first; False: something is still in use.

        That is tried again the next time.
        """
        self._undo = [undo for undo in reversed(self._undo) if not undo()][::-1]
        return not self._undo

"""Events that are columns already, on their way into the tables of a snapshot.

A reader of dumped snapshots makes columns while it reads, without an object per event.
Its lists of events are empty then; what they held are rows here. Their columns may be
longer than memory is meant to be, so they go into the tables as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.format.records import IntArray


class HeldColumn(NamedTuple):
    """One key of the events in some rows, at least one of which has it."""

    key: str
    kind: str
    """See `collector.format.snapshots`."""
    arrays: tuple[Any, ...]
    """Two of a pair, else one; a row without the key has the kind's gap. Arrays, or
    whatever has a length and becomes one by `numpy.asarray`."""
    is_optional: bool
    """Whether a row lacks the key."""


class HeldEvents(Protocol):
    """All events of a snapshot, of every list."""

    @property
    def texts(self) -> Sequence[str]:
        """What columns of kind `text` and `value` number."""

    @property
    def stacks(self) -> Sequence[list[dict[str, Any]]]:
        """What columns of kind `stack` number."""

    def renumber(self, texts: IntArray, stacks: IntArray) -> None:
        """Texts and stacks have these numbers from now on; to be called once."""

    def has(self, rows: Any) -> bool:
        """Whether events stood in this list."""

    def span(self, rows: Any) -> tuple[int, int]:
        """The rows of a list, from and to; of one without events none."""

    def columns(self, spans: Sequence[tuple[int, int]]) -> Iterator[HeldColumn]:
        """The columns of some lists, one list after the other."""

    def owners(self, lengths: Sequence[int]) -> Any:
        """The numbers of lists, each repeated for all that are in it."""

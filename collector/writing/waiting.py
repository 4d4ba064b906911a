"""What a writer is made of, and what waits for it: shared by both of its sides."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.core.rank import Identity
    from collector.format.records import Header, Note, Schema
    from collector.writing.segments import SegmentPlan
    from collector.writing.tables import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """What a writer needs to know."""

    run_dir: Path
    flush_seconds: float
    queue_rows: int
    max_file_bytes: int
    scalars: bool
    identify: Callable[[], Identity]
    make_header: Callable[[Identity, str], Header]
    """Called with the identity and the attempt, on the writer's thread."""
    watch: Callable[[], None]
    """Called on the writer's thread before each flush; must not raise or block."""
    segments: SegmentPlan | None = None
    """None: the rank's file is one that grows."""


@dataclass(slots=True)
class Waiting:
    """The queue from the training thread, and what found no room in it."""

    queue: deque[tuple[int, Row] | Note | Schema] = field(default_factory=deque)
    dropped: dict[int, int] = field(default_factory=dict)
    """Rows, by the number of their schema."""
    num_notes_dropped: int = 0
    num_user_notes: int = 0
    """Notes that a user's code caused since the last flush."""
    lost: dict[tuple[str, str], int] = field(default_factory=dict)
    """What others have dropped so far, by table and reason."""

    @property
    def num_dropped(self) -> int:
        """All of these, whatever the reason."""
        return (
            sum(self.dropped.values())
            + self.num_notes_dropped
            + sum(self.lost.values())
        )

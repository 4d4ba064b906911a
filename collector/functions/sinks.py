"""What stands between kinds and the engine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from collector.format.columns import Column
    from collector.format.records import Capture
    from collector.functions.contract import Sink
    from collector.mirror.contract import Kind as RemoteKind
    from collector.sources.contract import SourceInfo


class Gate:
    """Passes on what kinds find, unless the call turned out to be none.

    A step may turn out so at any time, so the rows of its start wait for its end. Captures
    of its start do not: they are large, and what one wants to have after a crash.
    """

    def __init__(self, sink: Sink) -> None:
        self.shut = False
        """Rows and captures go nowhere; notes still pass."""
        self._sink = sink
        self._held: list[tuple[Any, ...]] = []
        self._holding = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep the rows of this block for `let_go` or `drop`."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False

    def drop(self) -> None:
        """Forget what is held."""
        self._held = []

    def let_go(self) -> None:
        """Pass on what is held."""
        held, self._held = self._held, []
        for table, phase, columns, row, rolled_up in held:
            self._sink.put_row(table, phase, columns, row, rolled_up=rolled_up)

    def put_capture(self, capture: Capture) -> bool:
        """See `Sink`."""
        return self.shut or self._sink.put_capture(capture)

    def put_row(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        row: Sequence[int | float | None],
        *,
        rolled_up: bool = True,
    ) -> None:
        """See `Sink`."""
        if self._holding:
            self._held.append((table, phase, columns, row, rolled_up))
        elif not self.shut:
            self._sink.put_row(table, phase, columns, row, rolled_up=rolled_up)

    def note_kind(
        self, info: SourceInfo, status: str, reason: str, remedy: str
    ) -> None:
        """See `Sink`."""
        self._sink.note_kind(info, status, reason, remedy)

    @property
    def rank(self) -> int:
        """See `Sink`."""
        return self._sink.rank

    def artifact_dir(self) -> Path | None:
        """See `Sink`."""
        return self._sink.artifact_dir()

    def mirror(self, kind: RemoteKind, path: Path) -> None:
        """See `Sink`."""
        self._sink.mirror(kind, path)

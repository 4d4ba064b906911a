"""What stands between kinds and the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.format.columns import Column
    from collector.format.records import Capture
    from collector.profiling.contract import Sink
    from collector.sources.contract import SourceInfo


class Gate:
    """Passes on what kinds find, unless the call turned out to be none."""

    def __init__(self, sink: Sink) -> None:
        self.shut = False
        """Rows and captures go nowhere; notes still pass."""
        self._sink = sink

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
        if not self.shut:
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

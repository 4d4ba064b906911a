"""The sources that every step samples, and those of them that fail.

A source that fails is switched off: its columns stay in the schema, absent from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.format.columns import Column
    from collector.source_notes import SourceNotes
    from collector.sources.contract import StepSource
    from collector.trouble import Troubles


class StepSources:
    """Of one recording."""

    def __init__(
        self, sources: Sequence[StepSource], notes: SourceNotes, troubles: Troubles
    ) -> None:
        self._sources: list[StepSource | None] = list(sources)
        self._notes = notes
        self._troubles = troubles
        self.samples: list[Callable[[], Sequence[int | float | None]]] = [
            source.sample for source in sources
        ]
        """What gives each source's values; may raise. `switch_off` takes its index."""
        self.columns: tuple[Column, ...] = tuple(
            column for source in sources for column in source.columns
        )

    def values(self) -> dict[str, int | float | None]:
        """What they say now, by column; those that fail are left out."""
        values: dict[str, int | float | None] = {}
        for source in self._sources:
            if source is not None:
                names = (column.name for column in source.columns)
                try:
                    values.update(zip(names, source.sample(), strict=True))
                except Exception as error:  # noqa: BLE001  # said while failing anyway
                    self._notes.failed(source.info, error)
        return values

    def switch_off(self, index: int, error: BaseException) -> tuple[None, ...]:
        """This one has failed: what it gives from now on."""
        source = self._sources[index]
        if source is None:
            return ()
        nothing = (None,) * len(source.columns)
        self.samples[index] = lambda: nothing
        self._notes.failed(source.info, error)
        self._close(index)
        return nothing

    def switch_off_odd(self) -> None:
        """Some source gave more or fewer values than it has columns: the row is lost."""
        for index, source in enumerate(self._sources):
            if source is not None:
                found, expected = len(source.sample()), len(source.columns)
                if found != expected:
                    error = ValueError(f"{found} values for {expected} columns")
                    self.switch_off(index, error)

    def close(self) -> None:
        """Leave torch as it was."""
        for index in range(len(self._sources)):
            self._close(index)

    def _close(self, index: int) -> None:
        source, self._sources[index] = self._sources[index], None
        if source is not None:
            try:
                source.close()
            except Exception as error:  # noqa: BLE001  # it is being left behind anyway
                self._troubles.tell("close", "a source did not close", error=error)

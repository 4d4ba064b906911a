"""The sources that every step samples, and those of them that fail.

A source that fails, also one that could not be opened, is off for a while: its columns
stay in the schema, absent until it is tried again and works (see `retry`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.core.retry import Retry
from collector.sources.late import LateStepSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.core.warn_once import Troubles
    from collector.format.columns import Column
    from collector.sampling.notes import SourceNotes
    from collector.sources.contract import StepSource


class StepSources:
    """Of one recording."""

    def __init__(
        self, sources: Sequence[StepSource], notes: SourceNotes, troubles: Troubles
    ) -> None:
        self._sources = list(sources)
        self._retries = [Retry() for _ in sources]
        self._off: set[int] = set()
        """Indices of those that failed last."""
        self._notes = notes
        self._troubles = troubles
        self.samples: list[Callable[[], Sequence[int | float | None]]] = [
            source.sample for source in sources
        ]
        """What gives each source's values; may raise. `switch_off` takes its index."""
        self.columns: tuple[Column, ...] = tuple(
            column for source in sources for column in source.columns
        )
        for index, source in enumerate(sources):
            if isinstance(source, LateStepSource):  # said already that it failed
                self._off.add(index)
                self._leave(index)

    def values(self) -> dict[str, int | float | None]:
        """What they say now, by column; those that fail are left out."""
        values: dict[str, int | float | None] = {}
        for index, source in enumerate(self._sources):
            if index in self._off:
                continue
            names = (column.name for column in source.columns)
            try:
                values.update(zip(names, source.sample(), strict=True))
            except Exception as error:  # noqa: BLE001  # said while failing anyway
                self._notes.failed(source.info, error)
        return values

    def switch_off(self, index: int, error: BaseException) -> tuple[None, ...]:
        """This one has failed: what it gives until it works again."""
        if index not in self._off:
            self._off.add(index)
            self._notes.failed(self._sources[index].info, error)
        return self._leave(index)

    def _leave(self, index: int) -> tuple[None, ...]:
        """Leave it alone for a while."""
        source, retry = self._sources[index], self._retries[index]
        nothing = (None,) * len(source.columns)
        retry.failed()

        def tried() -> Sequence[int | float | None]:
            if not retry.is_due():
                return nothing
            try:
                values = _checked(source)
            except Exception as again:  # noqa: BLE001  # as `Engine.write_step` does
                return self.switch_off(index, again)
            self._off.discard(index)
            self.samples[index] = source.sample
            self._notes.works(source.info)
            return values

        self.samples[index] = tried
        return nothing

    def switch_off_odd(self) -> None:
        """Some source gave more or fewer values than it has columns: the row is lost."""
        for index, source in enumerate(self._sources):
            if index in self._off:
                continue
            try:
                _checked(source)
            except Exception as error:  # noqa: BLE001  # one must not cost all
                self.switch_off(index, error)

    def close(self) -> None:
        """Leave torch as it was."""
        sources, self._sources = self._sources, []
        for source in sources:
            try:
                source.close()
            except Exception as error:  # noqa: BLE001, PERF203  # it is left behind
                self._troubles.tell("close", "a source did not close", error=error)


def _checked(source: StepSource) -> Sequence[int | float | None]:
    values = source.sample()
    found, expected = len(values), len(source.columns)
    if found != expected:
        raise ValueError(f"{found} values for {expected} columns")
    return values

"""Sources that could not be opened, and are opened when they are sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.format.columns import Column
    from collector.sources.contract import SourceInfo, StepSource, TimedSource


class LateSource:
    """A timed source in place of the one that opening it makes, once that works."""

    def __init__(
        self, info: SourceInfo, open_source: Callable[[], TimedSource]
    ) -> None:
        """`open_source` may raise; it is called again at the next sample."""
        self.info = info
        self.interval_seconds = 0.0
        self.columns: Sequence[Column] = ()
        self._open = open_source
        self._source: TimedSource | None = None

    def sample(self) -> Sequence[int | float | None]:
        """Its values; raises what opening it raises."""
        if self._source is None:
            source = self._source = self._open()
            self.columns = source.columns
            self.interval_seconds = source.interval_seconds
        return self._source.sample()

    def close(self) -> None:
        """Give back what it holds, where it was opened."""
        if self._source is not None:
            self._source.close()


class LateStepSource:
    """The same of a step source, whose columns must be known before the first step."""

    def __init__(
        self,
        info: SourceInfo,
        columns: Sequence[Column],
        open_source: Callable[[], StepSource],
    ) -> None:
        """`open_source` may raise; it is called again whenever it is sampled."""
        self.info = info
        self.columns = columns
        self._open = open_source
        self._source: StepSource | None = None

    def sample(self) -> Sequence[int | float | None]:
        """Its values; raises what opening it raises."""
        if self._source is None:
            self._source = self._open()
        return self._source.sample()

    def close(self) -> None:
        """Give back what it holds, where it was opened."""
        if self._source is not None:
            self._source.close()

"""Sources that could not be opened, and are opened when they are sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from collector.sources.contract import StepSource, TimedSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.format.columns import Column
    from collector.sources.contract import SourceInfo

_Source = TypeVar("_Source", bound=StepSource | TimedSource)


class _Late(Generic[_Source]):
    """In place of the source that opening it makes, once that works."""

    def __init__(
        self,
        info: SourceInfo,
        columns: Sequence[Column],
        open_source: Callable[[], _Source],
    ) -> None:
        self.info = info
        self.columns = columns
        self._open = open_source
        self._source: _Source | None = None

    def sample(self) -> Sequence[int | float | None]:
        """Its values; raises what opening it raises."""
        if self._source is None:
            self._source = self._open()
            self._opened(self._source)
        return self._source.sample()

    def close(self) -> None:
        """Give back what it holds, where it was opened."""
        if self._source is not None:
            self._source.close()

    def _opened(self, source: _Source) -> None:
        """It has just been opened."""


class LateSource(_Late[TimedSource]):
    """A timed source, whose columns are known once it is open."""

    def __init__(
        self, info: SourceInfo, open_source: Callable[[], TimedSource]
    ) -> None:
        """`open_source` may raise; it is called again at the next sample."""
        super().__init__(info, (), open_source)
        self.interval_seconds = 0.0

    def _opened(self, source: TimedSource) -> None:
        self.columns = source.columns
        self.interval_seconds = source.interval_seconds


class LateStepSource(_Late[StepSource]):
    """A step source, whose columns must be known before the first step."""

"""Routes about traces: what a run's timeline is made of, and what is open of it.

Sources are opened by threads of their own: `/trace` says how far each is. Pictures are
made of open sources alone; only the recording's own numbers need the run's lock.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Query, SourceId
from memboard.tb_plugin.facts.traces.axis import (
    COUNTERS,
    PlacedSource,
    RunClocks,
    placed,
    run_clocks,
)
from memboard.tb_plugin.jobs.trace_files import TraceFiles
from memboard.tb_plugin.jobs.trace_sources import TraceSources, span_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.tb_plugin.api.base import Problem, RunSummary
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.trace_sources import FoundSource, OpenSource

PICTURE_SECONDS: Final = 3.0
"""Longest wait of a picture for each source that is being opened."""
_LISTED_SECONDS: Final = 1.0
"""Lifetime of a list of sources for pictures."""
_MAX_LISTS: Final = 64

Row = Annotated[
    int, Meta(ge=-(2**31), le=2**31 - 1, description="a row; below 0 of an instant")
]


class RowQuery(Query, frozen=True):
    """One slice or instant: a row of a source."""

    source: SourceId | None = None
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class TraceListing:
    """Of a run: what its timeline is made of, when it was last looked at."""

    sources: list[FoundSource]
    problems: tuple[Problem, ...]
    clocks: RunClocks
    summary: RunSummary
    version: int
    still_reading: bool

    @property
    def keys(self) -> list[tuple[object, ...]]:
        """What decides what is in it."""
        return [(source.id, *source.key) for source in self.sources]


class RunTraces:
    """The traces of runs. Safe for threads."""

    def __init__(self, readers: RunReaders) -> None:
        self.sources: Final = TraceSources()
        self.files: Final = TraceFiles(
            readers.importer, readers.store.series.capture_metas
        )
        self._readers = readers
        self._files: Callable[[Run, Budget], Sequence[FoundSource]] = self.files
        self._lists: dict[str, tuple[float, TraceListing]] = {}
        self._lock = threading.Lock()

    def listed(self, run_id: str, *, fresh: bool = False) -> TraceListing:
        """All that a run's timeline is made of; `fresh`: looked at now.

        Raises:
            NotFoundError: there is no such run.
        """
        now = time.monotonic()
        with self._lock:
            stamped = self._lists.get(run_id)
        if stamped is not None and not fresh and now - stamped[0] < _LISTED_SECONDS:
            return stamped[1]
        with self._readers.reading(run_id) as reading:
            run, budget = reading
            sources = [*span_sources(run, budget), *self._files(run, budget)]
            sources.sort(
                key=lambda source: (source.rank is None, source.rank or 0, source.kind)
            )
            listing = run.found.traces
            listed = TraceListing(
                sources,
                () if listing is None else listing.problems,
                run_clocks(run),
                self._readers.summary(run),
                run.version,
                reading.goes_on,
            )
        with self._lock:
            if len(self._lists) > _MAX_LISTS:
                self._lists.clear()
            self._lists[run_id] = (now, listed)
        return listed

    def places(
        self, run_id: str, listed: TraceListing, ids: Iterable[str]
    ) -> dict[str, PlacedSource]:
        """The sources of ids, open and on the clock that `/trace` put them on.

        Raises:
            NotFoundError: one of them is not in the run.
            NotReadyError: one is still being opened.
            UnreadableError: one cannot be opened.
        """
        wanted = {source_id for source_id in ids if not source_id.startswith(COUNTERS)}
        by_id = {source.id: source for source in listed.sources}
        if not wanted <= by_id.keys():
            raise NotFoundError(
                "There is no such trace in the run.",
                "the trace in the address",
                "It may have been deleted: reload the page.",
            )
        # Held here: what else is opened meanwhile may leave no room for them.
        opened = {
            source_id: self._opened(run_id, by_id[source_id])
            for source_id in sorted(wanted)
        }
        # All that are shown together decide where one without a wall clock lies.
        shown = [
            opened.get(source.id) or self.sources.ready(run_id, source.id)
            for source in listed.sources
        ]
        all_places = _placed(shown, listed.clocks, listed.summary)
        return {place.id: place for place in all_places if place.id in wanted}

    def placed(
        self,
        run_id: str,
        sources: Iterable[FoundSource],
        clocks: RunClocks,
        summary: RunSummary,
    ) -> list[PlacedSource]:
        """Those of the sources that are open, on one clock."""
        ready = (self.sources.ready(run_id, source.id) for source in sources)
        return _placed(ready, clocks, summary)

    def _opened(self, run_id: str, source: FoundSource) -> OpenSource:
        """One that is open, after some waiting."""
        ready = self.sources.ready(run_id, source.id)
        if ready is not None:
            return ready
        opening = self.sources.open(run_id, source)
        opening.wait(PICTURE_SECONDS)
        if opening.problem is not None or opening.result is None:
            raise opening.why_not("trace", source.name[:200])
        return opening.result


def _placed(
    sources: Iterable[OpenSource | None], clocks: RunClocks, summary: RunSummary
) -> list[PlacedSource]:
    open_sources = [source for source in sources if source is not None]
    return placed(open_sources, clocks, int(summary.first_ms * 1e6))

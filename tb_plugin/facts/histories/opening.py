"""Histories of the allocator that a query names: found, and opened.

Pictures are made of an open history alone: no run is brought up to date for them and no
lock of a run is taken, so panning stays smooth while a run is being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from memboard.tb_plugin.analysis.snapshots.snapshot import HOST
from memboard.tb_plugin.contract.errors import NotFoundError, NotReadyError
from memboard.tb_plugin.contract.parameters import Moment, Query, Text, Whole
from memboard.tb_plugin.facts.view import setup_of
from memboard.tb_plugin.index.history_list import default_of, history_of, listed

if TYPE_CHECKING:
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.readers import Reading, RunReaders
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.histories import HistoryJob
    from memboard.tb_plugin.jobs.open_history import OpenHistory


PICTURE_SECONDS: Final = 3.0
"""Longest wait of a picture for a history that is being opened."""


class HistoryQuery(Query, frozen=True):
    """One history of a run; the newest one where none is named."""

    history: Text | None = None  # `HistoryReference.id`
    again: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """Another number opens again what failed to open."""


DeviceNumber = Annotated[
    int,
    Meta(
        ge=HOST,
        le=2**31 - 1,
        description=f"the number of a device, {HOST} for pinned host memory",
    ),
]


class DeviceQuery(HistoryQuery, frozen=True):
    """One device of a history, and what is shown of it."""

    device: DeviceNumber | None = None
    stream: Whole | None = None
    pool: Whole | None = None


class MomentQuery(DeviceQuery, frozen=True):
    """A device at one moment: the number of an event."""

    moment: Moment | None = None


def open_history(readers: RunReaders, query: HistoryQuery) -> OpenHistory:
    """The history of a query, opened.

    Raises:
        NotFoundError: there is no such history.
        NotReadyError: it is still being opened.
        UnreadableError: it cannot be opened.
    """
    if query.history is not None:
        opened = readers.histories.opened(query.run, query.history)
        if opened is not None:
            return opened
    history, opening = begin_opening(readers, query)
    opening.wait(PICTURE_SECONDS)
    if opening.result is None:
        raise opening.why_not("history", history.path_text)
    return opening.result


def begin_opening(
    readers: RunReaders, query: HistoryQuery
) -> tuple[FoundHistory, HistoryJob]:
    """Begin to open the history of a query, unless it is open.

    Raises:
        NotFoundError: there is no such history.
        NotReadyError: the run was not read so far.
    """
    with readers.reading(query.run) as reading:
        history = find(reading, query)
    return history, readers.histories.open(reading.run, history, query.again)


def find(reading: Reading, query: HistoryQuery) -> FoundHistory:
    """The history of a query.

    Raises:
        NotFoundError: there is no such history.
        NotReadyError: the run was not read so far.
    """
    run, budget = reading
    try:
        if query.history is not None:
            return history_of(run, query.history, budget)
        return _newest(run, budget)
    except NotFoundError as error:
        if not reading.goes_on:
            raise
        raise NotReadyError(
            "The run is still being read: this history has not been found yet.",
            error.where,
            "Try again in a moment.",
        ) from None


def _newest(run: Run, budget: Budget) -> FoundHistory:
    history = default_of(listed(run, budget))
    if history is None:
        raise NotFoundError(
            "The run has no allocator history.",
            run.found.title[:80],
            setup_of(run).no_history_remedy,
        )
    return history


def begin(readers: RunReaders, path: str) -> None:
    """Begin to open a file that was named one by one; nobody waits for it."""
    for run in readers.store.runs():
        listing = run.found.snapshots
        for file in () if listing is None else listing.found.files:
            if file.path == path:
                with readers.reading(run.found.id) as (_, budget):
                    history = history_of(run, file.id, budget)
                readers.histories.open(run, history)
                return

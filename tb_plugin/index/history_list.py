"""The histories of a run: its own captures and files of other tools, by id.

Ids come from what was found here and are looked up here: `{rank}-{attempt}-{offset}` of
a capture, `f` and 16 digits of a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.api.memory.calls import HistoryReference
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.formats.recording.captures.reading import captures_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.api.memory.histories import HistoryOrigin
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.snapshots.files.listing import (
        FoundSnapshot,
        FoundSnapshots,
    )
    from memboard.tb_plugin.formats.snapshots.files.names import Context
    from memboard.tb_plugin.index.run import AttemptFiles, Run

_CAPTURE_ID: Final = re.compile(r"(\d{1,8})-(.{1,200})-(\d{1,18})", re.DOTALL)
_ENDS: Final = {
    "oom": "out of memory",
    "exception": "uncaught exception",
    "signal": "ended by a signal",
}
"""Why a capture was taken that was taken because the training ended."""


@dataclass(frozen=True, slots=True)
class OwnCapture:
    """A capture in a rank's file."""

    file: RankFile
    entry: CaptureEntry


@dataclass(frozen=True, slots=True)
class FoundHistory:
    """A history that can be opened."""

    run_id: str
    reference: HistoryReference
    origin: HistoryOrigin
    source: OwnCapture | FoundSnapshot

    @property
    def rank(self) -> int | None:
        return self.reference.rank

    @property
    def path_text(self) -> str:
        """Where it lies, for a person."""
        source = self.source
        if isinstance(source, OwnCapture):
            return source.file.shown_path
        return source.path_text

    @property
    def key(self) -> tuple[object, ...]:
        """Which content it has: another one is another history under the same id."""
        if isinstance(self.source, OwnCapture):
            entry = self.source.entry
            identity = self.source.file.identity
            return (self.run_id, *identity, entry.offset, entry.num_bytes)
        return ("file", *self.source.key)


class HistoryList:
    """The histories of one run as they were last listed; hold the run's lock.

    A page asks for them again and again while the run is written: only files that have
    changed since are looked at again.
    """

    def __init__(self) -> None:
        self._of_file: dict[tuple[object, ...], tuple[FoundHistory, ...]] = {}
        """Captures of a file, by what it was like."""
        self._snapshots: FoundSnapshots | None = None
        self._of_snapshots: tuple[FoundHistory, ...] = ()
        self._parts: list[tuple[FoundHistory, ...]] = []
        """What `_all` was made of."""
        self._all: tuple[FoundHistory, ...] = ()

    def all(self, run: Run, budget: Budget) -> tuple[FoundHistory, ...]:
        """Every history by time, as far as the budget reaches."""
        earlier, self._of_file = self._of_file, {}
        parts = []
        for attempt in run.attempts:
            for file in attempt.files.values():
                key = _likeness(attempt, file)
                histories = earlier.get(key)
                if histories is None:
                    histories, is_whole = _of_captures(run, attempt, file, budget)
                else:
                    is_whole = True
                if is_whole:
                    self._of_file[key] = histories
                if histories:
                    parts.append(histories)
        parts.append(self._of_snapshot_files(run))
        # The same tuples as before hold the same histories.
        if [*map(id, parts)] != [*map(id, self._parts)]:
            self._parts = parts
            every = (history for part in parts for history in part)
            self._all = tuple(sorted(every, key=_time))
        return self._all

    def of_rank(self, run: Run, budget: Budget, rank: int) -> list[FoundHistory]:
        """Those of one rank by time: no other rank's file is looked at."""
        histories = [
            history
            for attempt, file in run.rank_files(rank)
            for history in self._of_file.get(_likeness(attempt, file))
            or _of_captures(run, attempt, file, budget)[0]
        ]
        histories += [_of_file(run, file) for file in run.snapshots.of_rank(rank)]
        return sorted(histories, key=_time)

    def _of_snapshot_files(self, run: Run) -> tuple[FoundHistory, ...]:
        if self._snapshots is not run.snapshots:
            self._snapshots = run.snapshots
            self._of_snapshots = tuple(
                _of_file(run, file) for file in run.snapshots.files
            )
        return self._of_snapshots


def listed(run: Run, budget: Budget, rank: int | None = None) -> Sequence[FoundHistory]:
    """Histories by time; hold the run's lock. Not all where the budget does not reach."""
    if rank is None:
        return run.histories.all(run, budget)
    return run.histories.of_rank(run, budget, rank)


def history_of(run: Run, history_id: str, budget: Budget) -> FoundHistory:
    """One history by its id; hold the run's lock.

    Raises:
        NotFoundError: the run has no such history.
    """
    file = run.snapshots.by_id(history_id)
    if file is not None:
        return _of_file(run, file)
    match = _CAPTURE_ID.fullmatch(history_id)
    if match is not None:
        rank, attempt, offset = int(match[1]), match[2], int(match[3])
        for start, own in run.rank_files(rank):
            if own.attempt != attempt:
                continue
            for entry in captures_of(own, budget):
                if entry.kind == "history" and entry.offset == offset:
                    return _of_capture(run, start.index, own, entry)
    raise NotFoundError(
        "The run has no such history.",
        run.found.title[:80],
        "It may have been deleted, or not be read yet: choose one from the list.",
    )


def reference_of_capture(
    file: RankFile, attempt: int, entry: CaptureEntry
) -> HistoryReference:
    """A capture as it is shown; `attempt`: 1-based start of the job."""
    return HistoryReference(
        id=f"{file.rank}-{file.attempt}-{entry.offset}",
        rank=file.rank,
        attempt=attempt,
        function=entry.function,
        phase=entry.phase,
        iteration=entry.iteration,
        context=_side(entry.context),
        label=entry.label,
        step=entry.step,
        time_ms=entry.time_ns / 1e6,
        num_bytes=entry.num_bytes,
        path="",
        title=_title(entry),
    )


def reference_of_file(file: FoundSnapshot) -> HistoryReference:
    """A file as it is shown."""
    return HistoryReference(
        id=file.id,
        rank=file.rank,
        attempt=1,
        function=file.said.function,
        phase=file.said.phase,
        iteration=file.said.iteration,
        context=file.said.context,
        label=file.said.label,
        step=file.said.step,
        time_ms=file.key.mtime_ns / 1e6,
        num_bytes=file.num_bytes,
        path=file.path_text,
        title=file.shown_path.rpartition("/")[2],
    )


def _of_captures(
    run: Run, attempt: AttemptFiles, file: RankFile, budget: Budget
) -> tuple[tuple[FoundHistory, ...], bool]:
    """The histories that a rank's file holds; whether the budget reached all of them."""
    was_exhausted, budget.exhausted = budget.exhausted, False
    histories = tuple(
        _of_capture(run, attempt.index, file, entry)
        for entry in captures_of(file, budget)
        if entry.kind == "history"
    )
    is_whole = not budget.exhausted
    budget.exhausted |= was_exhausted
    return histories, is_whole


def _likeness(attempt: AttemptFiles, file: RankFile) -> tuple[object, ...]:
    """What of a file decides which captures it lists."""
    digest = None if file.digest is None else file.digest.offset
    return (attempt.index, *file.identity, digest, len(file.behind.captures.found))


def _time(history: FoundHistory) -> float:
    return history.reference.time_ms


def _of_capture(
    run: Run, attempt: int, file: RankFile, entry: CaptureEntry
) -> FoundHistory:
    return FoundHistory(
        run_id=run.found.id,
        reference=reference_of_capture(file, attempt, entry),
        origin=_origin(entry),
        source=OwnCapture(file, entry),
    )


def _of_file(run: Run, file: FoundSnapshot) -> FoundHistory:
    return FoundHistory(run.found.id, reference_of_file(file), "file", file)


def _origin(entry: CaptureEntry) -> HistoryOrigin:
    # What ends a training names itself in both; a user's own name is a label alone.
    if entry.context in _ENDS and entry.label == entry.context:
        return entry.label  # type: ignore[return-value]  # one of these words
    return "call" if entry.function and entry.iteration else "by_hand"


def _title(entry: CaptureEntry) -> str:
    if entry.function:
        when = {"start": "before ", "end": "after "}.get(entry.context, "")
        phase = "" if entry.phase in ("", "train") else f" ({entry.phase})"
        return f"{when}iteration {entry.iteration:,} of {entry.function}{phase}"
    return _ENDS.get(_origin(entry), entry.label or "by hand")


def _side(text: str) -> Context:
    if text == "start":
        return "start"
    return "end" if text == "end" else ""


def of_rank(histories: Sequence[FoundHistory], rank: int | None) -> list[FoundHistory]:
    """Those of one rank; all, where none is named."""
    return [
        history
        for history in histories
        if rank is None or history.reference.rank == rank
    ]


def default_of(histories: Sequence[FoundHistory]) -> FoundHistory | None:
    """What is opened first: the first out-of-memory error's, else the newest."""
    errors = (history for history in histories if history.origin == "oom")
    return next(errors, histories[-1] if histories else None)

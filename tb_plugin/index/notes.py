"""Events besides numbers: the notes of all ranks, kept small.

Thousands of ranks say the same about their sources, so those words are shared; of
epochs, phases and marks the lowest rank's are kept, of what concerns one rank all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.format.prediction import NOTE as PREDICTION
from memboard.tb_plugin.api.overview import SourceStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from memboard.collector.format.records import Note
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

_MAX_TEXT: Final = 500
_EVERY_RANK: Final = frozenset(
    {"oom", "oom_message", "dropped", "mesh", "signal", "loading", PREDICTION}
)
_LOWEST_RANK: Final = frozenset({"epoch", "phase", "mark"})
_STATUSES: Final = frozenset({"recorded", "absent", "off", "failed"})


class Event(NamedTuple):
    """A note that is not about a source."""

    rank: int
    attempt: str
    """As in the file's name."""
    kind: str
    time_ns: int
    step: int | None
    data: Mapping[str, Any]


class _FileNotes(NamedTuple):
    stamp: tuple[int, int, int]
    sources: tuple[SourceStatus, ...]
    events: tuple[Event, ...]


class RunNotes:
    """Notes of a run's files; only files with new notes are read again."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[int, str], _FileNotes] = {}

    def update(self, files: Mapping[tuple[int, str], RankFile]) -> None:
        """Bring the notes up to date with what was read of the files."""
        for key in self._by_file.keys() - files.keys():
            del self._by_file[key]
        lowest = min((rank for rank, _ in files), default=0)
        for key, file in files.items():
            offset = -1 if file.digest is None else file.digest.offset
            stamp = (file.generation, offset, len(file.behind.notes))
            notes = self._by_file.get(key)
            if notes is None or notes.stamp != stamp:
                kinds = _EVERY_RANK
                if file.rank == lowest:
                    kinds |= _LOWEST_RANK
                self._by_file[key] = self._read(file, stamp, kinds)

    def sources(self) -> dict[tuple[int, str], SourceStatus]:
        """The last word of each rank on each source."""
        latest: dict[tuple[int, str], SourceStatus] = {}
        for (rank, _), notes in sorted(self._by_file.items(), key=_by_attempt):
            for source in notes.sources:
                latest[rank, source.source] = source
        return latest

    def events(self, kind: str) -> list[Event]:
        """All events of a kind, in order of time."""
        of_kind = [
            event
            for notes in self._by_file.values()
            for event in notes.events
            if event.kind == kind
        ]
        return sorted(of_kind, key=lambda event: (event.time_ns, event.rank))

    def _read(
        self, file: RankFile, stamp: tuple[int, int, int], kinds: frozenset[str]
    ) -> _FileNotes:
        sources: dict[str, SourceStatus] = {}
        notes = file.notes()
        for note in notes:
            if note.kind == "source":
                source = _status_of(note)
                if source is not None:
                    sources[source.source] = source
        events = tuple(_events(file, notes, kinds))
        return _FileNotes(stamp, tuple(sources.values()), events)


def events_of(file: RankFile, kinds: Collection[str]) -> Iterator[Event]:
    """The notes of these kinds in a rank's file, in the order they were written."""
    return _events(file, file.notes(), kinds)


def _events(
    file: RankFile, notes: Iterable[Note], kinds: Collection[str]
) -> Iterator[Event]:
    for note in notes:
        if note.kind in kinds:
            time_and_step = note.time_ns, note.step
            yield Event(file.rank, file.attempt, note.kind, *time_and_step, note.data)


def text_of(data: Mapping[str, Any], key: str) -> str:
    """A text of a note's data; empty where it is missing. Files may hold anything."""
    value = data.get(key)
    return "" if value is None else str(value)[:_MAX_TEXT]


def _status_of(note: Note) -> SourceStatus | None:
    """What a rank says about one of its sources; None where it has no status of ours."""
    get = note.data.get
    raw = (get("name"), get("status"), get("reason"), get("remedy"), get("cost"))
    try:
        return _clean_status(raw)
    except TypeError:  # something that cannot be hashed stands where a text belongs
        return None


@lru_cache(maxsize=1024)
def _clean_status(raw: tuple[Any, ...]) -> SourceStatus | None:
    """Shared by all ranks that say the same."""
    source, status, reason, remedy, cost = (
        "" if value is None else str(value)[:_MAX_TEXT] for value in raw
    )
    if status not in _STATUSES:
        return None
    return SourceStatus(source, status, 1, reason, remedy, cost)  # type: ignore[arg-type]  # one of these


def _by_attempt(item: tuple[tuple[int, str], Any]) -> str:
    return item[0][1]


def by_rank(events: Iterable[Event]) -> dict[int, list[Event]]:
    """Events of each rank, in their order."""
    events_of_ranks: dict[int, list[Event]] = {}
    for event in events:
        events_of_ranks.setdefault(event.rank, []).append(event)
    return events_of_ranks

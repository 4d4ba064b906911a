"""Histories that are open: own captures, and snapshots of other tools."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.sizes import capitalized
from memboard.tb_plugin.analysis.snapshots.snapshot import SnapshotError
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.recording.captures.reading import capture_of
from memboard.tb_plugin.index.history_list import FoundHistory, OwnCapture
from memboard.tb_plugin.jobs.job import Job, Jobs
from memboard.tb_plugin.jobs.open_history import Capacity, OpenHistory
from memboard.tb_plugin.jobs.replays import (
    is_worth_caching,
    key_of_content,
    read_replays,
    write_replays,
)
from memboard.tb_plugin.worker.errors import RefusedError
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from memboard.tb_plugin.formats.snapshots.files.listing import FoundSnapshot
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.worker.cache import FileKey

    HistoryJob: TypeAlias = Job[FoundHistory, OpenHistory]

_READ_SHARE: Final = 0.85
"""Of the progress; the rest is pairing allocations and their frees."""
_MAX_TEXT: Final = 1_000


class Histories(Jobs[FoundHistory, OpenHistory]):
    """All histories that are open, or being opened. Safe for threads."""

    max_retained = 64

    def __init__(self, importer: Callable[[], Importer] = Importer) -> None:
        """`importer` is called for the first other tool's file, or long capture."""
        super().__init__(OpenHistory.num_bytes)
        self._make_importer = importer
        self._made: Importer | None = None
        self._making = threading.Lock()

    def open(
        self, run: Run, history: FoundHistory, again: int | None = None
    ) -> HistoryJob:
        """A history, or how far it is; does not wait. `again`: see `Jobs.begin`.

        Raises:
            NotReadyError: too many are being opened.
        """
        return self.begin(
            history.key,
            (history.run_id, history.reference.id),
            history,
            partial(self._opened, run),
            again=again,
            after=self._prepare,
            note=partial(_note, run, history),
        )

    def opened(self, run_id: str, history_id: str) -> OpenHistory | None:
        """A history that is open; None where it is not, or not yet.

        Takes no lock of a run: pictures are drawn while the run is being read.
        """
        job = self.current((run_id, history_id))
        return None if job is None else job.result

    def _opened(self, run: Run, job: HistoryJob) -> OpenHistory:
        history, capacity = job.found, None
        if isinstance(history.source, OwnCapture):
            with self.turn:
                job.note(0.05, "reading the capture")
                tables = _tables_of_capture(run, history.source)
            capacity = _capacity(history.source)
        else:
            tables = self._imported(job, history.source)
        with self.turn:
            job.note(_READ_SHARE, "pairing allocations and their frees")
            return self._history(history, tables, capacity)

    def problems_of(self, history: FoundHistory, result: OpenHistory) -> list[Problem]:
        """What of the file was left out, or contradicts itself."""
        with self.turn:
            warnings = result.warnings
        return [
            Problem(
                "warning",
                history.path_text,
                warning[:_MAX_TEXT],
                remedy="Figures that rest on these events and blocks may be wrong: take"
                " the snapshot again, and do not edit it.",
                salvaged="All else of the file.",
                rank=history.rank,
            )
            for warning in warnings
        ]

    def _imported(self, job: HistoryJob, file: FoundSnapshot) -> Mapping[str, Any]:
        return self._importer().tables(
            file.path,
            SNAPSHOT,
            file.key,
            lambda share: job.note(share * _READ_SHARE, "reading the file"),
        )

    def _history(
        self,
        history: FoundHistory,
        tables: Mapping[str, Any],
        capacity: Capacity | None,
    ) -> OpenHistory:
        try:
            snapshot = snapshot_of(tables)
        except SnapshotError as error:
            sentence = f"{capitalized(str(error))}."
            remedy = "Take the snapshot again: no allocator can have written this."
            raise RefusedError(sentence, 0, "", remedy) from error
        made = partial(OpenHistory, snapshot, key=history.key, capacity=capacity)
        if not is_worth_caching(snapshot):
            return made()
        key = _content_of(history, tables)
        replays = read_replays(self._importer().cache, key, snapshot)
        return made(replays=replays, cached_as=key)

    def _prepare(self, history: OpenHistory) -> None:
        """Make what the first picture is coloured by, and spare others the replay."""
        if history.devices:
            _ = history.device(None).categories
        if history.cached_as is not None and not history.is_known:
            write_replays(self._importer().cache, history.cached_as, history)

    def _importer(self) -> Importer:
        with self._making:
            if self._made is None:
                self._made = self._make_importer()
            return self._made


def _content_of(history: FoundHistory, tables: Mapping[str, Any]) -> FileKey:
    if isinstance(history.source, OwnCapture):
        return key_of_content(tables)
    return history.source.key


def _capacity(source: OwnCapture) -> Capacity | None:
    header = source.file.header
    if header.device_total_bytes is None:
        return None
    return Capacity(header.device_total_bytes, header.device_index)


def _tables_of_capture(run: Run, source: OwnCapture) -> Mapping[str, Any]:
    """Those of a capture; where it is damaged, its rank's file has that from now on."""
    try:
        return capture_of(source.file, source.entry).tables
    except CorruptError as error:
        with run.lock:
            faults, entry = run.num_faults, source.entry
            end = entry.offset + entry.num_bytes
            source.file.add_damage(entry.offset, end, str(error), is_named=True)
            run.note_new_faults(faults)
        raise


def _note(run: Run, history: FoundHistory, problems: Sequence[Problem]) -> None:
    """Have the run show what is wrong with a file or capture, whoever opened it."""
    source = history.source
    with run.lock:
        if isinstance(source, OwnCapture):
            recorded = [fault.what.lower() for fault in source.file.faults]
            new = [
                problem
                for problem in problems
                if not any(
                    problem.what.rstrip(".").lower() in recorded_sentence
                    for recorded_sentence in recorded
                )
            ]
            run.note_read(history.reference.id, new, listed=None)
        else:
            run.note_read(source.path, problems, listed=source.key)

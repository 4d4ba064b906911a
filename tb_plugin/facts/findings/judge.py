"""Histories judged in the background, and their errors by the process that made them.

Judging a long history takes seconds, and the Overview is polled: so it is done once, on
a thread, and kept after the history itself was let go of. A program that tries again
writes a snapshot at each error, and each tells of the errors before it as well, unless
its history was cleared. Files that share an error, or a rank, are of one process; its
last error is the one that may have ended it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.tb_plugin.analysis.oom.errors import (
    HistoryErrors,
    OomError,
    errors_of,
    state_at,
)
from memboard.tb_plugin.cache import Cache, held_bytes
from memboard.tb_plugin.formats.snapshots.files.listing import FoundSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.oom.errors import HistoryErrors, OomError
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.histories import Histories, HistoryJob
    from memboard.tb_plugin.jobs.open_history import OpenHistory

MAX_UNASKED_BYTES: Final = 256 << 20
"""Histories up to here are opened for the verdict; larger ones once somebody opens
them."""
MAX_WAITING: Final = 8
"""Histories that are being judged or wait for it: each is held in memory meanwhile."""


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    found: HistoryErrors | None
    at_end: OomError | None
    """The last event of a history that has no error, on the device that held most."""
    problem: Problem | None = None
    has_end: bool = True
    """Whether the last event was judged: only a recording's other findings rest on it."""

    def is_enough_for(self, run: Run) -> bool:
        """Whether all is known of it that findings about a run may rest on."""
        return self.has_end or run.made_of != "recording"


class HistoryJudge:
    """Judges histories. Safe for threads."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._lock = threading.Lock()
        self._verdicts = Cache()
        """By history. Findings are made of those of all files of a run."""
        self._under_way: dict[tuple[object, ...], threading.Thread] = {}
        self._one = threading.Semaphore(1)
        self._num_judged = 0

    @property
    def version(self) -> tuple[int, int]:
        """Rises with each history that was judged, or opened by anybody."""
        return self._num_judged, self._histories.num_ended

    def known(self, history: FoundHistory) -> HistoryVerdict | None:
        """What is known of a history; None: nothing yet."""
        judged: HistoryVerdict | None = self._verdicts.get(history.key)
        return judged

    def ask(
        self,
        run: Run,
        history: FoundHistory,
        *,
        open_it: bool,
        seconds: float = 0.0,
    ) -> HistoryVerdict | None:
        """The same, and see to it that it becomes known.

        `open_it`: also where nobody opened the history yet. `seconds`: how long to wait
        for it; a run's lock must not be held then.

        Raises:
            NotReadyError: too many are being opened.
        """
        judged = self.known(history)
        if judged is not None and judged.is_enough_for(run):
            return judged
        opening = self._histories.known(history.key)
        if opening is None and open_it and size_of(history) <= MAX_UNASKED_BYTES:
            opening = self._histories.open(run, history)
        if opening is None:
            return None
        if seconds:
            opening.wait(seconds)
        if opening.state == "opening":
            return None
        thread = self._begin(run, opening)
        if seconds and thread is not None:
            thread.join(seconds)
        return self.known(history)

    def is_under_way(self, history: FoundHistory) -> bool:
        """Whether more will be known of it without anybody doing anything."""
        with self._lock:
            if history.key in self._under_way:
                return True
        if self._verdicts.peek(history.key) is not None:
            return False
        # Whoever asks next has it judged, if it was opened by then.
        return self._histories.known(history.key) is not None

    def judge(self, run: Run, opening: HistoryJob) -> HistoryVerdict:
        """Judge what was opened, now and here."""
        with_end = run.made_of == "recording"
        with self._one:
            judged = opening.derived(partial(judge, with_end=with_end))
        judged = judged or HistoryVerdict(None, None, opening.problem)
        key = opening.found.key
        self._verdicts.put(key, judged, held_bytes(judged))
        with self._lock:
            self._num_judged += 1
            self._under_way.pop(key, None)
        return judged

    def _begin(self, run: Run, opening: HistoryJob) -> threading.Thread | None:
        key = opening.found.key
        with self._lock:
            judged: HistoryVerdict | None = self._verdicts.peek(key)
            if judged is not None and judged.is_enough_for(run):
                return None
            thread = self._under_way.get(key)
            if thread is None and len(self._under_way) < MAX_WAITING:
                thread = threading.Thread(
                    target=self.judge,
                    args=(run, opening),
                    name="memboard-verdict",
                    daemon=True,
                )
                thread.start()
                self._under_way[key] = thread
            return thread


def judge(history: OpenHistory, *, with_end: bool = True) -> HistoryVerdict:
    """What an open history says."""
    devices: Any = [device for device in history.devices.values() if not device.is_host]
    history_errors = errors_of(devices)
    at_end = None
    number = history.default_device
    if with_end and not history_errors.errors and number is not None:
        device: Any = history.devices[number]
        if device.num_events and not device.is_host:
            last = device.num_events - 1
            at_end = state_at(device, last)
    return HistoryVerdict(history_errors, at_end, has_end=with_end)


def size_of(history: FoundHistory) -> int:
    """Bytes of its file, or of its capture."""
    source = history.source
    if isinstance(source, FoundSnapshot):
        return source.num_bytes
    return source.entry.num_bytes


class ErrorOfFile(NamedTuple):
    """One error and the file that tells of it."""

    history: FoundHistory
    error: OomError


@dataclass(slots=True)
class Process:
    """The errors of one process."""

    errors: list[ErrorOfFile] = field(default_factory=list)
    """Each once, in order of time, from the file that goes on longest behind it."""
    num_errors: int = 0
    """All there were, also those that were not judged."""


def processes(
    judged: Sequence[tuple[FoundHistory, HistoryErrors]],
) -> list[Process]:
    """The errors of some files, by process."""
    all_processes: list[Process] = []
    of_error: dict[tuple[object, ...], Process] = {}
    of_rank: dict[object, Process] = {}
    told: dict[tuple[object, ...], ErrorOfFile] = {}
    for history, errors in judged:
        if not errors.errors:
            continue
        keys = [_key(history, error) for error in errors.errors]
        rank = history.reference.rank
        same_process = [of_error[key] for key in keys if key in of_error]
        if rank is not None and rank in of_rank:
            same_process.append(of_rank[rank])
        process = same_process[0] if same_process else Process()
        if not same_process:
            all_processes.append(process)
        num_new = sum(key not in told for key in keys)
        process.num_errors += num_new + errors.num_errors - len(keys)
        if rank is not None:
            of_rank[rank] = process
        for key, error in zip(keys, errors.errors, strict=True):
            of_error[key] = process
            before = told.get(key)
            if before is None or error.num_later > before.error.num_later:
                told[key] = ErrorOfFile(history, error)
    for key, error_of_file in told.items():
        of_error[key].errors.append(error_of_file)
    for process in all_processes:
        process.errors.sort(key=_when)
    return all_processes


def _key(history: FoundHistory, error: OomError) -> tuple[object, ...]:
    """The same for one error in two files; without a time no other file's is."""
    asked = error.case.facts.requested_bytes
    if error.time_us is None:
        return (history.key, error.device, error.event)
    return (history.reference.rank, error.device, error.time_us, asked)


def _when(error_of_file: ErrorOfFile) -> tuple[float, float, int, int]:
    time_us = error_of_file.error.time_us
    return (
        -1.0 if time_us is None else float(time_us),
        error_of_file.history.reference.time_ms,
        error_of_file.error.device,
        error_of_file.error.event,
    )

"""Files that wait for the mirror, and the threads that copy them.

A file that is refused goes behind the others, and after a growing pause the store is tried
with one file at a time until it takes one. Nothing is given up before the recording ends.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from collector.core.warn_once import logger
from collector.format.names import parse_rank_file_name, rank_file_name
from collector.mirror.faults import refusal_of
from collector.mirror.store import Store, sums_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.core.warn_once import Troubles
    from collector.mirror.waiting import Job

CONCURRENCY: Final = 2
"""Files that are uploaded at the same time."""

RETRY_SECONDS: Final = 60.0
"""The longest pause between two tries at a store that refuses or is away."""

_FIRST_PAUSE_SECONDS: Final = 1.0
_LAST_PAUSE_SECONDS: Final = 1.0
"""The longest pause once the recording is closing."""

_POLL_SECONDS: Final = 0.5


def is_shutting_down() -> bool:
    """Whether the interpreter ends, and no file system can start what it needs.

    Most look up names on threads of their own, and there are no new ones then.
    """
    return not threading.main_thread().is_alive()


class Uploads:
    """The queue and its threads. `changed` guards all that is public."""

    def __init__(
        self,
        settings: RemoteConfig,
        troubles: Troubles,
        note: Callable[[str, str, str], None],
        save: Callable[[], None],
    ) -> None:
        """`note`: called with status, reason and remedy where that changes.

        `save`: called where another list of files waits that are no recordings.
        """
        self.changed = threading.Condition()
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.chores: list[tuple[float, Callable[[], None]]] = []
        """What else is to be done on a thread, and when (monotonic), soonest first."""
        self.copied: set[Path] = set()
        """What lies at the other end by now."""
        self.is_over = False
        self._settings = settings
        self._troubles = troubles
        self._note = note
        self._save = save
        self._noting = threading.Lock()
        """Taken before `changed`: what is noted comes in the order in which it was so."""
        self._stores: dict[str, Store] = {}
        self._num_failures = 0
        self._pause_until = 0.0
        self._deadline: float | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        self._threads = [
            threading.Thread(
                target=self._work, name=f"memboard-mirror-{number}", daemon=True
            )
            for number in range(CONCURRENCY)
        ]
        for thread in self._threads:
            thread.start()

    def finish_by(self, seconds: float) -> None:
        """No more files come: the threads end when all are copied, or after `seconds`."""
        now = time.monotonic()
        with self.changed:
            self._deadline = now + seconds
            self._pause_until = min(self._pause_until, now)
            # What is due is done still, also in a recording of a few milliseconds.
            self.chores = [chore for chore in self.chores if chore[0] <= now]
            self.changed.notify_all()

    def join(self) -> None:
        """Wait for that."""
        for thread in self._threads:
            if thread.ident is not None and self._deadline is not None:
                thread.join(max(0.0, self._deadline - time.monotonic()))

    def end(self) -> None:
        """Begin nothing more."""
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def left(self) -> list[Job]:
        """What was not copied."""
        with self.changed:  # one that is being refused may be in both
            left = {id(job): job for job in (*self.running, *self.waiting)}
        return list(left.values())

    # On the threads.

    def _work(self) -> None:
        while True:
            try:
                todo = self._next()
                if todo is None:
                    return
                todo()
            except Exception as error:  # noqa: BLE001, PERF203  # it outlives its tasks
                self._troubles.tell(
                    "remote thread",
                    "the mirror failed in a way that was not foreseen and goes on."
                    " Please report this.",
                    error=error,
                )
                time.sleep(_POLL_SECONDS)

    def _next(self) -> Callable[[], None] | None:
        """What to do now, waited for; None once all is over."""
        with self.changed:
            while not self.is_over:
                now = time.monotonic()
                if self._deadline is not None and now >= self._deadline:
                    return None
                if self.chores and now >= self.chores[0][0]:
                    return self.chores.pop(0)[1]
                may_try = now >= self._pause_until
                # A store that refused is asked with one file at a time.
                may_try &= not (self._num_failures and self.running)
                if may_try and self.waiting:
                    job = self.waiting.popleft()
                    self.running.append(job)
                    return lambda: self._do(job)
                is_done = not (self.waiting or self.running)
                if self._deadline is not None and is_done:
                    return None
                is_idle = is_done and not self.chores
                self.changed.wait(None if is_idle else _POLL_SECONDS)
        return None

    def _do(self, job: Job) -> None:
        try:
            self._copy(job)
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            self._refused(job, error)
        else:
            self._went_well()
        finally:
            with self.changed:
                self.running.remove(job)
                self.changed.notify_all()
            # Once all is over, another process may have the list.
            if job.kind != "events" and not self.is_over:
                self._save()

    def _copy(self, job: Job) -> None:
        is_to_go = job.delete_after or self._may_prune(job)
        store = self._store(job.url)
        if is_to_go or not (job.look_first and _lies_there(job, store)):
            try:
                sums = sums_of(job.path)
            except OSError as error:
                self._troubles.tell(
                    "remote gone",
                    "%s is not mirrored: it cannot be read: %s.",
                    job.path,
                    error.strerror or error,
                )
                return
            store.put(job.path, job.key, sums, read_back=is_to_go)
        self.copied.add(job.path)
        if is_to_go:
            with contextlib.suppress(OSError):
                job.path.unlink()

    def _may_prune(self, job: Job) -> bool:
        """Whether a local file may be deleted: of a recording the newest one stays."""
        if not self._settings.prune:
            return False
        if job.kind != "events":
            return True
        name = parse_rank_file_name(job.path.name)
        if name is None or name.segment is None:
            return False
        after = job.path.with_name(
            rank_file_name(name.rank, name.attempt, name.segment + 1)
        )
        # Another thread may have copied and deleted the next one by now.
        return after in self.copied or after.exists()

    def _refused(self, job: Job, error: Exception) -> None:
        refusal = refusal_of(error)
        is_elsewhere = is_shutting_down()  # another process will try
        with self._noting:
            with self.changed:
                self.waiting.append(job)  # behind those that were not tried yet
                self._back_off()
            if not is_elsewhere:
                self._note("failed", refusal.reason, refusal.remedy)
        if is_elsewhere:
            return
        self._troubles.tell(
            f"remote {refusal.key}",
            "%s could not be copied to %s: %s. Training and recording go on, the file"
            " stays here. %s",
            job.path,
            job.url,
            refusal.reason,
            refusal.remedy,
        )

    def _back_off(self) -> None:
        with self.changed:
            pause = _FIRST_PAUSE_SECONDS * 2 ** min(self._num_failures, 20)
            pause = min(pause, RETRY_SECONDS)
            if self._deadline is not None:
                pause = min(pause, _LAST_PAUSE_SECONDS)
            # Thousands of ranks must not come back at the same moment.
            pause *= random.uniform(0.5, 1.0)  # noqa: S311  # no secret
            self._num_failures += 1
            self._pause_until = time.monotonic() + pause

    def _went_well(self) -> None:
        with self._noting:
            with self.changed:
                had_failed, self._num_failures = self._num_failures, 0
                self._pause_until = 0.0
            if had_failed:
                self._note("recorded", "", "")
        if had_failed:
            logger.info("memboard: the mirror takes files again")

    def _store(self, url: str) -> Store:
        with self.changed:
            known = self._stores.get(url)
        if known is None:  # opening one may take long: twice is better than locked
            known = Store(url, self._settings.storage_options)
            with self.changed:
                known = self._stores.setdefault(url, known)
        return known


def _lies_there(job: Job, store: Store) -> bool:
    """By its size: a file never changes under its name."""
    num_bytes = store.size_of(job.key)
    try:
        return num_bytes is not None and job.path.stat().st_size == num_bytes
    except OSError:
        return False

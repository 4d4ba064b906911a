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
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from memboard.collector.config.templates import OF_TRACES, setting_of
from memboard.collector.core.guard import Block
from memboard.collector.core.warn_once import logger
from memboard.collector.format.names import parse_rank_file_name, rank_file_name
from memboard.collector.mirror.jobs import Job
from memboard.collector.mirror.refusals import refusal_of
from memboard.collector.mirror.store import NotVerifiedError, Store
from memboard.collector.process.own_threads import leave_profilers, own_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.collector.config.sections import RemoteConfig
    from memboard.collector.core.warn_once import WarnOnce

    Chore: TypeAlias = Callable[[], None]

CONCURRENCY: Final = 2
"""Files that are uploaded at the same time."""

RETRY_SECONDS: Final = 60.0
"""The longest pause between two tries at a store that refuses or is away."""

_FIRST_PAUSE_SECONDS: Final = 1.0
_LAST_PAUSE_SECONDS: Final = 1.0
"""The longest pause once the recording is closing."""

_POLL_SECONDS: Final = 0.5
_MAX_REASON: Final = 300

_REMEDIES: Final = {
    "package": "Install the package that is named.",
    "credentials": "Give this process the store's credentials (environment, its own file,"
    " the machine's role, or remote.storage_options).",
    "denied": "Allow these credentials to write below remote.url.",
    "bucket": "Create the bucket, or correct remote.url; it is retried.",
    "missing": "Make sure that the bucket or directory in remote.url is there; it is"
    " retried.",
    "away": "Check the network and the endpoint; it is retried.",
}
_OTHERWISE: Final = "It is retried; see remote.url and remote.storage_options."


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
        warn_once: WarnOnce,
        note: Callable[[str, str, str], None],
        save: Callable[[], None],
    ) -> None:
        """`note`: called with status, reason and remedy where that changes.

        `save`: called where another list of files waits that are no recordings.
        """
        self.changed = threading.Condition()
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.chores: list[tuple[float, Chore]] = []
        """What else is to be done on a thread, and when (monotonic), soonest first."""
        self.is_unsaved = False
        self.copied: set[Path] = set()
        """What lies at the other end by now."""
        self.confirmed: set[Path] = set()
        """Of that, what was read back, so that nothing is lost where it goes here."""
        self.is_over = False
        self._settings = settings
        self._warn_once = warn_once
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
        self._threads = [
            own_thread(f"mirror-{number}", self._work) for number in range(CONCURRENCY)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self, seconds: float) -> None:
        """No more files come: wait until all are copied, or so long."""
        now = time.monotonic()
        with self.changed:
            self._deadline = now + seconds
            self._pause_until = min(self._pause_until, now)
            # What is due is done still, also in a recording of a few milliseconds.
            self.chores = [chore for chore in self.chores if chore[0] <= now]
            self.changed.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, self._deadline - time.monotonic()))

    def end(self) -> list[Job]:
        """Begin nothing more; what was not copied."""
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        return self.left()

    def left(self) -> list[Job]:
        """What is not copied yet."""
        with self.changed:  # one that is being refused may be in both
            left = {id(job): job for job in (*self.running, *self.waiting)}
        return list(left.values())

    # On the threads.

    def _work(self) -> None:
        while (todo := self._next()) is not None:
            with Block(partial(self._failed, todo)):  # a file system may raise anything
                if isinstance(todo, Job):
                    self._copy(todo)
                    self._went_well()
                else:
                    todo()
            if isinstance(todo, Job):
                with self.changed:
                    self.running.remove(todo)
                    self.is_unsaved |= todo.kind != "events"
                    self.changed.notify_all()

    def _next(self) -> Job | Chore | None:
        """What to do now, waited for; None once all is over."""
        with self.changed:
            while not self.is_over:
                now = time.monotonic()
                if self.is_unsaved:
                    self.is_unsaved = False
                    return self._save
                if self._deadline is not None and now >= self._deadline:
                    return None
                if self.chores and now >= self.chores[0][0]:
                    return self.chores.pop(0)[1]
                may_try = now >= self._pause_until
                # A store that refused is asked with one file at a time.
                may_try &= not (self._num_failures and self.running)
                if may_try and self.waiting:
                    self.running.append(self.waiting.popleft())
                    return self.running[-1]
                is_done = not (self.waiting or self.running)
                if self._deadline is not None and is_done:
                    return None
                is_idle = is_done and not self.chores
                self.changed.wait(None if is_idle else _POLL_SECONDS)
                leave_profilers()
        return None

    def _copy(self, job: Job) -> None:
        is_to_go = job.delete_after or self._may_prune(job)
        try:
            with job.path.open("rb") as file:
                num_bytes = file.seek(0, 2)
        except OSError as error:
            self._warn_once(
                "remote gone",
                "%s is not mirrored: it cannot be read: %s.",
                job.path,
                error.strerror or error,
            )
            return
        store = self._store(job.url)
        if is_to_go or job.may_go:
            if not self._confirm(store, job):
                return
            self.confirmed.add(job.path)
        # By its size: a file never changes under its name.
        elif not (job.look_first and store.size_of(job.key) == num_bytes):
            store.put(job.path, job.key)
        self.copied.add(job.path)
        if is_to_go:
            with contextlib.suppress(OSError):
                job.path.unlink()

    def _confirm(self, store: Store, job: Job) -> bool:
        """Copy a file, unless its copy is there, and read it back; False: it stays here.

        What another rank or start has put under its key is not overwritten: that one's
        own file may be gone by now.
        """
        if store.has(job.key):
            if store.holds(job.key, job.path):
                return True
            is_own = job.is_begun or job.look_first or job.kind not in OF_TRACES
            if not is_own:
                self._warn_once(
                    "remote taken",
                    "%s stays here: something else lies at its key %s below remote.url, of"
                    " another rank or start. Write {rank}, {attempt} or {path} into %s.",
                    job.path,
                    job.key,
                    setting_of(job.kind),
                )
                return False
        job.is_begun = True
        store.put(job.path, job.key)
        if not store.holds(job.key, job.path):
            raise NotVerifiedError(f"{job.key} does not hold what was sent")
        return True

    def _may_prune(self, job: Job) -> bool:
        """Whether a local file may be deleted: of a recording the newest one stays."""
        if not self._settings.prune or job.kind != "events":
            return self._settings.prune
        rank_file = parse_rank_file_name(job.path.name)
        if rank_file is None or rank_file.segment is None:
            return False
        after = job.path.with_name(
            rank_file_name(rank_file.rank, rank_file.attempt, rank_file.segment + 1)
        )
        # In this order: another thread may be about to delete the next one as copied.
        return after.exists() or after in self.copied

    def _failed(self, todo: Job | Chore, error: BaseException) -> None:
        if not isinstance(todo, Job):
            self._warn_once(
                "remote thread",
                "the mirror failed in a way that was not foreseen and goes on."
                " Please report this.",
                error=error,
            )
            return
        kind = refusal_of(error).kind
        text = " ".join(str(error).split()) or type(error).__name__
        reason = f"{type(error).__name__}: {text}"[:_MAX_REASON]
        remedy = _REMEDIES.get(str(kind), _OTHERWISE)
        is_elsewhere = is_shutting_down()  # another process will try
        with self._noting:
            with self.changed:
                self.waiting.append(todo)  # behind those that were not tried yet
                self._back_off()
            if not is_elsewhere:
                self._note("failed", reason, remedy)
        if not is_elsewhere:
            self._warn_once(
                f"remote {kind}",
                "%s could not be copied to %s: %s. Training and recording go on, the"
                " file stays here. %s",
                todo.path,
                todo.url,
                reason,
                remedy,
            )

    def _back_off(self) -> None:
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
            store = self._stores.get(url)
        if store is None:  # opening one may take long: twice is better than locked
            store = Store(url, self._settings.storage_options)
            with self.changed:
                store = self._stores.setdefault(url, store)
        return store

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from collector.format.names import RANK_FILES_DIR, parse_rank_file_name, rank_file_name
from collector.remote.faults import refusal_of
from collector.remote.store import Store, sums_of
from collector.trouble import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.remote.manifest import Entry, Manifest
    from collector.trouble import Troubles

_PUBLISH_SECONDS: Final = 30.0
"""How old the manifest at the other end gets at most, while it can be written."""

_FIRST_PAUSE_SECONDS: Final = 1.0
_LAST_PAUSE_SECONDS: Final = 1.0
"""The longest pause once the recording is closing."""

_LAST_WORD_SHARE: Final = 0.8
"""Of the time at the end: then the manifest goes, even before files that still wait."""

_POLL_SECONDS: Final = 0.5


def is_shutting_down() -> bool:
    """Whether the interpreter ends, and no file system can start what it needs.

    Most look up names on threads of their own, and there are no new ones then.
    """
    return not threading.main_thread().is_alive()


@dataclass(slots=True)
class Job:
    """A file that waits."""

    manifest: Manifest
    entry: Entry
    path: Path
    look_first: bool = False
    """An earlier attempt may have uploaded it without having noted so."""


class Uploads:
    """The queue and its threads. `changed` guards all that is public."""

    def __init__(
        self,
        settings: RemoteConfig,
        troubles: Troubles,
        note: Callable[[str, str, str], None],
    ) -> None:
        """`note`: called with status, reason and remedy where that changes."""
        self.changed = threading.Condition()
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.dirty: dict[str, tuple[Manifest, str]] = {}
        """Manifests that the other end does not have as they are, with their url."""
        self.chores: list[tuple[float, Callable[[], None]]] = []
        """What else is to be done on a thread, and when (monotonic), soonest first."""
        self.unsaved: set[str] = set()
        """Stems of manifests that are to be written here soon."""
        self.is_over = False
        self._settings = settings
        self._troubles = troubles
        self._note = note
        self._noting = threading.Lock()
        """Taken before `changed`: what is noted comes in the order in which it was so."""
        self._stores: dict[str, Store] = {}
        self._num_failures = 0
        self._pause_until = 0.0
        self._published = 0.0
        self._is_publishing = False
        self._deadline: float | None = None
        self._last_word_at = 0.0
        self._threads = [
            threading.Thread(
                target=self._work, name=f"memboard-mirror-{number}", daemon=True
            )
            for number in range(settings.concurrency)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def finish_by(self, seconds: float) -> None:
        """No more files come: the threads end when all are copied, or after `seconds`."""
        now = time.monotonic()
        with self.changed:
            self._deadline = now + seconds
            self._last_word_at = now + seconds * _LAST_WORD_SHARE
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
        with self.changed:
            return [*self.running, *self.waiting]

    def save(self, manifest: Manifest) -> None:
        """Write a manifest here."""
        try:
            manifest.save()
        except OSError as error:
            self._troubles.tell(
                "remote manifest",
                "the mirror's manifest cannot be written here: %s. After a restart files"
                " are looked for at the other end instead.",
                error.strerror or error,
            )

    def save_soon(self, manifest: Manifest) -> None:
        """Have a manifest written here before anything else; hold `changed`.

        So a process that is killed with files in the queue leaves their names, and the
        next start of the run copies them.
        """
        if manifest.stem not in self.unsaved:
            self.unsaved.add(manifest.stem)
            self.chores.insert(0, (0.0, lambda: self._save_now(manifest)))

    def _save_now(self, manifest: Manifest) -> None:
        with self.changed:
            self.unsaved.discard(manifest.stem)
        self.save(manifest)

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
                if may_try and self._is_publish_due(now):
                    self._is_publishing = True
                    return self._publish
                if may_try and self.waiting:
                    job = self.waiting.popleft()
                    self.running.append(job)
                    return lambda: self._do(job)
                is_done = not (self.waiting or self.running or self._is_publishing)
                if self._deadline is not None and is_done and not self.dirty:
                    return None
                is_idle = is_done and not (self.dirty or self.chores)
                self.changed.wait(None if is_idle else _POLL_SECONDS)
        return None

    def _is_publish_due(self, now: float) -> bool:
        if not self.dirty or self._is_publishing:
            return False
        if self._deadline is not None:
            is_last = not self.waiting and not self.running
            return is_last or self._published < self._last_word_at <= now
        return now - self._published >= _PUBLISH_SECONDS

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
                self.dirty[job.manifest.stem] = job.manifest, job.entry.url
                self.changed.notify_all()
            if not self.is_over:  # otherwise another process may have it by now
                self.save(job.manifest)

    def _copy(self, job: Job) -> None:
        manifest, entry, path = job.manifest, job.entry, job.path
        try:
            sums = sums_of(path)
        except OSError as error:
            reason = f"the local file cannot be read: {error.strerror or error}"
            manifest.change(entry, "failed", reason)
            return
        is_to_go = entry.delete_after or self._may_prune(manifest, entry, path)
        store = self._store(entry.url)
        if not (job.look_first and store.holds(entry.key, sums)):
            store.put(path, entry.key, sums, read_back=is_to_go)
        entry.num_bytes, entry.crc32c = sums.num_bytes, f"{sums.crc32c:08x}"
        if is_to_go:
            with contextlib.suppress(OSError):
                path.unlink()
                entry.deleted = True
        manifest.change(entry, "uploaded")

    def _may_prune(self, manifest: Manifest, entry: Entry, path: Path) -> bool:
        """Whether a local file may be deleted: of a recording the newest one stays."""
        if not self._settings.prune:
            return False
        if entry.kind != "events":
            return True
        name = parse_rank_file_name(path.name)
        if name is None or name.segment is None:
            return False
        after = rank_file_name(name.rank, name.attempt, name.segment + 1)
        # Another thread may have copied and deleted the next one by now.
        is_there = path.with_name(after).exists()
        return (
            is_there
            or manifest.get(f"{entry.path.removesuffix(path.name)}{after}") is not None
        )

    def _refused(self, job: Job, error: Exception) -> None:
        refusal = refusal_of(error)
        job.manifest.change(job.entry, "waiting", refusal.reason)
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
            job.entry.url,
            refusal.reason,
            refusal.remedy,
        )

    def _back_off(self) -> None:
        with self.changed:
            pause = _FIRST_PAUSE_SECONDS * 2 ** min(self._num_failures, 20)
            pause = min(pause, self._settings.retry_seconds)
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

    def _publish(self) -> None:
        """Put the manifests at the other end."""
        with self.changed:
            todo, self.dirty = self.dirty, {}
            self._published = time.monotonic()
        folder = "/".join(RANK_FILES_DIR)
        try:
            for stem in list(todo):
                manifest, url = todo[stem]
                self._store(url).write(manifest.encode(), f"{folder}/{manifest.name}")
                del todo[stem]
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            refusal = refusal_of(error)
            self._back_off()
            if is_shutting_down():
                return
            self._troubles.tell(
                f"remote {refusal.key}",
                "the mirror's manifest could not be written: %s. %s",
                refusal.reason,
                refusal.remedy,
            )
        else:
            self._went_well()
        finally:
            with self.changed:
                self.dirty = {**todo, **self.dirty}
                self._is_publishing = False
                self.changed.notify_all()

    def _store(self, url: str) -> Store:
        with self.changed:
            known = self._stores.get(url)
        if known is None:  # opening one may take long: twice is better than locked
            known = Store(url, self._settings.storage_options)
            with self.changed:
                known = self._stores.setdefault(url, known)
        return known

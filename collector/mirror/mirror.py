"""The mirror of one recording: what goes there, what is noted of it, how it ends.

`put` is for any thread and takes microseconds; all else happens on the threads of
`uploads`. At the end there is a bounded time for what is left; what is left then is
named, and goes with the next start of the same run.
"""

from __future__ import annotations

import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from collector.afterwards import detached
from collector.core.warn_once import warn
from collector.format.names import RANK_FILES_DIR
from collector.mirror import waiting
from collector.mirror.leftovers import find_leftovers, find_lists
from collector.mirror.naming import Naming
from collector.mirror.uploads import Uploads, is_shutting_down
from collector.mirror.waiting import Job, task_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.core.rank import Identity
    from collector.core.warn_once import Troubles
    from collector.mirror.contract import Kind

QUEUE_FILES: Final = 10_000
"""Files that may wait; more stay here, are counted and go with the next start."""

_SWEEPS: Final = (0.0, 60.0)
"""Seconds after the start at which files of earlier attempts are looked for: one that was
killed just now may look alive at first."""

_MAX_NAMED: Final = 5

_FINISHING: Final = "collector.mirror.finishing"


class Mirror:
    """Takes finished files; without a url none, and every file stays here.

    Safe on any thread; nothing of it raises, and only `close` waits.
    """

    def __init__(
        self,
        settings: RemoteConfig,
        run_dir: Path,
        *,
        identify: Callable[[], Identity],
        stem: Callable[[], str],
        troubles: Troubles,
        note: Callable[[str, str, str], None] = lambda _status, _reason, _remedy: None,
    ) -> None:
        """Nothing starts yet.

        Args:
            settings: without a url nothing is ever copied, or deleted.
            run_dir: absolute.
            identify: who this process is, by now.
            stem: the rank file's name, without ending and segment, by now.
            troubles: where each sort of trouble is told once.
            note: called with status, reason and remedy where that changes.
        """
        self.is_on = bool(settings.url)
        self._settings = settings
        self._run_dir = run_dir
        self._identify = identify
        self._stem = stem
        self._troubles = troubles
        self._naming = Naming(settings, run_dir, identify, stem)
        self._uploads = Uploads(settings, troubles, note, self._save)
        self._changed = self._uploads.changed
        self._saving = threading.Lock()
        self._is_unsaved = False
        self._keys: dict[tuple[str, str], Path] = {}
        """By url and key: the local path it was given to."""

    def start(self, *, sweep: bool = True) -> None:
        """Start the threads; `sweep`: look for what earlier attempts left."""
        if sweep:
            now = time.monotonic()
            self._uploads.chores = [(now + after, self._sweep) for after in _SWEEPS]
        self._uploads.start()

    def put(
        self,
        kind: Kind,
        path: Path,
        *,
        delete_after: bool = False,
        values: Mapping[str, object] | None = None,
    ) -> bool:
        """Have a finished file copied; False where it stays here.

        Args:
            kind: decides about its key.
            path: absolute; nobody changes the file any more.
            delete_after: delete it here once the copy was verified.
            values: variables of its template that belong to the file: `epoch`, `batch`.
        """
        try:
            return self._put(kind, path, delete_after=delete_after, values=values)
        except Exception as error:  # noqa: BLE001  # the border: nothing reaches training
            self._troubles.tell(
                "remote fault",
                "%s is not mirrored; training and recording go on. Please report this.",
                path,
                error=error,
            )
            return False

    def url_of(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None = None
    ) -> str | None:
        """Where a file goes; None where it stays here."""
        try:
            place = self._naming.place(kind, path, values)
        except Exception:  # noqa: BLE001  # `put` tells it
            return None
        return None if place is None else f"{place.url}/{place.key}"

    def has_copy(self, path: Path) -> bool:
        """Whether a file that was put lies at the other end."""
        return path in self._uploads.copied

    def close(self, seconds: float | None = None) -> None:
        """Upload what is left, for a bounded time; then name what is left still.

        Args:
            seconds: other than the settings say.
        """
        if not self.is_on:
            return
        seconds = self._settings.close_seconds if seconds is None else seconds
        is_elsewhere = is_shutting_down()
        if not is_elsewhere:
            self._uploads.finish_by(seconds)
            self._uploads.join()
        self._uploads.end()
        self._save()
        left = self._uploads.left()
        if left and not (is_elsewhere and self._finish_elsewhere(left, seconds)):
            self._tell_left(left)

    def task_for(self, kind: Kind, path: Path) -> bytes:
        """For a file that another process makes after `close`: the task to upload it.

        It is the standard input of `python -m collector.mirror.finishing MODULE ...`,
        which runs the module first. Empty where the file stays here.
        """
        place = self._naming.place(kind, path, None)
        if place is None:
            return b""
        job = Job(kind, path, *place)
        with self._changed:
            self._uploads.waiting.append(job)
        self._save()  # should that process be killed
        return self._task([job])

    def task_for_later(self) -> bytes:
        """The same for files whose names are not known yet."""
        return self._task([]) if self.is_on else b""

    def _task(self, jobs: list[Job]) -> bytes:
        who, seconds = self._identify(), self._settings.close_seconds
        try:
            return task_of(
                self._settings, self._run_dir, self._stem(), who, jobs, seconds
            )
        except TypeError as error:
            self._troubles.tell(
                "remote later",
                "what is made after the end of the recording stays here: %s",
                error,
            )
            return b""

    def forget(self) -> None:
        """In a forked child: nothing here is ours. Takes no lock: it may be held."""
        self._uploads.is_over = True
        self._uploads.waiting.clear()

    def adopt(self, jobs: Iterable[Job]) -> None:
        """Queue what another process has left."""
        with self._changed:
            self._uploads.waiting.extend(jobs)

    @property
    def num_waiting(self) -> int:
        """Files that wait or are under way."""
        return len(self._uploads.left())

    def _put(
        self,
        kind: Kind,
        path: Path,
        *,
        delete_after: bool,
        values: Mapping[str, object] | None,
    ) -> bool:
        place = self._naming.place(kind, path, values)
        if self._uploads.is_over or place is None:
            return False
        job = Job(kind, path, *place, delete_after=delete_after)
        with self._changed:
            taken = self._keys.setdefault(place, path)
            if taken != path:
                self._tell_taken(job, taken)
                return False
            if not self._has_room():
                return False
            self._uploads.waiting.append(job)
            if kind != "events" and not self._is_unsaved:
                self._is_unsaved = True
                self._uploads.chores.insert(0, (0.0, self._save))
            self._changed.notify()
        return True

    def _has_room(self) -> bool:
        if len(self._uploads.waiting) < QUEUE_FILES:
            return True
        self._troubles.tell(
            "remote queue",
            "more than %d files wait for the mirror; further ones"
            " stay here, and recordings go with the next start of this run.",
            QUEUE_FILES,
        )
        return False

    def _tell_taken(self, job: Job, taken: Path) -> None:
        self._troubles.tell(
            "remote keys",
            "%s stays here: its key %s below remote.url is that of %s. Write {path} or"
            " {name} into remote.%s.",
            job.path,
            job.key,
            taken,
            job.kind,
        )

    def _save(self) -> None:
        """List what waits and is no recording, for a start after a kill."""
        folder = self._run_dir.joinpath(*RANK_FILES_DIR)
        with self._saving:
            with self._changed:
                self._is_unsaved = False
                jobs = [job for job in self._uploads.left() if job.kind != "events"]
            try:
                path = folder / f"{self._stem()}{waiting.SUFFIX}"
                waiting.save(path, jobs, self._run_dir)
            except OSError as error:
                self._troubles.tell(
                    "remote list",
                    "the list of what waits for the mirror cannot be written: %s. Where"
                    " this process is killed, the next start does not know of it.",
                    error.strerror or error,
                )

    # What earlier attempts left.

    def _sweep(self) -> None:
        """Take up finished files of earlier attempts of this rank."""
        who, own = self._identify(), self._stem()
        for path in find_leftovers(self._run_dir, who, own):
            place = self._naming.place("events", path, None)
            if place is not None:
                self._take_up(Job("events", path, *place, look_first=True))
        for listed in find_lists(self._run_dir, who, own):
            jobs = waiting.load(listed, self._run_dir)
            taken = [self._take_up(job) for job in jobs if job.path.is_file()]
            if all(taken):
                self._save()
                listed.unlink(missing_ok=True)

    def _take_up(self, job: Job) -> bool:
        with self._changed:
            if any(known.path == job.path for known in self._uploads.left()):
                return True
            if job.path in self._uploads.copied:
                return True
            if not self._has_room():
                return False
            self._uploads.waiting.append(job)
        return True

    # At the end.

    def _tell_left(self, left: list[Job]) -> None:
        named = ", ".join(job.path.name for job in left[:_MAX_NAMED])
        more = len(left) - _MAX_NAMED
        warn(
            "%d files were not copied to %s before the recording ended: %s%s. They stay"
            " in %s and go with the next start of this run; or copy them yourself, with"
            " their paths below that directory as keys.",
            len(left),
            left[0].url,
            named,
            f" and {more} more" if more > 0 else "",
            self._run_dir,
        )

    def _finish_elsewhere(self, left: list[Job], seconds: float) -> bool:
        """While the interpreter shuts down, a process of its own uploads what is left."""
        task = self._task(left)
        if not task:
            return False
        try:
            detached.finish(_FINISHING, task, seconds)
        except (OSError, subprocess.SubprocessError) as error:
            warn(
                "the last uploads failed: %s", f"{type(error).__name__}: {error}"[:500]
            )
            return False
        return True


def open_mirror(settings: RemoteConfig, run_dir: Path, **others: Any) -> Mirror:
    """The mirror that is asked for, started; `others` as for `Mirror`."""
    mirror = Mirror(settings, run_dir, **others)
    if mirror.is_on:
        mirror.start()
    return mirror

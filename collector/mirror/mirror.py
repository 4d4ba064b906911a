"""The mirror of one recording: what goes there, what is noted of it, how it ends.

`put` is for any thread and takes microseconds; all else happens on the threads of
`uploads`. At the end there is a bounded time for what is left; what is left then is
named, and goes with the next start of the same run.
"""

from __future__ import annotations

import subprocess
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from memboard.collector.afterwards import detached
from memboard.collector.config.templates import filled, key_of, setting_of
from memboard.collector.core.source import SourceInfo
from memboard.collector.core.warn_once import warn
from memboard.collector.format.names import RANK_FILES_DIR
from memboard.collector.mirror import jobs
from memboard.collector.mirror.jobs import Job, Task, shown
from memboard.collector.mirror.leftovers import find_leftovers, find_lists
from memboard.collector.mirror.uploads import Uploads, is_shutting_down

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from memboard.collector.config.sections import RemoteConfig
    from memboard.collector.config.templates import Kind
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.process.rank import Identity

REMOTE: Final = SourceInfo(
    name="remote", cost="uploads on threads of their own; some microseconds per file"
)
"""Source of the mirror, for the page."""

QUEUE_FILES: Final = 10_000
"""Files that may wait; more stay here, are counted and go with the next start."""

_SWEEPS: Final = (0.0, 60.0)
"""Seconds after the start at which files of earlier attempts are looked for: one that was
killed just now may look alive at first."""

_MAX_NAMED: Final = 5


class Place(NamedTuple):
    """Of one file at the other end."""

    url: str
    """The mirror's, its variables filled in, without a slash at the end."""
    key: str


class Mirror:
    """Takes finished files; without a url none, and every file stays here.

    Safe on any thread; only `close` waits.
    """

    def __init__(
        self,
        settings: RemoteConfig,
        run_dir: Path,
        *,
        identify: Callable[[], Identity],
        stem: Callable[[], str],
        warn_once: WarnOnce,
        note: Callable[[str, str, str], None] = lambda _status, _reason, _remedy: None,
    ) -> None:
        """Nothing starts yet.

        Args:
            settings: without a url nothing is ever copied, or deleted.
            run_dir: absolute.
            identify: who this process is, by now.
            stem: the rank file's name, without ending and segment, by now.
            warn_once: logs each problem once.
            note: called with status, reason and remedy where that changes.
        """
        self.is_on = bool(settings.url)
        self._settings = settings
        self._run_dir = run_dir
        self._identify = identify
        self._stem = stem
        self._warn_once = warn_once
        self._uploads = Uploads(settings, warn_once, note, self._save)
        self._changed = self._uploads.changed
        self._saving = threading.Lock()
        self._paths: dict[Place, Path] = {}
        """By where they go, the files that were put."""

    def start(self, *, sweep: bool = True) -> None:
        """Start the threads; `sweep`: look for what earlier attempts left."""
        if not self.is_on:
            return
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
        may_go: bool = False,
        values: Mapping[str, object] | None = None,
    ) -> bool:
        """Have a finished file copied; False where it stays here.

        Args:
            kind: decides about its key.
            path: absolute; nobody changes the file any more.
            delete_after: delete it here once the copy is confirmed.
            may_go: the caller may delete it then; see `has_copy`.
            values: variables of its template that belong to the file: `epoch`, `batch`.
        """
        place = self._place(kind, path, values)
        if self._uploads.is_over or place is None:
            return False
        job = Job(kind, path, *place, delete_after=delete_after, may_go=may_go)
        with self._changed:
            taken = self._paths.setdefault(place, path)
            if taken == path:
                return self._queue(job)
        self._warn_once(
            "remote keys",
            "%s stays here: its key %s below remote.url is that of %s. Write {path} or"
            " {name} into %s.",
            path,
            place.key,
            taken,
            setting_of(kind),
        )
        return False

    def url_of(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None = None
    ) -> str | None:
        """Where a file goes; None where it stays here."""
        place = self._place(kind, path, values)
        return None if place is None else "/".join(place)

    def has_copy(self, path: Path) -> bool:
        """Whether a file that was put, and may go, was read back from the other end."""
        return path in self._uploads.confirmed

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
            self._uploads.finish(seconds)
        left = self._uploads.end()
        self._save()
        if left and not (is_elsewhere and self._finish_elsewhere(left, seconds)):
            self._tell_left(left)

    def task_for(self, kind: Kind, path: Path) -> bytes:
        """For a file that another process makes after `close`: the task to upload it.

        It is the standard input of `python -m memboard.collector.mirror.finishing MODULE ...`,
        which runs the module first. Empty where the file stays here.
        """
        place = self._place(kind, path, None)
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

    def forget(self) -> None:
        """In a forked child: nothing here is ours. Takes no lock: it may be held."""
        self._uploads.is_over = True
        self._uploads.waiting.clear()

    def adopt(self, waiting: Iterable[Job]) -> None:
        """Queue what another process has left."""
        with self._changed:
            self._uploads.waiting.extend(waiting)

    @property
    def num_waiting(self) -> int:
        """Files that wait or are under way."""
        return len(self._uploads.left())

    def _place(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None
    ) -> Place | None:
        """Where a file goes, by who this process is at the time."""
        settings = self._settings
        template = getattr(settings, setting_of(kind).removeprefix("remote."))
        if template is None or not self.is_on:
            return None
        who = self._identify()
        below = shown(path, self._run_dir)
        variables = {
            "run_name": self._run_dir.name,
            "rank": who.rank,
            "local_rank": who.local_rank,
            "world_size": who.world_size,
            "local_world_size": who.local_world_size,
            "node_rank": who.node_rank,
            "path": path.name if path.as_posix() == below else below,
            "name": path.name,
            "attempt": self._stem().partition("-")[2],
        }
        url = filled(self._settings.url, variables).rstrip("/")
        return Place(url, key_of(template, {**variables, **(values or {})}))

    def _queue(self, job: Job) -> bool:
        """Have a job wait, where there is room; hold `changed`."""
        if len(self._uploads.waiting) >= QUEUE_FILES:
            self._warn_once(
                "remote queue",
                "more than %d files wait for the mirror; further ones"
                " stay here, and recordings go with the next start of this run.",
                QUEUE_FILES,
            )
            return False
        self._uploads.waiting.append(job)
        self._uploads.is_unsaved |= job.kind != "events"
        self._changed.notify()
        return True

    def _task(self, waiting: list[Job]) -> bytes:
        """The standard input of a process that uploads; empty where there can be none."""
        task = Task(
            settings=msgspec.structs.asdict(self._settings),
            run_dir=self._run_dir,
            stem=self._stem(),
            who=self._identify(),
            jobs=waiting,
            seconds=self._settings.close_seconds,
        )
        try:
            return jobs.encode(task)
        except TypeError as error:
            self._warn_once(
                "remote later",
                "what is made after the end of the recording stays here: %s",
                error,
            )
            return b""

    # On the threads of `uploads`.

    def _save(self) -> None:
        """List what waits and is no recording, for a start after a kill."""
        folder = self._run_dir.joinpath(*RANK_FILES_DIR)
        with self._saving:
            waiting = [job for job in self._uploads.left() if job.kind != "events"]
            try:
                jobs.save(
                    folder / f"{self._stem()}{jobs.SUFFIX}", waiting, self._run_dir
                )
            except OSError as error:
                self._warn_once(
                    "remote list",
                    "the list of what waits for the mirror cannot be written: %s. Where"
                    " this process is killed, the next start does not know of it.",
                    error.strerror or error,
                )

    def _sweep(self) -> None:
        """Queue what earlier attempts of this rank left."""
        who, own = self._identify(), self._stem()
        for path in find_leftovers(self._run_dir, who, own):
            place = self._place("events", path, None)
            if place is not None:
                self._take_up(Job("events", path, *place, look_first=True))
        for listed in find_lists(self._run_dir, who, own):
            waiting = jobs.load(listed, self._run_dir)
            taken = [self._take_up(job) for job in waiting if job.path.is_file()]
            if all(taken):
                self._save()
                listed.unlink(missing_ok=True)

    def _take_up(self, job: Job) -> bool:
        """Whether a job is done or waits."""
        with self._changed:
            waiting = {upload.path for upload in self._uploads.left()}
            return job.path in waiting | self._uploads.copied or self._queue(job)

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
            detached.finish("memboard.collector.mirror.finishing", task, seconds)
        except (OSError, subprocess.SubprocessError) as error:
            warn(
                "the last uploads failed: %s", f"{type(error).__name__}: {error}"[:500]
            )
            return False
        return True

"""The mirror of one recording: what goes there, what is noted of it, how it ends.

`put` is for any thread and takes microseconds; all else happens on the threads of
`uploads`. At the end there is a bounded time for what is left; what is left then is
named, and goes with the next start of the same run.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from collector.format.names import RANK_FILES_DIR
from collector.remote.contract import NoMirror
from collector.remote.leftovers import Leftover, find_leftovers
from collector.remote.manifest import Entry, Manifest
from collector.remote.naming import Naming
from collector.remote.uploads import Job, Uploads, is_shutting_down
from collector.trouble import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.rank import Identity
    from collector.remote.contract import Kind, Remote
    from collector.trouble import Troubles

_SWEEPS: Final = (0.0, 60.0)
"""Seconds after the start at which files of earlier attempts are looked for: one that was
killed just now may look alive at first."""

_MAX_NAMED: Final = 5


class Mirror:
    """See the module, and `contract.Remote`."""

    is_on = True

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
            settings: with a url.
            run_dir: absolute.
            identify: who this process is, by now.
            stem: the rank file's name, without ending and segment, by now.
            troubles: where each sort of trouble is told once.
            note: called with status, reason and remedy where that changes.
        """
        self._settings = settings
        self._run_dir = run_dir
        self._identify = identify
        self._stem = stem
        self._troubles = troubles
        self._naming = Naming(settings, run_dir, identify, stem)
        self._uploads = Uploads(settings, troubles, note)
        self._changed = self._uploads.changed
        self._manifests: dict[str, Manifest] = {}
        self._keys: dict[tuple[str, str], str] = {}
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
        """See `contract.Remote.put`."""
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
        """See `contract.Remote.url_of`."""
        try:
            place = self._naming.place(kind, path, values)
        except Exception:  # noqa: BLE001  # `put` tells it
            return None
        return None if place is None else f"{place.url}/{place.key}"

    def has_copy(self, path: Path) -> bool:
        """Whether the copy of a file that was put has been verified."""
        shown = self._naming.shown(path)
        with self._changed:
            return any(
                entry.path == shown and entry.status == "uploaded"
                for manifest in self._manifests.values()
                for entry in manifest.entries()
            )

    def close(self, seconds: float | None = None) -> None:
        """Upload what is left, for a bounded time; then name what is left still.

        Args:
            seconds: other than the settings say.
        """
        seconds = self._settings.close_seconds if seconds is None else seconds
        if is_shutting_down():
            self._finish_elsewhere(seconds)
            return
        self._uploads.finish_by(seconds)
        self._uploads.join()
        self._end()
        self._tell_left()

    def task_for(self, kind: Kind, path: Path) -> bytes | None:
        """See `contract.Remote.task_for`."""
        from collector.remote.finishing import task_of

        try:
            place = self._naming.place(kind, path, None)
            if place is None:
                return None
            stem, seconds = self._stem(), self._settings.close_seconds
            task = task_of(self._settings, self._run_dir, [stem], seconds)
            with self._changed:
                manifest = self._manifest(stem)
            shown = self._naming.shown(path)
            manifest.add(Entry(kind=kind, path=shown, key=place.key, url=place.url))
            self._uploads.save(manifest)
        except Exception as error:  # noqa: BLE001  # the border: nothing reaches training
            self._troubles.tell("remote later", "%s stays here", path, error=error)
            return None
        return task

    def task_for_later(self) -> bytes:
        """See `contract.Remote.task_for_later`."""
        from collector.remote.finishing import task_of

        try:
            seconds = self._settings.close_seconds
            stems, who = [self._stem()], self._identify()
            return task_of(self._settings, self._run_dir, stems, seconds, who)
        except Exception as error:  # noqa: BLE001  # the border: nothing reaches training
            self._troubles.tell("remote later", "dumps stay here", error=error)
            return b""

    def forget(self) -> None:
        """In a forked child: nothing here is ours. Takes no lock: it may be held."""
        self._uploads.is_over = True
        self._uploads.waiting.clear()

    def adopt(self, stems: Iterable[str]) -> None:
        """Queue what the manifests of these recordings say is waiting."""
        with self._changed:
            for stem in stems:
                manifest = self._manifest(stem)
                for entry in manifest.entries():
                    if entry.status == "waiting":
                        path = self._run_dir / entry.path
                        self._uploads.waiting.append(
                            Job(manifest, entry, path, look_first=True)
                        )
                    self._uploads.dirty[stem] = manifest, entry.url

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
        shown = self._naming.shown(path)
        entry = Entry(
            kind=kind,
            path=shown,
            key=place.key,
            url=place.url,
            delete_after=delete_after,
        )
        with self._changed:
            manifest = self._manifest(self._stem())
            taken = self._keys.setdefault(place, shown)
            if taken != shown:
                self._tell_taken(path, entry, taken)
                manifest.add(entry)
                manifest.change(entry, "failed", f"its key is that of {taken}")
                return False
            if not self._has_room():
                manifest.num_not_queued += 1
                return False
            manifest.add(entry)
            self._uploads.waiting.append(Job(manifest, entry, path))
            if kind != "events":  # those are found again by their names
                self._uploads.save_soon(manifest)
            self._changed.notify()
        return True

    def _has_room(self) -> bool:
        if len(self._uploads.waiting) < self._settings.queue_files:
            return True
        self._troubles.tell(
            "remote queue",
            "more than remote.queue_files (%d) files wait for the mirror; further ones"
            " stay here, and recordings go with the next start of this run.",
            self._settings.queue_files,
        )
        return False

    def _tell_taken(self, path: Path, entry: Entry, taken: str) -> None:
        self._troubles.tell(
            "remote keys",
            "%s stays here: its key %s below remote.url is that of %s. Write {path} or"
            " {name} into remote.%s.",
            path,
            entry.key,
            taken,
            entry.kind,
        )

    def _manifest(self, stem: str) -> Manifest:
        known = self._manifests.get(stem)
        if known is None:
            known = Manifest(self._run_dir.joinpath(*RANK_FILES_DIR), stem)
            known.load()
            self._manifests[stem] = known
        return known

    # What earlier attempts left.

    def _sweep(self) -> None:
        """Take up finished files of earlier attempts of this rank."""
        who, own = self._identify(), self._stem()
        for found in find_leftovers(
            self._run_dir, own=own, rank=who.rank, world_size=who.world_size
        ):
            self._take_up(found)

    def _take_up(self, found: Leftover) -> None:
        uploads, shown = self._uploads, self._naming.shown(found.path)
        with self._changed:
            manifest = self._manifest(found.stem)
            known = manifest.get(shown)
            is_done = known is not None and known.status == "uploaded"
            waits = any(
                job.path == found.path for job in (*uploads.running, *uploads.waiting)
            )
            if is_done or waits or not self._has_room():
                return
            entry = known
            if entry is None or entry.kind == "events":
                place = self._naming.place("events", found.path, None)
                if place is None:
                    return
                entry = Entry(kind="events", path=shown, url=place.url, key=place.key)
                manifest.add(entry)
            uploads.waiting.append(Job(manifest, entry, found.path, look_first=True))

    # At the end.

    def _end(self) -> None:
        self._uploads.end()
        with self._changed:
            manifests = list(self._manifests.values())
        for manifest in manifests:
            if manifest.entries():
                self._uploads.save(manifest)

    def _tell_left(self) -> None:
        left = self._uploads.left()
        if left:
            named = ", ".join(job.path.name for job in left[:_MAX_NAMED])
            more = len(left) - _MAX_NAMED
            warn(
                "%d files were not copied to %s before the recording ended: %s%s. They"
                " stay in %s and go with the next start of this run; or copy them"
                " yourself, with their paths below that directory as keys.",
                len(left),
                left[0].entry.url,
                named,
                f" and {more} more" if more > 0 else "",
                self._run_dir,
            )

    def _finish_elsewhere(self, seconds: float) -> None:
        """While the interpreter shuts down, a process of its own uploads what is left."""
        from collector.remote.finishing import finish

        self._end()
        with self._changed:
            is_work = bool(self._uploads.left() or self._uploads.dirty)
            stems = list(self._manifests)
        if is_work and not finish(self._settings, self._run_dir, stems, seconds):
            self._tell_left()


def open_mirror(settings: RemoteConfig, run_dir: Path, **others: Any) -> Remote:
    """The mirror that is asked for, started; `others` as for `Mirror`."""
    if not settings.url:
        return NoMirror()
    mirror = Mirror(settings, run_dir, **others)
    mirror.start()
    return mirror

"""Keeps the newest traces on the disk, and not more than there is room for.

A trace counts from when its file is there; what is made of it later comes beside it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path  # noqa: TC003  # of a NamedTuple
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.config.templates import Kind
    from memboard.collector.mirror.mirror import Mirror


class SavedTrace(NamedTuple):
    """A trace that was saved, with what belongs to it."""

    time_ns: int
    """Wall clock of its end."""
    step: int
    paths: tuple[Path, ...]
    """The trace first. Those that retention deleted are none any more."""


class TraceRetention:
    """The saved traces of one recording; deletes those that are not to stay."""

    def __init__(self, num_to_keep: int, remote: Callable[[], Mirror | None]) -> None:
        """`num_to_keep`: the newest ones; -1: all, 0: none once uploaded.

        `remote`: where files are mirrored, as known by then.
        """
        self._num_to_keep = num_to_keep
        self._remote = remote
        self._saved: list[SavedTrace] = []
        self._num_bytes: dict[Path, int] = {}
        self._used: set[Path] = set()
        """Names of all so far: a mirror may still have what was deleted here."""
        self._mirrored: set[Path] = set()
        self._leaving: list[Path] = []
        """Too old, and deleted as soon as their copies are there."""
        self._lock = threading.Lock()

    @property
    def saved(self) -> tuple[SavedTrace, ...]:
        """Those that stay, newest last."""
        with self._lock:
            return tuple(self._saved)

    @property
    def num_bytes(self) -> int:
        """What they take on the disk."""
        with self._lock:
            return sum(self._num_bytes.values())

    @property
    def num_bytes_beside(self) -> int:
        """What those take that stay when another one comes, or wait for their copies."""
        with self._lock:
            staying = [
                path for saved in self._that_stay_beside() for path in saved.paths
            ]
            waiting = [path for path in self._leaving if path.exists()]
            return sum(self._num_bytes.get(path, 0) for path in (*staying, *waiting))

    def is_taken(self, path: Path) -> bool:
        """Whether a file has this name, or had it in this recording."""
        return path in self._used or path.exists()

    def add(
        self, time_ns: int, step: int, path: Path, values: Mapping[str, Any]
    ) -> tuple[bool, str | None]:
        """Count a trace whose file is there, and delete what is too old by now.

        Args:
            time_ns: wall clock of the trace's end.
            step: its last step.
            path: its file.
            values: variables of the mirror's templates.

        Returns:
            Whether the trace stays, and its url where it is mirrored. `send` is next.
        """
        self._used.add(path)
        remote = self._remote()
        url = None if remote is None else remote.url_of("traces", path, values)
        if self._num_to_keep == 0:
            self._await_copy(path, is_mirrored=url is not None)
            return False, url
        with self._lock:
            # One that replaces another of the same name is no further one.
            self._saved = [saved for saved in self._saved if path not in saved.paths]
            self._saved.append(SavedTrace(time_ns, step, (path,)))
            self._count(path, is_mirrored=url is not None)
            if self._num_to_keep > 0:
                for old in self._saved[: -self._num_to_keep]:
                    self._leaving += old.paths
                del self._saved[: -self._num_to_keep]
        self.settle()
        return True, url

    def add_beside(
        self, kind: Kind, trace: Path, path: Path, values: Mapping[str, Any]
    ) -> None:
        """Count a file that belongs to a trace, and have it mirrored."""
        self._used.add(path)
        remote = self._remote()
        url = None if remote is None else remote.url_of(kind, path, values)
        stays = False
        with self._lock:
            for index, saved in enumerate(self._saved):
                paths = tuple(other for other in saved.paths if other != path)
                if trace in paths:
                    paths, stays = (*paths, path), True
                self._saved[index] = saved._replace(paths=paths)
            if stays:
                self._count(path, is_mirrored=url is not None)
        if not stays:
            self._await_copy(path, is_mirrored=url is not None)
        self.send(kind, path, values, stays=stays)

    def send(
        self, kind: Kind, path: Path, values: Mapping[str, Any], *, stays: bool
    ) -> None:
        """Have a finished file mirrored; one that is not to stay goes with its copy."""
        remote = self._remote()
        if remote is not None:
            remote.put(
                kind,
                path,
                delete_after=not stays,
                may_go=self._num_to_keep >= 0,
                values=values,
            )
        if not stays:
            self.settle()

    def _await_copy(self, path: Path, *, is_mirrored: bool) -> None:
        """Count a file that is not to stay as long as it is here."""
        with self._lock:
            self._count(path, is_mirrored=is_mirrored)
            if path not in self._leaving:
                self._leaving.append(path)

    def _count(self, path: Path, *, is_mirrored: bool) -> None:
        """Of what stays; hold the lock."""
        with suppress(OSError):
            self._num_bytes[path] = path.stat().st_size
        if is_mirrored:
            self._mirrored.add(path)

    def _that_stay_beside(self) -> list[SavedTrace]:
        if self._num_to_keep < 0:
            return self._saved
        return self._saved[-(self._num_to_keep - 1) :] if self._num_to_keep > 1 else []

    def settle(self) -> None:
        """Delete what has had its time; of what is mirrored, what is there by now."""
        remote = self._remote()
        with self._lock:
            leaving, self._leaving = self._leaving, []
            for path in leaving:
                is_mirrored = remote is not None and path in self._mirrored
                is_awaited = is_mirrored and path.exists()
                if remote and is_awaited and not remote.has_copy(path):
                    self._leaving.append(path)
                    continue
                _delete(path)
                self._num_bytes.pop(path, None)
                self._mirrored.discard(path)


def _delete(path: Path) -> None:
    with suppress(OSError):  # somebody else has
        path.unlink()

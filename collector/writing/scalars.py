"""Headline scalars beside the loss: rank 0's event file for TensorBoard's own tabs.

It lies alone in `<run>/memboard/`, because two writers in one directory lose data under
both of TensorBoard's loaders. For the same reason it is locked while it grows: another
live job that records into the same run finds the lock and leaves the scalars to it.

Points are thinned by time windows that keep each tag's maximum at its own step. The
window starts at 0.1 s and doubles every 10,000 windows: TensorBoard keeps 1,000 points
of a tag anyway, and a week-long run stays a few megabytes.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.core.guard import Retry
from collector.core.warn_once import remedy_for
from collector.format.encoding.event import (
    DATA_CLASS_SCALAR,
    Description,
    scalar_event,
)
from collector.format.encoding.framing import (
    TAG_PREFIX,
    frame,
    frame_record,
    frame_version,
)
from collector.format.encoding.payload import pack
from collector.format.names import PLUGIN_NAME, SCALARS_DIR
from collector.format.records import HEADER
from collector.writing.append import AppendFile, DeletedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from collector.format.records import Header, Schema
    from collector.writing.tables import Row

_GIB: Final = 2**30
_WINDOW_NS: Final = 10**8
_WINDOWS_PER_DOUBLING: Final = 10_000


class _Tag(NamedTuple):
    name: str
    title: str
    column: str
    unit: float
    """What the column's value is divided by: the loaders keep float32 only."""


TAGS: Final = (
    _Tag("allocated_peak_gib", "Peak allocated (GiB)", "allocated_peak_bytes", _GIB),
    _Tag("reserved_gib", "Reserved (GiB)", "reserved_bytes", _GIB),
    _Tag("rss_gib", "Resident memory of the process (GiB)", "rss_bytes", _GIB),
    _Tag("step_time_seconds", "Step time (s)", "step_time_seconds", 1),
)


class RunBusyError(Exception):
    """Another live recording writes the scalars of this run."""


class Scalars:
    """The scalars of one recording: opened at the first row, and again after trouble."""

    def __init__(
        self,
        run_dir: Path,
        make_header: Callable[[], Header],
        tell: Callable[[str, str], None],
    ) -> None:
        """`tell` takes the reason why there are no scalars now, and the remedy.

        Both empty: there are some again.
        """
        self._run_dir = run_dir
        self._make_header = make_header
        self._tell = tell
        self._schema: Schema | None = None
        self._file: ScalarsFile | None = None
        self._is_over = False
        self._retry = Retry()
        self._is_failing = False

    @property
    def path(self) -> Path | None:
        """The file, complete once it was flushed `closing`; None where there is none."""
        return None if self._file is None else self._file.path

    @property
    def is_to_open(self) -> bool:
        """Whether the next row of the training phase makes the file."""
        is_wanted = self._schema is not None and not self._is_over
        return is_wanted and self._file is None and self._retry.is_due()

    def take_schema(self, schema: Schema) -> None:
        """The training phase's schema: its rows are the ones to write."""
        self._schema = schema

    def add(self, schema_id: int, row: Row) -> None:
        """Take a row of any table; only the training phase's are used."""
        schema = self._schema
        if self._is_over or schema is None or schema_id != schema.schema_id:
            return
        if self.is_to_open:
            self._open(schema)
        if self._file is not None:
            self._file.add(row)

    def flush(self, *, closing: bool) -> None:
        """Write what is due, all of it where the recording is `closing`."""
        file = self._file
        if file is None:
            return
        try:
            if closing:
                file.close()
            else:
                file.flush()
        except DeletedError:
            self.release()  # the next row starts another
        except OSError as error:
            self._failed(f"points are lost, {error}", error)
        else:
            self._works()

    def remove(self) -> None:
        """Take the file away: this process turned out not to be rank 0."""
        if self._file is not None:
            self._file.remove()
            self._file = None

    def release(self) -> None:
        """Give the descriptor (and with it the lock) back, writing nothing."""
        if self._file is not None:
            self._file.release()
            self._file = None

    def _open(self, schema: Schema) -> None:
        try:
            self._file = ScalarsFile(self._run_dir, self._make_header(), schema)
        except RunBusyError:
            self._is_over = True
            self._tell(
                "another live recording writes the scalars of this run",
                "Give each job its own run directory.",
            )
        except OSError as error:
            self._retry.failed()
            self._failed(str(error), error)

    def _failed(self, reason: str, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._tell(
                reason, f"{remedy_for(error)} MemBoard tries again from time to time."
            )

    def _works(self) -> None:
        if self._is_failing:
            self._is_failing = False
            self._tell("", "")


class ScalarsFile:
    """Takes the training phase's rows; writes a thinned event file."""

    def __init__(self, run_dir: Path, header: Header, schema: Schema) -> None:
        """Create the file, with the event that makes the plugin's tab active.

        Raises:
            RunBusyError: another live recording writes the scalars of this run.
            OSError: the file cannot be created.
        """
        places = {column.name: at for at, column in enumerate(schema.columns)}
        self._tags = [(t, places[t.column]) for t in TAGS if t.column in places]
        self._untold = {tag.name for tag in TAGS}
        self._window: dict[str, tuple[float, int, int]] = {}
        self._window_start = 0
        self._window_ns = _WINDOW_NS
        self._num_windows = 0
        self._last_step: int | None = None
        self._frames: list[bytes] = []
        directory = run_dir / SCALARS_DIR
        if _is_busy(directory):
            raise RunBusyError
        started = header.started.wall_ns
        name = (
            f"events.out.tfevents.{started // 10**9:010d}.{_clean(header.host)}"
            f".{header.pid}.{header.attempt[-8:]}.{PLUGIN_NAME}"
        )
        self._file = AppendFile(directory / name)
        _lock(self._file.fileno(), exclusive=True)
        wall_time = started / 1e9
        manifest = pack(header)
        try:
            self._file.append(
                frame_version(wall_time)
                + frame_record(HEADER, manifest, wall_time=wall_time, step=0)
            )
        except OSError:
            self.remove()
            raise

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._file.path

    def add(self, row: Row) -> None:
        """Take a row of the schema given at construction.

        Rows whose step does not exceed all before it are left out: TensorBoard would
        purge what it has. The rank's file holds them.
        """
        now, step = int(row[0] or 0), int(row[1] or 0)
        if self._last_step is not None and step <= self._last_step:
            return
        self._last_step = step
        if not self._window_start <= now < self._window_start + self._window_ns:
            self._end_window()
            self._window_start = now
        for tag, at in self._tags:
            value = row[at]
            if value is None or not math.isfinite(value):
                continue
            best = self._window.get(tag.name)
            if best is None or value >= best[0]:
                self._window[tag.name] = (value, step, now)

    def flush(self) -> None:
        """Append the windows that are over; OSError where they are lost."""
        if time.time_ns() >= self._window_start + self._window_ns:
            self._end_window()
        frames, self._frames = self._frames, []
        if frames:
            self._file.append(b"".join(frames))

    def close(self) -> None:
        """Append what is left and give the file back; OSError where it is lost."""
        try:
            self._end_window()
            self.flush()
        finally:
            self._file.close()

    def release(self) -> None:
        """Give the descriptor (and with it the lock) back, writing nothing."""
        self._file.close()

    def remove(self) -> None:
        """Take the file away: this process turned out not to be rank 0."""
        self._file.close()
        self._file.path.unlink(missing_ok=True)

    def _end_window(self) -> None:
        if not self._window:
            return
        points = [
            (*self._window[tag.name], tag)
            for tag, _ in self._tags
            if tag.name in self._window
        ]
        # By step, so that steps never go back within the file, whatever the tag.
        for value, step, time_ns, tag in sorted(points, key=lambda point: point[1]):
            self._frames.append(self._point(tag, value, step, time_ns))
        self._window = {}
        self._num_windows += 1
        if self._num_windows % _WINDOWS_PER_DOUBLING == 0:
            self._window_ns *= 2

    def _point(self, tag: _Tag, value: float, step: int, time_ns: int) -> bytes:
        description = None
        if tag.name in self._untold:  # the first event of a tag describes it
            self._untold.discard(tag.name)
            title = f"{PLUGIN_NAME}/{tag.title}"
            description = Description("scalars", DATA_CLASS_SCALAR, title)
        at = (time_ns / 1e9, step)
        name = TAG_PREFIX + tag.name
        return frame(scalar_event(name, value / tag.unit, at, description))


def _is_busy(directory: Path) -> bool:
    """Whether a live recording holds a scalars file here."""
    return any(_is_locked(path) for path in _scalar_files(directory))


def _scalar_files(directory: Path) -> Iterator[Path]:
    return directory.glob(f"events.out.tfevents.*.{PLUGIN_NAME}")


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(fd, exclusive=False)
    finally:
        os.close(fd)


def _lock(fd: int, *, exclusive: bool) -> bool:
    """Lock without waiting; whether nobody else holds it, as far as one can tell."""
    try:
        import fcntl

        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return True


def _clean(host: str) -> str:
    """A host's name as part of a file's name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in host)[:64] or "host"

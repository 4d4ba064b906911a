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
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from memboard.collector.core.guard import Retry
from memboard.collector.core.warn_once import remedy_for
from memboard.collector.format.encoding.event import (
    DATA_CLASS_SCALAR,
    Description,
    scalar_event,
)
from memboard.collector.format.encoding.framing import (
    TAG_PREFIX,
    frame,
    frame_record,
    frame_version,
)
from memboard.collector.format.encoding.payload import pack
from memboard.collector.format.names import PLUGIN_NAME, SCALARS_DIR
from memboard.collector.format.records import HEADER
from memboard.collector.steps.progress import TRAIN
from memboard.collector.writing.append import AppendFile, DeletedError, is_locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from memboard.collector.format.records import Header, Schema
    from memboard.collector.writing.tables import Row

_GIB: Final = 2**30
_GB: Final = 10**9
_WINDOW_NS: Final = 10**8
_WINDOWS_PER_DOUBLING: Final = 10_000


class Tag(NamedTuple):
    """One scalar, made of a column of step tables."""

    name: str
    title: str
    column: str
    unit: float
    """What the column's value is divided by: the loaders keep float32 only."""
    is_highest: bool = False
    """Whether it is the highest value so far, in any phase, and not the step's own."""
    digits: int = 0
    """Significant ones that are kept; 0: all."""

    def value_of(self, value: float) -> float:
        """A column's value in the tag's unit."""
        in_unit = value / self.unit
        return float(f"{in_unit:.{self.digits}g}") if self.digits else in_unit


def _headline(name: str, title: str, column: str, unit: float) -> Tag:
    return Tag(f"{TAG_PREFIX}{name}", f"{PLUGIN_NAME}/{title}", column, unit)


HEADLINES: Final = (
    _headline(
        "allocated_peak_gib", "Peak allocated (GiB)", "allocated_peak_bytes", _GIB
    ),
    _headline("reserved_gib", "Reserved (GiB)", "reserved_bytes", _GIB),
    _headline("rss_gib", "Resident memory of the process (GiB)", "rss_bytes", _GIB),
    _headline("step_time_seconds", "Step time (s)", "step_time_seconds", 1),
)


def _of_memory_monitor(name: str, column: str, *, is_highest: bool = False) -> Tag:
    name = f"memory/{name}_mem"
    return Tag(name, name, column, _GB, is_highest=is_highest, digits=5)


_MONITORED: Final = {
    "allocated": "allocated",
    "active": "active",
    "inactive": "inactive_split",
    "reserved": "reserved",
}
"""Composer's words, and those of torch's statistics."""

MEMORY_MONITOR: Final = (
    *(
        _of_memory_monitor(f"current_{word}", f"{stat}_bytes")
        for word, stat in _MONITORED.items()
    ),
    *(
        _of_memory_monitor(f"peak_{word}", f"{stat}_peak_bytes", is_highest=True)
        for word, stat in _MONITORED.items()
    ),
    Tag("memory/alloc_retries", "memory/alloc_retries", "num_alloc_retries", 1),
)
"""What Composer's MemoryMonitor logs, as it logs it: GB of 10^9 bytes with five digits, and
peaks that nothing resets."""


def tags_of(setting: bool | Literal["composer"]) -> tuple[Tag, ...]:
    """Those that the setting `scalars` asks for."""
    if setting == "composer":
        return (*HEADLINES, *MEMORY_MONITOR)
    return HEADLINES if setting else ()


class RunBusyError(Exception):
    """Another live recording writes the scalars of this run."""


class Scalars:
    """The scalars of one recording: opened at the first row, and again after trouble."""

    def __init__(
        self,
        run_dir: Path,
        make_header: Callable[[], Header],
        tell: Callable[[str, str], None],
        tags: Sequence[Tag],
    ) -> None:
        """`tell` takes the reason why there are no scalars now, and the remedy.

        Both empty: there are some again.
        """
        self._run_dir = run_dir
        self._make_header = make_header
        self._tell = tell
        self._tags = tuple(tags)
        self._highest = _Highest(tag.column for tag in tags if tag.is_highest)
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
        """A schema of steps: rows of the training phase's are the ones to write."""
        self._highest.take_schema(schema)
        if schema.phase == TRAIN:
            self._schema = schema

    def add(self, schema_id: int, row: Row) -> None:
        """Take a row of any table; steps of other phases than training raise peaks alone."""
        schema = self._schema
        self._highest.add(schema_id, row)
        if self._is_over or schema is None or schema_id != schema.schema_id:
            return
        if self.is_to_open:
            self._open(schema)
        if self._file is not None:
            self._file.add(row, self._highest.values)

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
            self._file = ScalarsFile(
                self._run_dir, self._make_header(), schema, self._tags
            )
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


class _Highest:
    """The highest value of some columns so far, in steps of all phases."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.values: dict[str, float] = {}
        """By column; none before its first value."""
        self._columns = frozenset(columns)
        self._places: dict[int, list[tuple[str, int]]] = {}

    def take_schema(self, schema: Schema) -> None:
        self._places[schema.schema_id] = [
            (column.name, index)
            for index, column in enumerate(schema.columns)
            if column.name in self._columns
        ]

    def add(self, schema_id: int, row: Row) -> None:
        for name, index in self._places.get(schema_id, ()):
            value = row[index]
            if value is not None and math.isfinite(value):
                self.values[name] = max(value, self.values.get(name, value))


class ScalarsFile:
    """Takes the training phase's rows; writes a thinned event file."""

    def __init__(
        self,
        run_dir: Path,
        header: Header,
        schema: Schema,
        tags: Sequence[Tag] = HEADLINES,
    ) -> None:
        """Create the file, with the event that makes the plugin's tab active.

        Raises:
            RunBusyError: another live recording writes the scalars of this run.
            OSError: the file cannot be created.
        """
        places = {column.name: index for index, column in enumerate(schema.columns)}
        self._tags = [(t, places[t.column]) for t in tags if t.column in places]
        self._untold = {tag.name for tag in tags}
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
        self._file.lock()
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
        return self._file.path

    def add(
        self, row: Row, highest: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Take a row of the schema given at construction.

        `highest`: values so far by column, of tags that are these. Rows whose step does not exceed all before it are left out: TensorBoard would
        purge what it has. The rank's file holds them.
        """
        now, step = int(row[0] or 0), int(row[1] or 0)
        if self._last_step is not None and step <= self._last_step:
            return
        self._last_step = step
        if not self._window_start <= now < self._window_start + self._window_ns:
            self._end_window()
            self._window_start = now
        for tag, index in self._tags:
            value = highest.get(tag.column) if tag.is_highest else row[index]
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

    def _point(self, tag: Tag, value: float, step: int, time_ns: int) -> bytes:
        description = None
        if tag.name in self._untold:  # the first event of a tag describes it
            self._untold.discard(tag.name)
            description = Description("scalars", DATA_CLASS_SCALAR, tag.title)
        time_and_step = (time_ns / 1e9, step)
        return frame(
            scalar_event(tag.name, tag.value_of(value), time_and_step, description)
        )


def _is_busy(directory: Path) -> bool:
    """Whether a live recording holds a scalars file here."""
    return any(is_locked(path) for path in _scalar_files(directory))


def _scalar_files(directory: Path) -> Iterator[Path]:
    return directory.glob(f"events.out.tfevents.*.{PLUGIN_NAME}")


def _clean(host: str) -> str:
    """A host's name as part of a file's name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in host)[:64] or "host"

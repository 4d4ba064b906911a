"""Words, columns, problems and runs: what every response is made of."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr

API_VERSION: Final = 2
"""Raised whenever a response changes shape; the page asks for a reload on mismatch."""

XKind: TypeAlias = Literal["step", "relative", "wall"]
"""Training step; milliseconds since the attempt began; milliseconds since the epoch."""

Unit: TypeAlias = Literal[
    "bytes",
    "bytes_per_step",
    "bytes_per_second",
    "count",
    "per_second",
    "percent",
    "seconds",
    "celsius",
    "watts",
]

CapacityKind: TypeAlias = Literal["device", "cgroup_limit", "host_memory", "none"]
"""Limit of the memory: the device, the control group's limit, or all of the host."""

F64Column: TypeAlias = npt.NDArray[np.float64]
"""NaN where nothing was recorded."""

I32Column: TypeAlias = npt.NDArray[np.int32]

U16Column: TypeAlias = npt.NDArray[np.uint16]

U8Column: TypeAlias = npt.NDArray[np.uint8]


class Columns(Struct, frozen=True):
    """A struct whose columns become what they are declared as: of that type, and flat."""

    def __post_init__(self) -> None:
        for name, kind in _kinds(type(self)):
            values = getattr(self, name)
            if values is not None:
                force_setattr(self, name, np.ascontiguousarray(values, kind).ravel())


@cache
def _kinds(struct: type[Columns]) -> tuple[tuple[str, Any], ...]:
    """The columns of a struct, and the types of their numbers."""
    return tuple(
        (name, np.dtype(get_args(get_args(part)[1])[0]).newbyteorder("<"))
        for name, hint in get_type_hints(struct).items()
        for part in (hint, *get_args(hint))
        if get_origin(part) is np.ndarray
    )


NO_F64: Final[F64Column] = np.empty(0, np.float64)
NO_I32: Final[I32Column] = np.empty(0, np.int32)
NO_U16: Final[U16Column] = np.empty(0, np.uint16)
NO_U8: Final[U8Column] = np.empty(0, np.uint8)


def f64(values: npt.ArrayLike) -> F64Column:
    # A float64 column
    return np.ascontiguousarray(values, "<f8").ravel()


def i32(values: npt.ArrayLike) -> I32Column:
    # An int32 column
    return np.ascontiguousarray(values, "<i4").ravel()


def i32_clipped(values: npt.ArrayLike) -> I32Column:
    """An int32 column of numbers from files: the nearest that it can hold."""
    limits = np.iinfo(np.int32)
    return i32(np.clip(values, limits.min, limits.max))


def u16(values: npt.ArrayLike) -> U16Column:
    # A uint16 column
    return np.ascontiguousarray(values, "<u2").ravel()


def u8(values: npt.ArrayLike) -> U8Column:
    # A uint8 column
    return np.ascontiguousarray(values, "u1").ravel()


class ErrorResponse(Struct, frozen=True):
    """What went wrong, where, and what to do about it."""

    what: str
    where: str
    remedy: str


class Problem(Struct, frozen=True):
    """A file that could not be read whole. Nothing else is lost by it."""

    severity: Literal["error", "warning", "info"]
    """info: all that was written was read; a kill cut off what was being written."""
    path: str
    what: str
    where: str = ""
    """Byte offset or record, for a person."""
    salvaged: str = ""
    """What was read in spite of it."""
    remedy: str = ""
    rank: int | None = None
    slice: str | None = None
    """The first slice that is meant, as the page of traces names it: `source:row`."""
    kind: Literal["fault", "unread"] = "fault"
    """unread: nothing is known to be wrong; the next request reads on."""

    @property
    def is_note(self) -> bool:
        """Whether nothing is lost: it is not counted among a run's problems."""
        return self.severity == "info" or self.kind == "unread"


class ForeignFiles(Struct, frozen=True):
    """Other tools' files seen in the logdir that no run is made of, by kind."""

    kind: Literal["tfevents", "memprofiler", "other"]
    num_files: int
    example: str
    """One path, relative to the logdir."""


class RunSummary(Struct, frozen=True):
    """One training job: what the run picker shows."""

    id: str
    name: str
    """As TensorBoard names it, but never `.`; may hold any text, show as text."""
    num_ranks: int
    """0 where files of snapshots tell no rank."""
    world_size: int
    """0 where nothing tells it."""
    num_attempts: int
    first_ms: float
    last_ms: float
    """When the newest row was written."""
    last_step: int | None
    live: bool
    """Rows arrived within the last 30 s and no rank's last attempt has closed."""
    simulated: bool
    virtual_gpu: str
    """Words for the device where it was a virtual one ("virtual H100 80GB"): memory is what
    torch's allocator did, values and times are not real. Empty: it was a real one."""
    imported: bool
    """Made of another tool's files: it has no steps and no headers."""
    made_of: Literal["recording", "memprofiler", "snapshots", "traces"]
    """snapshots: of files of allocator snapshots, whoever dumped them; traces: of files
    of profilers' traces."""
    device_type: str
    """cuda, xpu, mps ...; cpu where there is no accelerator; empty: nothing tells it."""
    num_problems: int
    """Without notes, and without those that reading on will end."""


RunStatus: TypeAlias = Literal[
    "out_of_memory", "leak", "stopped", "live", "warned", "fine"
]
"""The worst that is known. leak: its memory grows and will soon be full; stopped: it
ended by an exception, or without closing its recording; warned: another finding; fine:
everything was read, and there is no finding and no problem."""


class RunStanding(Struct, frozen=True):
    """How a run stands, as far as it was read already: nothing is opened for it."""

    run: str  # `RunSummary.id`
    status: RunStatus | None
    """None: not known yet, or nothing tells it."""
    peak_bytes: float | None
    """The highest of all ranks; likewise."""
    finding: str = ""
    """Title of the worst finding, where the run is warned by one."""


class RunsResponse(Struct, frozen=True):
    """Route `/runs`: everything the logdir holds."""

    logdirs: tuple[str, ...]
    """What was looked at, as the user gave it."""
    runs: tuple[RunSummary, ...]
    standings: tuple[RunStanding, ...]
    """Of all runs: the newest day first, of a day the worst run. The first one is opened
    where nobody names another."""
    foreign: tuple[ForeignFiles, ...]
    problems: tuple[Problem, ...]
    """Problems that belong to no run."""
    plugin_version: str
    drop_limit_bytes: int
    """The largest file that may be dropped onto the page; 0 where none may."""

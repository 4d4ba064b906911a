"""The records of a rank's file, in the order they appear in it.

A file is: one `Header`; then, in any order, `Schema` before the first `Chunk` that
uses it, `Note`s and `Capture`s as things happen, a `Digest` now and then; at a clean end a last
`Digest` and a `Close`. Whatever is missing at the end was lost with the process.

Where stores cannot append, the same file is cut into numbered segments. Each is an event
file of its own; from the second on it begins with a `Segment`, which repeats header and
schemas. All offsets in records are logical: they count from the start of segment 0 through
all segments laid end to end, heads included, and a `Segment` says at which offset its file
begins. So a digest lists chunks in any segment before it, one file and many segments are
read alike, and where a segment is missing the others keep their offsets. No record lies in
two segments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from collector.format.columns import Column

    IntArray: TypeAlias = npt.NDArray[np.int64]
    FloatArray: TypeAlias = npt.NDArray[np.float64]
    Values: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAnchor:
    """Wall and monotonic clock read together, to align processes later."""

    wall_ns: int
    monotonic_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Who wrote the file, where, and under which settings. Unknown is None."""

    run_id: str
    attempt: str
    """The attempt part of the file's own name."""
    job: str
    """Same text on every rank of one start of the job (from the launcher's
    environment); empty where the environment tells nothing."""
    rank: int
    local_rank: int
    world_size: int
    local_world_size: int | None
    node_rank: int | None
    host: str
    pid: int
    started: ClockAnchor
    device_type: str
    """cuda, xpu, mps ...; cpu where there is no accelerator."""
    device_index: int | None = None
    device_name: str | None = None
    device_uuid: str | None = None
    device_total_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """The control group's limit on host memory, where there is one."""
    memory_total_bytes: int | None = None
    mesh: Mapping[str, int] = field(default_factory=dict)
    """Coordinates by dimension name (dp, tp, pp, ep ...)."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """memboard, python, torch, cuda, driver ..."""
    allocator_settings: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The effective configuration, plain data."""
    virtual_gpu: str = ""
    """Words for the device where it was a virtual one ("virtual H100 80GB"): memory is what
    torch's allocator did, values and times are not real."""
    simulated: bool = False
    planted: tuple[str, ...] = ()
    """Faults a simulated run was given, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The head of a segment that continues another one."""

    number: int
    """From 1; the first segment begins like any rank's file."""
    base_offset: int
    """The logical offset of this file's first byte: the bytes of all segments before."""
    digest_offset: int
    """Where the latest digest starts; 0 where there is none yet."""
    header: Header
    schemas: tuple[Schema, ...]
    """All schemas so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The columns of one table; a table whose columns change gets another schema."""

    schema_id: int
    table: str
    """`step` or the name of a timed source."""
    phase: str
    """Phase whose rows these are; "train" for the training phase and timed tables."""
    columns: tuple[Column, ...]
    """The axes come first."""
    interval_seconds: float | None = None
    """Pace of a timed table; None for the step table."""
    rolled_up: bool = True
    """False: rows are kept one by one only, and no picture of the run is made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """What a chunk covers: enough to decide whether to read it."""

    schema_id: int
    num_rows: int
    first_step: int
    last_step: int
    first_ns: int
    last_ns: int
    digest_offset: int
    """Where the file's latest digest record starts; 0 where there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some rows of one table, as equal-length columns in schema order.

    Integer columns are int64 with `ABSENT` (-2**63) where nothing was recorded,
    float columns float64 with NaN.
    """

    schema_id: int
    columns: tuple[Values, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDigest:
    """Everything known about one table's rows up to the digest.

    The directory arrays list the table's chunks since the previous digest; the
    rollup is cumulative (see `rollup.Rollup`).
    """

    schema_id: int
    num_rows: int
    chunk_offset: IntArray
    """Where each chunk's frame starts in the file."""
    chunk_rows: IntArray
    chunk_first_step: IntArray
    chunk_last_step: IntArray
    chunk_first_ns: IntArray
    chunk_last_ns: IntArray
    fine_rows: int
    """Rows per bucket of the fine rollup (headline columns)."""
    fine: Mapping[str, Values]
    """`step_first`, `step_last`, `ns_first`, `ns_last`, and `<column>:max`, `:min`,
    `:mean` for each headline column; one value per bucket."""
    coarse_rows: int
    """Rows per bucket of the coarse rollup (all other columns)."""
    coarse: Mapping[str, Values]
    """Axes as in `fine`, and `<column>:max`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Index and pre-aggregate of everything before it in the file."""

    previous_offset: int
    """Where the previous digest record starts; 0 where there is none."""
    tables: tuple[TableDigest, ...]
    notes: tuple[Note, ...]
    """All notes so far (bounded by the writer), so one read tells the whole story."""
    schemas: tuple[Schema, ...]
    """All schemas so far, for the same reason."""
    captures: tuple[CaptureEntry, ...] = ()
    """Captures since the previous digest."""
    captures_before: int = 0
    """Where the latest earlier digest that lists captures starts; 0: there is none."""


CaptureKind: TypeAlias = Literal[
    "modules",  # the memory of modules through one window: see collector.modules
    "hooks",  # what hooks said of every module: see collector.functions.hooks.kind
    "activations",  # saved tensors by module and dtype: see collector.functions
    "history",  # allocator snapshot and history: see collector.history
    "oom",  # report of an out-of-memory error or another end: see collector.format.oom
    "trace",  # a trace of torch's profiler: see collector.torch_profiler.digest.report
    "spans",  # some spans, instants and counters: see collector.steps.spans.captures
]

CaptureTable: TypeAlias = "Mapping[str, IntArray | FloatArray | tuple[str, ...]]"
"""Equal-length columns by name: int64, float64, or texts."""


@dataclass(slots=True, kw_only=True)
class Capture:
    """Something taken at one moment or over one window, with tables of its own.

    Nobody changes one. It is not frozen, because it is made on the training thread, where
    to make it took 10 us more.
    """

    kind: CaptureKind | str
    """Unknown kinds are listed and not shown."""
    time_ns: int
    """When it was taken; the end of a window."""
    step: int | None
    """The training step under way."""
    phase: str
    function: str
    """The profiled function, `step` for a whole step, or empty for a call by hand."""
    iteration: int
    """1-based number of the function's call in its phase; 0 by hand."""
    context: str = ""
    """`start` or `end`: the side of the call it shows; empty: all of it. Of a history:
    also `oom`, `exception` or `signal`, what it was taken at. Of a trace `digest`: it
    stands for the one before it of the same time, with what was read out of the trace."""
    label: str = ""
    """The user's own name for it."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data."""
    tables: Mapping[str, CaptureTable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEntry:
    """What a digest says of a capture: enough to list it and to find it."""

    offset: int
    """Where its first frame starts in the file."""
    num_bytes: int
    """Of all its frames."""
    kind: str
    time_ns: int
    step: int | None
    phase: str
    function: str
    iteration: int
    context: str
    label: str


NoteKind: TypeAlias = Literal[
    "source",  # name, status (recorded|absent|off|failed), reason, remedy, cost
    "epoch",  # epoch, length (or None)
    "phase",  # phase
    "mark",  # label
    "dropped",  # table, num_rows (so far, all in all), reason
    "clock",  # monotonic_ns, wall_ahead_ns (of time_ns); and of a comparison offset_ns (add
    # to this file's times for the reference's), error_ns (or None), method, reference_rank
    # (None: true time), cycle, host_id: see collector.clock
    "clock_jump",  # jumped_ns, wall_ahead_ns: somebody set the host's wall clock
    "oom",  # message, values, report (number or None): an out-of-memory error
    "oom_message",  # message, report: its text, where that came later
    "mesh",  # coordinates by dimension name, known only later
    "signal",  # signal: its name; it came, whatever became of it
    "prediction",  # what decides whether a virtual run fits: see collector.format.prediction
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that happened, or something known only after the header."""

    kind: NoteKind | str
    """Unknown kinds are ignored by readers."""
    time_ns: int
    step: int | None
    """The training step under way, also where another phase is; None: of no step."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data; keys by kind as listed at `NoteKind`."""


How: TypeAlias = Literal["closed", "exception", "signal"]
"""How a recording ended: in order; by an exception that left `record`'s with-block or the
program; by a signal that ended the process and was listened to (`oom.on_sigterm`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The last record of a file that could say how it ended."""

    time_ns: int
    how: How
    message: str
    """Type and first line of the exception; name of the signal; empty when closed."""
    digest_offset: int
    num_dropped: int
    step: int | None = None
    """The training step under way; None: not known."""
    phase: str = ""
    """The phase under way, of an exception the one it left; empty: not known."""


Record: TypeAlias = Header | Segment | Schema | Chunk | Digest | Note | Close

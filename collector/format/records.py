"""The records of a rank's file, in the order they appear in it.

A file is: one `Header`; then, in any order, `Schema` before the first `Chunk` that
uses it, `Note`s and `Capture`s as things happen, a `Digest` now and then. When the program
ends, a `Close` that is not complete says how, before anything that waits, and again behind each
further digest; at last come a `Digest` and the `Close` that completes the file. What is missing
at the end of a file without any was lost with the process.

Where stores cannot append, the same file is cut into numbered segments. Each is an event
file of its own; from the second on it begins with a `Segment`, which repeats header and
schemas. All offsets in records are logical: they count from the start of segment 0 through
all segments laid end to end, heads included, and a `Segment` says at which offset its file
begins. So one file and many segments are read alike, and where a segment is missing the
others keep their offsets. No record lies in two segments.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping  # noqa: TC003  # msgspec looks it up
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from memboard.collector.format.columns import AXES, Column
from memboard.collector.format.encoding.numeric import decode_block, encode_block
from memboard.collector.format.encoding.payload import Count, Int, Text, unpack
from memboard.collector.format.errors import CorruptError, VersionError
from memboard.collector.format.names import FORMAT_VERSION
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from memboard.collector.format.columns import Dtype
    from memboard.collector.format.encoding.numeric import Values

    IntArray: TypeAlias = npt.NDArray[np.int64]
    FloatArray: TypeAlias = npt.NDArray[np.float64]

Size = Annotated[int, Meta(ge=1, le=2**62)]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload's head holds."""


class ClockAnchor(Record, frozen=True):
    """Wall and monotonic clock read together, to align processes later."""

    wall_ns: Int
    monotonic_ns: Int


class Header(Record, frozen=True):
    """Who wrote the file, where, and under which settings. Unknown is None."""

    run_id: Text
    attempt: Text
    """The attempt part of the file's own name."""
    job: Text
    """The same on every rank of one start of the job; empty where nothing tells it."""
    rank: Count
    local_rank: Int
    world_size: Int
    local_world_size: Int | None
    node_rank: Int | None
    host: Text
    pid: Int
    started: ClockAnchor
    device_type: Text
    """cuda, xpu, mps ...; cpu where there is no accelerator."""
    device_index: Int | None = None
    device_name: Text | None = None
    device_uuid: Text | None = None
    device_total_bytes: Size | None = None
    memory_limit_bytes: Size | None = None
    """The control group's limit on host memory, where there is one."""
    memory_total_bytes: Size | None = None
    mesh: Mapping[str, Int] = {}
    """Coordinates by dimension name (dp, tp, pp, ep ...)."""
    versions: Mapping[str, Text] = {}
    """memboard, python, torch, cuda, driver ..."""
    allocator_settings: Text = ""
    config: Mapping[str, Any] = {}
    """The effective configuration, plain data."""
    virtual_gpu: Text = ""
    """Words for the device where it was a virtual one ("virtual H100 80GB"): memory is what
    torch's allocator did, values and times are not real."""
    simulated: bool = False
    planted: tuple[Text, ...] = ()
    """Faults a simulated run was given, in words."""
    format_version: int = FORMAT_VERSION


class DeviceIdentity(Record, frozen=True, kw_only=True):
    """A device, named as in the header.

    Also the data of a note of kind `device`: what training came to use after the header.
    """

    device_type: Text
    device_index: Int | None = None
    device_name: Text | None = None
    device_uuid: Text | None = None
    device_total_bytes: Size | None = None


class Segment(Record, frozen=True):
    """The head of a segment that continues another one."""

    number: Count
    """From 1; the first segment begins like any rank's file."""
    base_offset: Count
    """The logical offset of this file's first byte: the bytes of all segments before."""
    digest_offset: Count
    """Where the latest digest starts; 0 where there is none yet."""
    header: Header
    schemas: tuple[Schema, ...]


class Schema(Record, frozen=True, cache_hash=True):
    """The columns of one table; a table whose columns change gets another schema."""

    schema_id: Annotated[int, Meta(ge=0, le=2**16 - 1)]
    table: Text
    """`step` or the name of a timed source."""
    phase: Text
    """Phase whose rows these are; "train" for the training phase and timed tables."""
    columns: tuple[Column, ...]
    interval_seconds: float | None = None
    """Pace of a timed table; None for the step table."""
    rolled_up: bool = True
    """False: rows are kept one by one only, and no picture of the run is made of them."""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if names[:2] != [a.name for a in AXES] or len(set(names)) != len(names):
            raise ValueError(f"the schema of table {self.table!r} has odd columns")


class ChunkRef(NamedTuple):
    """Where a chunk lies and what it covers: enough to decide whether to read it."""

    offset: int
    """Where its frame starts in the file."""
    end: int
    """No byte of the frame lies at or behind this."""
    schema_id: int
    num_rows: int
    first_step: int
    last_step: int
    first_ns: int
    last_ns: int
    first_row: int
    """Rows of its table in this file before it."""


CaptureKind: TypeAlias = Literal[
    "modules",  # the memory of modules through one window: see memboard.collector.modules
    "hooks",  # what hooks said of every module: see memboard.collector.functions.hooks_kind
    "activations",  # saved tensors by module and dtype: see memboard.collector.functions
    "history",  # allocator snapshot and history: see memboard.collector.history
    "oom",  # report of an out-of-memory error or another end: see memboard.collector.format.oom
    "trace",  # a trace of torch's profiler: see memboard.collector.torch_profiler.digest.report
    "spans",  # some spans, instants and counters: see memboard.collector.steps.spans.captures
]

CaptureTable: TypeAlias = "Mapping[str, IntArray | FloatArray | tuple[str, ...]]"
"""Equal-length columns by name: int64, float64, or texts."""


class Capture(msgspec.Struct, kw_only=True):
    """Something taken at one moment or over one window, with tables of its own.

    Nobody changes one.
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
    also `oom`, `exception` or `signal`, what it was taken at. Of a trace: how
    far it has come, as one of `capture.TRACE_CONTEXTS`."""
    label: str = ""
    """The user's own name for it."""
    meta: Mapping[str, Any] = msgspec.field(default_factory=dict)
    tables: Mapping[str, CaptureTable] = msgspec.field(default_factory=dict)


class CaptureEntry(Record, frozen=True):
    """What a digest says of a capture: enough to list it and to find it."""

    offset: Count
    """Where its first frame starts in the file."""
    num_bytes: Count
    kind: Text
    time_ns: Int
    step: Int | None
    phase: Text
    function: Text
    iteration: Int
    context: Text
    label: Text


NoteKind: TypeAlias = Literal[
    "source",  # name, status (recorded|absent|off|failed), reason, remedy, cost
    "epoch",  # epoch, length (or None)
    "phase",  # phase
    "mark",  # label
    "dropped",  # table, num_rows (so far, all in all), reason
    "clock",  # monotonic_ns, wall_ahead_ns (of time_ns); of a comparison see memboard.collector.clock
    "clock_jump",  # jumped_ns, wall_ahead_ns: somebody set the host's wall clock
    "oom",  # message, values, report (number or None): an out-of-memory error
    "oom_message",  # message, report: its text, where that came later
    "mesh",  # coordinates by dimension name, known only later
    "signal",  # signal: its name; it came, whatever became of it
    "loading",  # num_workers: of a DataLoader that training waited for; one note a number
    "prediction",  # what decides whether a virtual run fits: see memboard.collector.format.prediction
]


OVER_BUDGET: Final = "max_file_bytes is reached"
"""The reason of a note `dropped` about rows that only the rollups have."""


class Note(Record, frozen=True):
    """Something that happened, or something known only after the header."""

    kind: Text
    """A `NoteKind`; unknown ones are ignored by readers."""
    time_ns: Int
    step: Int | None
    """The training step under way, also where another phase is; None: of no step."""
    data: Mapping[str, Any] = {}
    """Plain JSON data; keys by kind as listed at `NoteKind`."""


How: TypeAlias = Literal["closed", "exception", "signal"]
"""The end of a recording: in order; by an exception that left `record`'s with-block or
the program; by a signal that ended the process and was listened to (`oom.on_sigterm`)."""


class StepCounts(Record, frozen=True):
    """Steps of all phases since the file began."""

    taken: Count
    dropped: Count
    """No room in the queue, or a fault of the writer."""
    summed_up: Count
    """Behind `max_file_bytes`: only the rollups have them."""


class Close(Record, frozen=True):
    """How the program ended, and whether all that it left was written."""

    time_ns: Int
    how: How
    message: Text
    """Type and first line of the exception; name of the signal; empty when closed."""
    digest_offset: Count = 0
    num_dropped: Count = 0
    is_complete: bool = True
    """False: what waited when the program ended is still to be written."""
    steps: StepCounts | None = None
    step: Int | None = None
    """The training step under way; None: not known."""
    phase: Text = ""
    """The phase under way, of an exception the one it left; empty: not known."""


TextRecord: TypeAlias = Header | Segment | Schema | Note | Close

HEADER: Final = "header"
SEGMENT: Final = "segment"
SCHEMA: Final = "schema"
CHUNK: Final = "chunk"
NOTE: Final = "note"
CLOSE: Final = "close"

TYPES: Final[Mapping[str, type[TextRecord]]] = {
    HEADER: Header,
    SEGMENT: Segment,
    SCHEMA: Schema,
    NOTE: Note,
    CLOSE: Close,
}
"""By the kind that a record is tagged with."""
_KINDS: Final = {of: kind for kind, of in TYPES.items()}


class _Versions(Record, frozen=True):
    format_version: int
    versions: Mapping[str, Any] = {}


class _SegmentVersions(Record, frozen=True):
    header: _Versions


def kind_of(record: TextRecord) -> str:
    """The kind a record is tagged with."""
    return _KINDS[type(record)]


def decode_record(kind: str, payload: bytes | memoryview) -> TextRecord | None:
    """Decode a record that `pack` encoded; None where this is no kind of those.

    Raises:
        CorruptError: the bytes are not such a record.
        VersionError: the file is of another major version.
    """
    of = TYPES.get(kind)
    if of is None:
        return None
    if of is Header:
        _check_version(unpack(payload, _Versions)[0])
    elif of is Segment:
        _check_version(unpack(payload, _SegmentVersions)[0].header)
    return unpack(payload, of)[0]


def _check_version(written: _Versions) -> None:
    if written.format_version != FORMAT_VERSION:
        raise VersionError(
            f"written in format {written.format_version} by memboard"
            f" {written.versions.get('memboard', '(of another version)')}; this MemBoard"
            f" reads format {FORMAT_VERSION}"
        )


_CHUNK_HEAD: Final = struct.Struct("<HIqqqqQQ")


def encode_chunk(
    schema: Schema, columns: Sequence[Values], *, digest_offset: int, first_row: int
) -> bytes:
    """Encode rows of one table; `columns` in schema order, axes first.

    `digest_offset`: where the latest digest record starts, or 0; `first_row`: rows before.
    """
    times, steps = columns[0], columns[1]
    head = _CHUNK_HEAD.pack(
        schema.schema_id,
        len(times),
        int(steps.min()),
        int(steps.max()),
        int(times.min()),
        int(times.max()),
        first_row,
        digest_offset,
    )
    dtypes: list[Dtype] = [column.dtype for column in schema.columns]
    return head + encode_block(columns, dtypes)


def decode_chunk_ref(
    payload: bytes | memoryview, offset: int, end: int
) -> tuple[ChunkRef, int]:
    """What a chunk covers, and where the latest digest before it starts.

    Raises:
        CorruptError: the bytes are no chunk.
    """
    if len(payload) < _CHUNK_HEAD.size:
        raise CorruptError(f"a chunk record has only {counted(len(payload), 'byte')}")
    *covered, digest_offset = _CHUNK_HEAD.unpack_from(payload)
    return ChunkRef(offset, end, *covered), digest_offset


def decode_chunk(
    payload: bytes | memoryview, wanted: Iterable[int] | None = None
) -> list[Values]:
    """Columns of a chunk: those at the schema's indices `wanted`, or all.

    Integer columns are int64 with `ABSENT` (-2**63) where nothing was recorded, float
    columns float64 with NaN.

    Raises:
        CorruptError: the bytes are no chunk.
    """
    ref, _ = decode_chunk_ref(payload, 0, 0)
    columns = decode_block(memoryview(payload)[_CHUNK_HEAD.size :], wanted)
    if any(len(column) != ref.num_rows for column in columns):
        raise CorruptError("a chunk's columns and its head disagree on the rows")
    return columns

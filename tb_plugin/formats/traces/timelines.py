"""Files of `torch.profiler.profile.export_memory_timeline` become counters of a trace.

Three kinds of files: `.json`, sizes by category at each time; `.raw.json.gz`, changes of
sizes; `.html`, a picture and the peak. The first two become one series of bytes for each
category, the third facts alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

from memboard.tb_plugin.formats.traces.columns.events import FAULTS
from memboard.tb_plugin.formats.traces.top_level import facts_of
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[np.int64]

CATEGORIES: Final = (
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
)
COUNTER: Final = "memory by category"
PREEXISTING: Final = -1
"""The time of what was there before the profiler."""
_MAX_BYTES: Final = 512 << 20
_MAX_POINTS: Final = 4_000_000
_MAX_PICTURE: Final = 8 << 20
_PICTURE: Final = re.compile(rb"data:image/png;base64,([A-Za-z0-9+/=\s]{1,20000000})")
_PEAK: Final = re.compile(
    rb"Max memory allocated: ([\d.]{1,20}) GiB|Max memory reserved: ([\d.]{1,20}) GiB",
)
_WORDS: Final = (b"Max memory allocated", b"data:image/png")
_GIB: Final = 1 << 30
_Raw: TypeAlias = list[tuple[int, int, int, int]]
_Sizes: TypeAlias = tuple[list[float], list[list[float]]]


def is_timeline(start: bytes) -> bool:
    """Whether a file that begins so may be one: lists of numbers, or a page."""
    if start[:1] == b"<":
        return True
    return re.match(rb"\[\s*\[\s*(?:-?\d|\])", start) is not None


def gather(start: bytes, stream: InflatedFile, gathered: Gathering) -> dict[str, Any]:
    """Take the counters of a timeline; its facts.

    Raises:
        RefusedError: it is none.
        OSError: the file cannot be read.
    """
    parts, size = [start], len(start)
    while block := stream.read():
        size += len(block)
        if size > _MAX_BYTES:
            raise RefusedError(
                f"As a memory timeline it would be longer than {_MAX_BYTES:,} bytes.",
                size,
                remedy="Profile fewer steps.",
            )
        parts.append(block)
    data = b"".join(parts)
    if data[:1] == b"<":
        return _page(data)
    content = _raw(data) or _sizes(data)
    if content is None:
        raise RefusedError(
            "It is a list of lists, but neither events nor a memory timeline.",
            0,
            remedy="Open a trace, or what export_memory_timeline wrote.",
        )
    form, times, sizes, num_points = content
    track = gathered.tracks["memory", f"counter {COUNTER}"]
    for category, name in enumerate(CATEGORIES):
        values = sizes[:, category]
        if not values.any():
            continue
        changes = np.flatnonzero(np.diff(values, prepend=values[:1] - 1))
        if changes[-1] != len(values) - 1:
            changes = np.append(changes, len(values) - 1)  # the line goes on to the end
        points = times[changes].tolist(), values[changes].astype(np.float64).tolist()
        gathered.points[track, COUNTER, name] = points
    gathered.num_events["timeline"] = num_points
    facts = facts_of({})
    facts["metadata"] = {"format": form}
    return facts


def _raw(data: bytes) -> tuple[str, Ints, Ints, int] | None:
    """Changes: [time in ns or -1, action, signed bytes, category]."""
    try:
        rows = msgspec.json.decode(data, type=_Raw)
    except FAULTS:
        return None
    if not rows or len(rows) > _MAX_POINTS:
        return None
    try:
        table = np.array(rows, np.int64)
    except OverflowError:
        return None
    time_ns, _, num_bytes, category = table.T
    if category.min() < 0 or category.max() >= len(CATEGORIES):
        return None
    if np.abs(num_bytes).max() >= 2**47:
        return None
    recorded_ns = time_ns[time_ns != PREEXISTING]
    # What was there before is there when the profiler begins.
    time_ns = np.where(
        time_ns == PREEXISTING, recorded_ns.min() if len(recorded_ns) else 0, time_ns
    )
    order = np.argsort(time_ns, kind="stable")
    changes = np.zeros((len(rows), len(CATEGORIES)), np.int64)
    changes[np.arange(len(rows)), category[order]] = num_bytes[order]
    times, last = np.unique(time_ns[order][::-1], return_index=True)
    sizes = np.cumsum(changes, axis=0)[len(rows) - 1 - last]
    return "memory_timeline_raw", times, sizes, len(rows)


def _sizes(data: bytes) -> tuple[str, Ints, Ints, int] | None:
    """Times in us, and at each a 0 and the bytes of each category."""
    try:
        times, rows = msgspec.json.decode(data, type=_Sizes)
    except FAULTS:
        return None
    num = len(CATEGORIES)
    if len(times) != len(rows) or not rows or len(rows) > _MAX_POINTS:
        return None
    if any(len(row) not in (num, num + 1) for row in rows):
        return None
    sizes = np.array([row[-num:] for row in rows], np.float64)
    moments = np.array(times, np.float64)
    if np.abs(sizes).max() >= 2**53 or np.abs(moments).max() >= 2**53:
        return None
    time_ns = moments.astype(np.int64) * 1000
    return "memory_timeline", time_ns, sizes.astype(np.int64), len(rows)


def _page(data: bytes) -> dict[str, Any]:
    """A page with the picture, and the peaks in its title."""
    picture = _PICTURE.search(data)
    if not all(word in data for word in _WORDS) or picture is None:
        raise RefusedError(
            "It is a page, but none of a memory timeline.",
            0,
            remedy="Open the trace that it was made of.",
        )
    facts = facts_of({})
    facts["metadata"] = {"format": "memory_timeline_page"}
    for match in _PEAK.finditer(data):
        key = "max_allocated_bytes" if match[1] else "max_reserved_bytes"
        gib = float((match[1] or match[2]).rstrip(b".") or b"0")
        facts["metadata"][key] = round(gib * _GIB)
    encoded = b"".join(picture[1].split())
    if len(encoded) <= _MAX_PICTURE:
        facts["picture"] = encoded.decode("ascii")
    return facts

"""The report of an out-of-memory error, or of another end: captures of kind `oom`.

One error leaves up to three records in the rank's file, which `report`, a number that
counts from 1, links:

1. this capture, small and on the disk within a second;
2. a capture of kind `history` whose `label` and `context` are the report's origin and
   whose meta holds `report`: the allocator as it was, see `memboard.collector.format.snapshots`.
   It is missing where the process did not live to write it, or where none could be taken;
3. a note of kind `oom` (data: message, values, report). The text of the exception is
   known only when it passes somebody who looks, so the note may come later.

The capture's own entry: `label` is the origin, `function` the innermost function or span
under way (empty: unknown), `step` and `phase` those under way, `iteration` 0. Its meta
has every key of `META`, and None stands for what was not known; bytes are integers.

Tables::

    stack          frames of the failing call, innermost first: thread (0: the one that
                   failed, 1: the main thread where that is another), name, filename, line
    holders        stacks of live blocks by bytes, most first: num_bytes, num_blocks,
                   num_frames (0: recorded without a stack), category (index in
                   `memory.CATEGORIES`; -1: not known)
    holder_frames  holder (row of `holders`), name, filename, line: innermost first
    categories     of the tensors the recorder knew, each storage once: category,
                   num_bytes, num_tensors
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.collector.format.records import CaptureTable

KIND: Final = "oom"
"""The kind of these captures."""

REPORT: Final = "report"
"""The key of meta (of both captures) and of the note's data that links the records."""

VERSION: Final = 1

Origin: TypeAlias = Literal["oom", "exception", "signal"]
"""Its source: torch's observer, before any memory was freed; an exception that ended
the program or passed a block of ours; a signal."""

ORIGINS: Final[tuple[Origin, ...]] = ("oom", "exception", "signal")

MEMORY: Final = (
    "allocated_bytes",
    "allocated_peak_bytes",
    "active_bytes",
    "active_peak_bytes",
    "reserved_bytes",
    "reserved_peak_bytes",
    "inactive_split_bytes",
    "requested_live_bytes",  # what was requested for the live blocks, before rounding
    "num_alloc_retries",
    "num_ooms",
    "num_allocations",
)
"""Keys of `meta["memory"]`: torch's counters at the error. Peaks are those since the last
step, or since the start where `device_peaks` is run; the last three count since then."""

HOST: Final = (
    "rss_bytes",
    "memory_available_bytes",
    "memory_total_bytes",
    "memory_limit_bytes",  # the control group's
)  # Keys of `meta["host"]`

LAST_STEP: Final = (
    "step",
    "time_ns",
    "allocated_bytes",
    "allocated_peak_bytes",
    "reserved_bytes",
    "reserved_peak_bytes",
)
"""Keys of `meta["last_step"]`: the last finished training step. A peak is the step's own."""

META: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "version": VERSION,
        "report": 0,
        "origin": "oom",
        "is_out_of_memory": True,  # else an exception of another kind, or a signal
        "num_ooms": 0,  # seen by this recording so far, this one included
        "num_not_reported": 0,  # of those: without a report of their own
        "device_type": "cpu",
        "device": None,  # index; None: the host, or not known
        # As torch asked the device for it: small requests rounded up to a segment.
        "requested_bytes": None,
        "device_free_bytes": None,
        "device_total_bytes": None,
        "device_limit_bytes": None,  # what torch may use of it, where that is less
        "other_bytes": None,  # in use, and not by torch's allocator here
        "memory": None,  # see MEMORY
        "last_step": None,  # see LAST_STEP; None before the first
        "host": None,  # see HOST
        "parsed": (),  # which of the bytes above are the exception's text: two decimals
        "exception": None,  # type, module, message; None: none was raised yet
        "signal": None,  # SIGTERM
        "thread": "",  # on which it happened
        "spans": (),  # under way, outermost first
        "functions": (),  # collected calls under way, outermost first
        "rank": None,
        "local_rank": None,
        "world_size": None,
        "host_name": "",
        "allocator": None,  # settings (text), backend, and torch's own settings by name
        "history": None,  # recording, stacks, max_entries, events, why_not
        "holders": None,  # live_bytes, num_blocks, source, why_not
        "simulated": False,
        "report_us": None,  # what making it took
    }
)
"""Every key of the meta, with what stands where nothing is known."""

MAX_FRAMES: Final = 80
"""Frames of the failing call, per thread."""

MAX_HOLDERS: Final = 32
MAX_HOLDER_FRAMES: Final = 40
MAX_MESSAGE: Final = 4000

Frame: TypeAlias = "tuple[str, str, int]"


def stack_table(threads: Sequence[Sequence[Frame]]) -> CaptureTable:
    """Table `stack` from the frames of the failing thread, and of the main one."""
    rows = [
        (number, *frame)
        for number, frames in enumerate(threads)
        for frame in frames[:MAX_FRAMES]
    ]
    return {
        "thread": _ints([row[0] for row in rows]),
        "name": tuple(row[1] for row in rows),
        "filename": tuple(row[2] for row in rows),
        "line": _ints([row[3] for row in rows]),
    }


def holder_tables(
    holders: Sequence[tuple[int, int, Sequence[Frame], int]],
) -> dict[str, CaptureTable]:
    """Tables `holders` and `holder_frames` from bytes, blocks, frames and category."""
    kept = [
        (num_bytes, blocks, frames[:MAX_HOLDER_FRAMES], category)
        for num_bytes, blocks, frames, category in holders[:MAX_HOLDERS]
    ]
    frames = [(row, *frame) for row, holder in enumerate(kept) for frame in holder[2]]
    return {
        "holders": {
            "num_bytes": _ints([holder[0] for holder in kept]),
            "num_blocks": _ints([holder[1] for holder in kept]),
            "num_frames": _ints([len(holder[2]) for holder in kept]),
            "category": _ints([holder[3] for holder in kept]),
        },
        "holder_frames": {
            "holder": _ints([frame[0] for frame in frames]),
            "name": tuple(frame[1] for frame in frames),
            "filename": tuple(frame[2] for frame in frames),
            "line": _ints([frame[3] for frame in frames]),
        },
    }


def category_table(sums: Sequence[tuple[int, int, int]]) -> CaptureTable:
    """Table `categories` from category, bytes and number of tensors."""
    names = ("category", "num_bytes", "num_tensors")
    return {
        column: _ints([row[index] for row in sums])
        for index, column in enumerate(names)
    }


def _ints(values: Sequence[int]) -> Any:
    return np.array(values, np.int64)

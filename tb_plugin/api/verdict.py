"""Responses about out-of-memory errors: what happened, why, and what to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from tb_plugin.api.base import (
        F64Column,
        I32Column,
        Problem,
        RunSummary,
        U8Column,
        Unit,
    )
    from tb_plugin.api.modules import CategoryGroup

OomCause: TypeAlias = Literal[
    "really_full",
    "fragmented",
    "growth",
    "single_giant",
    "imbalance",
    "non_torch",
    "fitting_block_free",
    "private_pools",
    "pending_free",
    "process_limit",
    "unsure",
]
"""Why a request could not be served; `tb_plugin.analysis.oom.verdict` says how each is told.

really_full         what the training holds at once is more than the device has
fragmented          enough is free where the request belongs, in pieces too small
growth              memory retained across steps filled the GPU
single_giant        one request far beyond all before it, while there was room for those
imbalance           this rank holds much more than the others, which have room
non_torch           memory outside torch took what torch would have needed
fitting_block_free  a free block would have fitted, of another stream or memory pool
private_pools       much is free, but in private memory pools that the request may not use
pending_free        memory was freed, and waits until another stream is done with it
process_limit       the device had room, and a limit on this process refused the request
unsure              the recorded facts fit none of them
"""

OomOrigin: TypeAlias = Literal["oom", "exception", "signal", "file"]
"""The out-of-memory observer; an exception nobody caught; a signal that ended the
process; or an event inside a snapshot that something else wrote."""


@dataclass(frozen=True, slots=True)
class VerdictEvidence:
    """One number that the verdict rests on."""

    key: str
    """Names it in reports; stays the same from release to release."""
    label: str
    value: float
    unit: Unit
    scope: str
    """Of what and when, e.g. `device 1, at the error`."""
    caveat: str
    """What makes it less than measured and whole; empty: nothing does."""
    decisive: bool
    """The cause was told by it; the others are there to weigh it."""


@dataclass(frozen=True, slots=True)
class VerdictAdvice:
    """Something to try, given only where evidence supports it."""

    text: str
    setting: str
    """A line to copy, e.g. an environment variable; empty: none."""
    bytes: float | None
    """What is at stake, at most; None where it cannot be told."""
    because: tuple[str, ...]
    """Keys of the evidence."""


@dataclass(frozen=True, slots=True)
class VerdictHolder:
    """Memory that was live at the error, by the line that allocated it."""

    label: str
    """Function, file and line; or what the recording says of it."""
    category: CategoryGroup | None
    """What most of its bytes are; None where it is not known."""
    bytes: float
    share: float
    """Of all live bytes, 0 to 1."""
    num_blocks: int
    stack: int | None
    """Of the history's stacks: the one of them that holds most."""


@dataclass(frozen=True, slots=True)
class OomPeers:
    """Last known state of the other ranks, one row each; NaN: not recorded."""

    rank: I32Column
    step: F64Column
    """Last step that was written."""
    allocated_bytes: F64Column
    """Highest in its last steps."""
    reserved_bytes: F64Column
    """Likewise."""
    peak_bytes: F64Column
    """Highest allocated, or of snapshots active, bytes so far."""
    ended: U8Column
    """0: still running or unknown, 1: closed, 2: by an exception, 3: lost, 4: by a
    signal."""
    ran_out: U8Column
    """1: this rank ran out of memory too."""


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """One out-of-memory error, or an end that left a report about memory."""

    id: str
    """Stays the same while the run grows."""
    origin: OomOrigin
    is_out_of_memory: bool
    """False: the process ended otherwise, and said how much memory it held."""
    rank: int | None
    """None: a file whose name tells none."""
    attempt: int
    file: str
    """The snapshot, relative to the logdir, or the name of the rank's recording."""
    device: int | None
    step: int | None
    phase: str
    """Of the training, e.g. `train`; empty where it is not known."""
    during: str
    """What was under way, e.g. `backward`, or a span's name; empty where unknown."""
    asked_at: str
    """The line that asked for the memory, e.g. `model.py:128 forward`; may be empty."""
    time_ms: float | None
    message: str
    """Of the exception, as text; may be cut."""
    analysed: bool
    """False: from the report alone; the history may say more once it was read."""
    cause: OomCause
    also: tuple[OomCause, ...]
    """Smaller troubles beside it."""
    num_earlier: int
    """Errors of the same process before it, which it survived."""
    sentence: str
    """The verdict, and how many errors the program survived before."""
    held_sentence: str
    """Who held the memory, in one sentence; empty where nothing is known of that."""
    requested_bytes: float | None
    device_free_bytes: float | None
    capacity_bytes: float | None
    reserved_bytes: float | None
    allocated_bytes: float | None
    active_bytes: float | None
    free_bytes: float | None
    """In blocks where the request belongs: its pool and stream."""
    num_free_blocks: int | None
    largest_free_bytes: float | None
    """The largest of them."""
    evidence: tuple[VerdictEvidence, ...]
    advice: tuple[VerdictAdvice, ...]
    holders: tuple[VerdictHolder, ...]
    """At most 12, the largest first."""
    stack: tuple[str, ...]
    """Of the request, innermost frame first; at most 40."""
    history: str | None
    """Names the history in requests; None: none was captured."""
    moment: int | None
    """Event of the history's device to open it at: the error itself."""
    peers: OomPeers
    report: str
    """All of it as Markdown, to be copied."""
    not_recorded: tuple[str, ...]
    """What would have made the verdict surer, each with how to record it."""


@dataclass(frozen=True, slots=True)
class VerdictResponse:
    """Route `/verdict` (run, rank): why memory ran out.

    The error that ended a rank comes first, of several ranks the earliest; errors that a
    program survived follow, and other ends last.
    """

    run: RunSummary
    ooms: tuple[OutOfMemory, ...]
    """At most 20."""
    num_ooms: int
    """All that are known."""
    still_reading: bool
    """Histories are being read: ask again."""
    problems: tuple[Problem, ...]

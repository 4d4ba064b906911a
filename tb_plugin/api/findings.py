"""Findings: what every rule returns, and every page and report shows in one way.

A rule is a function beside its threshold that returns findings, or none. What it could
not measure is None, never zero.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import Problem, RunSummary

Severity: TypeAlias = Literal["error", "warning", "info"]
"""error: it ended a training; warning: it costs memory or time; info: nothing is wrong."""

Quantity: TypeAlias = Literal["bytes", "count", "percent", "seconds"]

PageName: TypeAlias = Literal[
    "overview", "timeline", "steps", "blocks", "modules", "trace", "operators"
]
"""As the page's address names them."""


OomOrigin: TypeAlias = Literal["oom", "exception", "signal", "file"]
"""The out-of-memory observer; an exception nobody caught; a signal that ended the
process; or an event inside a snapshot that something else wrote."""


class Evidence(Struct, frozen=True):
    """One number that a finding rests on."""

    key: str
    """Names it in reports; stays the same from release to release."""
    label: str
    value: float
    unit: Quantity
    scope: str
    """Of what and when, e.g. `device 1, at the error`."""
    caveat: str = ""
    """What makes it less than measured and whole; empty: nothing does."""
    decisive: bool = False
    """The finding was made by it; the others are there to weigh it."""


class Advice(Struct, frozen=True):
    """Something to try, given only where evidence supports it."""

    text: str
    gain: float | None = None
    """What it saves at most; None where that cannot be told."""
    unit: Quantity = "bytes"
    """Of the gain; seconds are per step."""
    because: tuple[str, ...] = ()
    setting: str = ""
    """A line to copy, e.g. an environment variable; empty: none."""


class Place(Struct, frozen=True):
    """Where to look: a page and what it is to show."""

    page: PageName
    label: str
    """Of the button that leads there."""
    rank: int | None = None
    step: int | None = None
    source: str | None = None
    """A trace, as requests name it."""
    history: str | None = None
    """A history of the allocator, as requests name it."""
    device: int | None = None
    moment: int | None = None
    """Event of that history's device."""


class HeldBy(Struct, frozen=True):
    """Memory that was active at an error or at a peak, by the line that allocated it."""

    label: str
    """`model.py:128 forward`; empty where no stack was recorded."""
    category: str | None
    """What most of its bytes are; None where it is not known."""
    bytes: float
    share: float
    """Of all active bytes, 0 to 1."""
    num_blocks: int
    is_pending: bool = False
    """Freed, and active until another stream is done with it: a row of its own."""


class PeerState(Struct, frozen=True):
    """Last known state of another rank."""

    rank: int
    step: float | None = None
    """Last step that was written."""
    allocated_bytes: float | None = None
    """Highest in its last steps."""
    reserved_bytes: float | None = None
    peak_bytes: float | None = None
    """Highest allocated, or of snapshots active, bytes so far."""
    ended: str = ""
    """closed, exception, signal or lost; empty: it runs, or it is not known."""
    ran_out: bool = False
    """This rank ran out of memory too."""


class MemoryState(Struct, frozen=True):
    """What was live when memory ran out, or when a process ended otherwise."""

    origin: OomOrigin
    is_out_of_memory: bool
    """False: the process ended otherwise, and said how much memory it held."""
    analysed: bool
    """False: from the report alone; the history may say more once it was read."""
    attempt: int
    file: str
    """The snapshot, relative to the logdir, or the name of the rank's recording."""
    message: str
    """Of the exception, as text; may be cut."""
    num_earlier: int
    """Errors of the same process before it, which it survived."""
    held_sentence: str
    """What held the memory, in one sentence; empty where nothing is known of that."""
    held_by: tuple[HeldBy, ...]
    """At most 12, the largest first."""
    stack: tuple[str, ...]
    """Of the request, innermost frame first; at most 40."""
    peers: tuple[PeerState, ...]
    """At most 64: those that ran out first, then by their peaks."""


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or worth knowing."""

    id: str
    """Tells it from others of its key; stays the same while the run grows."""
    key: str
    """Of the rule; of errors the cause."""
    severity: Severity
    title: str
    """In a few words, e.g. `Out of memory: fragmentation`."""
    sentence: str
    short: str = ""
    """The sentence for a row of a list: with the line and the step at which memory is
    full, where there are any. Empty: the sentence is short."""
    rank: int | None = None
    device: int | None = None
    step: int | None = None
    time_ms: float | None = None
    during: str = ""
    """What was under way, e.g. `backward`; empty where unknown."""
    line: str = ""
    """The source line it is about, e.g. `model.py:128 forward`; may be empty."""
    cost: float | None = None
    unit: Quantity = "bytes"
    """Of the cost; seconds are per step, per cent are of the steps' time."""
    also: tuple[str, ...] = ()
    """Smaller troubles beside it, in words."""
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    place: Place | None = None
    others: tuple[str, ...] = ()
    """More of the same on other ranks, a sentence each; at most 16."""
    rule: str = ""
    """The threshold from which on it is said, and whose rule that is."""
    not_recorded: tuple[str, ...] = ()
    """What would have made it surer, each with how to record it."""
    state: MemoryState | None = None
    markdown: str = ""
    """All of it, to be copied; answers alone have it."""


class FindingsResponse(Struct, frozen=True):
    """Route `/findings` (run, rank): all that was found, the worst first.

    Of out-of-memory errors the one that ended a rank comes first, of several ranks the
    earliest; errors that a program survived follow, and other ends last.
    """

    run: RunSummary
    findings: tuple[Finding, ...]
    """At most 20 of them are out-of-memory errors."""
    num_errors: int
    """All out-of-memory errors that are known."""
    still_reading: bool
    """Histories or traces are being read: ask again."""
    problems: tuple[Problem, ...]
    """Histories that could not be read."""

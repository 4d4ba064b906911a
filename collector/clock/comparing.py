"""Compares this rank's clock with rank 0's while training runs, and notes the offset.

Ranks of one host share its monotonic clock, and their offset is known from the headers:
each note says which host it was. Otherwise round trips through torch.distributed compare
them, which are calls that all ranks make between two steps, and therefore happen only
where the settings ask for them. Otherwise there is the wall clock, with the bound that the
kernel knows, or none.

Notes of kind `clock` hold `offset_ns`, `error_ns` (None: nobody knows), `method`,
`reference_rank` (None: true time), `monotonic_ns` (the moment), `wall_ahead_ns` (how far
the wall clock was ahead of recorded times then), the schedule's `cycle` and `host_id`. A
wall clock that was set is a note of kind `clock_jump`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.clock.distributed import RoundTrips, best_of
from memboard.collector.clock.process_clock import PROCESS_CLOCK
from memboard.collector.config.schedule import Action
from memboard.collector.core.guard import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.clock.process_clock import ProcessClock
    from memboard.collector.config.sections import ClockMethod
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.steps.cycles import Cut, Cycles

    Note = Callable[[str, dict[str, Any]], None]

ROUND_TRIPS: Final = 8
"""Questions per comparison: the one that was answered fastest counts."""

_JUMP_NS: Final = 1_000_000
"""Largest drift of the wall clock between two readings without having been set."""


class ClockComparing:
    """Of one recording; see the module. Never raises."""

    def __init__(
        self,
        method: ClockMethod,
        note: Note,
        cycles: Cycles,
        warn_once: WarnOnce,
        clock: ProcessClock = PROCESS_CLOCK,
    ) -> None:
        self._method = method
        self._note = note
        self._cycles = cycles
        self._warn_once = warn_once
        self._clock = clock
        self._host = host_id()
        self._ahead_ns = clock.ahead_ns()
        self._trips: RoundTrips | None = None
        self._last_cycle = 0

    def start(self) -> None:
        """Compare from now on. Every recording holds how far its wall clock may be off."""
        if self._method == "off":
            return
        self._tell_wall()
        if self._method == "distributed":
            self._trips = RoundTrips(self._clock)
            self._cycles.listen_to_edges(self)

    def look(self) -> None:
        """Notice a wall clock that was set. On the writer's thread."""
        ahead = self._clock.ahead_ns()
        jumped = ahead - self._ahead_ns
        if abs(jumped) < _JUMP_NS:
            return
        self._ahead_ns = ahead
        self._note("clock_jump", {"jumped_ns": jumped, "wall_ahead_ns": ahead})
        self._tell_wall()
        self._warn_once(
            "clock",
            "the wall clock of this host was set by %+.3f s. Recorded times do not follow:"
            " they stay true to one another. Keep clocks by slewing (chrony, ntpd).",
            jumped / 1e9,
        )

    # For the cycles of the schedule, on the thread that trains.

    def begin(self, step: int) -> None:  # noqa: ARG002  # see `StepListener`
        """A cycle's first step is a moment to compare at."""
        if self._cycles.cycle != self._last_cycle:
            self._last_cycle = self._cycles.cycle
            self._compare_now()

    def end(self, step: int) -> None:  # noqa: ARG002
        """So is its last one."""
        if self._cycles.action is Action.ACTIVE_AND_SAVE:
            self._compare_now()

    def cut(self, why: Cut) -> None:
        """Other ranks may not be cut: nothing to wait for together."""

    def _compare_now(self) -> None:
        with Block(self._give_up):
            if self._trips is not None and self._trips.is_possible:
                best = best_of(self._trips.make(ROUND_TRIPS))
                if best is not None:
                    at_ns, offset = best.at_ns, best.offset_ns
                    self._put(at_ns, offset, best.error_ns, "distributed", 0)

    def _give_up(self, error: BaseException) -> None:
        self._trips = None
        self._warn_once(
            "clock distributed",
            "clocks could not be compared through torch.distributed, and are not any"
            " more. Every rank must reach the same cycles of the schedule, and torch"
            " must have gloo.",
            error=error,
        )

    def _tell_wall(self) -> None:
        self._put(self._clock.now_ns(), self._ahead_ns, wall_error_ns(), "wall", None)

    def _put(
        self,
        at_ns: int,
        offset_ns: int,
        error_ns: int | None,
        method: str,
        reference_rank: int | None,
    ) -> None:
        data = {
            "offset_ns": offset_ns,
            "error_ns": error_ns,
            "method": method,
            "reference_rank": reference_rank,
            "monotonic_ns": at_ns - self._clock.to_wall_ns,
            "wall_ahead_ns": self._ahead_ns,
            "cycle": self._cycles.cycle,
            "host_id": self._host,
        }
        self._note("clock", data)


_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_TIME_NAMESPACE: Final = "/proc/self/ns/time"
_TIME_ERROR: Final = 5
"""`ntp_gettime` returns it where nothing keeps the clock."""

_MAX_ERROR_US: Final = 16_000_000
"""The kernel counts no further: from there on it says nothing."""


def host_id() -> str:
    """Equal in processes that share one monotonic clock; empty where unknown.

    The kernel's start and the time namespace: host names repeat in containers.
    """
    try:
        boot = Path(_BOOT_ID).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    try:
        namespace = os.readlink(_TIME_NAMESPACE)  # noqa: PTH115  # no path, a name
    except OSError:  # a kernel without time namespaces: there is only one
        namespace = ""
    return f"{boot} {namespace}".strip()


def wall_error_ns() -> int | None:
    """How far the system takes its wall clock to be from true time, at most.

    From the kernel's `maxerror`, which the program that keeps the clock (chrony, ntpd,
    systemd-timesyncd) maintains. None where nothing keeps it, or on another system.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        timex = (ctypes.c_long * 16)()  # seconds, fraction, bound in us, more
        state = ctypes.CDLL(None).ntp_gettime(timex)
    except (OSError, AttributeError):
        return None
    bound_us = timex[2]
    if state in (-1, _TIME_ERROR) or not 0 <= bound_us < _MAX_ERROR_US:
        return None
    return bound_us * 1000

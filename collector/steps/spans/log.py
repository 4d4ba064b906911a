"""Spans, instants and counters as they happen: bounded, end to end, no object for each.

The training thread adds a row to a list and goes on; what rows come to is found on the
writer's thread. A row's values lie one after the other in the list, so nothing is made
for it but the numbers themselves, and a column of many rows is a slice. Adding a row is
one operation of the list, so any thread may, while another one takes the front away.

Two things become of a span: it is kept, one by one (`span_captures`), and it is summed up
with those of its name. Which of them is said by its `flags`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.core.plain import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memboard.collector.config.schedule import Action
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.steps.parts import StepParts

KEPT: Final = 1
SUMMED: Final = 2
"""Flags of a span's row."""

USER: Final = "user"
"""The category of spans that say none."""

SPAN_WIDTH: Final = 10
"""Values of a span: name, category, thread's ident, begin and duration in ns of
`clock_ns`, depth, `At`, flags, args or None, highest memory or None."""

INSTANT_WIDTH: Final = 6
"""Of an instant: name, category, thread's ident, time, `At`, args or None."""

COUNTER_WIDTH: Final = 4
"""Of a counter: name, time, `At`, value."""

STEPS: Final = 0
"""In place of a thread's ident: the training thread's steps, a track of their own, as
what happens between two calls of `rec.step()` need not begin and end within one."""

WAKE_AT: Final = 4096
"""Spans that wait before the writer is woken."""

MAX_WAITING: Final = 65_536
"""Spans that wait at most: some ten megabytes."""

MAX_NAMES: Final = 64
"""Names made up in a loop must not fill the disk."""

OTHER: Final = "other"

At: TypeAlias = "list[int]"
"""State of a step: its number, the index of its action (`STATES`), its cycle.
One for all rows of the step: its number may turn out to be another one at its end."""

STATES: Final = ("SKIP", "WARMUP", "ACTIVE", "ACTIVE_AND_SAVE")
"""Names of `schedule.Action`, in the order of their numbers on the disk."""

_MAX_STATES: Final = 16
"""Names that are looked at: some may be given twice, and an iterator has no end."""

_STATE_OF: Final = {name: number for number, name in enumerate(STATES)}

ALL_STATES: Final = 0b1111

clock_ns: Final = time.perf_counter_ns


@dataclass(frozen=True, slots=True)
class SpanOptions:
    """What is special about a span, so that its begin need not ask."""

    category: str = USER
    states: int | None = None
    """Bits of the states in which it is kept; None: as the settings say."""
    memory: bool = False
    """Whether it is a profiled call too."""
    part: int = -1
    """Which part of a step it is; -1: none."""
    flags: int = SUMMED  # Besides `KEPT`
    is_special: bool = False
    """Whether it has states of its own or is a profiled call."""


PLAIN: Final = SpanOptions()


def states_mask(states: Iterable[str]) -> int:
    """One bit per state; names as in the settings, in whatever case.

    Raises:
        ValueError: there is no such state.
    """
    mask = 0
    for state_name in (
        (states,) if isinstance(states, str) else islice(states, _MAX_STATES)
    ):
        state = _STATE_OF.get(text_of(state_name).upper())
        if state is None:
            raise ValueError(
                f"{text_of(state_name, 80)!r} is not a state of the schedule. Use"
                f" {', '.join(state.lower() for state in STATES)}."
            )
        mask |= 1 << state
    return mask


class SpanLog:
    """What one recording's spans leave behind. Safe from any thread; never raises."""

    def __init__(
        self, *, states: int, device: Device, wake: Callable[[], None]
    ) -> None:
        """`states`: in which spans are kept by themselves. `wake` the writer.

        `device`: its ledger of peaks is asked around spans, where there is one.
        """
        self.device = device
        self.parts: StepParts | None = None
        """What a step's time goes to; None: nobody wants to know."""
        self.at: At = [-1, _STATE_OF["SKIP"], 0]
        """Of the step under way."""
        self.keeps = 0
        """`KEPT` where a span that begins now is kept, unless it says so itself."""
        self._totals: dict[str, list[int]] = {}
        """Of spans since the last time, by name: number, total and longest time in us,
        highest memory or -1."""
        self.spans: list[Any] = []
        self.instants: list[Any] = []
        self.counters: list[Any] = []
        self.num_dropped = 0
        """That were not kept, for want of room."""
        self.wake_at = WAKE_AT * SPAN_WIDTH
        """How long `spans` gets before `crowded` must be called."""
        self.threads: dict[int, tuple[int, str]] = {}
        """Native number and name by ident."""
        self._states = states
        self._state = _STATE_OF["SKIP"]
        self._action: Action | None = None  # Whose index `_state` is
        self._wake = wake
        self._lock = threading.RLock()

    def begin_step(self, step: int, action: Action, cycle: int) -> None:
        if action is not self._action:  # which is seldom, and names are slow to ask for
            self._action, self._state = action, _STATE_OF[action.name]
            self.keeps = self._states >> self._state & KEPT
        self.at = [step, self._state, cycle]

    def kept(self, states: int | None) -> int:
        """`KEPT` or 0: of what says itself in which states it is kept, or of the rest."""
        return self.keeps if states is None else states >> self.at[1] & KEPT

    def know_thread(self, ident: int) -> None:
        """Remember who has the ident of the calling thread."""
        thread = threading.current_thread()
        self.threads[ident] = (threading.get_native_id(), thread.name[:200])

    def add_instant(
        self, name: str, category: str, args: dict[str, Any] | None, states: int | None
    ) -> None:
        if not self.kept(states):
            return
        if len(self.instants) >= MAX_WAITING * INSTANT_WIDTH:
            self.num_dropped += 1
            return
        ident = threading.get_ident()
        if ident not in self.threads:
            self.know_thread(ident)
        self.instants += (text_of(name), category, ident, clock_ns(), self.at, args)
        if len(self.instants) == WAKE_AT * INSTANT_WIDTH:
            self._wake()

    def add_counter(self, name: str, value: float, states: int | None) -> None:
        """A counter has this value from now on."""
        if not self.kept(states):
            return
        if len(self.counters) >= MAX_WAITING * COUNTER_WIDTH:
            self.num_dropped += 1
            return
        self.counters += (text_of(name), clock_ns(), self.at, value)
        if len(self.counters) == WAKE_AT * COUNTER_WIDTH:
            self._wake()

    def crowded(self) -> None:
        """Many wait: have them written; where that takes too long, only sum them up."""
        if len(self.spans) >= MAX_WAITING * SPAN_WIDTH:
            rows = self.take_spans()
            self.num_dropped += sum(flags & KEPT for flags in rows[7::SPAN_WIDTH])
        else:
            self.wake_at = MAX_WAITING * SPAN_WIDTH
            self._wake()

    def take_spans(self) -> list[Any]:
        """All rows so far, summed up."""
        with self._lock:
            rows = taken(self.spans)
            self.wake_at = WAKE_AT * SPAN_WIDTH
        rows[0::SPAN_WIDTH] = map(text_of, rows[0::SPAN_WIDTH])
        with self._lock:
            for name, duration_ns, flags, peak_bytes in zip(
                rows[0::SPAN_WIDTH],
                rows[4::SPAN_WIDTH],
                rows[7::SPAN_WIDTH],
                rows[9::SPAN_WIDTH],
                strict=True,
            ):
                if flags & SUMMED:
                    self._sum_up(name, duration_ns // 1000, peak_bytes or -1)
        return rows

    def _sum_up(self, name: str, duration_us: int, peak_bytes: int) -> None:
        """Count a span; beyond `MAX_NAMES` names since the last time as other."""
        totals = self._totals
        if name not in totals and len(totals) >= MAX_NAMES:
            name = OTHER
        number, total, longest, peak = totals.get(name, (0, 0, 0, -1))
        totals[name] = [
            number + 1,
            total + duration_us,
            max(longest, duration_us),
            max(peak, peak_bytes),
        ]

    def take_totals(self) -> list[dict[str, Any]]:
        """The notes' data of spans since the last time, by name."""
        with self._lock:
            totals, self._totals = self._totals, {}
        return [
            {
                "name": name,
                "num_spans": number,
                "total_us": total,
                "max_us": longest,
                "allocated_peak_bytes": None if peak < 0 else peak,
            }
            for name, (number, total, longest, peak) in totals.items()
        ]


def taken(rows: list[Any]) -> list[Any]:
    """What is in the list, taken out of it; what comes meanwhile stays."""
    length = len(rows)
    rows_taken: list[Any] = rows[:length]
    del rows[:length]
    return rows_taken

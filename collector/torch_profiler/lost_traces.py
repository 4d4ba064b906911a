"""Cycles of the schedule of which there is no trace: each in the log and in the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.core.warn_once import warn
from memboard.collector.format.capture import TRACE_LOST
from memboard.collector.torch_profiler.digest.report import capture_of

if TYPE_CHECKING:
    from memboard.collector.core.calls import Sink
    from memboard.collector.torch_profiler.trace import Trace

MAX_SAID: Final = 20
"""Lines in the log; what is more is named in one at the end."""

_MAX_REASON: Final = 500


class LostTraces:
    """Of one recording. Safe on any thread."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._said: set[int] = set()
        """Cycles with a line in the log."""
        self._unsaid: list[int] = []

    def add(
        self,
        trace: Trace,
        why: str,
        remedy: str,
        *,
        error: BaseException | None = None,
    ) -> None:
        """A trace that was recorded is not there."""
        self._say(
            trace.cycle,
            "the trace of steps %d to %d (cycle %d) was not saved and nothing of it is"
            " left: %s. Training and recording go on. %s",
            (trace.first_step, trace.last_step, trace.cycle, why, remedy),
            error,
        )
        self.record(trace, f"not saved: {why}")

    def refused(self, cycle: int, why: str) -> None:
        """A cycle begins, and nothing of it will be recorded."""
        self._say(
            cycle,
            "cycle %d is not traced: %s. Later cycles are, where that is over.",
            (cycle, why),
            None,
        )

    def record(self, trace: Trace, why: str) -> None:
        """Have the recording name it."""
        if trace.cycle not in self._said:
            self._unsaid.append(trace.cycle)
        problem = why[:_MAX_REASON]
        self._sink.put_capture(capture_of(trace, context=TRACE_LOST, problem=problem))

    def close(self) -> None:
        """Name in the log what had no line of its own."""
        cycles, self._unsaid = sorted(set(self._unsaid)), []
        if cycles:
            warn(
                "%d further cycles have no trace: %s. The recording names each with its"
                " steps and its cause.",
                len(cycles),
                _ranges(cycles),
            )

    def _say(
        self,
        cycle: int,
        message: str,
        values: tuple[object, ...],
        error: BaseException | None,
    ) -> None:
        if len(self._said) < MAX_SAID:
            self._said.add(cycle)
            warn(message, *values, error=error)


def _ranges(numbers: list[int]) -> str:
    """`5, 7 to 12`, of ascending ones."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in ranges)

"""What a cycle of the schedule ended with: a trace, or nothing and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memboard.collector.torch_profiler.session import ProfilerOptions


@dataclass(slots=True, kw_only=True)
class Trace:
    """A trace on its way to the disk."""

    profile: Any
    """torch's, stopped; whoever has saved it lets it go."""
    wanted: ProfilerOptions
    cycle: int
    first_step: int
    last_step: int
    num_steps: int
    start_ns: int
    end_ns: int  # Wall clock
    stop_us: int
    moment: dict[str, Any]
    """Variables of file names: see `moments`."""
    problem: str
    """Why it is not a whole cycle; empty where it is."""
    tracks_modules: bool
    """Whether our dispatch mode was on: it calls operators twice."""


@dataclass(slots=True, kw_only=True)
class MissedCycle:
    """A cycle of which nothing is recorded."""

    cycle: int
    why: str
    first_step: int | None = None
    """None as long as no step has begun that was to be recorded."""
    last_step: int = 0
    num_steps: int = 0
    """Whole ones that were to be recorded."""
    start_ns: int = 0  # Wall clock

"""The settings of clocks: how those of the ranks are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from collector.config_checks import check_fields

ClockMethod: TypeAlias = Literal["auto", "files", "distributed", "wall"]
"""How clocks are compared; see `ClockConfig.method`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockConfig:
    """Samples of how far each rank's clock is from rank 0's, with error bounds."""

    enabled: bool = True
    """Whether clocks are compared. A wall clock that jumps is noticed anyway."""

    method: ClockMethod = "auto"
    """auto and files: questions and answers as small files in the run's directory, on a
    thread of their own; ranks of one host need only one. distributed: round trips with
    rank 0 in a gloo group of its own, at the begin and end of each cycle of the schedule,
    which every rank must then reach. wall: what the system says of its clock."""

    interval_seconds: float = field(default=30.0, metadata={"least": 0.1, "most": 3600})
    """Seconds between two comparisons through files."""

    round_trips: int = field(default=8, metadata={"least": 1, "most": 1000})
    """Questions per comparison: the one that was answered fastest counts."""

    def __post_init__(self) -> None:
        check_fields(self)

"""The task of a process that `memboard run --on` starts on a virtual GPU, and its outcome.

Both travel as JSON files: the process may be another Python than the one that asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from memboard.collector.format.prediction import (
    DeviceFigures,
    Ended,
    Estimate,
    Prediction,
)
from memboard.collector.format.sizes import counted
from memboard.collector.process.whole_file import write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one process is to do."""

    target: str
    arguments: list[str]
    is_module: bool
    run_dir: str
    outcome: str
    """The file to write `Outcome` to."""
    steps: int
    """Training steps after which it is stopped, the first one to warm up included."""
    config: list[str] | None = None
    keywords: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: float | None = None
    ranks: Literal["alone", "lone", "all"] = "alone"
    """alone: no job of several ranks; lone: one rank of a job whose others do not run; all:
    every rank runs, as processes that share virtual devices."""
    messages: str = ""
    """A folder for the objects that ranks send each other, where they are `lone`."""
    capacity: int = 0  # Of each device; bytes
    host: int | None = None
    """The host whose devices it shares with other ranks; None: they are its own."""
    estimates: list[Estimate] = field(default_factory=list)
    """What each device holds outside of torch's allocator, whatever the program does."""
    each_communicator: Estimate | None = None
    """What one of NCCL's communicators takes beside them; None: they have it in them."""

    def outside(self, num_communicators: int) -> list[Estimate]:
        """All that a device holds outside of torch's allocator."""
        each, number = self.each_communicator, num_communicators
        if each is None or not number:
            return self.estimates
        name = f"{each.name}, {counted(number, 'communicator')}"
        low, high = number * each.low, number * each.high
        return [*self.estimates, replace(each, name=name, low=low, high=high)]

    @property
    def own_runtimes_file(self) -> Path:
        """Where libraries are named that bring a CUDA runtime of their own."""
        return Path(f"{self.outcome}.libraries")

    def own_runtimes(self) -> list[str]:
        """The libraries that are named there."""
        try:
            return self.own_runtimes_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def write(self, path: Path) -> None:
        write_whole(path, msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> Plan:
        return msgspec.json.decode(path.read_bytes(), type=cls)


@dataclass(slots=True, kw_only=True)
class Place:
    """A line that read values of the device which are not real."""

    file: str
    """Empty where no line of the program did, but a thread of torch."""
    line: int
    function: str
    count: int = 0
    by: str = ""
    """The function of torch that read them for it; empty: the line itself did."""
    is_only_shown: bool = False
    """It prints, logs or drops them; else sizes or the program's way may depend on them."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What has come of it, as far as it was written down."""

    ended: Ended = ""
    error: str = ""
    """The exception that ended it, in one line."""
    exit_code: int | None = None
    num_steps: int = 0
    rank: int = 0
    torch: str = ""
    devices: list[DeviceFigures] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)
    """What lies outside of torch's allocator."""
    places: list[Place] = field(default_factory=list)
    """Those that decide before those that only show, each by how often they read."""
    num_places_left_out: int = 0
    absent: list[str] = field(default_factory=list)
    """What absent ranks did not answer, in words."""
    unsuitable: list[str] = field(default_factory=list)
    """Loaded libraries that bring a CUDA runtime of their own."""

    def write(self, path: Path) -> None:
        """Write it as JSON; what was there is replaced at once."""
        write_whole(path, msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """Read it back; an empty one where nothing was written."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, ValueError):
            return cls()

    def prediction(self, capacity: int, host: int | None) -> Prediction:
        """What of it decides whether the program fits devices of so many bytes."""
        return Prediction(
            capacity=capacity,
            host=host,
            estimates=tuple(self.estimates),
            ended=self.ended,
            error=self.error,
            unsuitable=tuple(self.unsuitable),
            devices=tuple(self.devices),
        )

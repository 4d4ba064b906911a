"""What `memboard run --on` asks of a process on a virtual GPU, and what comes of it.

Both travel as JSON files: the process may be another Python than the one that asks.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Ended: TypeAlias = Literal["", "stopped", "finished", "raised", "out_of_memory"]
"""stopped: by us, after its steps; finished: by itself; empty: it did not come to an end
that could be written down."""


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

    @property
    def own_runtimes_file(self) -> Path:
        """Where libraries are named that bring a CUDA runtime of their own."""
        return Path(f"{self.outcome}.libraries")

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        _write(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read it back."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


@dataclass(slots=True, kw_only=True)
class DeviceFigures:
    """What torch's allocator says of one device at the end; bytes."""

    index: int
    allocated_peak: int
    active_peak: int
    reserved_peak: int
    num_alloc_retries: int
    num_ooms: int


@dataclass(slots=True, kw_only=True)
class Place:
    """A line that read values of the device which are not real."""

    file: str
    line: int
    function: str
    count: int
    by: str = ""
    """The function of torch that read them for it; empty: the line itself did."""


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
    num_communicators: int = 0
    """Groups of NCCL with more than one rank."""
    places: list[Place] = field(default_factory=list)
    """Those that read most often first."""
    num_places_left_out: int = 0
    absent: list[str] = field(default_factory=list)
    """What absent ranks did not answer, in words."""
    unsuitable: list[str] = field(default_factory=list)
    """Loaded libraries that bring a CUDA runtime of their own."""

    def write(self, path: Path) -> None:
        """Write it as JSON; what was there is replaced at once."""
        _write(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """Read it back; an empty one where nothing was written."""
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return cls()
        plain["devices"] = [DeviceFigures(**one) for one in plain["devices"]]
        plain["places"] = [Place(**one) for one in plain["places"]]
        return cls(**plain)


def _write(path: Path, plain: dict[str, Any]) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(plain), encoding="utf-8")
    beside.replace(path)

"""A device that runs out of memory without being there: a simulated allocator's snapshot.

Everything above torch is real: recorder, writer, file. Torch's side is replaced at its
seams: the observer is kept and called by `fail`, `_snapshot()` is the simulator's, and
the device's counters are those of the simulated allocator.
"""

from __future__ import annotations

import copy
import itertools
import os
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memboard.collector import engine
from memboard.collector.format.records import DeviceIdentity
from memboard.collector.history import allocator as history_seam
from memboard.collector.oom import device as oom_device
from memboard.collector.oom.torch_side import TorchSide
from memboard.collector.sources.device.accelerator import Device
from tests.collector.recordings import rank_files, read
from tests.programs import Program
from tests.simulate import Form, oom_case

ROOT = Path(__file__).parents[3]

_numbers = itertools.count()

STATS = ("allocated_bytes", "reserved_bytes", "active_bytes")
STATS += ("inactive_split_bytes", "requested_bytes", "allocation")


class Backend:
    """The device's counters, as torch has them."""

    type = "cuda"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.c = SimpleNamespace()

    def in_use(self) -> bool:
        return self._stage.in_use

    def count(self) -> int:
        return 1

    def current(self) -> int:
        return 0

    def stats(self, index: int) -> dict[str, Any]:
        label = self._stage.label
        now = {
            "allocated_bytes": label.allocated_bytes,
            "reserved_bytes": label.reserved_bytes,
            "active_bytes": label.active_bytes,
            "inactive_split_bytes": 7,
            "requested_bytes": label.allocated_bytes - 100,
            "allocation": 9,
        }
        found: dict[str, Any] = {
            name: {
                "all": {
                    "current": now[name],
                    "peak": now[name] + 1,
                    "allocated": self._stage.num_allocations,
                    "freed": 0,
                }
            }
            for name in STATS
        }
        return {**found, "num_alloc_retries": 2, "num_ooms": 1}

    def reset_peaks(self, index: int) -> None:
        pass

    def memory_info(self, index: int) -> tuple[int, int]:
        return self._stage.label.device_free_bytes, self._stage.label.device_total_bytes

    def identity(self, index: int) -> DeviceIdentity:
        return DeviceIdentity(device_type="cuda", device_index=index)

    def entry_points(self) -> tuple[Any, ...]:
        return ()


class Stage:
    """One simulated error. `install` puts it in torch's place."""

    def __init__(self, cause: Any = "really_full", seed: int = 3) -> None:
        case = oom_case(cause, seed, torch="2.13")
        self.label = case.label
        self.taken = case.ranks[case.label.rank].snapshot(Form("2.13", "alloc"))
        self.in_use = True
        self.recording: tuple[Any, ...] | None = None
        self.calls: list[tuple[Any, ...]] = []
        self.num_allocations = 1000
        self.num_snapshots = 0
        self.copies = True
        """Whether each snapshot is a structure of its own, as torch's are."""
        self.observers: list[Any] = []
        self.waiting: list[Any] = []
        """What is to be called once the device is in use."""
        self.tag = ""
        self.failing: BaseException | None = None
        """What torch's snapshot raises."""
        self.device_type = f"cuda{next(_numbers)}"
        self.side = TorchSide(
            device_type=self.device_type,
            attach=self.observers.append,
            in_use=lambda: self.in_use,
            when_in_use=self.waiting.append,
            backend=lambda: "native",
            settings=lambda: "expandable_segments:True",
        )

    def install(self, replace: Any) -> Stage:
        """`replace(owner, name, value)`: a monkeypatch's, or Python's own."""
        given = self.allocator()
        replace(oom_device, "find_torch_side", lambda _: self.side)
        replace(oom_device, "find_allocator", lambda _: given)
        replace(engine, "find_device", lambda *_, **__: Device(Backend(self), 0))
        return self

    def allocator(self, **changed: Any) -> history_seam.Allocator:
        given: dict[str, Any] = {
            "record": self._record,
            "snapshot": self._snapshot,
            "memory_snapshot": self._memory_snapshot,
            "set_metadata": lambda tag: setattr(self, "tag", tag),
            "get_metadata": lambda: self.tag,
            "is_recording": lambda: self.recording is not None,
            "in_use": lambda: self.in_use,
            "device_type": self.device_type,
            "version": "2.13.0",
        }
        return history_seam.Allocator(**{**given, **changed})

    def fail(self) -> None:
        """The allocator cannot serve a request: what torch does before it raises."""
        for one in self.observers:
            one(
                0,
                self.label.requested_bytes,
                self.label.device_total_bytes,
                self.label.device_free_bytes,
            )

    def message(self) -> str:
        """The text of the exception that follows."""
        gib = self.label.requested_bytes / 2**30
        return (
            f"CUDA out of memory. Tried to allocate {gib:.2f} GiB. GPU 0 has a total"
            f" capacity of {self.label.device_total_bytes / 2**30:.2f} GiB of which"
            f" {self.label.device_free_bytes / 2**20:.2f} MiB is free."
        )

    def _record(
        self,
        enabled: Any,
        context: Any = "all",
        stacks: Any = "all",
        max_entries: int = 1,
    ) -> None:
        self.calls.append((enabled, context, stacks, max_entries))
        self.recording = (context, stacks, max_entries) if enabled else None

    def _snapshot(self) -> dict[str, Any]:
        if self.failing is not None:
            raise self.failing
        self.num_snapshots += 1
        taken = copy.deepcopy(self.taken) if self.copies else dict(self.taken)
        if self.recording is None:
            taken["device_traces"] = [[]]
        return taken

    def _memory_snapshot(
        self, mempool_id: Any = None, include_traces: bool = True
    ) -> list[dict[str, Any]]:
        segments: list[dict[str, Any]] = self.taken["segments"]
        return copy.deepcopy(segments) if self.copies else segments


def forget_observers(replace: Any) -> None:
    """Each test has a process of its own, as far as torch's observers go."""
    replace(oom_device, "_attached", set())


def of(recording: Any, kind: str) -> list[Any]:
    return [one for one in recording.captures if one.kind == kind]


def reports(path: Any) -> list[Any]:
    return of(read(path), "oom")


def histories(path: Any) -> list[Any]:
    return of(read(path), "history")


# In a process of its own.

STAGED = """
import os, select, signal, sys, threading, time
import torch
from tests.collector.oom.stage import Stage
from tests.collector.recordings import record
stage = Stage("really_full").install(setattr)
"""


def started(run_dir: Path, code: str) -> Program:
    """A process that records into `run_dir`; its script sees the staged device."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = STAGED + textwrap.dedent(code).replace("RUN", repr(str(run_dir)))
    return Program(script, env=environment)


def ended(process: Program) -> tuple[int | None, str, str]:
    out, err = process.communicate()
    return process.returncode, out, err


def ran(run_dir: Path, code: str) -> tuple[int | None, str, str]:
    """Exit code and outputs of such a process."""
    return ended(started(run_dir, code))


def found(run_dir: Path) -> Any:
    (path,) = rank_files(run_dir)
    return read(path, last=False)

"""Stand-ins for torch's allocator functions and for the engine.

`FakeTorch` behaves as torch's documentation says: a ring of events that starts when it is
told to, tags, a snapshot that is the caller's own. Its functions are looked up through
`c`, as torch.cuda.memory looks up torch._C.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace

from memboard.collector.history.allocator import Allocator
from tests.made_snapshots import block, event, segment
from tests.pinned import PinnedMemory

CAPTURED = ["_cuda_record_memory_history", "_cuda_record_memory_history_legacy"]


class FakeTorch:
    def __init__(self, *, num_devices: int = 1) -> None:
        self.in_use = True
        self.enabled: str | None = None
        self.settings: dict = {}
        self.metadata: object = ""
        self.calls: list[tuple] = []
        self.num_snapshots = 0
        self.traces: list[list[dict]] = [[] for _ in range(num_devices)]
        self.pinned = PinnedMemory()
        self.records_pinned = False
        self.live: dict[int, int] = {}
        self.now = 1000
        self.c = SimpleNamespace(
            _cuda_record_memory_history=self._set,
            _cuda_record_memory_history_legacy=self._set,
        )

    # What a program does.

    def record(
        self,
        enabled="all",
        context="all",
        stacks="all",
        max_entries=2**63,
        record_pinned_host_memory=False,
    ):
        """torch.cuda.memory._record_memory_history."""
        more = (record_pinned_host_memory,) if record_pinned_host_memory else ()
        self.c._cuda_record_memory_history(enabled, context, stacks, max_entries, *more)

    def _set(self, enabled, context="all", stacks="all", max_entries=1, pinned=False):
        self.calls.append((enabled, context, stacks, max_entries))
        self.enabled = enabled
        self.records_pinned = pinned
        if not pinned:  # any call that does not ask for it turns it off
            self.pinned = PinnedMemory()
        self.settings = {"stacks": stacks, "max_entries": max_entries}
        if not enabled:
            self.traces = [[] for _ in self.traces]

    def alloc(self, size: int = 512, *, device: int = 0) -> None:
        self.now += 1
        address = 4096 * self.now
        self.live[address] = size
        if self.enabled:
            trace = self.traces[device]
            more = {"user_metadata": self.metadata, "frames": []}
            trace.append({**event("alloc", address, size, self.now), **more})
            del trace[: -self.settings["max_entries"]]

    def pin(self, num_bytes: int) -> None:
        if self.records_pinned:
            self.pinned.pin(num_bytes, [])

    def annotate(self, address: int, text: str) -> None:
        """torch._C._cuda_annotateMemory."""
        if self.enabled:
            self.now += 1
            more = {"user_metadata": text, "frames": []}
            self.traces[0].append({**event("annotate", address, 0, self.now), **more})

    # What it can ask.

    def is_recording(self) -> bool:
        assert self.in_use, "asking would start the device"
        return self.enabled is not None

    def set_metadata(self, metadata: str) -> None:
        self.metadata = metadata

    def get_metadata(self):
        return self.metadata

    def snapshot(self) -> dict:
        assert self.in_use, "asking would start the device"
        self.num_snapshots += 1
        return {
            "segments": self.memory_snapshot(),
            "device_traces": copy.deepcopy(self.traces),
            "allocator_settings": {"max_split_size": -1},
            **(copy.deepcopy(self.pinned.keys()) if self.records_pinned else {}),
        }

    def memory_snapshot(self, mempool_id=None, include_traces=True) -> list[dict]:
        assert mempool_id is None
        blocks = [block(address, size) for address, size in self.live.items()]
        return [segment(4096, blocks)] if blocks else []

    def allocator(self, **changed) -> Allocator:
        given = {
            "record": self.record,
            "snapshot": self.snapshot,
            "memory_snapshot": self.memory_snapshot,
            "set_metadata": self.set_metadata,
            "get_metadata": self.get_metadata,
            "is_recording": self.is_recording,
            "annotate": self.annotate,
            "in_use": lambda: self.in_use,
            "entry_points": [(self.c, name) for name in CAPTURED],
            "version": "2.14.1",
        }
        return Allocator(**{**given, **changed})


class FakeSink:
    """Takes captures and notes; `folder` is where artifacts go."""

    rank = 3

    def __init__(self, folder=None) -> None:
        self.captures = []
        self.notes: list[tuple] = []
        self.folder = folder
        self.mirrored: list[tuple] = []

    def put_capture(self, capture) -> bool:
        self.captures.append(capture)
        return True

    def put_later(self, *args) -> None:
        raise AssertionError("history has no rows")

    def note_kind(self, info, status, reason, remedy) -> None:
        self.notes.append((info.name, status, reason, remedy))

    def artifact_dir(self):
        return self.folder

    def mirror(self, kind, path) -> None:
        assert path.is_file()
        self.mirrored.append((kind, path))

"""A model of torch's device allocator with the shape of its nested statistics."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import pytest

from memboard.collector import sources
from memboard.collector.config import load
from memboard.collector.format.records import DeviceIdentity
from memboard.collector.sources.device import peak_wrapping
from memboard.collector.sources.device.accelerator import (
    Device,
    EntryPoint,
)
from memboard.collector.sources.device.allocator import DeviceSource

BY_POOL = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
POOLS = ("all", "small_pool", "large_pool")


def leaf():
    return {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


class Allocator:
    """One device: sizes below 1 MB come from the small pool, as in torch."""

    def __init__(self):
        self.lock = threading.Lock()
        self.num_ooms = 0
        self.leaves = {(s, p): leaf() for s in BY_POOL for p in POOLS}
        self.oversize = leaf()
        self.pools = {}

    def move(self, size):
        """Allocate `size` bytes, or free them where negative."""
        pool = "small_pool" if abs(size) < 2**20 else "large_pool"
        count = 1 if size > 0 else -1
        with self.lock:
            for stat, delta in (
                ("allocation", count),
                ("active", count),
                ("allocated_bytes", size),
                ("active_bytes", size),
                ("reserved_bytes", 2 * size),
                ("segment", count),
                ("inactive_split_bytes", size),
                ("requested_bytes", size - count),
            ):
                for where in ("all", pool):
                    self.bump(self.leaves[stat, where], delta)
            self.bump(self.oversize, count)
            for private in self.pools.values():
                self.bump(private["all"], size)

    def bump(self, stat, delta):
        stat["current"] += delta
        stat["peak"] = max(stat["peak"], stat["current"])
        stat["allocated" if delta > 0 else "freed"] += abs(delta)

    def stats(self):
        with self.lock:
            nested = {s: {p: dict(self.leaves[s, p]) for p in POOLS} for s in BY_POOL}
            nested["num_alloc_retries"] = 0
            nested["num_ooms"] = self.num_ooms
            nested["num_sync_all_streams"] = 0
            nested["num_device_alloc"] = nested["num_device_free"] = 0
            nested["max_split_size"] = -1
            nested["oversize_segments"] = leaf()
            nested["oversize_allocations"] = dict(self.oversize)
            nested["reserved_bytes_by_private_pools"] = {
                key: {name: dict(value) for name, value in pool.items()}
                for key, pool in self.pools.items()
            }
            return nested

    def reset_peaks(self):
        with self.lock:
            private = [v for pool in self.pools.values() for v in pool.values()]
            for stat in (*self.leaves.values(), self.oversize, *private):
                stat["peak"] = stat["current"]


class CFunctions:
    """Stands for torch._C: functions that user code reaches by name."""

    def __init__(self, devices):
        self._cuda_memoryStats = lambda index: devices[index].stats()
        self._cuda_resetPeakMemoryStats = lambda index: devices[index].reset_peaks()


class FakeBackend:
    type = "cuda"
    made: ClassVar[list[FakeBackend]] = []
    """Those of the test."""

    def __init__(self, num_devices=1):
        self.devices = [Allocator() for _ in range(num_devices)]
        self.c = CFunctions(self.devices)
        self.initialized = True
        self.current_index = 0
        self.originals = dict(vars(self.c))
        self.calls = []
        self.sources = []
        FakeBackend.made.append(self)

    def in_use(self):
        return self.initialized

    def count(self):
        return len(self.devices)

    def current(self):
        return self.current_index

    def stats(self, index):
        assert self.initialized, "asked a device that is not in use"
        self.calls.append("stats")
        return self.devices[index].stats()

    def reset_peaks(self, index):
        assert self.initialized, "reset a device that is not in use"
        self.calls.append("reset")
        self.devices[index].reset_peaks()

    def memory_info(self, index):
        assert self.initialized, "asked a device that is not in use"
        return 30 + index, 100

    def identity(self, index):
        assert self.initialized, "asked a device that is not in use"
        return DeviceIdentity(
            device_type="cuda",
            device_index=index,
            device_name="Model 1",
            device_uuid=f"uuid-{index}",
            device_total_bytes=100,
        )

    def entry_points(self):
        return (
            EntryPoint(self.c, "_cuda_memoryStats", resets=False),
            EntryPoint(self.c, "_cuda_resetPeakMemoryStats", resets=True),
        )

    def wrapped(self):
        return vars(self.c) != self.originals

    def source(self, index=0, *, resets=True):
        """Of a recorder; it is closed at the end of the test."""
        made = DeviceSource(Device(self, index), resets=resets)
        self.sources.append(made)
        return made

    def user_stats(self, index=0):
        return self.c._cuda_memoryStats(index)

    def user_peak(self, index=0):
        return self.user_stats(index)["allocated_bytes"]["all"]["peak"]

    def user_reset(self, index=0):
        self.c._cuda_resetPeakMemoryStats(index)

    def spike(self, size, index=0):
        self.devices[index].move(size)
        self.devices[index].move(-size)

    def end(self):
        for source in self.sources:
            source.close()
        if peak_wrapping._wrappings:  # a peak of the user is known here alone
            for index in range(len(self.devices)):
                self.user_reset(index)


class Opened(NamedTuple):
    columns: tuple
    sample: object
    close: object

    def row(self):
        names = [column.name for column in self.columns]
        return dict(zip(names, self.sample(), strict=True))


def opened(name, device, **keywords):
    """A source by its name, open."""
    (source,) = [s for s in (*sources.STEP, *sources.TIMED) if s.name == name]
    config = load(**keywords)
    return Opened(source.columns(config), *source.open(config, device))


@pytest.fixture(autouse=True)
def nothing_stays_wrapped():
    """Once recorders have ended and users have reset peaks, torch is as it was."""
    yield
    for backend in FakeBackend.made:
        backend.end()
    FakeBackend.made.clear()
    left = dict(peak_wrapping._wrappings)
    peak_wrapping._wrappings.clear()
    assert left == {}


@pytest.fixture(scope="session")
def fakes():
    return SimpleNamespace(Allocator=Allocator, Backend=FakeBackend)

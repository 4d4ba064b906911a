"""Memory at both ends of a call: which statistics, and whose peaks."""

from __future__ import annotations

import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.functions.snaps import MAX_SHAPES, SnapsKind, flat
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.device.allocator import DeviceSource
from memboard.collector.sources.host.rss import open_sizes
from tests.collector.functions.sinks import KeptSink, call
from tests.collector.sources.conftest import FakeBackend

MIB = 2**20


class Snapping:
    """Snaps of a modelled device, whose peaks a recording resets at every step."""

    def __init__(self, *, resets=True, functions=lambda _: True, hooks=None):
        self.backend = FakeBackend()
        self.device = Device(self.backend, 0)
        self.source = DeviceSource(self.device, resets=resets)
        self.allocator = self.backend.devices[0]
        self.sink = KeptSink()
        self.sizes = open_sizes()
        self.kind = SnapsKind(
            self.sink,
            self.device,
            self.sizes,
            on_device=functions,
            on_host=lambda name: name != "on device alone",
            hook_values=lambda _: lambda: hooks or {},
        )

    def rows(self, function="f"):
        return [r for t, _, r in self.sink.rows if t == f"function/{function}"]

    def close(self):
        self.kind.close()
        self.sizes.close()
        self.backend.c._cuda_resetPeakMemoryStats(0)  # or the ledger waits for it
        self.source.close()


@pytest.fixture
def snapping():
    made = Snapping()
    yield made
    made.close()


def test_every_statistic_under_torchs_own_name(snapping):
    snapping.allocator.move(3 * MIB)
    snapping.kind.begin(call())
    snapping.allocator.move(100)
    snapping.kind.end(call(), None)
    start, end = snapping.rows()
    expected = flat(snapping.allocator.stats())
    assert set(expected) < set(start) == set(end)
    assert list(expected) == sorted(expected)
    assert len(expected) > 100
    assert (start["iteration"], start["context"], end["context"]) == (1, 0, 1)
    assert start["allocated_bytes.all.current"] == 3 * MIB
    assert end["allocated_bytes.all.current"] == 3 * MIB + 100
    assert end["allocated_bytes.small_pool.allocated"] == 100
    assert end["num_alloc_retries"] == 0
    assert start["rss_bytes"] > MIB < start["vms_bytes"]
    assert start["time_ns"] < end["time_ns"]


def test_columns_say_what_they_are(snapping):
    snapping.kind.begin(call())
    snapping.kind.end(call(), None)
    columns, rolled_up = snapping.sink.columns["function/f"]
    by_name = {c.name: (c.unit, c.kind) for c in columns}
    assert rolled_up is False
    assert by_name["allocated_bytes.all.current"] == ("bytes", "gauge")
    assert by_name["allocated_bytes.all.peak"] == ("bytes", "peak")
    assert by_name["allocation.all.freed"] == ("count", "counter")
    assert by_name["oversize_allocations.peak"] == ("count", "peak")
    assert by_name["max_split_size"] == ("bytes", "gauge")
    assert by_name["num_ooms"] == ("count", "counter")


def test_torch_names_them_alike():
    """Where torch is: nested as its C code has them, flat as its Python has them."""
    nested = {
        "active": {"all": {"current": 1, "peak": 2}},
        "num_ooms": 0,
        "reserved_bytes_by_private_pools": {(0, 7): {"all": {"current": 5}}},
    }
    assert flat(nested) == {
        "active.all.current": 1,
        "active.all.peak": 2,
        "num_ooms": 0,
        "reserved_bytes_by_private_pools.0_7.all.current": 5,
    }


def test_a_peak_is_the_calls_own_whoever_resets(snapping):
    """MemProfiler's are those since the process began (A14)."""
    allocator, ledger = snapping.allocator, snapping.device.ledger
    allocator.move(8 * MIB)
    allocator.move(-8 * MIB)
    snapping.kind.begin(call("outer"))
    allocator.move(5 * MIB)
    allocator.move(-5 * MIB)
    snapping.kind.begin(call("inner"))
    allocator.move(2 * MIB)
    snapping.source.sample()  # a step ends: torch's counters are reset
    ledger.close(ledger.open())  # a span
    allocator.move(-MIB)
    snapping.kind.end(call("inner"), None)
    snapping.kind.end(call("outer"), None)
    peaks = {
        name: [r["allocated_bytes.all.peak"] for r in snapping.rows(name)]
        for name in ("outer", "inner")
    }
    assert peaks == {"outer": [0, 5 * MIB], "inner": [0, 2 * MIB]}
    counts = [r["allocation.all.peak"] for r in snapping.rows("outer")]
    assert counts == [0, 1]
    # The step's own peak is not disturbed, nor what the user reads.
    assert snapping.backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"][
        "peak"
    ] == (8 * MIB)


def test_where_nothing_is_reset_peaks_are_torchs_own():
    snapping = Snapping(resets=False)
    snapping.allocator.move(8 * MIB)
    snapping.allocator.move(-8 * MIB)
    snapping.kind.begin(call())
    snapping.kind.end(call(), None)
    assert [r["allocated_bytes.all.peak"] for r in snapping.rows()] == [8 * MIB] * 2
    assert "reset" not in snapping.backend.calls
    snapping.close()


def test_a_device_that_is_not_in_use_has_no_values(snapping):
    snapping.backend.initialized = False
    snapping.kind.begin(call())
    snapping.backend.initialized = True
    snapping.allocator.move(100)
    snapping.kind.end(call(), None)
    start, end = snapping.rows()
    assert "allocated_bytes.all.current" not in start
    assert end["allocated_bytes.all.current"] == 100


def test_functions_of_the_host_alone_and_of_the_device_alone():
    snapping = Snapping(functions=lambda name: name != "on host alone")
    for name in ("on host alone", "on device alone"):
        snapping.kind.begin(call(name))
        snapping.kind.end(call(name), None)
    host, device = snapping.rows("on host alone"), snapping.rows("on device alone")
    assert "rss_bytes" in host[0]
    assert "num_ooms" not in host[0]
    assert "rss_bytes" not in device[0]
    assert "num_ooms" in device[0]
    snapping.close()


def test_private_pools_that_come_and_go_make_no_end_of_tables(snapping):
    pool = {"all": {"current": 1, "peak": 1, "allocated": 1, "freed": 0}}
    for number in range(3 * MAX_SHAPES):
        snapping.allocator.pools = {(0, number): pool}
        snapping.kind.begin(call(iteration=number))
        snapping.kind.end(call(iteration=number), None)
    rows = snapping.rows()
    shapes = {tuple(row) for row in rows}
    assert len(rows) == 6 * MAX_SHAPES
    assert len(shapes) <= MAX_SHAPES + 1
    assert all("allocated_bytes.all.current" in row for row in rows)


def test_hook_values_stand_beside_them():
    snapping = Snapping(hooks={"rss_diff": 5.0, "mine": None})
    snapping.kind.begin(call())
    snapping.kind.end(call(), None)
    start, end = snapping.rows()
    assert (start["hook.rss_diff"], start["hook.mine"]) == (5.0, None)
    assert (end["hook.rss_diff"], end["hook.mine"]) == (5.0, None)
    snapping.close()


def test_calls_that_never_end_give_their_peaks_back(snapping):
    snapping.kind.begin(call())
    ledger = snapping.device.ledger
    assert ledger._full_scopes
    snapping.kind.close()
    assert not ledger._full_scopes


def test_without_a_device_it_says_why():
    sink = KeptSink()
    device = Device(absent=Unavailable("no accelerator", "Buy one."))
    sizes = open_sizes()
    kind = SnapsKind(
        sink,
        device,
        sizes,
        on_device=lambda _: True,
        on_host=lambda _: True,
        hook_values=lambda _: dict,
    )
    assert sink.notes == [("functions.device", "absent", "no accelerator", "Buy one.")]
    kind.begin(call())
    kind.end(call(), None)
    (_, _, start), (_, _, end) = sink.rows
    assert list(start) == list(end)
    assert list(start) == [
        "time_ns",
        "step",
        "iteration",
        "context",
        "rss_bytes",
        "vms_bytes",
    ]
    kind.close()
    sizes.close()

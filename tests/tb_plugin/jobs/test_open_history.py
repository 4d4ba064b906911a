"""An open history: what is known of its devices, and what is made of it once."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.cache import held_bytes
from memboard.tb_plugin.jobs.open_history import Capacity, OpenHistory


def history_of(num_devices: int, capacity: Capacity | None) -> OpenHistory:
    event = {"action": "alloc", "addr": 512, "size": 512, "stream": 0}
    dump = {"segments": [], "device_traces": [[event]] * num_devices}
    return OpenHistory(snapshot_of(tables_of(dump)), key=(), capacity=capacity)


@pytest.mark.parametrize(
    ("num_devices", "capacity", "expected"),
    [
        (2, Capacity(80, 1), [None, 80.0]),
        (2, Capacity(80, None), [None, None]),
        (2, None, [None, None]),
        (1, Capacity(80, None), [80.0]),
        (1, Capacity(80, 0), [80.0]),
        (1, Capacity(80, 3), [None]),
    ],
)
def test_a_capacity_is_of_the_device_it_was_recorded_of(
    num_devices, capacity, expected
):
    history = history_of(num_devices, capacity)
    assert [history.capacity_of(number) for number in range(num_devices)] == expected


def test_what_is_made_of_a_history_is_made_once():
    history = history_of(1, None)
    made = [history.once("it", object), history.once("it", object)]
    assert made[0] is made[1]
    before = history.num_bytes()
    history.once("large", lambda: np.zeros(1000))
    assert history.num_bytes() == before + 8000


@pytest.mark.usefixtures("no_garbage")
def test_a_history_that_nobody_holds_is_gone_at_once():
    history = history_of(2, Capacity(80, 0))
    device = history.device(0)
    for colour in ("category", "module", "stack", "age", "stream", "pool"):
        assert device.groups(colour)  # type: ignore[arg-type]  # these words
    assert device.selection(0, None).reserved(np.array([0])) >= 0
    told = weakref.ref(history), weakref.ref(device)
    del history, device
    assert told[0]() is None
    assert told[1]() is None


def test_memory_is_counted_once_and_by_its_owner():
    array = np.zeros(100)
    assert held_bytes([array, array[:3], {"again": array}]) == 800
    assert held_bytes(np.broadcast_to(np.int32(1), 10**9)) == 0
    assert held_bytes(("a", "b")) == held_bytes(("a",)) + held_bytes(("b",))

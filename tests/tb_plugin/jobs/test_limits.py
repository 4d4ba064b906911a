"""How much memory one file may take: by its size, and by the machine's memory."""

from __future__ import annotations

import pickle

import pytest

from memboard.tb_plugin.worker import limits
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import (
    GIB,
    KINDS,
    MIB,
    SNAPSHOT,
    Limits,
    memory_remedy,
)


@pytest.fixture
def machine(monkeypatch):
    def of(whole):
        monkeypatch.setattr(limits, "machine_bytes", lambda: whole)

    return of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_large_file_may_take_what_the_machine_has(machine, kind):
    taken = []
    for whole in (1 * GIB, 16 * GIB, 256 * GIB):
        machine(whole)
        taken.append(Limits.of(20 * GIB, kind).memory_bytes)
        assert Limits.of(1 * MIB, kind).memory_bytes < 600 * MIB
    assert taken == sorted(taken)
    assert taken[0] == kind.memory_bytes
    assert taken[1] == pytest.approx(0.2 * 16 * GIB)
    assert taken[2] > 40 * GIB
    machine(None)
    assert Limits.of(20 * GIB, kind).memory_bytes == 3 * GIB


def test_what_to_do_is_said_with_the_machines_memory(machine):
    machine(16 * GIB)
    remedy = memory_remedy(SNAPSHOT)
    assert remedy.startswith("Open it on a machine with more memory than this one, of")
    assert "16.0 GiB" in remedy
    assert "max_entries" in remedy
    machine(None)
    assert "GiB" not in memory_remedy(SNAPSHOT)


def snapshot(num_events: int, depth: int) -> bytes:
    """A valid one whose every event has a stack of its own, of frames of its own."""
    events = [
        {
            "action": "free_completed" if at % 2 else "alloc",
            "addr": 0x7F0000000000,
            "size": 512,
            "stream": 0,
            "time_us": at,
            "frames": [
                {"filename": "a.py", "line": at * depth + level, "name": "f"}
                for level in range(depth)
            ],
        }
        for at in range(num_events)
    ]
    block = {"address": 0x7F0000000000, "size": 2 * MIB, "requested_size": 0}
    segment = {
        "device": 0,
        "address": 0x7F0000000000,
        "total_size": 2 * MIB,
        "allocated_size": 0,
        "active_size": 0,
        "stream": 0,
        "segment_type": "small",
        "blocks": [{**block, "state": "inactive", "frames": []}],
    }
    return pickle.dumps({"segments": [segment], "device_traces": [events]})


@pytest.mark.matrix
def test_stacks_of_their_own_are_read_where_there_is_memory(tmp_path):
    if (limits.machine_bytes() or 0) < 6 * GIB:
        pytest.skip("a machine with less than 6 GiB")
    path = tmp_path / "a.pickle"
    path.write_bytes(snapshot(25_000, 18))
    importer = Importer(ColumnCache(tmp_path / "cache"))
    try:
        tables = importer.tables(path, SNAPSHOT)
    finally:
        importer.close()
    assert len(tables["events"]["size"]) == 25_000

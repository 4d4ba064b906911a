"""The ledger adds up, and says what it does not know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.moment import ledger as ledgers
from memboard.tb_plugin.analysis.allocator.moment.ledger import RESERVED_KEYS, ledger
from memboard.tb_plugin.analysis.allocator.replay import Replay
from tests.tb_plugin.analysis.snapshots import (
    Modelled,
    models,
    named,
    needs_real,
    real,
    replay_of,
)

GIB = 1 << 30


def bytes_of(found) -> dict[str, int | None]:
    return {entry.key: entry.bytes for entry in found.entries}


def non_torch(found):
    return next(entry for entry in found.entries if entry.key == "non_torch")


def with_free(model, num_bytes: int) -> Replay:
    """Each of the model's events says what the device has free."""
    events = model.device.events
    free = np.full(len(events.device_free), num_bytes)
    told = replace(events, device_free=free)
    return Replay(model.snapshot, replace(model.device, events=told))


@given(models)
def test_entries_add_up_to_what_is_reserved(model):
    replay = with_free(model, 70 * GIB)
    for moment in range(-1, replay.num_events):
        levels = replay.reserved.levels
        reserved = levels.after[moment] if moment >= 0 else levels.first
        found = ledger(replay, moment, 80 * GIB)
        amounts = bytes_of(found)
        assert list(amounts) == [*RESERVED_KEYS, "non_torch"]
        assert all(amounts[key] >= 0 for key in RESERVED_KEYS)
        assert sum(amounts[key] for key in RESERVED_KEYS) == reserved
        assert found.reserved_bytes == reserved
        if moment < 0:
            assert amounts["non_torch"] is found.device_used_bytes is None
        else:
            assert sum(amounts.values()) == found.device_used_bytes == 10 * GIB


def test_what_is_not_recorded_is_unknown_and_says_why():
    model = Modelled([("allocate", 3 << 20, 0)])
    replay = replay_of(model)
    entry = non_torch(ledger(replay, 1))
    assert (entry.bytes, entry.caveat) == (None, ledgers.NO_TOTAL)
    entry = non_torch(ledger(replay, 1, GIB))
    assert (entry.bytes, entry.caveat) == (None, ledgers.NO_FREE)
    assert "contradict" in non_torch(ledger(with_free(model, GIB), 1, GIB)).caveat


def test_each_kind_of_memory_has_its_entry():
    mib = 1 << 20
    model = Modelled(
        [
            ("allocate", 30 * mib - 700, 0),
            ("allocate", 4 * mib, 0),  # in a segment of 20 MiB
            ("allocate", 30 * mib, 1),
            ("record_stream", 2, 0),
            ("free", 2, 0),  # waits for stream 0
            ("allocate", 50 * mib, 0),
            ("free", 2, 0),  # its segment stays
            ("use_pool", 1, 0),
            ("allocate", 24 * mib, 0),
            ("free", 2, 0),
        ]
    )
    replay = replay_of(model)
    amounts = bytes_of(ledger(replay, replay.num_events - 1))
    assert amounts == {
        "live": 34 * mib - 700,
        "rounding": 700,
        "pending_free": 30 * mib,
        "inactive_split": 16 * mib,
        "free_segments": 50 * mib,
        "private_pools": 24 * mib,
        "non_torch": None,
    }


@needs_real
def test_the_recorded_oom_is_told_with_what_its_event_says():
    snapshot = real(named("Constructor-Sun"))
    replay = Replay(snapshot, snapshot.device(1))
    event = 421
    assert ACTIONS[replay.device.events.action[event]] == "oom"
    total = 85_100_000_000
    found = ledger(replay, event, total)
    assert found.device_used_bytes == total - 95_682_560
    assert found.reserved_bytes == 84_202_749_952
    amounts = bytes_of(found)
    assert round(amounts["live"] / GIB, 2) == 78.29
    assert amounts["private_pools"] == amounts["pending_free"] == 0
    assert sum(amounts.values()) == found.device_used_bytes

"""Figures of random snapshots, against a count of what was done to make them.

`Device` is a made allocator with slots of fixed sizes: it shares no code with what reads
snapshots, nor with the simulated allocator of other tests.
"""

from __future__ import annotations

import io
import json
import pickle
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.facts.findings.judge import judge
from memboard.tb_plugin.facts.histories.description import facts_of
from memboard.tb_plugin.facts.histories.figures import DeviceFigures, figures_of
from memboard.tb_plugin.formats.snapshots.snapshot_file import read_tables
from memboard.tb_plugin.jobs.open_history import OpenHistory

STATES = ("inactive", "active_allocated", "active_pending_free")
FREE, ALLOCATED, PENDING = range(3)
NUM_SLOTS = 9
LINES = 5


class Device:
    """Slots in three segments; every event is written down, and the last are kept."""

    def __init__(self, number: int, choices: list[tuple[int, int]]) -> None:
        self.number = number
        self.base = (number + 1) << 40
        self.size = [512 * (3 * slot % 7 + 1) for slot in range(NUM_SLOTS)]
        self.state = [FREE] * NUM_SLOTS
        self.asked = [0] * NUM_SLOTS
        self.line = [0] * NUM_SLOTS
        self.events: list[dict[str, Any]] = []
        self.active, self.allocated = [0], [0]
        """Bytes of blocks before the first event, and after each."""
        for slot, number in choices:
            self.step(slot % NUM_SLOTS, number)

    def address(self, slot: int) -> int:
        return self.base + ((slot // 3) << 24) + sum(self.size[slot // 3 * 3 : slot])

    def step(self, slot: int, number: int) -> None:
        if self.state[slot] == FREE:
            self.asked[slot] = self.size[slot] - number % 512
            self.line[slot] = number % LINES
            self.note("alloc", slot, ALLOCATED)
        elif self.state[slot] == ALLOCATED:
            self.note("free_requested", slot, PENDING)
            if number % 3:
                self.note("free_completed", slot, FREE)
        else:
            self.note("free_completed", slot, FREE)

    def frames(self, slot: int) -> list[dict[str, Any]]:
        line = self.line[slot]
        return [{"name": "run", "filename": f"/me/part{line}.py", "line": line + 1}]

    def note(self, action: str, slot: int, state: int) -> None:
        self.state[slot] = state
        self.active.append(self.bytes_in(ALLOCATED, PENDING))
        self.allocated.append(self.bytes_in(ALLOCATED))
        self.events.append(
            {
                "action": action,
                "addr": self.address(slot),
                "size": self.asked[slot],
                "stream": 0,
                "time_us": 1_700_000_000_000_000 + len(self.events),
                "frames": self.frames(slot),
            }
        )

    def segments(self) -> list[dict[str, Any]]:
        return [
            {
                "device": self.number,
                "address": self.address(first),
                "total_size": sum(self.size[first : first + 3]),
                "stream": 0,
                "segment_type": "small",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "blocks": [
                    {
                        "address": self.address(slot),
                        "size": self.size[slot],
                        "requested_size": self.asked[slot] or self.size[slot],
                        "state": STATES[self.state[slot]],
                        "frames": self.frames(slot) if self.state[slot] else [],
                    }
                    for slot in range(first, first + 3)
                ],
            }
            for first in range(0, NUM_SLOTS, 3)
        ]

    def bytes_in(self, *states: int) -> int:
        slots = range(NUM_SLOTS)
        return sum(self.size[slot] for slot in slots if self.state[slot] in states)


choices = st.lists(
    st.tuples(st.integers(0, NUM_SLOTS - 1), st.integers(0, 10_000)), max_size=180
)
devices = st.lists(choices, min_size=1, max_size=3).map(
    lambda found: [Device(number, one) for number, one in enumerate(found)]
)
kept = st.one_of(st.just(0), st.integers(0, 200))


def dump(made: list[Device], keep: int, cut: int = 0) -> dict[str, Any]:
    """The snapshot: the last `keep` events of each device, without the `cut` last."""
    traces = [one.events[max(0, len(one.events) - keep) :] for one in made]
    return {
        "segments": [segment for one in made for segment in one.segments()],
        "device_traces": [trace[: max(0, len(trace) - cut)] for trace in traces],
    }


def opened(snapshot: dict[str, Any]) -> OpenHistory:
    return OpenHistory(
        snapshot_of(read_tables(io.BytesIO(pickle.dumps(snapshot)))), key=("made",)
    )


def figures(history: OpenHistory) -> tuple[DeviceFigures, ...]:
    """All that pages and report make of it must be possible."""
    found = figures_of(history)
    assert facts_of(history).devices
    assert judge(history).found is not None
    return found


def check_sums(device: DeviceFigures) -> None:
    """Rows and number differ by how much blocks are rounded, and by nothing else."""
    assert 0 <= device.rounding_bytes < 512 * NUM_SLOTS
    assert held(device) + device.rounding_bytes == device.peak_active_bytes
    assert sum(device.categories_bytes.values()) == held(device)


def held(device: DeviceFigures, *, is_pending: bool | None = None) -> int:
    rows = [one for one in device.holders if is_pending in (None, one.is_pending)]
    return sum(one.bytes for one in rows)


@given(devices, kept)
@settings(deadline=None, max_examples=150)
def test_figures_are_those_of_what_was_done(made, keep):
    snapshot = dump(made, keep)
    history = opened(snapshot)
    assert history.warnings == ()
    found = figures(history)
    assert [one.device for one in found] == [one.number for one in made]
    for device, truth, events in zip(
        found, made, snapshot["device_traces"], strict=True
    ):
        first = len(truth.events) - len(events)
        active, allocated = truth.active[first:], truth.allocated[first:]
        assert device.num_events == len(events)
        assert device.reserved_bytes == sum(truth.size)
        assert device.active_bytes == truth.bytes_in(ALLOCATED, PENDING)
        assert device.allocated_bytes == truth.bytes_in(ALLOCATED)
        assert device.peak_active_bytes == max(active)
        assert device.peak_allocated_bytes == max(allocated)
        moment = active.index(max(active))
        assert device.peak_active_event == moment - 1
        check_sums(device)
        pending = active[moment] - allocated[moment]
        assert 0 <= pending - held(device, is_pending=True) <= device.rounding_bytes


@given(devices, st.integers(1, 200), st.integers(1, 60))
@settings(deadline=None, max_examples=100)
def test_events_that_do_not_lead_to_the_end_make_no_impossible_figures(made, keep, cut):
    for device in figures(opened(dump(made, keep, cut))):
        assert device.peak_active_bytes >= device.peak_allocated_bytes >= 0
        check_sums(device)


@given(devices, st.integers(0, 200), st.data())
@settings(deadline=None, max_examples=60)
def test_an_event_that_has_no_free_is_said(made, keep, data):
    snapshot = dump(made, keep)
    trace = data.draw(st.sampled_from(snapshot["device_traces"]))
    freed = [at for at, one in enumerate(trace) if one["action"] == "free_completed"]
    assume(freed)
    at = freed[-1]
    address = trace[at]["addr"]
    assume(all(one["addr"] != address for one in trace[at + 1 :]))
    before = [one["action"] for one in trace[:at] if one["addr"] == address]
    assume("alloc" in before)
    trace[:] = [
        one
        for place, one in enumerate(trace)
        if one["addr"] != address or one["action"] == "alloc"
    ]
    assert "missing at the end" in " ".join(opened(snapshot).warnings)


def test_each_file_of_a_folder_has_its_row(tmp_path, capsys):
    made = [Device(0, [(at * at, at * 37) for at in range(num)]) for num in range(40)]
    for number, device in enumerate(made):
        path = tmp_path / f"rank{number}_snapshot.pickle"
        path.write_bytes(pickle.dumps(dump([device], 7 * number % 30)))
    assert main(["report", "--json", str(tmp_path)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    found = {one["history"]["rank"]: one["devices"] for one in run["snapshots"]}
    assert sorted(found) == list(range(40))
    for number, device in enumerate(made):
        (row,) = found[number]
        assert row["active_bytes"] == device.bytes_in(ALLOCATED, PENDING)

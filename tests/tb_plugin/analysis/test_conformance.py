"""Recorded snapshots: known figures, torch's own reports, and the picture users know."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.allocator.stacking import stacked
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import ALLOCATED, Snapshot
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.simulate import Form, trained_rank
from tests.simulate.allocator.settings import parse_settings
from tests.tb_plugin.analysis.slow_blocks import SlowBlocks
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    INCONSISTENT,
    models,
    pickled,
    real,
    real_devices,
    replay_of,
)

viz = pytest.importorskip("torch.cuda._memory_viz")


SIMULATED = {
    "simulated": ("", None),
    "simulated, expandable": ("expandable_segments:True", None),
    "simulated, a ring": ("max_split_size_mb:600", 2000),
}
"""Private pools, several streams and blocks that wait: no recorded snapshot has them."""

ALL = [*EXPECTED, *SIMULATED]


@cache
def dumped(name: str) -> dict:
    """A snapshot as torch dumps it."""
    if name in SIMULATED:
        text, most = SIMULATED[name]
        rank = trained_rank(
            3000, settings=parse_settings(text), max_entries=most, graph_pool=True
        )
        rank.training.passing("gather", 5 << 20)
        block = rank.training.new("gather", 7 << 20, 1)
        rank.allocator.record_stream(block, 0)
        rank.training.drop("gather", block)
        return rank.snapshot(Form())
    found = pickled(name)
    return {"segments": found, "device_traces": []} if type(found) is list else found


@cache
def loaded(name: str) -> Snapshot:
    return snapshot_of(tables_of(dumped(name))) if name in SIMULATED else real(name)


# The figures of expected.json, and the peaks as counted here.


def counted_peaks(name: str, place: int) -> dict[str, int]:
    blocks = SlowBlocks(dumped(name), place)
    peaks = {}
    for kind, active in (("active", True), ("allocated", False)):
        levels = blocks.levels(active=active)
        peaks[f"peak_{kind}_bytes"] = max(levels)
        peaks[f"peak_{kind}_event"] = levels.index(max(levels)) - 1
    return peaks


@pytest.mark.parametrize("name", ALL)
def test_levels_are_those_of_the_blocks_walked_event_by_event(name):
    snapshot = loaded(name)
    for device in snapshot.devices:
        replay = Replay(snapshot, device)
        blocks = SlowBlocks(dumped(name), device.device)
        for level, active in ((replay.active, True), (replay.allocated, False)):
            walked = blocks.levels(active=active)
            assert [level.first, *level.after.tolist()] == walked


@pytest.mark.parametrize(("name", "place", "figures"), real_devices())
def test_every_known_figure_of_a_device(name, place, figures):
    snapshot = real(name)
    device = snapshot.device(place)
    replay = Replay(snapshot, device)
    events, blocks = device.events, device.blocks
    active = blocks.state != 0
    oom = np.flatnonzero(events.action == ACTIONS.index("oom"))
    allocs = events.action == ACTIONS.index("alloc")
    frames = {
        tuple(snapshot.stacks.of(stack).tolist())
        for stack in np.unique(events.stack[allocs]).tolist()
    }
    found = {
        "num_segments": len(device.segments),
        "num_blocks": len(blocks),
        "reserved_bytes": device.reserved_bytes,
        "allocated_bytes": device.allocated_bytes,
        "active_bytes": device.active_bytes,
        "inactive_bytes": int(blocks.size[~active].sum()),
        "largest_inactive_block_bytes": int(blocks.size[~active].max(initial=0)),
        "requested_bytes_active": int(blocks.requested_size[active].sum()),
        "num_events": len(events),
        "actions": Counter(ACTIONS[action] for action in events.action.tolist()),
        "peak_active_bytes": replay.active.peak[0],
        "peak_active_event": replay.active.peak[1],
        "peak_allocated_bytes": replay.allocated.peak[0],
        "peak_allocated_event": replay.allocated.peak[1],
        "distinct_alloc_stacks": len(frames),
        "oom": [
            {"size": int(size), "device_free": int(free)}
            for size, free in zip(
                events.size[oom], events.device_free[oom], strict=True
            )
        ],
    }
    assert found == figures | counted_peaks(name, place)


@pytest.mark.parametrize("name", EXPECTED)
def test_devices_are_those_that_are_known(name):
    figures = EXPECTED[name]["devices"]
    assert len(figures) == EXPECTED[name]["num_devices"]
    used = [
        place
        for place, device in enumerate(figures)
        if device["num_events"] or device["num_segments"]
    ]
    assert [device.device for device in real(name).devices] == used


# torch's own reports.


@pytest.mark.parametrize("name", ALL)
def test_torchs_stats_say_the_same(name):
    reserved = allocated = rounding = free = num = 0
    for device in loaded(name).devices:
        replay = Replay(loaded(name), device)
        state = replay.at(replay.num_events - 1)
        if name in INCONSISTENT:
            return
        num += len(state.segments)
        live = state.blocks.state == ALLOCATED
        requested = int(state.blocks.requested_size[live].sum())
        reserved += state.reserved_bytes
        allocated += requested
        rounding += state.segments.allocated_size.sum() - requested
        free += state.segments.free_size.sum() + state.segments.pending_size.sum()
    text = viz.segsum(dumped(name))
    assert f"segments: {num}\n" in text
    assert f"total_reserved: {viz.Bytes(reserved)}\n" in text
    assert f"total_allocated: {viz.Bytes(allocated)}\n" in text
    assert f"total_free: {viz._report_free(free, rounding)}\n" in text


@pytest.mark.parametrize("name", ALL)
def test_torchs_trace_has_the_same_entries(name):
    text = viz.trace(dumped(name))
    parts = re.split(r"Device (\d+) -{16}\n", text)[1:]
    told = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    devices = {d.device: d for d in loaded(name).devices if len(d.events)}
    assert told.keys() == devices.keys()
    for number, lines in told.items():
        events = devices[number].events
        count = Counter(ACTIONS[action] for action in events.action.tolist())
        assert lines.startswith(f"{len(events)} entries\n")
        assert len(re.findall(r" = cudaMalloc\(", lines)) == count["segment_alloc"]
        assert (
            len(re.findall(r"^cudaFree\(", lines, re.MULTILINE))
            == count["segment_free"]
        )
        assert len(re.findall(r"^\w+ = \w+\[", lines, re.MULTILINE)) == count["alloc"]
        assert len(re.findall(r"^del ", lines, re.MULTILINE)) == count["free_requested"]
        completed = len(re.findall(r"^# free completed", lines, re.MULTILINE))
        assert completed == count["free_completed"]
        assert len(re.findall(r"^raise OutOf", lines, re.MULTILINE)) == count["oom"]


@pytest.mark.parametrize("name", ALL)
def test_torchs_flamegraphs_add_up_to_the_same(name):
    snapshot, dump = loaded(name), dumped(name)
    text = viz.segments(dump, format_flamegraph=str)
    assert Counter(lines_of(viz.memory(dump, format_flamegraph=str))) == Counter(
        line.split(";", 2)[0] + ";" + line.split(";", 2)[2] for line in lines_of(text)
    )
    told: Counter[tuple[int, int, str]] = Counter()
    by_frames: Counter[str] = Counter()
    for line in lines_of(text):
        path, _, amount = line.rpartition(" ")
        stream, segment, state, frames = path.split(";", 3)
        told[int(segment[4:]), int(stream[7:]), state] += int(amount)
        if state.startswith("active") and frames != "<gaps>":
            by_frames[frames] += int(amount)
    found: Counter[tuple[int, int, str]] = Counter()
    own: Counter[str] = Counter()
    names = ("inactive", "active_allocated", "active_pending_free")
    for device in snapshot.devices:
        if name in INCONSISTENT:
            return
        replay = Replay(snapshot, device)
        state = replay.at(replay.num_events - 1)
        segments, blocks = state.segments, state.blocks
        for row in range(len(blocks)):
            segment = blocks.segment[row]
            stream = snapshot.streams[segments.stream[segment]]
            key = (int(segments.address[segment]), stream, names[blocks.state[row]])
            found[key] += int(blocks.size[row])
            if blocks.life[row] != NOTHING:
                stack = int(replay.lives.stack[blocks.life[row]])
                own[torch_path(snapshot.stacks, stack)] += int(
                    blocks.requested_size[row]
                )
    assert found == told
    assert own == by_frames


def lines_of(text: str) -> list[str]:
    return text.splitlines()


def torch_path(stacks, stack: int) -> str:
    """A stack as torch writes it, outermost first."""
    frames = [
        {
            "name": stacks.name[frame],
            "filename": stacks.filename[frame],
            "line": int(stacks.line[frame]),
        }
        for frame in stacks.of(stack).tolist()
    ]
    return ";".join(viz._frames_fmt(frames, reverse=True)) if frames else "<non-python>"


def test_torchs_comparison_of_lists_finds_the_same_segments(capsys):
    pairs = list(pairwise([n for n in ALL if n not in INCONSISTENT]))
    for one, other in pairs:
        before, after = dumped(one)["segments"], dumped(other)["segments"]
        text = viz.compare(before, after, format_flamegraph=str)
        told: Counter[str] = Counter()
        for line in lines_of(text):
            path, _, amount = line.rpartition(" ")
            told[path.split(";", 1)[0]] += int(amount)
        rows = [keys_at_end(one), keys_at_end(other)]
        only = {
            "only_before": sum(size for _, size in rows[0] - rows[1]),
            "only_after": sum(size for _, size in rows[1] - rows[0]),
        }
        assert told == Counter({key: size for key, size in only.items() if size})
    capsys.readouterr()


def keys_at_end(name: str) -> set[tuple[int, int]]:
    found = set()
    for device in loaded(name).devices:
        replay = Replay(loaded(name), device)
        segments = replay.at(replay.num_events - 1).segments
        rows = zip(segments.address, segments.total_size, strict=True)
        found |= {(int(address), int(size)) for address, size in rows}
    return found


# The active timeline, in the order in which allocations are stacked there.


class Layout:
    """memory_viz's rule, from its description, the slow way.

    Allocations are pushed on top as they come; what an event frees is taken out, and all
    above it sinks. What was there before the first event is pushed first: frees that
    nothing allocated and then blocks that nothing allocated, all in reverse.
    """

    def __init__(self, trace: list[dict], segments: list[dict], device: int) -> None:
        self.trace = trace
        open_at: dict[int, int] = {}
        asked: dict[int, int] = {}
        """What was asked for of blocks from before, where a request to free says it."""
        before = []
        for event in trace:
            if event["action"] == "alloc":
                open_at[event["addr"]] = event["size"]
            elif event["action"] in ("free", "free_completed"):
                if event["addr"] not in open_at:
                    before.append((event["addr"], event["size"]))
                open_at.pop(event["addr"], None)
                asked.pop(event["addr"], None)
            elif event["action"] == "free_requested":
                asked[event["addr"]] = event["size"]
        for segment in segments:
            at = segment["address"]
            for block in segment["blocks"] if segment["device"] == device else ():
                addr = block.get("address", at)
                at += block["size"]
                if block["state"].startswith("active") and addr not in open_at:
                    before.append((addr, asked.get(addr, block["size"])))
        self.stack = before[::-1]

    def states(self, wanted: set[int]):
        """(event, [(address, size, offset), ...]) after each of the wanted events."""
        for number, event in enumerate(self.trace):
            if event["action"] == "alloc":
                self.stack.append((event["addr"], event["size"]))
            elif event["action"] in ("free", "free_completed"):
                place = next(
                    place
                    for place, (addr, _) in reversed(list(enumerate(self.stack)))
                    if addr == event["addr"]
                )
                del self.stack[place]
            if number in wanted:
                yield number, self.rows()

    def rows(self) -> list[tuple[int, int, int]]:
        sizes = [size for _, size in self.stack]
        below = np.cumsum([0, *sizes])[:-1].tolist()
        return [(a, s, b) for (a, s), b in zip(self.stack, below, strict=True)]


def drawn(replay: Replay, event: int) -> list[tuple[int, int, int]]:
    """What is stacked in a column that stands for one event, from the bottom."""
    lives = replay.lives
    band = np.zeros(len(lives), np.int64)
    found = stacked(lives, band, 1, np.array([event]), 0)
    rows = zip(
        lives.addr[found.life], lives.size[found.life], found.offset, strict=True
    )
    return sorted(
        ((int(a), int(s), int(b)) for a, s, b in rows), key=lambda row: row[2]
    )


@pytest.mark.parametrize(
    ("name", "place"),
    [row[:2] for row in real_devices()] + [(name, 0) for name in SIMULATED],
)
def test_the_active_timeline_lies_as_memory_viz_lays_it(name, place):
    dump = dumped(name)
    trace = dump["device_traces"][place] if dump["device_traces"] else []
    if not trace or name in INCONSISTENT:
        return
    replay = Replay(loaded(name), loaded(name).device(place))
    wanted = {int(at) for at in np.linspace(0, len(trace) - 1, 40)}
    wanted.add(max(0, replay.active.peak[1]))
    num_states = 0
    for event, rows in Layout(trace, dump["segments"], place).states(wanted):
        assert drawn(replay, event) == rows
        num_states += 1
    assert num_states == len(wanted)


@given(models)
def test_the_active_timeline_of_modelled_histories_lies_so_too(model):
    replay = replay_of(model)
    events = model.device.events
    trace = [
        {"action": ACTIONS[action], "addr": int(addr), "size": int(size)}
        for action, addr, size in zip(
            events.action, events.addr, events.size, strict=True
        )
    ]
    states = ("inactive", "active_allocated", "active_pending_free")
    blocks = model.device.blocks
    segments = [
        {
            "device": 0,
            "address": int(blocks.address[0]) if len(blocks) else 0,
            "blocks": [
                {"address": int(address), "size": int(size), "state": states[state]}
                for address, size, state in zip(
                    blocks.address, blocks.size, blocks.state, strict=True
                )
            ],
        }
    ]
    for event, rows in Layout(trace, segments, 0).states(set(range(len(trace)))):
        assert drawn(replay, event) == rows

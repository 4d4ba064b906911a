"""Frames and stacks come back however they are shared, in a few bytes each."""

from __future__ import annotations

import io
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.formats.snapshots import frames as frames_module
from memboard.tb_plugin.formats.snapshots import window as window_module
from memboard.tb_plugin.formats.snapshots.snapshot_file import read_tables
from tests.made_snapshots import DEPTH, own_stacks
from tests.tb_plugin.readers.snapshots.pickled import same, unpickled


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"action": "alloc", "addr": number, "size": 512, **more}


def copied(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(frame) for frame in frames]


@st.composite
def snapshots(draw: Any) -> dict[str, Any]:
    """Frames and lists of them in events, blocks and elsewhere, shared or spelled out."""
    lines = st.sampled_from([0, 7, 255, 256, 70_000, -1, 2**40])
    frames = [
        {"name": f"f{number % 3}", "filename": "a.py", "line": draw(lines)}
        for number in range(draw(st.integers(1, 6)))
    ]
    if draw(st.booleans()):
        frames.append({"name": "g", "filename": "b.py", "line": 1, "fx_node_op": "add"})
        frames.append({"line": 3.5, "filename": None})
    lists = draw(st.lists(st.lists(st.sampled_from(frames), max_size=5), min_size=1))
    ways = {
        "the same list": lambda frames: frames,
        "the same frames": list,
        "spelled out": copied,
    }

    def stack() -> list[dict[str, Any]]:
        way = ways[draw(st.sampled_from(sorted(ways)))]
        return way(draw(st.sampled_from(lists)))

    def trace() -> list[dict[str, Any]]:
        number = draw(st.integers(0, 12))
        events = [event(place, frames=stack()) for place in range(number)]
        for odd in draw(st.lists(st.integers(0, 12), max_size=2)):
            if odd < number:
                events[odd]["top"] = stack()[:1]
        return events

    blocks = [{"size": 512, "frames": stack()} for _ in range(draw(st.integers(0, 3)))]
    first = draw(st.sampled_from(frames))
    elsewhere = {
        "frame": first,
        "pair": (first, stack()),
        "lists": [stack(), [first, 1], [1, first], [[first]]],
    }
    snapshot = {
        "segments": [{"address": 1, "blocks": blocks}],
        "device_traces": [trace(), trace()],
        "elsewhere": elsewhere,
    }
    keys = draw(st.permutations(sorted(snapshot)))
    return {key: snapshot[key] for key in keys}


@given(snapshots(), st.sampled_from([2, 3, 4, 5]))
def test_frames_come_back_however_they_are_shared(snapshot, protocol):
    data = pickle.dumps(snapshot, protocol=protocol)
    assert same(unpickled(data), pickle.loads(data))


def as_rows(tables: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {
            key: column if isinstance(column, tuple) else np.asarray(column).tolist()
            for key, column in table.items()
        }
        for name, table in tables.items()
    }


@pytest.mark.parametrize("most_recent", [1, 50, 1 << 17])
@pytest.mark.parametrize("num_lines", [1, 40, 1 << 40])
def test_equal_frames_are_one_however_far_apart(num_lines, most_recent, monkeypatch):
    monkeypatch.setattr(frames_module, "MOST_RECENT", most_recent)
    data = pickle.dumps(own_stacks(40, num_lines))
    assert as_rows(read_tables(io.BytesIO(data))) == as_rows(
        tables_of(pickle.loads(data))
    )


def test_lines_of_any_size_are_told_apart(monkeypatch):
    monkeypatch.setattr(frames_module, "MOST_RECENT", 2)
    lines = [0, 2**31, 2**40, -(2**62), 2**62, 0, 2**31, 2**64, True, 1]
    frames = [{"name": "f", "filename": "a.py", "line": line} for line in lines]
    trace = [event(number, frames=[frame]) for number, frame in enumerate(frames)]
    data = pickle.dumps({"segments": [], "device_traces": [trace]})
    tables = read_tables(io.BytesIO(data))
    assert tables["stacks"]["num_frames"].tolist() == [1] * 8
    stacks = np.asarray(tables["events"]["frames"]).tolist()
    assert stacks == [0, 1, 2, 3, 4, 0, 1, 5, 6, 7]


def peak_bytes(num_events: int) -> int:
    data = pickle.dumps(own_stacks(num_events))
    tracemalloc.start()
    try:
        read_tables(io.BytesIO(data))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_frame_that_no_other_stack_has_takes_less_than_100_bytes(monkeypatch):
    # What is the same for files of all sizes is to be small beside these.
    monkeypatch.setattr(frames_module, "MOST_RECENT", 1 << 10)
    monkeypatch.setattr(window_module, "MARGIN", 1 << 16)
    monkeypatch.setattr(window_module, "_READ", 1 << 16)
    few, many = 500, 2500
    grown = peak_bytes(many) - peak_bytes(few)
    assert grown / ((many - few) * DEPTH) < 100

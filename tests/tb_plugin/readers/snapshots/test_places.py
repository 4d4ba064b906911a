"""Files that refer to one event's dict several times: each time is another event."""

from __future__ import annotations

import gzip
import io
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.format.snapshots import rebuilt
from tb_plugin.readers.imports.errors import RefusedError
from tb_plugin.readers.snapshots import events as events_module
from tb_plugin.readers.snapshots.packed import Packed
from tb_plugin.readers.snapshots.places import Places
from tb_plugin.readers.snapshots.snapshot_file import read_tables
from tests.made_snapshots import everything, long_history


def read(data: bytes) -> Any:
    return rebuilt(read_tables(io.BytesIO(data)))


def pickled(value: Any, protocol: int, *, by_python: bool) -> bytes:
    if not by_python:
        return pickle.dumps(value, protocol)
    held = io.BytesIO()
    pickle._Pickler(held, protocol).dump(value)
    return held.getvalue()


@st.composite
def doubled(draw) -> Any:
    """A history with events that stand in it several times, in any list."""
    made = draw(st.sampled_from([everything, lambda: long_history(40)]))()
    traces = made["device_traces"]
    known = [event for trace in traces for event in trace]
    for trace in traces:
        for _ in range(draw(st.integers(0, 12))) if known else ():
            place = draw(st.integers(0, len(trace)))
            trace.insert(place, draw(st.sampled_from(known)))
    return made


@given(doubled(), st.integers(3, 5), st.booleans())
def test_what_is_read_is_what_pickle_loads(made, protocol, by_python):
    data = pickled(made, protocol, by_python=by_python)
    assert read(data) == pickle.loads(data)
    assert read(gzip.compress(data)) == made


def test_columns_that_appear_or_change_their_kind_later_are_no_trouble():
    early = {"action": "alloc", "addr": 7, "size": 1, "frames": []}
    between = {"action": "free", "addr": 2**64 - 1, "odd": 1, "frames": []}
    changed = {"action": "free", "addr": 1, "odd": [1.5, "text"], "frames": []}
    floating = {"action": "free", "addr": 1, "share": 0.5, "pool": (0, 1), "frames": []}
    events = [early, between, early, changed, between, floating, changed, early]
    events += [floating, floating, between]
    made = {"segments": [], "device_traces": [events, [early, floating]]}
    assert read(pickle.dumps(made)) == made


def test_an_event_of_a_settled_chunk_is_found_again():
    made = long_history(40_000)
    trace = made["device_traces"][0]
    chosen = random.Random(5).sample(range(len(trace)), 300)
    trace += [trace[at] for at in chosen]
    assert len(trace) > 2 << 14
    assert read(pickle.dumps(made))["device_traces"][0] == trace


def test_alternating_again_and_new_takes_no_more_than_new_alone():
    made = long_history(20_000)
    trace = made["device_traces"][0]
    first = trace[0]
    made["device_traces"][0] = [one for event in trace for one in (event, first)]
    assert read(pickle.dumps(made)) == made


def test_an_event_again_where_none_can_be_is_refused():
    made = everything()
    event = next(event for trace in made["device_traces"] for event in trace)
    made["last"] = {"event": event}
    data = pickle.dumps({"device_traces": made.pop("device_traces"), **made})
    with pytest.raises(RefusedError, match="stands where none can be"):
        read(data)


def test_an_entry_that_there_never_was_is_refused_at_its_place():
    with pytest.raises(RefusedError, match="refers to entry 200, which is nothing"):
        read(b"\x80\x04}\x94\x8c\x08segments\x94h\xc8s.")


def test_how_often_is_bounded(monkeypatch):
    monkeypatch.setattr(events_module, "MAX_AGAIN", 10)
    event = {"action": "alloc", "addr": 7, "size": 1, "frames": []}
    for times, fits in ((11, True), (12, False)):
        data = pickle.dumps({"segments": [], "device_traces": [[event] * times]})
        if fits:
            assert len(read(data)["device_traces"][0]) == times
        else:
            with pytest.raises(RefusedError, match="too many events"):
                read(data)


@given(st.lists(st.integers(1, 9), max_size=40))
def test_places_know_events_and_nothing_else(gaps):
    places, entry, known = Places(), 0, {}
    for row, gap in enumerate(gaps):
        entry += gap
        places.add(entry, row)
        known[entry] = row
    assert [places.row(e) for e in range(entry + 3)] == [
        known.get(e) for e in range(entry + 3)
    ]


@pytest.mark.parametrize("is_float", [False, True])
def test_one_packed_number_is_the_one_of_its_row(is_float):
    rng = np.random.default_rng(3)
    packed = Packed(is_float=is_float)
    packed.pad(-1, 5)
    for length in (3, 20_000, 1, 17_000, 8):
        if is_float:
            packed.append(rng.random(length))
        else:
            packed.append(rng.integers(-(2**62), 2**62, length))
    packed.append(np.full(40_000, 7.0 if is_float else 7))
    packed.append(np.arange(9.0) if is_float else np.arange(9))
    ones = {row: packed.at(row) for row in range(0, len(packed), 97)}
    ones[len(packed) - 1] = packed.at(len(packed) - 1)
    whole = np.concatenate(list(packed.chunks()))
    assert ones == {row: whole[row].item() for row in ones}

"""Plain data comes out as an unpickler would make it; all else is refused in words."""

from __future__ import annotations

import copy
import io
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.snapshots import window as window_module
from memboard.tb_plugin.formats.snapshots.events import Events
from memboard.tb_plugin.formats.snapshots.window import Window
from memboard.tb_plugin.worker.errors import RefusedError
from tests.made_snapshots import everything, long_history, pooled
from tests.tb_plugin.readers.snapshots.pickled import (
    carried_out,
    machine_of,
    same,
    unpickled,
)

PROTOCOLS = (2, 3, 4, 5)


def real_files() -> list[Path]:
    """Recorded snapshots; to be asked for while tests are collected."""
    folder = os.environ.get("MEMBOARD_REAL_DATA")
    found = sorted(Path(folder, "snapshots").glob("*")) if folder else []
    assert bool(found) == bool(folder), (
        f"MEMBOARD_REAL_DATA={folder} holds no snapshots"
    )
    return [path for path in found if path.suffix != ".json"]


class NoClasses(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise AssertionError(f"{module}.{name}")


def expected(data: bytes) -> Any:
    return NoClasses(io.BytesIO(data)).load()


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("snapshot", [long_history, pooled])
def test_only_the_first_events_are_read_one_by_one(snapshot, protocol, monkeypatch):
    num_single = 0

    def counted(self: Events, event: Any, at: int) -> None:
        nonlocal num_single
        num_single += 1
        add(self, event, at)

    add = Events.add
    monkeypatch.setattr(Events, "add", counted)
    machine, _ = carried_out(pickle.dumps(snapshot(20_000), protocol=protocol))
    assert machine.events.num_rows >= 20_000
    assert num_single < 200


def test_a_reference_to_something_else_than_usual_is_read_as_it_is_or_refused():
    """Whoever shares objects may share a dict where all others have a text."""
    num_read = 0
    things = ["a tag", {"a": 1}, ("b", 2), [1.5], None, (0, 0), 7]
    for usual in things:
        for odd in things:
            trace = [event(time_us=n, tag=usual, x=(0, n)) for n in range(300)]
            trace[200]["tag"] = odd
            trace[250]["tag"] = odd
            data = pickle.dumps({"segments": [odd], "device_traces": [trace]})
            with suppress(RefusedError):
                assert unpickled(data) == expected(data)
                num_read += 1
    assert num_read >= len(things)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_event_that_stands_twice_is_refused_as_torch_writes_each_once(protocol):
    trace = [event(time_us=n, x=(0, n)) for n in range(300)]
    data = pickle.dumps(
        {"segments": [], "device_traces": [[*trace, trace[7]]]}, protocol
    )
    with pytest.raises(RefusedError, match="an event, which torch writes once"):
        unpickled(data)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_events_are_columns_and_not_objects(protocol):
    snapshot = long_history(3000)
    machine = machine_of(pickle.dumps(snapshot, protocol=protocol))
    root = machine.run()
    assert root["device_traces"] == [[] for _ in snapshot["device_traces"]]
    assert machine.events.num_rows == sum(map(len, snapshot["device_traces"]))
    lists = [machine.stacks.frames_of(n) for n in range(len(machine.stacks))]
    stacks = {tuple((f["name"], f["line"]) for f in frames) for frames in lists}
    assert len(stacks) == len(lists)


def test_windows_may_end_at_any_byte_of_an_event(monkeypatch):
    data = pickle.dumps(long_history(60), protocol=4)
    plain = expected(data)
    monkeypatch.setattr(window_module, "MARGIN", 64)
    monkeypatch.setattr(window_module, "_READ", 1)
    for num_bytes in range(2500, 2600):
        monkeypatch.setattr(Window.fill, "__defaults__", (num_bytes,))
        assert unpickled(data) == plain, num_bytes


scalars = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**64 - 1) | st.text()
frames = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(max_size=3),
            "filename": st.just("a.py"),
            "line": st.integers(0, 9),
        }
    ),
    max_size=4,
)
events = st.fixed_dictionaries(
    {
        "action": st.sampled_from(["alloc", "free_requested", "oom", "annotate"]),
        "addr": st.integers(0, 2**63 - 1),
        "size": st.integers(-(2**40), 2**40),
    },
    optional={
        "stream": st.integers(0, 3),
        "time_us": st.integers(0, 2**55),
        "compile_context": st.sampled_from(["N/A", "", "0/1"]),
        "device_free": st.integers(0, 2**40),
        "pool_id": st.tuples(st.integers(0, 300), st.integers(0, 70_000)),
        "odd": scalars | st.lists(scalars, max_size=2) | st.floats(allow_nan=False),
        "frames": frames,
    },
)
snapshots = st.fixed_dictionaries(
    {"segments": st.lists(st.dictionaries(st.text(), scalars, max_size=3), max_size=3)},
    optional={
        "device_traces": st.lists(st.lists(events, max_size=30), max_size=3),
        "allocator_settings": st.dictionaries(st.text(), scalars, max_size=4),
    },
)


def shared(snapshot: Any) -> Any:
    """Equal frames become one object, as torch's are: references instead of copies."""
    known: dict[Any, Any] = {}
    for trace in snapshot.get("device_traces", []):
        for event in trace:
            if "frames" in event:
                event["frames"] = [
                    known.setdefault(tuple(f.items()), f) for f in event["frames"]
                ]
    return snapshot


@given(snapshots.map(shared), st.sampled_from(PROTOCOLS))
def test_whatever_a_snapshot_holds_comes_back(snapshot, protocol):
    assert unpickled(pickle.dumps(snapshot, protocol=protocol)) == snapshot


@given(st.data())
def test_damage_is_refused_and_never_crashes(data):
    whole = bytearray(pickle.dumps(everything(), protocol=4))
    cut = data.draw(st.integers(0, len(whole)))
    del whole[cut:]
    for _ in range(data.draw(st.integers(0, 3))):
        if whole:
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.integers(0, 255))
    try:
        unpickled(bytes(whole))
    except RefusedError as refused:
        assert refused.remedy  # noqa: PT017  # not every damage is one


def event(**more: Any) -> dict[str, Any]:
    return {"action": "alloc", "addr": 1, "size": 2, **more}


def test_an_event_elsewhere_than_in_a_list_of_events_is_refused():
    for odd in (
        {"a": event()},
        [event(), 1],
        [1, event()],
        {"x": [[event()], [event(), {}]]},
    ):
        with pytest.raises(RefusedError):
            unpickled(pickle.dumps(odd))


def test_a_key_whose_type_changes_is_kept_as_it_was():
    snapshot = {
        "device_traces": [[event(x=1), event(x="a"), event(), event(x=[1, None])]]
    }
    data = pickle.dumps(snapshot)
    assert unpickled(data) == snapshot


odd_numbers = [0, 255, 256, 65_535, 65_536, -1, 2**63, -(2**63), 2**64, 2**70]
odd_numbers += [
    limit + step for limit in (2**31, 2**62, 2**63, 2**64) for step in (-1, 1)
]
odd_texts = ["", "N/A", "0/1", "größe", "x" * 300]
odd_things = [
    True,
    False,
    None,
    1.5,
    float("inf"),
    [],
    {},
    (0, 0),
    (3, 2**40),
    (1, 2, 3),
]
odd_values = st.sampled_from([*odd_numbers, *odd_texts, *odd_things])
shapes = st.lists(
    st.lists(st.sampled_from(["stream", "time_us", "pool_id", "tag"]), unique=True),
    min_size=1,
    max_size=4,
)


@st.composite
def varied(draw: Any) -> Any:
    """Many events of a few orders of keys; now and then a value of another type."""
    orders = draw(shapes)
    frames = [{"name": n, "filename": "a.py", "line": k} for k, n in enumerate("abc")]
    stacks = [frames[:k] for k in range(4)] + [[frames[0]] * 300]
    plain = {"stream": (0, 7), "time_us": (5, 2**50), "pool_id": ((0, 0), (1, 2**33))}
    trace = []
    for _ in range(draw(st.integers(0, 40))):
        order = draw(st.sampled_from(orders))
        new: dict[str, Any] = {"action": draw(st.sampled_from(["alloc", "oom"]))}
        if draw(st.booleans()):
            new["frames"] = draw(st.sampled_from(stacks))
            if draw(st.booleans()):
                new["frames"] = list(new["frames"])
        new |= {
            "addr": draw(st.integers(0, 2**47)),
            "size": draw(st.integers(0, 2**33)),
        }
        for key in order:
            rare = draw(st.integers(0, 30)) == 0
            usual = plain.get(key, ("", "a tag", "another tag"))
            new[key] = draw(odd_values if rare else st.sampled_from(usual))
        if draw(st.booleans()):
            new["frames"] = new.pop("frames", stacks[1])
        trace.append(new)
    return {"segments": [], "device_traces": [trace, copy.deepcopy(trace[:3])]}


@given(varied(), st.sampled_from(PROTOCOLS))
def test_orders_of_keys_may_alternate_and_types_change(snapshot, protocol):
    # Equal texts and pairs are other objects, as torch's are, or the same, as it comes.
    data = pickle.dumps(copy.deepcopy(snapshot), protocol=protocol)
    assert same(unpickled(data), expected(data))

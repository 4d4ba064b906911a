"""Events of a trace become columns, in whichever way they are written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.traces.bytes import chunks, inflated
from tests.tb_plugin.readers.traces.reading import (
    document,
    event,
    names_of,
    problems_of,
    read,
    shapes_of,
)


def point(ph: str, ts: int, tid: int = 1, pid: int = 1, **more: Any) -> dict:
    """An event that lasts no time."""
    return {"ph": ph, "ts": ts, "pid": pid, "tid": tid, **more}


DISTRIBUTED = {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": []}


def test_times_count_from_the_base_that_the_trace_names():
    text = document(
        [event(ts=1234.567, dur=8.001)], baseTimeNanoseconds=1_700_000_000_000_000_001
    )
    trace = read(text)
    assert trace.base_ns == 1_700_000_000_000_000_001 + 1_234_567
    assert trace.slices.duration_ns.tolist() == [8001]
    assert trace.has_wall_clock
    assert trace.facts.resolution_ns == 1


def test_absolute_times_keep_their_nanoseconds():
    first, second = "1712195495505582.988", "1712195495505583.001"
    text = document([event(ts=0.5), event(ts=0.75)])
    text = text.replace(b": 0.5", b": " + first.encode())
    trace = read(text.replace(b": 0.75", b": " + second.encode()))
    assert trace.base_ns == 1712195495505582988
    assert trace.slices.start_ns.tolist() == [0, 13]
    assert trace.has_wall_clock


def test_times_of_no_clock_are_said_to_be_so():
    trace = read(document([event(ts=100, dur=5)]))
    assert (trace.base_ns, trace.has_wall_clock) == (100_000, False)
    assert trace.facts.resolution_ns == 1000


@pytest.mark.parametrize("where", ["before", "after"])
def test_facts_are_found_before_and_after_the_events(where):
    facts = {"distributedInfo": {**DISTRIBUTED, "pg_config": [{"ranks": "[0, 1]"}]}}
    facts |= {"deviceProperties": [{"id": 0, "name": "<b>H100</b>"}], "with_stack": 1}
    facts |= {"trace_id": "ab", "host_name": "h"}
    events = {"traceEvents": [event()]}
    root = facts | events if where == "before" else events | facts
    found = read(json.dumps(root).encode()).facts
    assert (found.rank, found.world_size, found.backend) == (3, 8, "nccl")
    assert found.distributed["pg_config"] == [{"ranks": [0, 1]}]
    assert found.devices[0]["name"] == "<b>H100</b>"
    assert found.flags == {"with_stack": True}
    assert (found.trace_id, found.host_name) == ("ab", "h")


def test_distributed_info_may_be_text():
    text = document([event()], distributedInfo=str(DISTRIBUTED))
    assert read(text).facts.rank == 3


def test_events_that_begin_and_end_become_slices():
    events = [
        point("B", 10, name="outer", args={"a": 1}),
        point("B", 20, name="inner"),
        point("E", 25, name="inner"),
        point("E", 40, name="outer"),
        point("E", 41, name="never"),
        point("B", 12, tid=2, name="open"),
    ]
    trace = read(document(events))
    found = {
        trace.name_of(row): (
            int(trace.slices.start_ns[row]),
            int(trace.slices.duration_ns[row]),
            int(trace.slices.level[row]),
        )
        for row in range(3)
    }
    assert found["outer"] == (0, 30_000, 0)
    assert found["inner"] == (10_000, 5_000, 1)
    assert found["open"] == (2_000, 29_000, 0)
    assert trace.args_of(names_of(trace).index("outer")) == {"a": 1}
    assert problems_of(trace) == {
        "ends of what never began are not shown": 1,
        "slices that never ended are shown until the trace's end": 1,
    }


def test_counters_instants_and_names():
    events = [
        point("M", 0, 0, 7, name="process_name", args={"name": "Rank 2 training"}),
        point("M", 0, 1, 7, name="thread_name", args={"name": "main"}),
        point("C", 5, 0, 7, name="memory", args={"a": 1, "b": 2.5}),
        point("C", 3, 0, 7, name="memory", args={"a": 7}),
        point("i", 4, 1, 7, name="saved", s="g"),
        event(pid=7, tid=1, ts=1, dur=9),
    ]
    trace = read(document(events))
    counter, main = sorted(trace.tracks, key=lambda track: track.name == "main")
    assert (main.name, main.process, main.rank) == ("main", "Rank 2 training 7", 2)
    assert (counter.name, counter.kind) == ("memory", "counter")
    assert [(one.name, one.num_points) for one in trace.series] == [("a", 2), ("b", 1)]
    assert trace.counters.time_ns.tolist() == [2000, 4000, 4000]
    assert trace.counters.value.tolist() == [7.0, 1.0, 2.5]
    assert [trace.strings[name] for name in trace.instants.name] == ["saved"]


def test_flows_lead_from_slice_to_slice():
    work = {"correlation": 7, "device": 64, "stream": 7, "blocks per SM": 1.5}
    events = [
        event("launch", ts=10, dur=5, cat="cuda_runtime", args={"correlation": 7}),
        event("gemm", ts=30, dur=9, cat="kernel", pid=0, tid=7, args=work),
        point("s", 10, id=7, cat="ac2g", name="ac2g"),
        point("f", 30, 7, 0, id=7, cat="ac2g", name="ac2g", bp="e"),
        event("forward", ts=50, dur=5),
        event("backward", ts=60, dur=5, tid=2),
        point("s", 50, id="x", cat="fwdbwd"),
        point("f", 60, 2, id="x", cat="fwdbwd"),
    ]
    trace = read(document(events))
    pairs = {
        (trace.name_of(first), trace.name_of(last))
        for first, last in zip(trace.flows.from_row, trace.flows.to_row, strict=True)
    }
    assert pairs == {("launch", "gemm"), ("forward", "backward")}
    row = names_of(trace).index("gemm")
    (link,) = trace.links_of(row)
    assert (link.kind, trace.name_of(link.row)) == ("launch", "launch")
    assert trace.device_work.device.tolist() == [64]
    assert trace.device_work.blocks_per_sm.tolist() == [1.5]
    track = trace.tracks[int(trace.slices.track[row])]
    assert (track.kind, track.device, track.stream) == ("device", 64, 7)


def test_one_start_may_reach_several_ends_and_clocks_may_differ():
    flow = {"id": 1, "cat": "ac2g"}
    events = [
        event(name, ts, tid=at)
        for at, name, ts in ((1, "a", 10), (2, "b", 5), (3, "c", 20))
    ]
    events += [
        point("f", 5, 2, **flow),
        point("s", 10, 1, **flow),
        point("f", 20, 3, **flow),
    ]
    trace = read(document(events))
    pairs = zip(trace.flows.from_row, trace.flows.to_row, strict=True)
    found = {(trace.name_of(first), trace.name_of(last)) for first, last in pairs}
    assert found == {("a", "b"), ("a", "c")}


def test_what_collectives_and_operators_say_becomes_columns():
    args = {
        "Collective name": "all_gather_base", "dtype": "BFloat16", "In msg nelems": 5,
        "Out msg nelems": 10, "Group size": 2, "Process Group Name": "0", "Seq": 4,
        "Process Group Ranks": "[0, 1]", "In split size": "[]", "External id": 9,
        "Input Dims": [[2, 3], []], "Input type": ["float", ""], "Comms Id": 2**64 + 5,
    }  # fmt: skip
    trace = read(document([event("record_param_comms", args=args)]))
    collectives, operators = trace.collectives, trace.operators
    assert trace.strings[collectives.name[0]] == "all_gather_base"
    assert trace.strings[collectives.dtype[0]] == "BFloat16"
    assert (collectives.out_elements[0], collectives.sequence[0]) == (10, 4)
    assert operators.external_id.tolist() == [9]
    assert json.loads(trace.strings[operators.input_dims[0]]) == [[2, 3], []]
    assert trace.args_of(0) == args


def test_memory_events_of_any_device():
    def memory(ts: int, **args: int) -> dict:
        return point("i", ts, name="[memory]", args=args)

    more = {
        "Device Type": 12,
        "Device Id": 0,
        "Total Allocated": 8,
        "Total Reserved": 9,
    }
    events = [memory(5, Bytes=-8, Addr=2**64 - 1, **more), memory(2, Bytes=8)]
    trace = read(document(events))
    memory = trace.memory
    assert memory.time_ns.tolist() == [0, 3000]
    assert memory.num_bytes.tolist() == [8, -8]
    assert memory.address.tolist() == [0, -1]
    assert memory.device_type.tolist() == [-1, 12]
    assert memory.reserved_bytes.tolist() == [-1, 9]


texts = st.text(max_size=8)
ids = st.one_of(st.integers(-3, 3), st.sampled_from(["main", "7", ""]))
numbers = st.one_of(
    st.integers(0, 10**6), st.floats(0, 10**6).map(lambda x: round(x, 3))
)
values = st.recursive(
    st.one_of(texts, st.integers(-(2**70), 2**70), st.none(), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2)
    ),
    max_leaves=4,
)
made_events = st.lists(
    st.builds(
        lambda name, ts, dur, pid, tid, args: event(name, ts, dur, pid=pid, tid=tid, args=args),
        texts, numbers, numbers, ids, ids, st.dictionaries(texts, values, max_size=3),
    ),
    max_size=12,
)  # fmt: skip


@given(made_events, st.sampled_from([16, 100, 1 << 18]))
def test_every_way_of_writing_gives_the_same_slices(events, block):
    text = document(events)
    patch = pytest.MonkeyPatch()
    with patch.context() as small:
        small.setattr(inflated, "BLOCK", block)
        small.setattr(chunks, "_LATE", block)
        for shape, content in shapes_of(text, events).items():
            trace = read(content)
            assert len(trace.problems) == (not events), shape  # that it is empty
            slices = trace.slices
            assert len(slices) == len(events), shape
            found = sorted(
                (
                    trace.name_of(row),
                    int(slices.start_ns[row]) + trace.base_ns,
                    int(slices.duration_ns[row]),
                    json.dumps(trace.args_of(row)),
                )
                for row in range(len(slices))
            )
            assert found == sorted(
                (
                    one["name"],
                    round(one["ts"] * 1000),
                    round(one["dur"] * 1000),
                    json.dumps(one["args"]),
                )
                for one in events
            ), shape


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1, max_size=20))
def test_digits_are_read_to_the_nanosecond(times_ns):
    from memboard.tb_plugin.formats.traces.columns.times import from_digits

    texts = [
        f"{'-' * (t < 0)}{abs(t) // 1000}.{abs(t) % 1000:03}".encode() for t in times_ns
    ]
    assert from_digits(texts).tolist() == times_ns


@given(
    st.integers(1, 19).flatmap(
        lambda digits: st.lists(
            st.text("0123456789.-e", min_size=digits, max_size=digits),
            min_size=1,
            max_size=6,
        )
    )
)
def test_digits_of_equal_length_are_read_as_each_alone(texts):
    from memboard.tb_plugin.formats.traces.columns.times import from_digits

    encoded = [text.encode() for text in texts]
    # Of unlike lengths, they are read in another way.
    apart = from_digits([*encoded, b"1.23456"])[:-1]
    assert from_digits(encoded).tolist() == apart.tolist()


@pytest.mark.parametrize("text", [b"3999999999999999.999", b"4000000000001000.000"])
def test_the_latest_time_that_there_is(text):
    from memboard.tb_plugin.formats.traces.columns.times import NO_TIME, from_digits

    expected = 3999999999999999999 if text.startswith(b"3") else NO_TIME
    assert from_digits([text, text]).tolist() == [expected] * 2


@given(st.lists(st.integers(0, 7_889_238 * 10**9), min_size=1, max_size=20))
def test_floats_below_their_bound_are_exact(times_ns):
    from memboard.tb_plugin.formats.traces.columns.times import from_floats

    times_us = np.array([float(f"{t // 1000}.{t % 1000:03}") for t in times_ns])
    assert from_floats(times_us).tolist() == times_ns

"""Torch's traces: every event once, at its time, with places and ids of its own."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.ranks.clock_line import Reading, clock_line
from memboard.tb_plugin.analysis.ranks.clocks import RankClock
from memboard.tb_plugin.merging.discovery import inputs_of_files, traces_below
from tests.tb_plugin.merging.chrome import (
    events,
    merge,
    merge_files,
    ns_of,
    process_names,
    rank_of,
    slice_of,
    torch_trace,
)

BASE_NS = 1_790_857_026 * 10**9


def test_times_are_absolute_ones_to_the_nanosecond(tmp_path):
    path = torch_trace(
        tmp_path / "rank0.json",
        [slice_of("a", 7_889_237_999_999.123), slice_of("b", 0.001), slice_of("c", 12)],
        rank=0,
    )
    trace = merge_files(path)
    found = {e["name"]: ns_of(trace, e) - BASE_NS for e in events(trace, "X")}
    assert found == {"a": 7_889_237_999_999_123, "b": 1, "c": 12_000}


def test_older_traces_are_since_1970(tmp_path):
    slices = (
        f'{{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": {ts}, "dur": 1}}'
        for ts in ("1623143566756000", "1623143566756000.125")
    )
    text = f'{{"traceEvents": [{",".join(slices)}]}}'
    path = tmp_path / "worker0.json"
    path.write_text(text)
    trace = merge_files(path)
    assert [ns_of(trace, e) for e in events(trace, "X")] == [
        1_623_143_566_756_000_000,
        1_623_143_566_756_000_125,
    ]


def test_ranks_never_share_processes_threads_or_flows(tmp_path):
    def one(rank):
        found = [
            slice_of("launch", 10.0, args={"correlation": 5}),
            {"ph": "s", "id": 5, "pid": 12, "tid": 12, "ts": 10.0, "cat": "ac2g",
             "name": "ac2g"},
            slice_of("kernel", 12.0, pid=0, tid=7, cat="kernel", args={"correlation": 5}),
            {"ph": "f", "id": 5, "pid": 0, "tid": 7, "ts": 12.0, "cat": "ac2g",
             "name": "ac2g", "bp": "e"},
            {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0,
             "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0,
             "args": {"labels": "GPU 0"}},
            {"ph": "M", "name": "process_sort_index", "pid": 0, "tid": 0, "ts": 0,
             "args": {"sort_index": 5000000}},
            {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "ts": 0,
             "args": {"name": "a device without events"}},
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0,
             "args": {"name": "stream 7"}},
        ]  # fmt: skip
        return torch_trace(tmp_path / f"{rank}.json", found, rank=rank)

    trace = merge_files(one(0), one(1))
    slices = events(trace, "X")
    assert len({e["pid"] for e in slices}) == 4
    assert len({e["tid"] for e in slices}) == 4
    assert [rank_of(trace, e) for e in slices] == [0, 0, 1, 1]
    starts, ends = events(trace, "s"), events(trace, "f")
    assert [e["id"] for e in starts] == [e["id"] for e in ends]
    assert starts[0]["id"] != starts[1]["id"]
    assert all(e["args"]["correlation"] == 5 for e in slices)
    assert sorted(process_names(trace).values()) == [
        "Rank 0 process 12", "Rank 0 python 0", "Rank 1 process 12", "Rank 1 python 0",
    ]  # fmt: skip
    threads = [e for e in events(trace, "M") if e["name"] == "thread_name"]
    assert [e["args"]["name"] for e in threads].count("stream 7") == 2


@given(
    st.lists(
        st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=8)),
        min_size=2,
        max_size=8,
        unique_by=str,
    )
)
def test_ids_of_any_kind_stay_apart_and_are_numbers(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("ids")
    flows = [
        {"ph": "s", "id": value, "pid": 12, "tid": 12, "ts": 1.0, "name": "f"}
        for value in ids
    ]
    paths = [
        torch_trace(folder / f"{rank}.json", [slice_of("x", 1.0), *flows], rank=rank)
        for rank in range(2)
    ]
    moved = [event["id"] for event in events(merge_files(*paths), "s")]
    assert len(set(moved)) == 2 * len(ids)
    assert all(isinstance(value, int) and value < 2**53 for value in moved)


def test_two_cycles_of_a_rank_share_its_places_but_no_flows(tmp_path):
    flow = {"ph": "s", "id": 1, "pid": 12, "tid": 12, "ts": 1.0, "name": "f"}
    paths = [
        torch_trace(tmp_path / f"{n}.json", [slice_of("x", n), flow], rank=3)
        for n in (1, 2)
    ]
    trace = merge_files(*paths)
    assert len({(e["pid"], e["tid"]) for e in events(trace, "X")}) == 1
    assert len({e["id"] for e in events(trace, "s")}) == 2


def test_rank_and_base_may_stand_behind_the_events(tmp_path):
    text = json.dumps(
        {
            "traceEvents": [slice_of("x", 1.0)],
            "baseTimeNanoseconds": BASE_NS,
            "distributedInfo": {
                "backend": "nccl",
                "rank": "6",
                "pg_config": [{"a": 1}],
            },
        }
    )
    plain = tmp_path / "plain.json"
    plain.write_text(text)
    deflated = tmp_path / "deflated.json.gz"
    deflated.write_bytes(gzip.compress(text.encode()))
    for path in (plain, deflated):
        trace = merge_files(path)
        (event,) = events(trace, "X")
        assert rank_of(trace, event) == 6
        assert ns_of(trace, event) == BASE_NS + 1000


def test_raw_traces_stay_as_they_are(tmp_path):
    path = torch_trace(tmp_path / "rank0.json", [slice_of("x", 1.0)], rank=0)
    before = path.read_bytes()
    merge_files(path)
    assert path.read_bytes() == before


HOSTILE = {
    "bare words": b'{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":1,'
    b'"args":{"a":NaN,"b":-Infinity,"c":N/A}}',
    "bad escape": rb'{"ph":"X","name":"C:\Users\x","pid":1,"tid":1,"ts":1,"dur":1}',
    "control": b'{"ph":"X","name":"a\nb\x01","pid":1,"tid":1,"ts":1,"dur":1}',
    "not utf-8": b'{"ph":"X","name":"\xff\xfe","pid":1,"tid":1,"ts":1,"dur":1}',
    "texts as places": b'{"ph":"X","name":"n","pid":"Spans","tid":"PyTorch Profiler (0)",'
    b'"ts":1,"dur":1}',
    "odd keys": b'{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":1,"unheard":{"a":[1]}}',
    "odd places": b'{"ph":"X","name":"n","pid":{"a":1},"tid":null,"ts":1,"dur":1}',
    "no name": b'{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1}',
    "like an end": b'{"ph":"X","name":"}, {\\"ph\\": ] }","pid":1,"tid":1,"ts":1,"dur":1,'
    b'"args":{"l":[{"a":1},{"b":2}]}}',
    "time as text": b'{"ph":"X","name":"n","pid":1,"tid":1,"ts":"1","dur":1}',
}


@pytest.mark.parametrize("event", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("as_list", [True, False])
def test_hostile_events_are_kept_or_named_and_cost_nothing_else(
    tmp_path, event, as_list
):
    good = json.dumps(slice_of("good", 5.0)).encode()
    text = b"[" + b",\n".join([good, event, good]) + b"]"
    if not as_list:
        text = b'{"baseTimeNanoseconds": 7, "traceEvents": ' + text + b"}"
    path = tmp_path / "rank0.json"
    path.write_bytes(text)
    inputs = inputs_of_files([path])
    trace = merge(inputs)
    found = events(trace, "X")
    assert [e.get("name") for e in found].count("good") == 2
    assert len(found) == 3
    assert not [p for p in inputs.problems if "could not be read" in p.what]


@pytest.mark.parametrize("drop", [1, 2, 30, 60, 200])
def test_a_truncated_file_gives_all_whole_events(tmp_path, drop):
    path = torch_trace(
        tmp_path / "rank0.json", [slice_of(f"e{n}", n) for n in range(50)], rank=0
    )
    text = path.read_bytes()
    text = text[: text.rindex(b"]")]
    path.write_bytes(text[:-drop])
    inputs = inputs_of_files([path])
    names = [e["name"] for e in events(merge(inputs), "X")]
    whole = text[:-drop].count(b'"dur": 5.0}')
    assert names == [f"e{n}" for n in range(whole)]
    assert any("truncated" in problem.what for problem in inputs.problems)


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"{}", b"[", b'{"traceEvents": 5}', b"\x1f\x8b\x08", b"\x00"],
)
def test_what_is_no_trace_is_named_and_the_others_are_merged(tmp_path, content):
    good = torch_trace(tmp_path / "rank0.json", [slice_of("x", 1.0)], rank=0)
    bad = tmp_path / "rank1.json"
    bad.write_bytes(content)
    inputs = inputs_of_files([good, bad])
    trace = merge(inputs)
    assert len(events(trace, "X")) == 1
    assert any("rank1.json" in problem.path for problem in inputs.problems)
    assert trace["metadata"]["problems"]


def test_a_deflated_file_that_was_cut_off_gives_its_beginning(tmp_path):
    whole = torch_trace(
        tmp_path / "whole.json",
        [slice_of(f"e{n}", n, args={"r": n * 7919 % 10007}) for n in range(5000)],
        rank=0,
    ).read_bytes()
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(whole)[:-2000])
    inputs = inputs_of_files([path])
    found = events(merge(inputs), "X")
    assert 1000 < len(found) < 5000
    assert any("gzip" in problem.what for problem in inputs.problems)


TIMES = st.integers(0, 7_889_238 * 10**9 - 1)


@given(
    files=st.lists(st.lists(TIMES, min_size=1, max_size=40), min_size=1, max_size=4),
    base_s=st.integers(0, 400),
    offsets=st.lists(st.integers(-(10**12), 10**12), min_size=4, max_size=4),
    ppm=st.integers(-200, 200),
)
def test_every_event_comes_once_at_its_time(
    tmp_path_factory, files, base_s, offsets, ppm
):
    """Times in ns since torch's base, each rank's clock shifted and drifting."""
    folder = tmp_path_factory.mktemp("traces")
    base_ns = base_s * 7_889_238 * 10**9
    expected, paths, clocks = {}, [], []
    for rank, times in enumerate(files):
        written = ",".join(
            f'{{"ph":"X","name":"{rank}/{index}","pid":1,"tid":1,'
            f'"ts":{Decimal(ns) / 1000},"dur":1}}'
            for index, ns in enumerate(times)
        )
        path = folder / f"rank{rank}.json"
        path.write_text(
            f'{{"baseTimeNanoseconds": {base_ns}, "traceEvents": [{written}]}}'
        )
        paths.append(path)
        at = base_ns + min(times)
        other = at + 100 * 10**9
        drifted = offsets[rank] + 100_000 * ppm
        line = clock_line([Reading(at, offsets[rank], 5), Reading(other, drifted, 5)])
        clocks.append(RankClock(line, "distributed"))
        for index, ns in enumerate(times):
            absolute = base_ns + ns
            expected[f"{rank}/{index}"] = absolute + line.at(absolute).offset_ns
    inputs = inputs_of_files(paths)
    for one, clock in zip(inputs.ranks, clocks, strict=True):
        one.clock = clock
    trace = merge(inputs)
    found = events(trace, "X")
    assert len(found) == len(expected)
    for event in found:
        # A float of microseconds holds times of some days to the nanosecond; a quarter of
        # a year apart, and with the line's own rounding, to two.
        assert abs(ns_of(trace, event) - expected[event["name"]]) <= 2


def test_links_are_followed_and_end_somewhere(tmp_path):
    """To traces and directories elsewhere, but to no file of another kind of name."""
    run, elsewhere = tmp_path / "run", tmp_path / "scratch"
    (run / "own").mkdir(parents=True)
    (elsewhere / "node1").mkdir(parents=True)
    for rank, path in enumerate(
        (
            run / "own" / "rank0.json",
            elsewhere / "rank1.json",
            elsewhere / "node1" / "rank2.json",
            elsewhere / "secret",
        )
    ):
        torch_trace(path, [slice_of(f"of {rank}", 1.0)], rank=rank)
    (run / "rank1.json").symlink_to(elsewhere / "rank1.json")
    (run / "node1").symlink_to(elsewhere / "node1")
    (run / "again").symlink_to(elsewhere / "node1")  # each directory once
    (run / "own" / "up").symlink_to(run)
    (elsewhere / "node1" / "back").symlink_to(elsewhere)
    (elsewhere / "node1" / "above").symlink_to(tmp_path)
    (run / "rank3.json").symlink_to(elsewhere / "secret")
    (run / "rank4.json").symlink_to(elsewhere / "gone.json")
    paths = [str(PurePath(path).relative_to(run)) for path in traces_below(run)]
    names = {"own/rank0.json", "rank1.json"}
    assert names < set(paths)
    assert [path for path in paths if path.endswith("rank2.json")] == [
        "again/rank2.json"
    ]
    found = {event["name"] for event in events(merge_files(*traces_below(run)), "X")}
    assert found == {"of 0", "of 1", "of 2"}

"""Composer's per-rank files: clocks used right, every cycle, ranks kept."""

from __future__ import annotations

import json

import pytest

from memboard.tb_plugin.formats.traces.files.starts import read_start
from memboard.tb_plugin.merging.discovery import inputs_of_files, traces_below
from tests.tb_plugin.merging.chrome import (
    events,
    merge,
    merge_files,
    ns_of,
    rank_of,
    write_trace,
)

EPOCH_US = 1_790_900_000_000_000
"""Composer writes microseconds since 1970."""


def meta(kind, rank, **args):
    return {
        "name": kind, "ph": "M", "pid": rank, "tid": 70 + rank, "ts": EPOCH_US,
        "args": args,
    }  # fmt: skip


def rank_file(folder, rank, *, batch, sync, begin, bound=40):
    """One cycle's file of a rank; `sync` and `begin` in us of the rank's own clock."""
    found = [
        meta("process_name", rank, name=f"Rank {rank} training loop process"),
        meta("thread_name", rank, name="Training Loop"),
        meta("global_rank", rank, value=rank),
        meta("process_sort_index", rank, sort_index=rank),
        meta("clock_sync_timestamp_us", rank, value=EPOCH_US + sync),
        meta("clock_sync_error_bound", rank, value=bound),
    ]
    for phase, at in (("B", begin), ("E", begin + 50)):
        found.append(
            {
                "name": "event/batch", "cat": "", "ph": phase, "ts": EPOCH_US + at,
                "pid": rank, "tid": 70 + rank, "args": {"batch": batch},
            }
        )  # fmt: skip
    path = folder / f"ep0-ba{batch}-rank{rank}.json"
    text = "[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n"
    path.write_text(text)
    return path


def begins(trace):
    """(rank, us) of every begin, by time."""
    found = [
        (rank_of(trace, event), round(ns_of(trace, event) / 1000) - EPOCH_US)
        for event in events(trace, "B")
    ]
    return sorted(found, key=lambda one: (one[1], one[0]))


def two_cycles(folder, ranks=(0, 1)):
    low, high = ranks
    return [
        rank_file(folder, low, batch=1, sync=1_000_000, begin=1_000_100),
        rank_file(folder, high, batch=1, sync=1_000_500, begin=1_000_600),
        rank_file(folder, low, batch=9, sync=2_000_000, begin=2_000_100),
        rank_file(folder, high, batch=9, sync=2_000_520, begin=2_000_620),
    ]


@pytest.mark.parametrize("num_cycles", [1, 2])
@pytest.mark.parametrize("ranks", [(0, 1), (8, 9)])
def test_cycles_follow_the_drift_on_the_lowest_ranks_clock(tmp_path, ranks, num_cycles):
    trace = merge_files(*two_cycles(tmp_path, ranks)[: 2 * num_cycles])
    low, high = ranks
    assert trace["metadata"]["clock"] == f"rank {low}'s clock"
    assert begins(trace) == [
        (low, 1_000_100), (high, 1_000_100), (low, 2_000_100), (high, 2_000_100),
    ][: 2 * num_cycles]  # fmt: skip
    # Nothing is lost and nothing unmatched: one B and one E per rank and cycle.
    assert len(events(trace, "B")) == len(events(trace, "E")) == 2 * num_cycles


def test_the_bound_is_the_smaller_of_the_two_ranks(tmp_path):
    paths = [
        rank_file(tmp_path, 0, batch=1, sync=0, begin=10, bound=90),
        rank_file(tmp_path, 1, batch=1, sync=500, begin=510, bound=40),
    ]
    by_rank = {one["rank"]: one for one in merge_files(*paths)["metadata"]["ranks"]}
    assert by_rank[0]["clock_method"] == "reference"
    assert by_rank[1]["clock_method"] == "barriers"
    assert by_rank[1]["offset_ns"] == -500_000
    assert 41_000 <= by_rank[1]["error_ns"] < 42_000


@pytest.mark.parametrize("end", ["", ",", ",\n", '\n{"name": "cut o', "\n]"])
def test_truncated_files_give_what_they_hold(tmp_path, end):
    paths = two_cycles(tmp_path)[:2]
    whole = paths[1].read_text().rstrip().removesuffix("]").rstrip()
    paths[1].write_text(whole + ("," if end.startswith("\n{") else "") + end)
    inputs = inputs_of_files(paths)
    trace = merge(inputs)
    assert begins(trace) == [(0, 1_000_100), (1, 1_000_100)]
    told = [problem.what for problem in inputs.problems]
    assert any("truncated" in what for what in told) == (end != "\n]")


def test_torchs_events_among_composers_get_what_they_count_from(tmp_path):
    path = two_cycles(tmp_path)[0]
    base_us = EPOCH_US // (7_889_238 * 10**6) * 7_889_238 * 10**6
    torch = {
        "ph": "X", "name": "aten::add", "pid": 1234, "tid": 1234, "dur": 2.5,
        "ts": EPOCH_US - base_us + 1_000_110.125,
    }  # fmt: skip
    path.write_text(json.dumps([*json.loads(path.read_text()), torch]))
    trace = merge_files(path)
    (op,) = events(trace, "X")
    assert ns_of(trace, op) == EPOCH_US * 1000 + 1_000_110_125
    (begin,) = events(trace, "B")
    assert ns_of(trace, begin) == EPOCH_US * 1000 + 1_000_100_000


def test_what_was_merged_already_is_left_out(tmp_path):
    two_cycles(tmp_path)
    composers = [
        {"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": 70,
         "args": {"sort_index": 99999}},
        {"name": "event/batch", "ph": "B", "pid": 0, "tid": 70, "ts": EPOCH_US},
    ]  # fmt: skip
    path = write_trace(tmp_path / "merged_trace.json", composers)
    assert read_start(path).is_merged
    first = merge(inputs_of_files(traces_below(tmp_path)))
    ours = write_trace(tmp_path / "ours.json", first)
    assert read_start(ours).is_merged
    again = merge(inputs_of_files(traces_below(tmp_path)))
    assert begins(again) == begins(first)
    named = inputs_of_files([ours])
    assert named.is_empty
    assert "merged" in named.problems[0].what


def test_a_cycle_alone(tmp_path):
    two_cycles(tmp_path)
    trace = merge(inputs_of_files(traces_below(tmp_path), cycle=2))
    assert begins(trace) == [(0, 2_000_100), (1, 2_000_100)]


def test_a_missing_rank_is_named(tmp_path):
    rank_file(tmp_path, 0, batch=1, sync=0, begin=10)
    rank_file(tmp_path, 2, batch=1, sync=0, begin=10)
    trace = merge(inputs_of_files(traces_below(tmp_path)))
    told = trace["metadata"]["problems"]
    assert [(one["rank"], one["what"]) for one in told] == [(1, "Rank 1 has no trace.")]

"""Instants by route: in tiles, found, in full; and events of a recording beside spans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memboard.tb_plugin.analysis.trace.trace import Instants, Track
from memboard.tb_plugin.api.time.trace import INSTANTS_LEVEL
from memboard.tb_plugin.jobs.trace_sources import FoundSource
from tests.builders import GIB, START_NS, RunBuilder
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_trace import (
    MS,
    STEPS,
    all_tracks,
    opened,
    span_capture,
    spans_of,
    window,
)
from tests.traces_builder import trace_of

if TYPE_CHECKING:
    from pathlib import Path

SAVE = ("save", "checkpoint", 32 * MS, 2 * MS, 3)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """Spans with two instants, a checkpoint, an error of memory and a mark."""
    made = RunBuilder(tmp_path / "exp").rank(0)
    made.steps(range(4), allocated_peak_bytes=[GIB] * 4)
    tables = spans_of([*STEPS, SAVE])
    names = tables["names"]
    names["name"] += ("<b>best</b>",)
    names["category"] += ("user",)
    tables["instants"] = {
        "name": np.full(2, len(names["name"]) - 1),
        "thread": np.zeros(2, np.int64),
        "time_ns": np.array([START_NS + 2 * MS, START_NS + 6 * MS]),
        "step": np.array([0, 0]),
        "state": np.array([2, 2]),
        "args": np.array([1, -1]),
    }
    tables["args"]["json"] += (json.dumps({"loss": 0.25}),)
    span_capture(made, tables)
    made.note("oom", time_ns=START_NS + 36 * MS, step=3, message="out of memory")
    made.note("mark", time_ns=START_NS + 20 * MS, step=2, label="warm")
    made.close()
    return Page(tmp_path)


def instants(tile):
    """Which pieces of a tile are instants."""
    levels = [lane["level"] for lane in tile["lanes"]]
    lane = np.repeat(np.arange(len(levels)), np.diff(tile["lane_start"]))
    return [at for at, of in enumerate(lane) if levels[of] == INSTANTS_LEVEL], lane


def named(tile):
    """(track, name, family, time) of the instants of a tile."""
    rows, lane = instants(tile)
    assert not tile["duration"][rows].any()
    return [
        (
            tile["lanes"][lane[at]]["track"],
            tile["names"][tile["name"][at]],
            tile["families"][tile["family"][at]],
            tile["start"][at] * tile["unit_ns"],
        )
        for at in rows
    ]


def test_a_tile_holds_them_with_the_recordings_events_on_a_track_of_their_own(page):
    found = opened(page)
    spans = [track for track in found["tracks"] if track["kind"] == "span"]
    assert [(one["name"], one["num_instants"]) for one in spans] == [
        ("events", 3),
        ("MainThread", 2),
    ]
    tile = page.of_run(
        "/trace_slices", "exp", tracks=all_tracks(found), px=4000, **window(found)
    )
    assert named(tile) == [
        ("spans-0:0", "mark warm", "instant", 20 * MS),
        ("spans-0:0", "checkpoint written", "checkpoint", 34 * MS),
        ("spans-0:0", "out of memory", "oom", 36 * MS),
        ("spans-0:1", "<b>best</b>", "instant", 2 * MS),
        ("spans-0:1", "<b>best</b>", "instant", 6 * MS),
    ]
    assert tile["count"].sum() == len(STEPS) + 1 + 5


def test_far_out_they_are_counted_together(page):
    found = opened(page)
    tile = page.of_run(
        "/trace_slices", "exp", tracks=all_tracks(found), px=1, **window(found)
    )
    rows, _ = instants(tile)
    assert tile["count"][rows].sum() == 5
    assert len(rows) == 2


def test_one_in_full(page):
    found = opened(page)
    hits = page.of_run(
        "/trace_search", "exp", tracks=all_tracks(found), only="instants"
    )
    assert hits["num_hits"] == 5
    assert hits["level"].tolist() == [INSTANTS_LEVEL] * 5
    first = int(hits["row"][0])
    one = page.of_run("/trace_slice", "exp", source="spans-0", row=first)
    assert (one["name"], one["track"]) == ("<b>best</b>", "spans-0:1")
    assert (one["start_ns"], one["duration_ns"]) == (str(START_NS + 2 * MS), 0)
    assert {arg["name"]: arg["value"] for arg in one["args"]} == {
        "step": "0",
        "schedule": "active",
        "loss": "0.25",
    }
    assert [around["name"] for around in one["stack"]] == ["forward", "step"]
    last = page.of_run(
        "/trace_slice", "exp", source="spans-0", row=int(hits["row"][-1])
    )
    assert last["family"] == "oom"
    assert {"name": "message", "value": "out of memory"} in last["args"]


def test_a_text_finds_slices_and_instants_in_order_of_time(page):
    found = opened(page)
    hits = page.of_run("/trace_search", "exp", tracks=all_tracks(found), text="E")
    assert (np.diff(hits["start_ns"]) >= 0).all()
    assert (hits["row"] < 0).sum() == 4
    best = page.of_run("/trace_search", "exp", tracks=all_tracks(found), text="BEST")
    assert (best["num_hits"], (best["row"] < 0).tolist()) == (2, [True, True])
    assert [best["tracks"][at] for at in best["track"]] == ["spans-0:1"] * 2


@pytest.mark.parametrize(
    ("query", "status"),
    [({"row": -6}, 404), ({"row": 2**31 - 1}, 404), ({"row": 2**31}, 400), ({}, 400)],
)
def test_what_is_not_there_is_refused(page, query, status):
    opened(page)
    answer = page.raw("/trace_slice", run=page.run_id("exp"), source="spans-0", **query)
    assert answer.status_code == status
    assert json.loads(answer.data)["remedy"]


def test_a_mark_of_no_process_is_not_listed(page):
    """torch's profiler says where its window ended, far behind the last slice."""

    def load():
        trace = trace_of([(0, 0, 5, "mm")], base_ns=START_NS)
        word = trace.strings.index("mm")
        end = Track(name="unnamed", process="", kind="other")
        own = Track(name="marks", process="python 1", kind="host")
        columns = (np.array(row) for row in ([1, 2], [4, 900], [word] * 2, [word] * 2))
        return replace(
            trace,
            tracks=(*trace.tracks, own, end),
            instants=Instants(*columns, np.array([-1, -1])),
        )

    files = [
        FoundSource(
            "f", "trace", "a.json", 0, 1, 10, ("f",), lambda _: load, "/x/f", "f"
        )
    ]
    page.plugin.state().traces._files = lambda _run, _budget: files
    found = opened(page)
    source = [one["id"] for one in found["sources"]].index("f")
    tracks = [one for one in found["tracks"] if one["source"] == source]
    assert [(one["name"], one["num_instants"]) for one in tracks] == [
        ("thread 0", 0),
        ("marks", 1),
    ]

"""The routes about traces: of recorded spans, and of what somebody else asks for."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.tb_plugin.jobs.trace_sources import FoundSource
from memboard.tb_plugin.worker.errors import FileError
from tests.builders import GIB, START_NS, RunBuilder
from tests.tb_plugin.client import PATIENCE_SECONDS, Page, answered, refresh
from tests.traces_builder import trace_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RankBuilder

US = 1_000
MS = 1_000_000


def spans_of(
    slices: list[tuple[str, str, int, int, int]], *, shift_ns: int = 0
) -> dict[str, Any]:
    """Tables of a capture of (name, category, start, duration, step) on one thread."""
    names = sorted({(name, category) for name, category, *_ in slices})
    rows = [names.index((name, category)) for name, category, *_ in slices]
    num = len(slices)
    return {
        "names": {
            "name": tuple(name for name, _ in names),
            "category": tuple(category for _, category in names),
        },
        "threads": {"thread_id": np.array([77]), "name": ("MainThread",)},
        "spans": {
            "name": np.array(rows),
            "thread": np.zeros(num, np.int64),
            "start_ns": np.array([START_NS + shift_ns + s[2] for s in slices]),
            "duration_ns": np.array([s[3] for s in slices]),
            "step": np.array([s[4] for s in slices]),
            "depth": np.zeros(num, np.int64),
            "state": np.full(num, 2),
            "args": np.array([0] + [-1] * (num - 1)),
        },
        "instants": {
            key: np.empty(0, np.int64)
            for key in ("name", "thread", "time_ns", "step", "state", "args")
        },
        "counters": {
            "name": np.array([0, 0]),
            "time_ns": np.array([START_NS + shift_ns, START_NS + shift_ns + MS]),
            "step": np.array([0, 0]),
            "value": np.array([3.0, 5.0]),
        },
        "args": {"json": ('{"batch":4}',)},
    }


STEPS = [
    part
    for step in range(4)
    for part in (
        ("step", "step", step * 10 * MS, 9 * MS, step),
        ("forward", "forward", step * 10 * MS + 1 * MS, 3 * MS, step),
        ("backward", "backward", step * 10 * MS + 5 * MS, 3 * MS, step),
    )
]


def span_capture(rank: RankBuilder, tables: dict[str, Any], **meta: Any) -> None:
    rank.capture(
        "spans", function="", iteration=0, tables=tables, meta={"cycle": 0, **meta}
    )


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """Two ranks with spans and memory; rank 1's clock is 2 ms behind."""
    run = RunBuilder(tmp_path / "exp")
    for rank in (0, 1):
        made = run.rank(rank, world_size=2)
        made.steps(range(20), allocated_peak_bytes=[GIB + s for s in range(20)])
        shift = -2 * MS if rank else 0
        span_capture(made, spans_of(STEPS, shift_ns=shift), num_dropped=rank)
        if rank:
            made.note("clock", offset_ns=2 * MS, error_ns=500, method="distributed",
                      reference_rank=0, cycle=0)  # fmt: skip
        made.close()
    return Page(tmp_path)


def opened(page: Page, **query: Any) -> dict[str, Any]:
    refresh(page)
    return answered(
        lambda: page.of_run("/trace", "exp", **query),
        lambda found: all(one["state"] != "opening" for one in found["sources"]),
    )


def all_tracks(found: dict[str, Any]) -> str:
    by_source: dict[str, list[str]] = {}
    for track in found["tracks"]:
        source = found["sources"][track["source"]]["id"]
        by_source.setdefault(source, []).append(str(track["index"]))
    return ";".join(f"{name}:{','.join(rows)}" for name, rows in by_source.items())


def window(found: dict[str, Any]) -> dict[str, int]:
    base = int(found["base_ns"])
    return {"t0": base, "t1": base + int(found["end_ns"]) + 1}


def test_spans_of_all_ranks_lie_on_one_clock(page):
    found = opened(page)
    assert [one["kind"] for one in found["sources"]] == [
        "spans",
        "spans",
        "counters",
        "counters",
    ]
    assert found["base_ns"] == str(START_NS)
    assert [one["start_ns"] for one in found["sources"][:2]] == [0, 0]
    assert found["sources"][1]["clock"] == {
        "method": "distributed",
        "offset_ns": 2 * MS,
        "error_ns": found["sources"][1]["clock"]["error_ns"],
    }
    assert found["sources"][1]["notes"] == [
        "Spans that came faster than they are kept were left out"
    ]
    assert found["steps"]["number"].tolist() == [0, 1, 2, 3]
    assert found["steps"]["start_ns"].tolist() == [at * 10 * MS for at in range(4)]
    kinds = [(t["rank"], t["kind"], t["name"]) for t in found["tracks"]]
    assert kinds[0] == (0, "span", "MainThread")
    assert (0, "counter", "Allocated peak") in kinds
    memory = next(t for t in found["tracks"] if t["name"] == "Allocated peak")
    assert (memory["unit"], memory["most"]) == ("bytes", GIB + 19)
    assert (memory["key"], found["tracks"][0]["key"]) == ("counters-0:0", "spans-0:0")
    assert found["sources"][1]["title"] == "rank 1: spans"
    assert found["sources"][1]["facts"][0] == "12 slices"
    assert found["sources"][1]["facts"][2].startswith("clock moved by 2.00 ms, at most")
    assert found["summary"].startswith("24 slices on ")
    assert found["summary"].endswith("2 ranks, 39.0 ms long, 4 steps.")


def test_a_tile_holds_every_slice_and_the_counters(page):
    found = opened(page)
    tile = page.of_run(
        "/trace_slices", "exp", tracks=all_tracks(found), px=4000, **window(found)
    )
    assert tile["count"].sum() == 2 * len(STEPS)
    assert tile["unit_ns"] == 1
    names = [tile["names"][at] for at in tile["name"]]
    assert names.count("forward") == 8
    at = names.index("backward")
    assert tile["duration"][at] == 3 * MS
    assert tile["families"][tile["family"][at]] == "backward"
    first = tile["lane_start"]
    assert [lane["level"] for lane in tile["lanes"]] == [0, 1, 0, 1]
    assert first[-1] == len(tile["start"])
    lines = {line["track"]: line for line in tile["lines"]}
    assert lines["spans-0:1"]["value"].tolist() == [3, 5]
    assert lines["spans-0:1"]["time_ns"].tolist() == [0, MS]
    assert "counters-0:0" in lines


def test_a_zoomed_out_tile_loses_no_slice(page):
    found = opened(page)
    tile = page.of_run(
        "/trace_slices", "exp", tracks="spans-0:0", px=2, **window(found)
    )
    assert tile["count"].sum() == len(STEPS)
    assert len(tile["start"]) < len(STEPS)
    assert tile["busy"].sum() * tile["unit_ns"] == sum(s[3] for s in STEPS)


def test_one_slice_with_all_that_is_known_of_it(page):
    found = opened(page)
    hits = page.of_run("/trace_search", "exp", tracks=all_tracks(found), text="FORWARD")
    assert (hits["num_hits"], hits["num_names"]) == (8, 2)
    row = int(hits["row"][0])
    one = page.of_run("/trace_slice", "exp", source="spans-0", row=row)
    assert one["name"] == "forward"
    assert one["start_ns"] == str(START_NS + MS)
    assert (one["duration_ns"], one["self_ns"]) == (3 * MS, 3 * MS)
    assert [above["name"] for above in one["stack"]] == ["step"]
    assert one["stack"][0]["start_ns"] == -MS
    assert {arg["name"]: arg["value"] for arg in one["args"]} == {
        "step": "0",
        "schedule": "active",
    }
    outer = page.of_run(
        "/trace_slice", "exp", source="spans-0", row=one["stack"][0]["row"]
    )
    assert outer["self_ns"] == 3 * MS
    assert {"name": "batch", "value": "4"} in outer["args"]


def test_sums_of_a_range_over_ranks(page):
    found = opened(page)
    base = int(found["base_ns"])
    sums = page.of_run(
        "/trace_range", "exp", tracks=all_tracks(found), t0=base, t1=base + 10 * MS
    )
    table = {one["key"]: one for one in sums["table"]["columns"]}
    number = (table[key]["numbers"] for key in ("count", "total_us", "self_us"))
    by_name = dict(zip(table["name"]["texts"], zip(*number, strict=True), strict=True))
    assert by_name["step"] == (2, 18_000, 6_000)
    assert by_name["forward"] == (2, 6_000, 6_000)
    assert sums["table"]["summary"] == "6 slices of 3 names."
    assert sorted(sums["table"]["colours"]) == ["backward", "forward", "step"]
    assert sums["table"]["usual"] == "total_us"
    sums = page.of_run(
        "/trace_range",
        "exp",
        tracks=all_tracks(found),
        t0=base,
        t1=base + 10 * MS,
        by="track",
    )
    table = {one["key"]: one for one in sums["table"]["columns"]}
    rows = zip(
        table["name"]["texts"],
        table["track"]["texts"],
        table["total_us"]["numbers"],
        strict=True,
    )
    assert sorted(row for row in rows if row[0] == "step") == [
        ("step", "rank 0: MainThread", 9_000),
        ("step", "rank 1: MainThread", 9_000),
    ]
    assert sums["table"]["summary"] == "6 slices of 3 names."


def test_ranks_choose_what_is_shown(page):
    assert opened(page, rank=1)["shown_ranks"] == [1]
    assert opened(page, ranks="0")["shown_ranks"] == [0]
    assert opened(page)["num_ranks"] == 2
    assert opened(page, ranks="7")["sources"] == []


@pytest.mark.parametrize(
    ("route", "query", "status"),
    [
        ("/trace_slices", {"tracks": "spans-0:0"}, 400),
        ("/trace_slices", {"tracks": "spans-0:99", "t0": "0", "t1": "5"}, 404),
        ("/trace_slices", {"tracks": "../../etc:0", "t0": "0", "t1": "5"}, 400),
        ("/trace_slices", {"tracks": "gone:0", "t0": "0", "t1": "5"}, 404),
        ("/trace_slices", {"tracks": "spans-0:0-99999999", "t0": "0", "t1": "5"}, 400),
        ("/trace_slices", {"tracks": "counters-x:0", "t0": "0", "t1": "5"}, 404),
        ("/trace_slices", {"tracks": "spans-0:²", "t0": "0", "t1": "5"}, 400),
        ("/trace_slice", {"source": "spans-0"}, 400),
        ("/trace_slice", {"source": "spans-0", "row": "123456"}, 404),
        ("/trace_slice", {"source": "a/b", "row": "1"}, 400),
        ("/trace_search", {"tracks": "spans-0:0"}, 400),
        ("/trace_range", {"tracks": "spans-0:0"}, 400),
    ],
)
def test_what_means_nothing_is_refused_by_its_name(page, route, query, status):
    opened(page)
    answer = page.raw(route, run=page.run_id("exp"), **query)
    assert answer.status_code == status, answer.data
    said = json.loads(answer.data)
    assert said["what"]
    assert said["remedy"]


@pytest.mark.parametrize(
    "query",
    [
        {"t0": "-9223372036854775808", "t1": "9223372036854775807"},
        {"t0": "9223372036854775807", "t1": "9223372036854775807"},
        {"t0": "5", "t1": "1"},
        {"t0": "0", "t1": "1", "px": "8192"},
        {"t0": str(START_NS), "t1": str(START_NS + 10**9), "px": "0"},
    ],
)
def test_odd_windows_are_answered(page, query):
    opened(page)
    for tracks in ("spans-0:0,1", "counters-0:0", ""):
        answer = page.of_run("/trace_slices", "exp", tracks=tracks, **query)
        assert answer["unit_ns"] >= 1
        assert len(answer["start"]) == len(answer["duration"])


def test_a_bad_trace_is_named_and_the_others_are_shown(page):
    def broken(_job):
        raise FileError("byte 17 is no JSON", "", "")

    def good(_job):
        return lambda: trace_of([(0, 0, 5, "mm")], base_ns=START_NS)

    files = [
        FoundSource(
            "bad", "trace", "rank0.json", 0, 1, 10, ("a",), broken, "/x/a", "a"
        ),
        FoundSource("good", "trace", "rank1.json", 1, 1, 10, ("b",), good, "/x/b", "b"),
    ]
    page.plugin.state().traces._files = lambda _run, _budget: files
    found = opened(page)
    by_id = {one["id"]: one for one in found["sources"]}
    assert by_id["bad"]["state"] == "failed"
    assert by_id["bad"]["problem"]["what"] == "byte 17 is no JSON"
    assert by_id["good"]["state"] == "ready"
    assert by_id["spans-0"]["state"] == "ready"
    answer = page.raw(
        "/trace_slices", run=page.run_id("exp"), tracks="bad:0", t0=0, t1=1
    )
    assert answer.status_code == 422
    assert b"byte 17" in answer.data


def test_nobody_waits_for_a_trace_that_takes_long(page, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.pages.trace.trace.OPEN_SECONDS", 0.01)
    begun, release = threading.Event(), threading.Event()

    def slow(job):
        job.note(0.25, "reading")
        begun.set()
        release.wait(PATIENCE_SECONDS)
        return lambda: trace_of([(0, 0, 5, "mm")], base_ns=START_NS)

    files = [FoundSource("slow", "trace", "a.json", 0, 1, 10, ("a",), slow, "/x", "x")]
    page.plugin.state().traces._files = lambda _run, _budget: files
    refresh(page)
    page.of_run("/trace", "exp")
    assert begun.wait(PATIENCE_SECONDS)
    found = page.of_run("/trace", "exp")
    by_id = {one["id"]: one for one in found["sources"]}
    assert by_id["slow"]["state"] == "opening"
    assert by_id["slow"]["progress"] == 0.25
    release.set()
    assert opened(page)["sources"][1]["state"] == "ready"


def test_damaged_spans_lose_their_capture_alone(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    made = run.rank(0, world_size=1)
    span_capture(made, spans_of(STEPS))
    bad = spans_of(STEPS)
    bad["spans"]["name"] = bad["spans"]["name"] + 99
    span_capture(made, bad)
    lost = spans_of(STEPS)
    del lost["threads"]
    span_capture(made, lost)
    made.close()
    page = Page(tmp_path)
    found = opened(page)
    assert found["sources"][0]["num_slices"] == len(STEPS)
    assert found["sources"][0]["notes"] == [
        "Captures of spans were damaged and left out (2)"
    ]


def test_a_run_without_traces_shows_its_numbers(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    made = run.rank(0, world_size=1)
    made.steps(range(20), allocated_peak_bytes=[GIB] * 20)
    made.close()
    found = opened(Page(tmp_path))
    assert [one["kind"] for one in found["sources"]] == ["counters"]
    assert found["choices"] == []
    assert found["end_ns"] > 0

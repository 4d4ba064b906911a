"""`/compare` and `/rank_histories`: two live sets, and those of all ranks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.jobs import job
from tests.collector.recordings import wait_until
from tests.simulate import Form
from tests.tb_plugin.client import answered
from tests.tb_plugin.pages.history_runs import (
    Asked,
    Slow,
    asked_of,
    captured,
    trained,
)
from tests.tb_plugin.pages.test_compare_runs import figures_in


@pytest.fixture(scope="module")
def snapshot() -> dict[str, Any]:
    return trained().snapshot(Form())


@pytest.fixture
def asked(run, snapshot) -> Asked:
    return asked_of(run, snapshot)


def compared(asked: Asked, **query: Any) -> dict[str, Any]:
    return asked.get("compare", b_history=asked.history, **query)


def live(found: dict[str, Any], label: str = "Live") -> dict[str, Any]:
    return figures_in(found)[label]


def sides(table: dict[str, Any], what: str = "bytes") -> list[np.ndarray]:
    """Numbers of A and of B; zero where that side has no such row."""
    columns = {one["key"]: one["numbers"] for one in table["rows"]["columns"]}
    return [np.nan_to_num(columns[f"{side}_{what}"]) for side in "ab"]


def labels(table: dict[str, Any]) -> tuple[str, ...]:
    return table["rows"]["columns"][0]["texts"]


def test_a_moment_is_the_same_as_itself(asked):
    found = compared(asked, moment=1500, b_moment=1500)
    stacks = found["stacks"]
    assert stacks["a_bytes"].tolist() == stacks["b_bytes"].tolist()
    assert stacks["a_bytes"].sum() == live(found)["a"] > 0
    assert found["sentence"] == "B holds as much as A."
    for table in found["tables"]:
        for what in ("bytes", "blocks"):
            a, b = sides(table, what)
            assert a.tolist() == b.tolist()


def test_two_moments_differ_by_what_came_and_went(asked, snapshot):
    slow = Slow(snapshot)
    found = compared(asked, moment=200, b_moment=1500)
    change = slow.level[1500] - slow.level[200]
    stacks = found["stacks"]
    assert stacks["b_bytes"].sum() - stacks["a_bytes"].sum() == change
    difference = np.abs(stacks["b_bytes"] - stacks["a_bytes"])
    assert (np.diff(difference) <= 0).all()
    assert [table["by"] for table in found["tables"]] == [
        "category",
        "module",
        "line",
        "size",
        "stack",
    ]
    for table in found["tables"]:
        a, b = sides(table)
        assert (a.sum(), b.sum()) == (live(found)["a"], live(found)["b"])
        assert sides(table, "blocks")[0].sum() == live(found, "Blocks")["a"]
    (by_stack,) = (table for table in found["tables"] if table["by"] == "stack")
    assert sides(by_stack)[0].tolist() == stacks["a_bytes"].tolist()


def is_read(found: dict[str, Any]) -> bool:
    return not found["still_reading"]


def moved(snapshot: dict[str, Any], by: int, folder: str) -> dict[str, Any]:
    """The same from another version of the code: other lines of files elsewhere."""
    other = deepcopy(snapshot)
    seen: set[int] = set()
    stacks = [
        holder["frames"]
        for trace in other["device_traces"]
        for holder in trace
        if "frames" in holder
    ]
    for frames in stacks:
        for frame in frames:
            if id(frame) not in seen:
                seen.add(id(frame))
                frame["line"] += by
                frame["filename"] = folder + frame["filename"]
    return other


def test_other_versions_of_the_code_match_by_function(run, snapshot):
    other = captured(run, moved(snapshot, 7, "/elsewhere/"), rank=1)
    asked = asked_of(run, snapshot)
    by_line = asked.get("compare", b_history=other, moment=1500, b_moment=1500)
    a_blocks, b_blocks = sides(by_line["tables"][-1], "blocks")
    assert not ((a_blocks > 0) & (b_blocks > 0)).any()
    by_function = asked.get(
        "compare", b_history=other, moment=1500, b_moment=1500, match="function"
    )
    stacks = by_function["stacks"]
    assert stacks["a_bytes"].tolist() == stacks["b_bytes"].tolist()
    assert (stacks["line"] == 0).all()


def test_a_side_that_is_not_there_is_named(asked):
    answer = asked.raw("compare", b_history="0-nothing-1")
    assert answer.status_code == 404
    assert b"no such history" in answer.data


def with_one_more(snapshot: dict[str, Any], num_bytes: int) -> dict[str, Any]:
    """The same with one large allocation, made first and never freed."""
    other = deepcopy(snapshot)
    trace, address = other["device_traces"][0], 1 << 46
    event = {**trace[0], "addr": address, "size": num_bytes}
    trace[:0] = [{**event, "action": "segment_alloc"}, {**event, "action": "alloc"}]
    like = other["segments"][0]
    block = {
        **like["blocks"][0],
        "address": address,
        "size": num_bytes,
        "requested_size": num_bytes,
        "state": "active_allocated",
    }
    sizes = {"total_size", "allocated_size", "active_size", "requested_size"}
    segment = {**like, "address": address, "blocks": [block]}
    other["segments"].append({**segment, **dict.fromkeys(sizes, num_bytes)})
    return other


def test_the_line_that_makes_the_difference_is_named_where_it_has_no_category(
    run, snapshot
):
    extra = 1 << 30
    other = with_one_more(snapshot, extra)
    for holder in (other["device_traces"][0][1], other["segments"][-1]["blocks"][0]):
        holder["frames"] = [{"filename": "/me/cache.py", "name": "keep", "line": 7}]
    other = captured(run, other, rank=1)
    found = asked_of(run, snapshot).get("compare", b_history=other)
    line = "cache.py:7 keep"
    assert (
        found["sentence"] == f"B holds 1.00 GiB more than A (2.17 %): mostly at {line}."
    )
    (category,) = (table for table in found["tables"] if table["by"] == "category")
    assert labels(category)[0] == line
    a, b = sides(category)
    assert b[0] - a[0] == extra


def test_ranks_stand_beside_their_median(run, snapshot):
    history = captured(run, snapshot, rank=0, label="warm")
    extra = 300 << 20
    later = with_one_more(snapshot, extra)
    captured(run, snapshot, rank=1, label="warm")
    captured(run, later, rank=2, label="warm")
    captured(run, snapshot, rank=3, label="cold")
    asked = Asked(run.folder.parent, run.folder.name, history)
    found = answered(lambda: asked.get("rank_histories"), is_read)
    assert [one["rank"] for one in found["ranks"]] == [0, 1, 2, 3]
    peaks = [one["peak_active_bytes"] for one in found["ranks"]]
    assert peaks[0] == peaks[1] == peaks[3] == found["median_history_peak_bytes"]
    assert peaks[2] == peaks[0] + extra
    assert found["sentence"].startswith("The history of rank 2 peaks at ")
    assert "300 MiB above the median of 4 histories" in found["sentence"]
    assert found["note"] == "warm; 4 histories read"
    lines = found["line_bytes"].reshape(len(found["lines"]), 4)
    differs = lines.max(axis=1) - lines.min(axis=1)
    assert differs[0] == extra
    assert (differs[1:] == 0).all()
    table = {one["key"]: one for one in found["table"]["columns"]}
    from_median = table["difference_from_median_bytes"]["numbers"].tolist()
    assert from_median == [0, 0, extra, 0]
    assert table["top_site"]["texts"][2] in found["lines"]
    of_line = table[f"{found['lines'][0]} (bytes)"]
    assert of_line["title"] == "", "it is in files alone"
    assert (of_line["numbers"] == lines[0]).all()


def test_what_cannot_be_opened_hides_no_other_and_is_not_opened_at_every_poll(
    run, snapshot, tmp_path, monkeypatch
):
    monkeypatch.setattr(job, "RETRY_S", -1.0)  # the reader would try again
    history = captured(run, snapshot, rank=0)
    captured(run, {"segments": "nonsense", "device_traces": []}, rank=1)
    asked = Asked(run.folder.parent, run.folder.name, history)
    reader = asked.page.plugin.state().histories
    found = answered(lambda: asked.get("rank_histories"), is_read)
    assert [one["state"] for one in found["ranks"]] == ["ready", "failed"]
    assert found["ranks"][1]["problem"]
    wait_until(lambda: reader.num_ended == 2)  # it is counted behind the answer
    before = reader.num_ended
    tag = asked.raw("rank_histories").headers["ETag"]
    again = asked.raw("rank_histories", headers={"If-None-Match": tag})
    assert again.status_code == 304
    assert reader.num_ended == before


def test_a_history_that_was_not_met_yet_is_asked_for_again(run, snapshot, monkeypatch):
    captured(run, snapshot)
    asked = Asked(run.folder.parent, run.folder.name, "0-elsewhere-1")
    assert asked.raw("history").status_code == 404
    monkeypatch.setattr(Run, "unfinished", property(lambda _: True))
    answer = asked.raw("history")
    assert answer.status_code == 503
    assert b"still being read" in answer.data

"""Thousands of segments and a million events: answers stay right, and bounded in size."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from tests.builders import RunBuilder
from tests.made_snapshots import block, event, segment
from tests.tb_plugin.client import numbers_of, texts_of
from tests.tb_plugin.pages.history_runs import Asked, asked_of

NUM_SEGMENTS = 2_600
NUM_BLOCKS = 30
BASE = 0x7F0000000000
APART = 1 << 27
KIB = 1 << 10


def crowded() -> dict[str, Any]:
    """Segments of 30 blocks, every third free, no two segments of one size."""
    segments = []
    for number in range(NUM_SEGMENTS):
        at = BASE + number * APART
        size = (4 + number * 7919 % NUM_SEGMENTS) * KIB
        blocks = [
            block(
                at + place * size,
                size,
                "inactive" if place % 3 == number % 3 else "active_allocated",
            )
            for place in range(NUM_BLOCKS)
        ]
        segments.append(segment(at, blocks, stream=number % 2))
    return {
        "segments": segments,
        "device_traces": [[event("snapshot", 0, 0, 1_700_000_000_000_000)]],
        "external_annotations": [],
        "allocator_settings": {},
    }


def size_of(asked: Asked, route: str, **query: Any) -> int:
    body = asked.raw(route, **query).data
    return len(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> tuple[Asked, list[dict[str, Any]]]:
    snapshot = crowded()
    run = RunBuilder(tmp_path_factory.mktemp("crowd") / "exp")
    return asked_of(run, snapshot), snapshot["segments"]


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("size", lambda s: (-s["total_size"], s["address"])),
        ("free", lambda s: (s["allocated_size"] - s["total_size"], s["address"])),
        ("address", lambda s: s["address"]),
    ],
)
def test_of_2600_segments_the_first_2000_are_drawn_and_all_are_counted(
    crowd, sort, key
):
    asked, segments = crowd
    found = asked.get("segments", moment=0, sort=sort)
    assert found["num_segments"] == NUM_SEGMENTS
    assert found["reserved_bytes"] == sum(s["total_size"] for s in segments)
    assert found["allocated_bytes"] == sum(s["allocated_size"] for s in segments)
    wanted = sorted(segments, key=key)[:2000]
    rows, blocks = found["segments"], found["blocks"]
    assert rows["address"].tolist() == [s["address"] for s in wanted]
    assert len(blocks["size"]) == 2000 * NUM_BLOCKS
    for row in (0, 999, 1999):
        first, count = int(rows["first_block"][row]), int(rows["num_blocks"][row])
        drawn = slice(first, first + count)
        true = wanted[row]["blocks"]
        assert blocks["size"][drawn].tolist() == [b["size"] for b in true]
        assert (blocks["state"][drawn] > 0).tolist() == [
            b["state"] != "inactive" for b in true
        ]


def test_a_filter_reaches_segments_that_are_not_drawn_without_it(crowd):
    asked, segments = crowd
    for row in (0, 1):
        found = asked.get("segments", moment=0, stream=row)
        assert found["num_segments"] == NUM_SEGMENTS // 2
        addresses = set(found["segments"]["address"].tolist())
        assert addresses == {s["address"] for s in segments if s["stream"] == row}


def test_the_answer_about_segments_is_bounded(crowd):
    asked, _ = crowd
    found = asked.get("segments", moment=0)
    num = len(found["blocks"]["size"]) + len(found["segments"]["address"])
    assert num == 2000 * (NUM_BLOCKS + 1)
    assert size_of(asked, "segments", moment=0) < 60 * num
    (notes,) = (
        one["notes"]
        for one in found["free_sizes"]["columns"]
        if one["key"] == "split_bytes"
    )
    counts = [int(note[2:].replace(",", "")) for note in notes if note]
    assert sum(counts) == NUM_SEGMENTS * NUM_BLOCKS // 3


NUM_LIVES = 350_000


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Asked:
    """1,050,000 events: each allocation is freed before the next is made."""
    trace = [
        event(action, BASE, 512, 1_700_000_000_000_000 + at)
        for at, action in enumerate(("alloc", "free_requested", "free_completed"))
    ]
    snapshot = {
        "segments": [],
        "device_traces": [trace],
        "external_annotations": [],
        "allocator_settings": {},
    }
    small = tables_of(snapshot)
    life = np.repeat(np.arange(NUM_LIVES), 3)
    events = {
        name: np.tile(column, NUM_LIVES) for name, column in small["events"].items()
    }
    events["addr"] = BASE + life % 1000 * APART
    events["size"] = 512 * (1 + life % 9973)
    events["time_us"] = events["time_us"] + 3 * life
    traces = {"num_events": np.array([len(life)])}
    run = RunBuilder(tmp_path_factory.mktemp("long") / "exp")
    tables = {**small, "events": events, "traces": traces}
    rank = run.rank(0)
    entry = rank.capture("history", function="", iteration=0, tables=tables)
    rank.close()
    history = f"0-{rank.header.attempt}-{entry.offset}"
    asked = Asked(run.folder.parent, run.folder.name, history)
    assert asked.opened()["state"] == "ready"
    return asked


@pytest.mark.parametrize("e0", [0, 524_287, 1_049_000])
def test_any_piece_of_a_million_events_is_what_it_is(long, e0):
    found = long.get("allocator_events", e0=e0, count=900)
    table = found["table"]
    assert found["num_events"] == table["num_all"] == 3 * NUM_LIVES
    rows = np.arange(e0, min(e0 + 900, 3 * NUM_LIVES))
    life = rows // 3
    assert numbers_of(table, "event").tolist() == rows.tolist()
    assert numbers_of(table, "life").tolist() == life.tolist()
    sizes = 512 * (1 + life % 9973)
    assert np.abs(numbers_of(table, "bytes")).tolist() == sizes.tolist()
    addresses = (BASE + life % 1000 * APART).tolist()
    uses = (life // 1000).tolist()
    names = [f"b{at:x}_{use}" for at, use in zip(addresses, uses, strict=True)]
    assert texts_of(table, "block") == names
    active = np.where(rows % 3 == 2, 0, sizes)
    assert numbers_of(table, "active").tolist() == active.tolist()


def test_a_million_rows_are_answered_in_pieces_of_bounded_size(long):
    found = long.get("allocator_events", count=10**6)
    assert found["table"]["num_rows"] == 2000
    assert size_of(long, "allocator_events", count=10**6) < 150 * 2000
    last = 3 * NUM_LIVES - 1
    (found,) = numbers_of(long.get("allocator_events", e0=10**9)["table"], "event")
    assert found == last


def test_one_kind_of_a_million_events_is_a_list_of_its_own(long):
    found = long.get("allocator_events", actions="alloc", e0=200_000, count=5)
    assert found["table"]["num_all"] == NUM_LIVES
    events = numbers_of(found["table"], "event").tolist()
    assert events == [600_000 + 3 * at for at in range(5)]
    assert found["row_of_moment"] == NUM_LIVES - 1

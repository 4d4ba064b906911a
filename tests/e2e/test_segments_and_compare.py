"""Segments at any moment, and two moments or all ranks beside each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.builders import GIB, RunBuilder
from tests.e2e.looking import (
    PATIENCE_MS,
    hash_holds,
    is_coloured,
    opened,
    painted,
    see,
    tab,
    word_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OOM_RANK = 41
"""The rank of the simulated run that ran out of memory."""

BESIDE = 54
"""The rank whose history is the last one before that."""


def event_number(page: Page) -> int:
    box = tab(page).get_by_label("Event number")
    box.wait_for(timeout=PATIENCE_MS)
    return int(box.input_value())


def test_segments_open_at_the_error_and_at_any_other_moment(
    board_of, open_page, simulated
):
    board = board_of(simulated)
    page = opened(board, open_page, "segments", f"rank={OOM_RANK}")
    see(tab(page), "out of memory: requested")
    failed = event_number(page)
    assert is_coloured(tab(page).locator(".segment-map canvas").first, 6)
    # The request failed for want of a little, and nothing could be given back.
    request = tab(page).get_by_role("region", name="Why memory cannot be used")
    see(request, "An allocation of 605 MiB failed: only ")
    see(request, "more than the device had and empty_cache() would return")
    pinners = tab(page).get_by_role("grid", name="What pins free memory")
    see(pinners, "train.py")
    # Turned over the map, the wheel scrolls the page; with Ctrl it zooms.
    box = tab(page).locator(".segment-sight").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 400, min(box["y"] + 60, 600))
    page.mouse.wheel(0, -3000)
    expect(request).to_be_in_viewport()
    tab(page).get_by_text("4 GiB a line").wait_for(state="attached")
    box = tab(page).locator(".segment-sight").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 400, box["y"] + 40)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    tab(page).get_by_text("2 GiB a line").wait_for(state="attached")
    request.get_by_label("Bytes of a request").fill("1 KiB")
    request.get_by_role("button", name="Check").click()
    hash_holds(page, "request=1024")
    see(request, "1.00 KiB fits")
    see(tab(page).get_by_role("region", name="Arenas"), "large")
    # The moment is a number, a step of the arrow keys, or a mark.
    # What is drawn between typing and Enter leaves the typing alone.
    tab(page).get_by_label("Event number").fill("1000")
    page.evaluate("location.hash = location.hash.replace('=1024', '=2048')")
    see(request, "2.00 KiB")
    assert tab(page).get_by_label("Event number").input_value() == "1000"
    page.keyboard.press("Enter")
    hash_holds(page, "moment=1000")
    # What is in the way of a request is named, and stands beside the map.
    request.get_by_label("Bytes of a request").fill("40 GiB")
    request.get_by_role("button", name="Check").click()
    see(request, "Freeing ")
    request.get_by_role("button", name="Show it on the map").click()
    block = tab(page).get_by_role("region", name="The pinned block")
    block.wait_for()
    sight = tab(page).locator(".segment-sight").bounding_box()
    beside = block.bounding_box()
    assert sight is not None
    assert beside is not None
    assert beside["x"] >= sight["x"] + sight["width"]
    page.keyboard.press("Escape")
    see(pinners, ".py")
    request.get_by_role("button", name="Clear").click()
    tab(page).get_by_role("toolbar", name="Moment").get_by_label("One event on").click()
    hash_holds(page, "moment=1001")
    page.reload()
    see(tab(page), "Segments")
    expect(tab(page).get_by_label("Event number")).to_have_value("1001")
    bar = tab(page).get_by_role("toolbar", name="Moment")
    bar.get_by_role("button", name="Out of memory").click()
    hash_holds(page, f"moment={failed}")
    tab(page).get_by_role("button", name="Over time", exact=True).click()
    hash_holds(page, "part=time")
    see(tab(page), "Simulated data")
    tab(page).get_by_role("button", name="Events", exact=True).click()
    rows = tab(page).get_by_role("grid", name="Allocator events")
    see(rows, "out of memory")


def test_two_histories_are_set_against_each_other(board_of, open_page, simulated):
    board = board_of(simulated)
    page = opened(board, open_page, "compare")
    said = tab(page).get_by_role("status").filter(has_text="B holds")
    said.wait_for()
    # Once the whole run was read: the history before that one is the one beside it.
    expect(said).to_contain_text(re.compile(rf"A: rank {BESIDE},.*B: rank {OOM_RANK},"))
    first = re.search(r"B holds ([\d.]+ \w+) (more|less) than A", said.inner_text())
    assert first is not None
    table = tab(page).get_by_role("grid", name="Difference by line")
    see(table, "evaluate.py:52 append")
    # Exchanged, the same difference has the other sign.
    tab(page).get_by_role("button", name="Exchange A and B").click()
    other = {"more": "less", "less": "more"}[first[2]]
    see(said, f"B holds {first[1]} {other} than A")
    expect(said).to_contain_text(f"B: rank {BESIDE},")
    part = tab(page).get_by_role("region", name="Difference as a table")
    part.get_by_role("button", name="Category", exact=True).click()
    hash_holds(page, "by=category")
    see(tab(page).get_by_role("grid", name="Difference by category"), "Unknown")
    see(tab(page), "Simulated data")


@pytest.fixture(scope="module")
def steps_alone(tmp_path_factory) -> Path:
    """Two runs of two ranks with nothing but steps, the second one 4 GiB lower."""
    logdir = tmp_path_factory.mktemp("steps") / "runs"
    steps = np.arange(60)
    for name, peak, day in (("exp-1", 40, 0), ("exp-2", 36, 1)):
        run = RunBuilder(logdir / name)
        for number in range(2):
            rank = run.rank(number, attempt=day, world_size=2)
            held = (peak - 8 * (1 - number)) * GIB + 0 * steps
            rank.steps(steps, allocated_peak_bytes=held, reserved_peak_bytes=held + GIB)
            rank.close()
    return logdir


def test_one_click_says_whether_a_change_saved_memory(board_of, open_page, steps_alone):
    page = opened(board_of(steps_alone), open_page, "overview")
    tab(page).get_by_role("button", name="Compare").click()
    see(
        tab(page),
        "This run peaks 4.00 GiB lower than exp-1 (36.0 GiB against 40.0 GiB, rank 1).",
    )
    table = tab(page).get_by_role("grid", name="Numbers of the whole run")
    row = table.get_by_role("row").filter(has_text="Reserved peak")
    expect(row).to_contain_text("41.0 GiB37.0 GiB")
    # Two ranks of one run, and any other run, are as near.
    side = tab(page).get_by_role("group", name="Side A")
    side.get_by_label("Rank").select_option("0")
    see(tab(page), "This run peaks 4.00 GiB higher than rank 0 of exp-1")
    hash_holds(page, "a_rank=0")
    side.get_by_label("Run").select_option(label="exp-2")
    hash_holds(page, "a_run=this")
    side.get_by_label("Rank").select_option("0")
    see(tab(page), "The worst rank peaks 8.00 GiB higher than rank 0")
    page.reload()
    see(tab(page), "The worst rank peaks 8.00 GiB higher than rank 0")


def test_all_ranks_lead_to_the_one_that_differs(board_of, open_page, simulated):
    board = board_of(simulated)
    page = opened(board, open_page, "compare", "part=ranks")
    see(tab(page), f"Rank {OOM_RANK} peaks at")
    see(tab(page), "10 histories read")
    table = tab(page).get_by_role("grid", name="Ranks")
    first = table.locator(".row-table-row").first
    expect(first).to_contain_text("evaluate.py:52 append")
    lines = tab(page).get_by_role("region", name="Lines by rank")
    lines.get_by_label(re.compile(r"Bytes of \d+ lines in 10 ranks")).wait_for()
    first.click()
    hash_holds(page, "view=blocks")
    assert word_of(page, "history").startswith(f"{OOM_RANK}-")
    painted(page)
    readout = tab(page).locator(".allocations-readout")
    expect(readout).to_contain_text(f"at event {int(word_of(page, 'moment')):,}")


def test_all_ranks_of_a_run_without_histories_say_so(board_of, open_page, demo):
    board = board_of(demo)
    # The second link is of another run's history, as after choosing this run in the rail.
    for words in (["part=ranks"], ["part=ranks", "history=fdeadbeefdeadbeef"]):
        page = opened(board, open_page, "compare", *words)
        see(tab(page), "No allocator history in this run")
        expect(tab(page).get_by_role("alert")).to_have_count(0)

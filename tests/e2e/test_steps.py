"""Steps by part, throughput and stragglers: read, zoomed, pinned and exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.looking import (
    PATIENCE_MS,
    hash_holds,
    is_coloured,
    opened,
    see,
    shares_filled,
    tab,
)
from tests.tb_plugin.step_runs import CONFIG, PARTS, Story, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def late(rank: int, step: int) -> dict[str, float]:
    """Rank 5 waits for its data; every 50th step writes a checkpoint."""
    slow = {"dataloader": 38.0} if rank == 5 else {}
    return {**slow, "checkpoint": 300.0} if step % 50 == 49 else slow


@pytest.fixture(scope="module")
def logdir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("steps") / "runs"
    told = Story(8, 400, in_step=True, more=late).tell()
    config = {**CONFIG, "flops": {"per_step": 2e12, "device_peak": 1e14}}
    write(
        folder / "exp",
        told,
        counters={"tokens": 4096},
        flops=2e12,
        config=config,
        peak=lambda rank, step: 10**10 + rank * 10**6 + step,
    )
    return folder


def test_a_step_is_found_read_and_pinned(board_of, open_page, logdir):
    page = opened(board_of(logdir), open_page, "steps")
    see(tab(page), "of a step more than the median rank")
    see(tab(page), "One step in 50 is slow")
    # The others wait for the straggler: parts fill the bars of both.
    bars = tab(page).get_by_label("What a step's time goes to")
    assert shares_filled(bars) == pytest.approx([1.0, 1.0], abs=0.005)
    stack = tab(page).get_by_role("application", name="Step time by part")
    assert is_coloured(stack.locator("canvas").first, 5)
    # The heatmap compares what tells the ranks apart.
    expect(tab(page).get_by_label("Compare")).to_have_value("dataloader")
    assert is_coloured(tab(page).locator(".heatmap-cells"), 2)
    # The slowest step by key, then pinned: the address keeps it.
    stack.focus()
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    hash_holds(page, "p.memboard.step=")
    drawer = tab(page).get_by_role("region", name="The pinned step")
    see(drawer, "the slowest of 8")
    see(drawer, "Checkpoint")
    page.reload()
    see(drawer, "the slowest of 8")
    drawer.get_by_label("Close the details").click()
    drawer.wait_for(state="detached", timeout=PATIENCE_MS)
    # A finding leads to its step.
    tab(page).get_by_role("button", name="Show step 399").click()
    hash_holds(page, "p.memboard.step=399")
    see(drawer, "Step 399")


def test_all_charts_share_one_range_and_axis(board_of, open_page, logdir):
    page = opened(board_of(logdir), open_page, "steps", "x0=40", "x1=60")
    stack = tab(page).get_by_role("application", name="Step time by part")
    stack.wait_for(timeout=PATIENCE_MS)
    tab(page).get_by_role("button", name="MFU", exact=True).click()
    hash_holds(page, "p.memboard.rate=mfu")
    see(tab(page), "÷ device_peak")
    tab(page).get_by_role("button", name="All ranks", exact=True).click()
    hash_holds(page, "p.memboard.summed=1")
    tab(page).get_by_role("button", name="Wall time").click()
    hash_holds(page, "p.memboard.x=wall")
    see(tab(page), "local time")
    # As a table, and as a file with every part.
    figure = tab(page).locator(".part-stack")
    figure.get_by_label("View as table").click()
    see(figure, "backward (seconds)")
    figure.get_by_label("Export").first.click()
    with page.expect_download(timeout=PATIENCE_MS) as download:
        tab(page).get_by_role("menuitem", name="CSV").click()
    head = download.value.path().read_text().splitlines()[0]
    for part in (*PARTS, "other"):
        assert f"{part} (seconds)" in head


def test_where_nothing_was_timed_the_page_says_what_to_do(
    tensorboard, open_page, tmp_path
):
    config = {"spans": {"enabled": True, "automatic": False}}
    told = Story(2, 30, absent=PARTS).tell()
    write(tmp_path / "runs" / "exp", told, config=config)
    page = opened(
        tensorboard("--logdir", tmp_path / "runs"), open_page, "steps", dark=True
    )
    see(tab(page), "Set spans.automatic=True")

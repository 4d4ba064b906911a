"""Profiler traces in the pages of an installed MemBoard: Overview, Kernels, ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.looking import (
    PATIENCE_MS,
    hash_holds,
    opened,
    see,
    shares_filled,
    tab,
    texts,
)
from tests.kineto_files import trained

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def ranks(tmp_path_factory) -> Path:
    """A logdir with the traces of three ranks: the last one is waited for."""
    logdir = tmp_path_factory.mktemp("profile") / "runs"
    for rank, wait_us in ((0, 150), (1, 120), (2, 0)):
        made = trained(rank, 3, wait_us)
        made.write(logdir / "exp" / f"host_{rank}.1.pt.trace.json.gz")
    return logdir


def rows(page: Page, table: str) -> Locator:
    found = tab(page).get_by_role("grid", name=table, exact=True)
    found.locator(".row-table-row").first.wait_for(timeout=PATIENCE_MS)
    return found.locator(".row-table-row")


def test_the_overview_says_where_the_time_went(board_of, open_page, ranks):
    page = opened(board_of(ranks), open_page, "overview", "run=exp")
    see(tab(page), "Where the time of profiled steps went")
    see(tab(page), "3 profiled steps")
    roles = tab(page).get_by_role("grid", name="Roles", exact=True)
    kernels = roles.get_by_role("row").filter(has_text="kernels")
    expect(kernels).to_contain_text("300 µs")
    chosen = tab(page).locator("label", has_text="mean of all").locator("select")
    chosen.select_option("6")
    hash_holds(page, "step=6")
    see(tab(page).get_by_role("grid", name="Roles, step 6"), "300 µs")
    see(tab(page).get_by_role("grid", name="Devices, step 6"), "66 %")
    tab(page).locator(".profile .part-stack-input").click()
    see(roles, "kernels")
    see(tab(page).get_by_role("grid", name="Devices", exact=True), "Tesla V100")
    see(tab(page), "GPU 0 · Tesla V100")
    see(tab(page), "Steps wait for data")
    tensor_cores = (
        tab(page).get_by_role("article").filter(has_text="No kernel uses tensor cores;")
    )
    tensor_cores.get_by_role("button", name="No tensor cores", exact=True).click()
    tensor_cores.get_by_text("Evidence: 2 numbers").click()
    see(tensor_cores, "on capability 7.0 and up")
    chooser = tab(page).get_by_label("Trace").first
    chooser.select_option(label="rank 2, cycle 1: host_2.1.pt.trace.json.gz")
    hash_holds(page, "p.memboard.source=t")


def test_kernels_are_listed_sorted_and_found(board_of, open_page, ranks):
    page = opened(board_of(ranks), open_page, "kernels", "run=exp")
    listed = rows(page, "Kernels")
    expect(listed).to_have_count(2)
    # Rank 0 waits in its collective: 3 times 350 us.
    expect(listed.first).to_contain_text("ncclDevKernel_AllReduce")
    expect(listed.first).to_contain_text("1.05 ms")
    tab(page).get_by_role("button", name="Mean").click()
    hash_holds(page, "p.memboard.sort=mean_us")
    tab(page).get_by_label("Top").select_option("10")
    hash_holds(page, "p.memboard.top=10")
    tab(page).get_by_label("Search kernels and operators").fill("sgemm")
    hash_holds(page, "text=sgemm")
    see(tab(page), "1 row,")
    tab(page).get_by_role("button", name="Kernel, operator and launch").click()
    see(tab(page), "aten::mm")


def test_ranks_of_profiled_steps_stand_beside_each_other(board_of, open_page, ranks):
    page = opened(board_of(ranks), open_page, "distributed", "run=exp")
    see(tab(page), "3 ranks; 3 collectives that all their ranks show")
    waited = [["150", "µs"], ["120", "µs"], ["0", "s"]]  # in each step
    texts(
        page,
        rows(page, "Ranks"),
        lambda found: [row.split()[3:5] for row in found] == waited,
    )
    bars = tab(page).get_by_role("group", name="Parts of a step by rank")
    for colour in ("Computation", "Exposed", "Other"):
        see(bars.get_by_role("list"), colour)
    see(bars, "rank 2 straggler")
    # All steps take 990 us: parts fill the bars.
    assert shares_filled(bars) == pytest.approx([1.0] * 3, abs=0.005)
    collectives = rows(page, "Collectives")
    expect(collectives).to_have_count(3)
    expect(collectives.first).to_contain_text("all_reduce")


def test_a_cell_of_ranks_by_steps_leads_to_its_rank(board_of, open_page, tmp_path):
    for rank in range(5):
        made = trained(rank, 5, 30 * rank)
        made.write(tmp_path / "runs" / "exp" / f"host_{rank}.1.pt.trace.json.gz")
    page = opened(board_of(tmp_path / "runs"), open_page, "distributed", "run=exp")
    see(tab(page), "5 ranks; ")
    compared = tab(page).get_by_role("group", name="What the cells of the heatmap are")
    compared.get_by_role("button", name="Computation").click()
    hash_holds(page, "rheat=computation")
    picture = tab(page).get_by_role(
        "application", name="Heatmap of Computation time by rank and profiled step"
    )
    picture.wait_for(timeout=PATIENCE_MS)
    see(tab(page), "5 ranks over steps 5 to 7")
    picture.locator(".heatmap-input[data-draw-ms]").wait_for(timeout=PATIENCE_MS)
    picture.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    hash_holds(page, "step=7")
    chosen = tab(page).get_by_role("row", selected=True)
    expect(chosen).to_have_text(re.compile(r"^\s*4\s"), use_inner_text=True)
    see(tab(page).get_by_label("Inspector"), "Rank 4")
    hash_holds(page, "rank=4")


def test_text_that_is_typed_stays_while_a_newer_trace_is_read(
    tensorboard, open_page, tmp_path
):
    logdir = tmp_path / "runs"
    trained().write(logdir / "exp" / "host_0.1.pt.trace.json.gz")
    page = opened(tensorboard("--logdir", logdir), open_page, "kernels", "run=exp")
    search = tab(page).get_by_label("Search kernels and operators")
    search.fill("sgemm")
    see(tab(page), "1 row,")
    search.evaluate("element => { element.dataset.mark = 'same' }")
    search.focus()
    # There as a whole: a piece of it would be told instead of the table.
    newer = trained().write(tmp_path / "host_0.2.pt.trace.json.gz")
    newer.rename(logdir / "exp" / newer.name)
    newest = tab(page).locator("option:checked", has_text="host_0.2.pt.trace.json.gz")
    newest.wait_for(state="attached", timeout=PATIENCE_MS)
    see(tab(page), "1 row,")
    assert search.get_attribute("data-mark") == "same"
    assert search.evaluate("element => element === document.activeElement")
    assert search.input_value() == "sgemm"

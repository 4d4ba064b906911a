"""Modules and Calls as a user sees them: table, timeline, details, files."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests import programs
from tests.e2e.looking import PATIENCE_MS, hash_holds, opened, point, see, tab, texts

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def profiled(tmp_path_factory) -> Path:
    """A real run: a small model trained, its step and a function collected four times."""
    logdir = tmp_path_factory.mktemp("profiled") / "runs"
    program = f"""
        import torch, memboard as mb

        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up = torch.nn.Linear(64, 256)
                self.down = torch.nn.Linear(256, 64)

            def forward(self, x):
                return x + self.down(torch.relu(self.up(x)))

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(Block() for _ in range(3))
                self.head = torch.nn.Linear(64, 10)

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)

        net = Net()
        optimizer = torch.optim.AdamW(net.parameters())

        @mb.profiled
        def train_batch(batch):
            loss = net(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        schedule = {{"warmup": 1, "active": 4}}
        with mb.record(
            {str(logdir / "small")!r}, model=net, optimizer=optimizer,
            modules=True, schedule=schedule,
        ) as rec:
            for _ in range(8):
                train_batch(torch.randn(32, 64))
                rec.step()
    """
    programs.run(textwrap.dedent(program))
    return logdir


CLICK_WHILE_SORTED = """async (table) => {
    const row = table.querySelectorAll(".row-table-row")[1];
    row.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    const headings = [...table.querySelectorAll("[role=columnheader] button")];
    headings.find((one) => one.textContent.startsWith("Own")).click();
    await new Promise((done) => setTimeout(done, 300));
    const isThere = row.isConnected;
    row.dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
    row.click();
    return isThere;
}"""
"""The second row is pressed, the order changes, the row is let go: is it the same one?"""


def rows(page: Page, label: str = "Modules") -> Locator:
    """The rows on screen of a table."""
    role = "treegrid" if label == "Modules" else "grid"
    table = tab(page).get_by_role(role, name=label)
    found = table.locator(".row-table-row")
    found.first.wait_for(timeout=PATIENCE_MS)
    return found


def first_of(found: list[str]) -> list[str]:
    """The first word of each row."""
    return [text.split()[0] for text in found]


FIRST_ROWS = ["Net", "3 \u00d7 layers.*", "head"]
"""Equal layers are one row."""


def are_first_rows(found: list[str]) -> bool:
    """Whether these are the rows of the folded tree, each by its name."""
    return len(found) == len(FIRST_ROWS) and all(map(str.startswith, found, FIRST_ROWS))


def is_by_own_bytes(found: list[str]) -> bool:
    """Whether the linear modules stand in the order of their parameters."""
    names = [name.rpartition(".")[2] for name in first_of(found)]
    return names == [*3 * ["up"], *3 * ["down"], "head"]


def test_modules_of_a_real_run_open_sort_and_search(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "modules")
    shown = rows(page)
    texts(page, shown, are_first_rows)
    # The arrow keys open rows; the details come with the selection.
    shown.nth(1).click()
    hash_holds(page, "module=Net.layers")
    page.keyboard.press("ArrowRight")
    expect(rows(page)).to_have_count(6)
    see(tab(page), "4 tracked steps")
    rows(page).nth(2).click()
    see(tab(page), "Through this step")
    page.keyboard.press("Escape")
    tab(page).get_by_text("View", exact=True).click()
    tab(page).get_by_role("button", name="List", exact=True).click()
    found = tab(page).get_by_label("Find modules")
    found.fill("linear")
    expect(found).to_have_attribute("placeholder", "7 of 12 modules")
    expect(rows(page)).to_have_count(7)
    tab(page).get_by_role("button", name="Own", exact=True).click()
    hash_holds(page, "sort=own")
    own = texts(page, rows(page), is_by_own_bytes)
    page.reload()
    texts(page, rows(page), lambda found: found == own)


def test_a_row_that_is_pressed_while_the_rows_change_is_chosen(
    board_of, open_page, profiled
):
    board = board_of(profiled)
    page = opened(board, open_page, "modules")
    shown = rows(page)
    texts(page, shown, are_first_rows)
    # New rows come while the button is down, as they do where a run is followed.
    table = tab(page).get_by_label("Modules; arrow keys")
    assert table.evaluate(CLICK_WHILE_SORTED)
    hash_holds(page, "module=Net.layers")
    hash_holds(page, "sort=own")
    sorted_by = tab(page).get_by_role("columnheader").filter(has_text="▼")
    expect(sorted_by).to_contain_text("Own")


def test_a_point_of_the_timeline_chooses_the_boundary_near_it(
    board_of, open_page, profiled
):
    board = board_of(profiled)
    # As a row of events: over time what was quick beside the rest is left out.
    page = opened(board, open_page, "modules", "axis=event")
    rows(page)
    chart = tab(page).locator(".stack-plot")
    chart.wait_for(timeout=PATIENCE_MS)
    chart.focus()
    # Three modules begin at the first boundary: the innermost is the one meant.
    page.keyboard.press("ArrowDown")
    spoken = tab(page).locator(".stack p[aria-live]")
    expect(spoken).to_contain_text("before pre-forward of Net.layers.0.up")
    page.keyboard.press("Enter")
    hash_holds(page, "state=before_pre_forward")
    hash_holds(page, "module=Net.layers.0.up")
    see(tab(page), "Memory of each module: before pre-forward")
    axes = tab(page).get_by_role("group", name="Axis")
    axes.get_by_role("button", name="Time").click()
    see(tab(page), "time since tracking began")
    # Pointing at the chart reads every category.
    point(chart, 0.5, 0.3)
    see(tab(page), "after tracking began")
    see(tab(page).locator(".chart-tip"), "Params")


def test_modules_compare_with_the_median_of_all_ranks(board_of, open_page, simulated):
    board = board_of(simulated)
    page = opened(board, open_page, "modules", "rank=13")
    rows(page)
    see(tab(page), "Simulated data")
    tab(page).get_by_label("Compare with").select_option("median")
    # As many ranks as could be read in the time an answer may take.
    median = re.compile(r"difference from the median of (all|\d+ of) \d+ ranks")
    tab(page).get_by_text(median).first.wait_for(timeout=PATIENCE_MS)
    see(tab(page), "Δ Memory")
    # More or less than the median, with the sign: batches differ.
    expect(rows(page).first).to_contain_text(re.compile("[+\u2212]"))


def test_files_of_simulated_modules_say_so(board_of, open_page, simulated, tmp_path):
    board = board_of(simulated)
    page = opened(board, open_page, "modules")
    tab(page).locator(".stack-plot canvas").first.wait_for(timeout=PATIENCE_MS)

    def saved(kind: str) -> bytes:
        tab(page).get_by_role("button", name="Export the stacked categories").click()
        with page.expect_download() as download:
            tab(page).get_by_role("menuitem", name=kind).click()
        assert "simulated" in download.value.suggested_filename
        download.value.save_as(tmp_path / kind)
        return (tmp_path / kind).read_bytes()

    head, *lines = saved("CSV").decode().splitlines()
    assert head.endswith(",simulated")
    assert all(line.endswith(",1") for line in lines)
    assert json.loads(saved("JSON"))["simulated"] is True
    assert b"(simulated data)" in saved("SVG")
    assert saved("PNG").startswith(b"\x89PNG")


def test_functions_show_both_sides_of_each_call(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "calls", "function=train_batch")
    shown = rows(page, "Calls")
    texts(page, shown, lambda found: first_of(found) == ["5", "4", "3", "2"])
    for title in ("RSS start", "RSS end", "RSS Δ"):
        see(tab(page), title)
    see(tab(page), "Activations saved for backward")
    see(tab(page), "Values of hooks, by module")
    see(tab(page), "layers.0.up")
    # A click chooses another call; sides and statistics are chosen in one menu.
    shown.nth(2).click()
    hash_holds(page, "iteration=3")
    see(tab(page), "train_batch, iteration 3")
    tab(page).get_by_text("Columns:").click()
    tab(page).get_by_role("checkbox", name="Start", exact=True).uncheck()
    tab(page).get_by_text("RSS start").first.wait_for(state="detached")
    # Every number that was recorded can be chosen.
    tab(page).get_by_label("Find statistics").fill("rss_diff")
    tab(page).get_by_role("checkbox", name="hook.rss_diff").check()
    see(tab(page), "RSS change in forward end")


def test_a_call_leads_to_the_memory_of_its_modules(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "calls", "function=step", "iteration=3")
    rows(page, "Calls")
    tab(page).get_by_role("button", name="Its modules").click()
    hash_holds(page, "view=modules")
    rows(page)
    window = tab(page).locator(".modules-controls select").first
    expect(window.locator("option:checked")).to_have_text(
        re.compile("^step .*, iteration 3$")
    )


def test_pages_without_data_say_what_to_do(tensorboard, open_page, tmp_path):
    logdir = tmp_path / "runs"
    program = f"""
        import memboard as mb
        with mb.record({str(logdir / "bare")!r}, functions=False) as rec:
            rec.step()
            rec.step()
    """
    programs.run(textwrap.dedent(program))
    board = tensorboard("--logdir", logdir)
    page = opened(board, open_page, "modules")
    see(tab(page), "No module memory")
    see(tab(page), "modules=True")
    tab(page).get_by_role("button", name="Calls", exact=True).click()
    see(tab(page), "No profiled calls")
    see(tab(page), "@mb.profiled")

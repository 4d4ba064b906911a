"""The MemBoard tab of an installed wheel, in Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.collector.recordings import wait_until
from tests.e2e.looking import (
    PATIENCE_MS,
    enter,
    eventually,
    hash_holds,
    opened,
    see,
    tab,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOTH_LOADERS = pytest.mark.parametrize("load_fast", ["true", "false"])


def cards(page: Page) -> Locator:
    """The headline numbers, which hold title and value."""
    items = (
        tab(page).get_by_role("list", name="Headline numbers").get_by_role("listitem")
    )
    items.first.wait_for(timeout=PATIENCE_MS)
    return items


def open_run_info(page: Page) -> Locator:
    """What stands folded below all else: what was recorded, and where it comes from."""
    info = tab(page).locator("details.run-info")
    info.get_by_text("Run info", exact=True).click(timeout=PATIENCE_MS)
    return info


@BOTH_LOADERS
def test_a_real_run_shows_its_ranks_under_both_loaders(
    tensorboard, open_page, demo, load_fast
):
    board = tensorboard("--logdir", demo, "--load_fast", load_fast)
    page = open_page(board.url)
    # The tab is among the active ones, not in the list of inactive plugins.
    enter(page)
    shown = cards(page)
    expect(shown).to_have_count(6)
    expect(shown.first).to_have_text(re.compile(r"^Peak RSS.*[MG]iB", re.DOTALL))
    see(open_run_info(page), "this torch is built without an accelerator")
    tab(page).get_by_role("button", name="Timeline").click()
    see(tab(page), "rank 0")
    see(tab(page), "rank 1")
    # A choice of what is drawn names "Pinned host memory" too, and is not on the screen.
    see(tab(page).get_by_role("region", name="Host memory", exact=True), "Host memory")
    assert "memboard" not in board.log.read_text().lower().replace("memboard_", "")


@BOTH_LOADERS
def test_headline_scalars_stand_in_tensorboards_own_tabs(tensorboard, demo, load_fast):
    board = tensorboard("--logdir", demo, "--load_fast", load_fast)
    points: list[list[float]] = []

    def is_loaded() -> bool:
        tags = json.loads(board.get("data/plugin/scalars/tags"))
        for run, names in tags.items():
            assert run.endswith("memboard")
            for tag in [name for name in names if "rss" in name][:1]:
                named = f"tag={quote(tag, safe='')}&run={quote(run)}"
                said = board.get(f"data/plugin/scalars/scalars?{named}")
                points[:] = json.loads(said)
        return len(points) > 10

    wait_until(is_loaded, PATIENCE_MS / 1000)
    steps = [step for _, step, _ in points]
    assert steps == sorted(set(steps))
    assert all(0.05 < value < 50 for _, _, value in points)


def test_a_chosen_rank_narrows_every_page_and_stands_in_the_address(
    board_of, open_page, simulated
):
    board = board_of(simulated)
    page = open_page(f"{board.url}#memboard&p.memboard.rank=41")
    see(tab(page), "Simulated data")
    see(tab(page), "Out of memory: memory retained across steps")
    for name, view in (
        ("Memory", "blocks"),
        ("Modules", "modules"),
        ("Timeline", "timeline"),
    ):
        tab(page).get_by_role("button", name=name).first.click()
        page.wait_for_function(f"location.hash.includes('p.memboard.view={view}')")
        assert "p.memboard.rank=41" in page.evaluate("location.hash")
        see(tab(page), "rank 41")
        see(tab(page), "Simulated data")
    page.reload()
    see(tab(page), "Host memory")
    assert "p.memboard.rank=41" in page.evaluate("location.hash")


ZOOM_AND_LEAVE = """page => {
  page.querySelector('.timeline-chart button[aria-label^="Zoom in"]').click();
  const pages = [...page.querySelectorAll("nav button")];
  pages.find(one => /^Time[0-9]/.test(one.textContent)).click();
}"""
"""At once: the range had no time to rest."""


def test_a_range_stands_in_the_address_of_a_page_that_is_left_at_once(
    board_of, open_page, simulated
):
    board = board_of(simulated)
    page = opened(board, open_page, "timeline")
    chart = tab(page).locator(".timeline-chart")
    chart.get_by_role("button", name="Zoom in").wait_for(timeout=PATIENCE_MS)
    assert "x0=" not in page.evaluate("location.hash")
    tab(page).locator("body").evaluate(ZOOM_AND_LEAVE)
    hash_holds(page, "p.memboard.view=steps")
    left = page.evaluate("location.hash")
    assert "p.memboard.x0=" in left
    page.go_back()
    hash_holds(page, "p.memboard.view=timeline")
    assert page.evaluate("location.hash") == left.replace("steps", "timeline")


def test_back_undoes_one_action_at_a_time(board_of, open_page, simulated):
    """A finding's button sets rank, page and moment at once; a rank, a zoom each alone."""
    board = board_of(simulated)
    page = opened(board, open_page, "overview")

    def entries_since(first: int = 0) -> int:
        return page.evaluate("history.length") - first

    where = tab(page).locator(".finding button.button").first
    where.wait_for(timeout=PATIENCE_MS)
    before, first = page.evaluate("location.hash"), entries_since()
    where.click()
    hash_holds(page, "p.memboard.rank=")
    assert entries_since(first) == 1
    page.go_back()
    where.wait_for(timeout=PATIENCE_MS)
    assert page.evaluate("location.hash") == before

    chips = tab(page).get_by_role("list", name="Ranks worth a look")
    chips.get_by_role("button", name="41").click()
    tab(page).get_by_role("button", name="Show all ranks").first.wait_for()
    assert entries_since(first) == 1
    page.go_back()
    expect(tab(page).get_by_role("button", name="Show all ranks")).to_have_count(0)
    assert page.evaluate("location.hash") == before

    tab(page).get_by_role("button", name="Timeline").click()
    hash_holds(page, "p.memboard.view=timeline")
    unzoomed = page.evaluate("location.hash")
    zoom = tab(page).locator(".timeline-chart").get_by_role("button", name="Zoom in")
    zoom.click()
    zoom.click()
    hash_holds(page, "p.memboard.x0=")
    assert entries_since(first) == 2
    page.go_back()
    page.wait_for_function("hash => location.hash === hash", arg=unzoomed)


def test_a_click_on_the_timeline_chooses_rank_and_step_for_all_pages(
    board_of, open_page, simulated
):
    board = board_of(simulated)
    page = opened(board, open_page, "timeline")
    see(tab(page), "Rank 41 ran out of memory")
    see(tab(page), "beyond the median rank")
    tab(page).get_by_role("button", name="Values").click()
    hash_holds(page, "map=value")
    see(tab(page), "by rank and step")
    tab(page).get_by_role("button", name="Rank 41", exact=True).click()
    hash_holds(page, "p.memboard.rank=41")
    hash_holds(page, "p.memboard.step=")
    see(tab(page), "is chosen for all pages")


def test_the_planted_faults_are_what_the_page_points_at(board_of, open_page, simulated):
    board = board_of(simulated)
    page = open_page(f"{board.url}#memboard")
    see(open_run_info(page), "Faults planted in this simulation")
    chips = tab(page).get_by_role("list", name="Ranks worth a look")
    for words in (r"\b41\s+OOM", "13", "19"):
        expect(chips).to_contain_text(re.compile(words), use_inner_text=True)


def test_a_run_grows_in_the_open_page(tensorboard, open_page, tmp_path):
    logdir = tmp_path / "runs"
    logdir.mkdir()
    board = tensorboard("--logdir", logdir)
    page = open_page(f"{board.url}#memboard")
    # Before anything is there the page says so, and it updates automatically.
    see(tab(page), "No memory data yet")
    see(tab(page), str(logdir))
    program = textwrap.dedent(f"""
        import time, memboard as mb
        with mb.record({str(logdir / "live")!r}) as rec:
            while True:
                time.sleep(0.05)
                rec.step()
    """)
    training = subprocess.Popen([sys.executable, "-c", program])
    try:
        note = tab(page).locator(".run-facts")
        note.get_by_text("step").wait_for(timeout=PATIENCE_MS)

        def step() -> int:
            found = re.search(r"step\s+([\d,]+)", note.inner_text())
            return int(found[1].replace(",", "")) if found else 0

        first = eventually(page, step, bool)
        eventually(page, step, lambda newest: newest >= first + 40)
        see(tab(page), "live")
    finally:
        training.kill()
        training.wait()


def damage(folder: Path) -> None:
    """Make four of the run's files bad, each in its own way, and add a foreign one."""
    files = sorted(folder.glob("rank*.events"))
    files[1].write_bytes(files[1].read_bytes()[:-700])
    flipped = bytearray(files[2].read_bytes())
    flipped[len(flipped) // 2] ^= 0x10
    files[2].write_bytes(flipped)
    files[3].write_bytes(b"")
    files[4].write_bytes(b"GIF89a" + bytes(5000))
    for file in files[:5]:
        # Long ago: an empty file of just now may be one that is about to be written.
        os.utime(file, (1_767_600_000, 1_767_600_000))


def test_bad_files_are_named_and_hide_nothing(
    tensorboard, open_page, simulated, tmp_path
):
    shutil.copytree(simulated, tmp_path / "runs")
    (folder,) = (tmp_path / "runs").glob("*/plugins/memboard")
    damage(folder)
    board = tensorboard("--logdir", tmp_path / "runs")
    page = open_page(f"{board.url}#memboard")
    see(tab(page), "Out of memory: memory retained across steps")
    for rank in (2, 3, 4):
        see(tab(page), f"rank{rank:05d}-")
    tab(page).get_by_role("button", name="Timeline").click()
    see(tab(page), "64 ranks")


def test_markup_in_names_is_text(tensorboard, open_page, simulated, tmp_path):
    (run,) = simulated.iterdir()
    name = "<img src=x onerror=alert(1)>"
    shutil.copytree(run, tmp_path / "runs" / name)
    board = tensorboard("--logdir", tmp_path / "runs")
    page = open_page(f"{board.url}#memboard")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    picker = tab(page).locator(".runs")
    picker.wait_for(timeout=PATIENCE_MS)
    cards(page)
    expect(picker).to_contain_text(name)
    assert tab(page).locator("img").count() == 0
    assert dialogs == []


def test_the_page_works_under_a_path_prefix_and_with_a_logdir_spec(
    tensorboard, open_page, simulated, demo
):
    spec = f"one:{simulated},two:{demo}"
    board = tensorboard("--logdir_spec", spec, "--path_prefix", "/deep/er")
    page = open_page(f"{board.url.rstrip('/')}/#memboard")
    cards(page)
    for name in ("one/", "two/"):
        expect(tab(page).locator(".runs")).to_contain_text(name)


def test_help_leads_to_the_documentation_that_came_with_the_wheel(
    board_of, open_page, simulated
):
    page = open_page(f"{board_of(simulated).url}#memboard")
    cards(page)
    tab(page).locator("body").press("?")
    with page.context.expect_page() as opened_page:
        tab(page).get_by_role("link", name="Documentation").click()
    docs = opened_page.value
    expect(docs.get_by_role("heading", level=1)).to_have_text("MemBoard")
    expect(docs.locator("body")).to_have_css("display", "grid")
    docs.get_by_role("navigation").get_by_role("link", name="Settings").click()
    expect(docs.get_by_role("heading", level=1)).to_have_text("Settings")
    expect(docs.get_by_role("table")).to_contain_text("MEMBOARD_FLUSH_SECONDS")


def test_keys_and_the_palette_lead_everywhere(board_of, open_page, simulated):
    page = open_page(f"{board_of(simulated).url}#memboard")
    cards(page)
    body = tab(page).locator("body")
    body.press("?")
    keys = tab(page).get_by_role("dialog", name="Keyboard and help")
    for words in ("Compare", "Choose ranks", "Copy a link", "Ctrl K"):
        see(keys, words)
    body.press("Escape")
    keys.wait_for(state="detached")
    for typed, view in (
        ("timeline", "view=timeline"),
        ("memory segments", "view=segments"),
        ("rank 41", "rank=41"),
        ("out of memory", "moment="),
    ):
        body.press("Control+k")
        box = tab(page).get_by_role("combobox", name="Find a command")
        box.fill(typed)
        commands = tab(page).get_by_role("listbox", name="Commands")
        commands.get_by_role("option").first.wait_for(timeout=PATIENCE_MS)
        box.press("Enter")
        hash_holds(page, f"p.memboard.{view}")
        box.wait_for(state="detached")  # keys of a palette that still closes go to it
    for number, view in enumerate(
        ("overview", "timeline", "segments", "steps", "compare"), start=1
    ):
        body.press(str(number))
        hash_holds(page, f"p.memboard.view={view}")


def test_dark_mode_follows_tensorboard_while_the_page_is_open(
    board_of, open_page, demo
):
    board = board_of(demo)
    page = open_page(f"{board.url}?darkMode=false#memboard")
    cards(page)
    body = tab(page).locator("body")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
    page.evaluate("document.body.classList.add('dark-mode')")
    expect(body).to_have_css("background-color", "rgb(48, 48, 48)")


def test_the_viewer_has_no_torch(viewer):
    code = "import importlib.util as u; print(u.find_spec('torch'))"
    output = subprocess.run(
        [str(viewer / "python"), "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "None"


def test_a_demo_logdir_holds_exactly_one_tfevents_file(demo):
    files = [p for p in demo.rglob("*tfevents*") if p.is_file()]
    assert len(files) == 1
    assert files[0].parent.name == "memboard"

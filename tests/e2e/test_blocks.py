"""Snapshots in a logdir in Blocks: picture, cursor, search, range, files."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import pickle
import re
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from playwright.sync_api import expect

from tests.e2e.looking import (
    PATIENCE_MS,
    drawn,
    eventually,
    hash_holds,
    is_coloured,
    opened,
    painted,
    point,
    see,
    tab,
    word_of,
    words_of,
)
from tests.simulate import Form, trained_rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow]

GIB = 1 << 30


class Refused:
    """Pickled, it is a call of os.system, as a hostile file would hold it."""

    def __reduce__(self):
        return os.system, ("touch memboard-was-here",)


@dataclass(frozen=True)
class Snapshots:
    """A logdir with a snapshot's pickle, and what is true of it."""

    logdir: Path
    num_events: int
    peak: int
    """The moment with the most live bytes."""
    peak_bytes: int


@pytest.fixture(scope="session")
def snapshots(tmp_path_factory) -> Snapshots:
    """The pickle of a simulated training, as a program would have dumped it."""
    logdir = tmp_path_factory.mktemp("snapshots") / "runs"
    (logdir / "exp").mkdir(parents=True)
    rank = trained_rank(6000, seed=5)
    rank.write(logdir / "exp" / "memory_snapshot_rank0_step40.pickle", Form())
    (trace,) = rank.snapshot(Form())["device_traces"]
    live, levels = 0, []
    for event in trace:
        sign = {"alloc": 1, "free_completed": -1}.get(event["action"], 0)
        live += sign * event["size"]
        levels.append(live)
    return Snapshots(logdir, len(trace), levels.index(max(levels)), max(levels))


def test_a_page_opens_on_a_tab_of_the_run_just_chosen(
    tensorboard, open_page, demo, tmp_path
):
    logdir = tmp_path / "runs"
    shutil.copytree(demo, logdir)
    (logdir / "dumped").mkdir()
    trained_rank(600, seed=5).write(logdir / "dumped" / "snapshot.pickle", Form())
    board = tensorboard("--logdir", logdir)
    page = opened(board, open_page, "modules", "run=demo")
    see(tab(page), "Tracked step")
    keys = tab(page).locator("body")
    keys.press("1")
    hash_holds(page, "view=overview")
    # The tabs of the new run become known late.
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/overview?*", hold)
    tab(page).locator(".run", has_text="dumped").click()
    eventually(page, lambda: held, bool)
    keys.press("3")
    page.wait_for_timeout(300)
    page.unroute("**/overview?*")
    hash_holds(page, "view=blocks")


def on_a_block(page: Page, plot: Locator, x: float) -> str:
    """Move down the picture to a block that is drawn; what its card says."""
    for patience_ms in (30, 300, 3000):
        for step in range(2, 48):
            point(plot, x, step / 50)
            page.wait_for_timeout(patience_ms)
            # The card follows the pointer: what it says may be of the place before.
            if is_of_block(card(page)) and is_of_block(said := rested_card(page)):
                return said
    raise AssertionError("no block is drawn there")


def is_of_block(said: str) -> bool:
    """Blocks too thin to be drawn are one area, with a hint to zoom in."""
    return said != "" and "zoom in" not in said


def rested_card(page: Page) -> str:
    """What the card says once it says the same for a while."""
    said, before = card(page), None
    while said != before:
        page.wait_for_timeout(500)
        said, before = card(page), said
    return said


def card(page: Page) -> str:
    """What the card at the pointer says; nothing where there is none."""
    return (
        tab(page)
        .locator("body")
        .evaluate("body => body.querySelector('.chart-tip')?.innerText ?? ''")
    )


def flame(page: Page) -> str:
    """The pixels of the flamegraph, two frames from now."""
    return (
        tab(page)
        .locator(".flame canvas")
        .evaluate("""canvas => new Promise(done => {
      const look = () => done(canvas.toDataURL());
      requestAnimationFrame(() => requestAnimationFrame(look));
    })""")
    )


def range_of(page: Page) -> tuple[int, int]:
    """The chosen events, as the address has them."""
    low, high = words_of(page, "r0", "r1")
    return int(low), int(high)


def holders(page: Page) -> list[str]:
    rows = tab(page).get_by_role("grid", name="Top holders")
    return rows.locator(".row-table-row").all_inner_texts()


def test_a_pickle_in_the_logdir_is_drawn_and_read(board_of, open_page, snapshots):
    board = board_of(snapshots.logdir)
    page = opened(board, open_page, "blocks")
    plot = painted(page)
    see(tab(page), "memory_snapshot_rank0_step40.pickle")
    see(tab(page), "step 40")
    assert is_coloured(plot.locator("canvas.block-cells"), 20)
    peak = f"{snapshots.peak_bytes / GIB:.1f} GiB"
    readout = tab(page).locator(".allocations-readout")
    expect(readout).to_have_text(re.compile(f"^{re.escape(peak)}"))
    expect(readout).to_contain_text(f"at event {snapshots.peak:,}, the peak")
    for name in ("Params", "Optimizer", "Activations"):
        see(tab(page).locator(".block-stack .plot-legend"), name)
    # Below the picture stands who holds the memory where the pointer is.
    at_peak, drawn_at_peak = holders(page), flame(page)
    said = on_a_block(page, plot, 0.52)
    head, place = said.split("\n")
    size = re.match(r"[\d.]+ [KMG]iB", head)
    assert size is not None
    assert place != ""
    expect(readout).not_to_contain_text("the peak")
    eventually(page, lambda: flame(page), lambda now: now != drawn_at_peak)
    eventually(page, lambda: holders(page), lambda rows: rows != at_peak)
    # A click pins the block and its moment; the address has both.
    page.mouse.down()
    page.mouse.up()
    details = tab(page).get_by_role("region", name="The pinned block")
    see(details, "Asked for")
    expect(details).to_contain_text(size[0])
    expect(details).to_contain_text(place)
    expect(details).to_contain_text(re.compile(r"Freed(still live|event|requested)"))
    moment = word_of(page, "moment")
    assert 0 <= int(moment) < snapshots.num_events
    # Where nothing points, the readout tells of what is pinned.
    page.mouse.move(0, 0)
    page.reload()
    drawn(page)
    expect(readout).to_contain_text(f"at event {int(moment):,}")
    # The inspector beside the picture has the block, until it is let go, then the holders.
    see(details, "Asked for")
    expect(details).to_contain_text(place)
    page.keyboard.press("Escape")
    details.wait_for(state="detached")
    painted(page)
    assert "memboard" not in board.log.read_text().lower().replace("memboard_", "")


def test_what_is_shown_can_be_chosen_and_found(board_of, open_page, snapshots):
    board = board_of(snapshots.logdir)
    page = opened(board, open_page, "blocks")
    painted(page)
    # Colours of lines instead of categories; the legend follows.
    tab(page).get_by_title("What the picture shows").click()
    tab(page).get_by_role("combobox", name="Colour").select_option("stack")
    hash_holds(page, "colour=stack")
    see(tab(page).locator(".block-stack .plot-legend"), "model.py")
    tab(page).get_by_role("button", name="Allocation", exact=True).click()
    hash_holds(page, "order=allocation")
    tab(page).get_by_role("button", name="Time", exact=True).click()
    hash_holds(page, "axis=time")
    painted(page)
    # A search lights blocks, and leaves only its own holders.
    box = tab(page).get_by_label("Find blocks by function, file, module or size")

    def all_of_the_loss(rows: list[str]) -> bool:
        return all("loss_of" in row for row in rows)

    eventually(page, lambda: holders(page), lambda rows: not all_of_the_loss(rows))
    box.fill("frame:loss_of")
    hash_holds(page, "find=frame:loss_of")
    found = tab(page).locator(".allocations-found")
    expect(found).to_have_text(re.compile(r"^[\d,]+ drawn$"))
    eventually(
        page,
        lambda: holders(page),
        lambda few: len(few) > 0 and all_of_the_loss(few),
    )
    box.fill(">1furlong")
    see(tab(page), "not understood")
    expect(found).to_have_attribute("title", re.compile("is no size"))
    box.press("Escape")
    # The flamegraph turns into callers and callees of one frame.
    tab(page).get_by_role("button", name="Sandwich").click()
    frames = tab(page).get_by_role("grid", name="Frames")
    frames.get_by_text("train.py:171 main").click()
    see(tab(page), "callers above, callees below of")
    page.reload()
    painted(page)
    see(tab(page), "callers above, callees below of")
    for word in ("colour=stack", "order=allocation", "axis=time", "flame=sandwich"):
        hash_holds(page, word)


def test_moments_are_marked_compared_and_ranges_summed(board_of, open_page, snapshots):
    board = board_of(snapshots.logdir)
    page = opened(board, open_page, "blocks")
    plot = painted(page)
    page.keyboard.press("p")
    hash_holds(page, f"p.memboard.moment={snapshots.peak}")
    page.keyboard.press("m")
    hash_holds(page, f"p.memboard.mark={snapshots.peak}")
    see(tab(page), f"less than at event {snapshots.peak:,}")
    same = flame(page)
    point(plot, 0.93, 0.7)
    eventually(page, lambda: flame(page), lambda now: now != same)
    # Shift and drag: what was allocated in it, what of that is gone, what stays.
    page.keyboard.down("Shift")
    point(plot, 0.3, 0.3)
    page.mouse.down()
    point(plot, 0.4, 0.3)
    point(plot, 0.6, 0.3)
    page.mouse.up()
    page.keyboard.up("Shift")
    chosen = tab(page).get_by_role("region", name="The chosen range")
    see(chosen, "still live at its end")

    def is_told(at: tuple[int, int]) -> bool:
        low, high = at
        words = f"{high - low:,} events, from {low:,} to {high - 1:,}"
        return chosen.get_by_text(words).count() > 0

    word_of(page, "r1")
    low, high = eventually(page, lambda: range_of(page), is_told)
    assert 0 < low < high < snapshots.num_events
    exact = chosen.locator("dd > [title]").evaluate_all(
        "all => all.slice(0, 3).map(one => Number(one.title.replace(/[^0-9]/g, '')))"
    )
    allocated, freed, live = exact
    assert allocated == freed + live
    assert allocated > 0
    page.keyboard.press("Escape")
    chosen.wait_for(state="detached")


def test_the_slider_of_the_flame_graph_moves_the_moment_of_all(
    board_of, open_page, snapshots
):
    page = opened(
        board_of(snapshots.logdir), open_page, "blocks", f"moment={snapshots.peak}"
    )
    painted(page)
    slider = tab(page).get_by_role("slider", name="Moment of the flamegraph")
    expect(slider).to_have_attribute("aria-valuenow", str(snapshots.peak))
    same = flame(page)
    point(slider, 0.3, 0.3)
    page.mouse.down()
    point(slider, 0.5, 0.3)
    # Before the button is released, and before the address changes.
    eventually(page, lambda: flame(page), lambda now: now != same)
    page.mouse.up()
    eventually(
        page,
        lambda: words_of(page, "moment"),
        lambda words: words != (str(snapshots.peak),),
    )
    (moment,) = words_of(page, "moment")
    expect(slider).to_have_attribute("aria-valuenow", moment)
    see(tab(page), f"at event {int(moment):,}")
    slider.press("Home")
    hash_holds(page, "p.memboard.moment=-1")
    page.go_back()
    expect(slider).to_have_attribute("aria-valuenow", moment)


def test_files_hold_what_is_shown(board_of, open_page, snapshots, tmp_path):
    board = board_of(snapshots.logdir)
    page = opened(board, open_page, "blocks", f"moment={snapshots.peak}")
    painted(page)

    def saved(menu: str, item: str) -> bytes:
        tab(page).get_by_role("button", name=menu).click()
        with page.expect_download() as download:
            tab(page).get_by_role("menuitem", name=item).click()
        download.value.save_as(tmp_path / "file")
        return (tmp_path / "file").read_bytes()

    folded = saved("Export: Top holders", "folded text").decode()
    lines = [line.rpartition(" ") for line in folded.splitlines()]
    assert sum(int(size) for _, _, size in lines) == snapshots.peak_bytes
    assert any("train.py:171 main;" in path for path, _, _ in lines)
    table = saved("Export: Top holders", "Live stacks as CSV").decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert sum(int(float(row["bytes"])) for row in rows) == snapshots.peak_bytes
    picture = "Export the picture of allocations"
    assert saved(picture, "PNG").startswith(b"\x89PNG")
    assert b"<image" in saved(picture, "SVG")
    blocks = list(csv.DictReader(io.StringIO(saved(picture, "CSV").decode())))
    assert len(blocks) > 100


@contextlib.contextmanager
def its_worker_held(path: Path) -> Iterator[None]:
    """The process that reads a file stands still, from its first moment to the end.

    The block may be through before there is such a process: it is waited for.
    """
    held: list[psutil.Process] = []
    is_held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        while not held and not leave.wait(0.002):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    is_worker = "multiprocessing.forkserver" in str(process.cmdline())
                    if is_worker and path in (
                        Path(f.path) for f in process.open_files()
                    ):
                        process.suspend()
                        held.append(process)
                        is_held.set()

    watching = threading.Thread(target=hold)
    watching.start()
    try:
        yield
        waited = is_held.wait(PATIENCE_MS / 1000)
        assert waited, "nobody read the file, or it was read in a moment"
    finally:
        leave.set()
        watching.join()
        for process in held:
            process.resume()


def test_a_long_history_says_how_far_it_is(tensorboard, open_page, tmp_path):
    folder = tmp_path / "runs" / "long"
    folder.mkdir(parents=True)
    path = folder / "snapshot.pickle"
    trained_rank(200_000, seed=6).write(path, Form())
    with its_worker_held(path):
        board = tensorboard("--logdir", tmp_path / "runs")
        page = opened(board, open_page, "blocks")
        bar = tab(page).get_by_role("progressbar", name="Opening the history")
        bar.wait_for(timeout=PATIENCE_MS)
    see(tab(page), "snapshot.pickle")
    painted(page)
    expect(bar).to_have_count(0)


def test_a_hostile_file_is_named_and_the_good_one_opens(
    tensorboard, open_page, snapshots, tmp_path
):
    folder = tmp_path / "runs" / "exp"
    shutil.copytree(snapshots.logdir / "exp", folder)
    hostile = {"segments": [Refused()], "device_traces": []}
    bad = "memory_snapshot_rank1_step40.pickle"
    (folder / bad).write_bytes(pickle.dumps(hostile, 4))
    board = tensorboard("--logdir", tmp_path / "runs")
    page = opened(board, open_page, "blocks", "rank=1")
    see(tab(page), bad)
    see(tab(page), "Names a class or function")
    tab(page).get_by_role("button", name="Try again").wait_for()
    page = opened(board, open_page, "blocks", "rank=0")
    painted(page)
    see(tab(page), "memory_snapshot_rank0_step40.pickle")
    assert list(tmp_path.rglob("memboard-was-here")) == []

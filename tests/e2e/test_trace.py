"""A profiler's trace and recorded spans on the Trace page: picture, search, sums, links."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.looking import (
    PATIENCE_MS,
    eventually,
    hash_holds,
    is_coloured,
    opened,
    see,
    tab,
    word_of,
    words_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STEPS = 4


@pytest.fixture(scope="session")
def traced(tmp_path_factory) -> Path:
    """A logdir with what torch.profiler says of a few steps; and a file cut short."""
    logdir = tmp_path_factory.mktemp("traced") / "runs"
    (logdir / "exp").mkdir(parents=True)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = logdir / "exp" / "worker_0.1795000000000.pt.trace.json.gz"
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        on_trace_ready=lambda ended: ended.export_chrome_trace(str(path)),
        profile_memory=True,
    ) as profiler:
        for _ in range(STEPS + 1):
            with torch.profiler.record_function("the forward pass"):
                loss = model(torch.randn(32, 64)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    (logdir / "bad").mkdir()
    (logdir / "bad" / "worker_0.1.pt.trace.json").write_text('{"no": "trace at all')
    return logdir


def drawn(page: Page) -> Locator:
    """The timeline, once its slices are drawn."""
    held = ".trace-plot[data-draw-ms][data-pieces]:not([data-pieces='0'])"
    plot = tab(page).locator(held)
    plot.wait_for(timeout=PATIENCE_MS)
    return plot


def named(logdir: Path) -> dict[str, int]:
    """How many slices of each name the file holds."""
    (path,) = (logdir / "exp").glob("*.json.gz")
    counts: dict[str, int] = {}
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event.get("ph") == "X":
            counts[event["name"]] = counts.get(event["name"], 0) + 1
    return counts


def test_a_trace_is_drawn_searched_summed_up_and_read(board_of, open_page, traced):
    counts = named(traced)
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=exp")
    plot = drawn(page)
    assert is_coloured(plot.locator("canvas.trace-cells"), 4)
    see(tab(page), f"{sum(counts.values()):,} slices")
    see(tab(page), f"{STEPS} steps")
    # Memory's totals are a counter beside the threads.
    see(tab(page).locator(".trace-names"), "Allocated, CPU")
    # Search counts what the file holds, and goes to the next one in sight.
    page.keyboard.press("/")
    search = tab(page).get_by_role("searchbox", name="Find slices by name")
    search.fill("aten::addmm")
    number = sum(n for name, n in counts.items() if "aten::addmm" in name)
    see(tab(page).locator(".trace-hits"), f"{number:,} found")
    search.press("Enter")
    hits = tab(page).locator(".trace-hits")
    expect(hits).to_have_text(re.compile(rf"[1-{number}] of {number:,}"))
    details = tab(page).get_by_role("region", name="The chosen slice")
    see(details, "aten::addmm")
    see(details, "the forward pass")
    expect(details).to_contain_text(re.compile(r"[\d,]+ ns"), use_inner_text=True)
    assert re.fullmatch(r"t[0-9a-f]{16}:\d+", word_of(page, "slice"))
    # What it lies in leads there.
    details.get_by_role("button", name="the forward pass").click()
    see(details.get_by_role("heading", level=2), "the forward pass")
    search.fill("")
    search.press("Escape")
    # Everything in sight summed up, exactly as often as the file says.
    plot.get_by_role("application").focus()
    page.keyboard.press("f")
    page.keyboard.press("t")
    sums = tab(page).get_by_role("grid", name="Slices by name")
    row = sums.get_by_role("row").filter(has_text="the forward pass").first
    number = str(counts["the forward pass"])
    eventually(page, row.inner_text, lambda said: number in said.split("\n"))
    page.keyboard.press("Escape")
    sums.wait_for(state="detached")
    # A zoom is in the address, and a reload shows the same.
    whole = words_of(page, "w0", "w1")
    page.keyboard.press("w")
    part = eventually(
        page, lambda: words_of(page, "w0", "w1"), lambda seen: seen != whole
    )
    page.reload()
    drawn(page)
    assert words_of(page, "w0", "w1") == part
    # Folding is kept too.
    tab(page).locator(".trace-name.is-process .trace-fold").first.click()
    hash_holds(page, "p.memboard.closed=p")


def test_a_bad_trace_is_named_with_its_reason(board_of, open_page, traced):
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=bad")
    see(tab(page), "worker_0.1.pt.trace.json")
    see(tab(page), "cannot be opened")


def test_simulated_spans_of_ranks_lie_on_one_axis(board_of, open_page, simulated):
    board = board_of(simulated)
    page = opened(board, open_page, "trace", width=1920, dark=True)
    plot = drawn(page)
    assert is_coloured(plot.locator("canvas.trace-cells"), 4)
    names = tab(page).locator(".trace-names")
    see(names, "Rank 0")
    see(names, "Rank 1")
    see(names, "Allocated peak")
    see(tab(page).locator(".trace-opened"), "Opened at step")
    see(tab(page).locator(".trace-summary"), "rank 0: spans")


def test_instants_are_gone_through_and_read(board_of, open_page, simulated):
    board = board_of(simulated)
    page = opened(board, open_page, "trace")
    drawn(page)
    see(tab(page).locator(".trace-summary"), "instants")
    page.keyboard.press(".")
    details = tab(page).get_by_role("region", name="The chosen instant")
    details.wait_for(timeout=PATIENCE_MS)
    first = word_of(page, "slice")
    details.get_by_role("button", name="Previous instant").click()
    eventually(
        page, lambda: words_of(page, "slice"), lambda now: now[0] not in ("", first)
    )
    page.keyboard.press("Escape")
    details.wait_for(state="detached")


def test_a_trace_of_another_tool_points_to_its_operators(board_of, open_page, traced):
    board = board_of(traced)
    page = opened(board, open_page, "trace", "run=exp")
    drawn(page)
    tab(page).get_by_role("button", name="Summary", exact=True).click()
    see(tab(page), "are summed up on a page of their own")
    hash_holds(page, "p.memboard.tab=summary")
    tab(page).locator(".trace").get_by_role("button", name="Operators").click()
    hash_holds(page, "p.memboard.view=operators")


def test_a_recorded_trace_has_its_tables_and_memory(tensorboard, open_page, tmp_path):
    import memboard as mb

    logdir = tmp_path / "runs"
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Linear(64, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"enabled": True, "record_shapes": True, "with_stack": True}
    with mb.record(
        str(logdir / "exp"),
        model=model,
        optimizer=optimizer,
        schedule={"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        torch_profiler=options,
    ) as rec:
        for _ in range(5):
            model(torch.randn(8, 32)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            rec.step()
    board = tensorboard("--logdir", logdir)
    page = opened(board, open_page, "trace", "run=exp", "tab=summary")
    text = tab(page).get_by_label("Operators as text")
    see(text, "rank 0, by self CPU")
    see(text, "aten::addmm")
    chart = tab(page).get_by_role("application", name="Memory by category, cpu")
    chart.wait_for(timeout=PATIENCE_MS)
    assert is_coloured(chart.locator("canvas").first, 3)
    tab(page).get_by_role("button", name="Table", exact=True).click()
    table = tab(page).get_by_role("grid", name="Operators of the trace")
    see(table, "aten::addmm")
    hash_holds(page, "p.memboard.form=table")

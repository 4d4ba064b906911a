"""A trace's operators: times, shapes, what is not recorded, and memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.looking import (
    PATIENCE_MS,
    eventually,
    hash_holds,
    opened,
    point,
    see,
    tab,
    word_of,
    words_of,
)
from tests.kineto_files import trained

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def profiled(tmp_path_factory) -> Path:
    """A logdir with a trace of known times, once with Python's frames around them."""
    logdir = tmp_path_factory.mktemp("operators") / "runs"
    trained().write(logdir / "exp" / "host_0.1.pt.trace.json.gz")
    stacked = trained()
    for number in range(3):
        at = 10_000 + 1_000 * number
        frames = {"Python id": 2 * number}
        stacked.slice(
            "/repo/train.py(12): main", at + 101, 700, "python_function", **frames
        )
        inner = {"Python id": 2 * number + 1, "Python parent id": 2 * number}
        stacked.slice("net.py(7): forward", at + 102, 100, "python_function", **inner)
    stacked.write(logdir / "stacked" / "host_0.1.pt.trace.json.gz")
    return logdir


def rows(page: Page, name: str) -> Locator:
    return (
        tab(page).get_by_role("grid", name=name, exact=True).locator(".row-table-row")
    )


def row_of(page: Page, table: str, text: str) -> Locator:
    found = rows(page, table).filter(has_text=text).first
    found.wait_for(timeout=PATIENCE_MS)
    return found


def test_operators_are_listed_by_time(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "operators", "run=exp")
    # 3 products of 300 us on the device, 60 us on the host.
    product = row_of(page, "Operators", "aten::mm")
    said = eventually(page, product.inner_text, lambda text: "180 µs" in text).split()
    assert said[:2] == ["aten::mm", "3"]
    assert " ".join(said).count("900 µs") == 2
    # The outer operator has its device time in total alone.
    expect(row_of(page, "Operators", "aten::linear")).to_contain_text("900 µs")
    tab(page).get_by_role("button", name="Name and shapes").click()
    hash_holds(page, "by=shapes")
    row_of(page, "Operators", "[[8, 8], [8, 8]]").click()
    hash_holds(page, "operator=aten::mm")
    drawer = tab(page).get_by_role("region", name="The chosen operator")
    see(drawer, "with_stack=True")
    page.keyboard.press("Escape")
    drawer.wait_for(state="detached")
    page.keyboard.press("/")
    page.keyboard.type("ADD")
    hash_holds(page, "text=ADD")
    row_of(page, "Operators", "aten::add")
    tab(page).get_by_text("aten::mm").first.wait_for(state="detached")


def test_stacks_open_in_the_editor(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "operators", "run=stacked", "operator=aten::mm")
    drawer = tab(page).get_by_role("region", name="The chosen operator")
    see(drawer, "3 calls from 1 place")
    frames = drawer.get_by_role("list", name="Stack, innermost first")
    link = frames.get_by_role("link", name="main")
    expect(link).to_have_attribute("href", "vscode://file/repo/train.py:12")
    # A path that was cut off opens once it is said where it lies; the browser keeps it.
    expect(frames.get_by_role("link")).to_have_count(1)
    drawer.get_by_text("Source links").click()
    drawer.get_by_label("Paths, one from=>to a line").fill("=>/home/me/")
    inner = frames.get_by_role("link", name="forward")
    expect(inner).to_have_attribute("href", "vscode://file/home/me/net.py:7")
    template = drawer.get_by_label("Link", exact=True)
    template.fill("javascript:alert(1)//{path}")
    see(drawer, "It must begin with")
    expect(inner).to_have_attribute("href", "vscode://file/home/me/net.py:7")
    page.reload()
    inner.wait_for(timeout=PATIENCE_MS)
    callers = drawer.get_by_role("region", name="Callers")
    callers.get_by_role("application", name="Callers").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    see(callers, "net.py(7): forward, 180 µs")
    drawer.get_by_role("button", name="Sandwich").click()
    hash_holds(page, "figure=sandwich")
    see(drawer.get_by_role("region", name="Callers and callees"), "callees below of")


def test_callees_are_shown_without_stacks(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "operators", "run=exp", "operator=aten::linear")
    drawer = tab(page).get_by_role("region", name="The chosen operator")
    both = drawer.get_by_role("region", name="Callers and callees")
    both.get_by_role("application", name="Callees").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    see(both, "aten::mm, 180 µs")


def test_calls_without_shapes_are_a_group_that_opens(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "operators", "run=stacked", "by=shapes")
    row_of(page, "Operators", "aten::linear").click()
    drawer = tab(page).get_by_role("region", name="The chosen operator")
    see(drawer, "aten::linear without shapes")
    see(drawer, "3 calls from 1 place")


def test_memory_over_time_is_narrowed_to_a_part(board_of, open_page, profiled):
    board = board_of(profiled)
    page = opened(board, open_page, "operators", "run=exp", "tab=memory")
    product = row_of(page, "Memory by operator", "aten::mm")
    expect(product).to_contain_text("12.0 KiB")
    expect(rows(page, "Allocations")).to_have_count(3)
    peak = tab(page).get_by_role("region", name="Holders of the peak")
    see(peak, "Not seen")
    see(peak, "13.8 KiB were allocated")
    tab(page).get_by_role("button", name="All three").click()
    hash_holds(page, "peak_by=all")
    row_of(page, "Holders of the peak", "4.00 KiB")
    # What frees is charged as the older plugin did it.
    tab(page).get_by_role("button", name="What frees").click()
    hash_holds(page, "charge=freeing")
    row_of(page, "Memory by operator", "\N{MINUS SIGN}12.0 KiB")
    curve = tab(page).get_by_role("application", name="Chart of Memory over time")
    rows(page, "Allocations").first.hover()
    point(curve, 0.1, 0.5)
    page.keyboard.down("Shift")
    page.mouse.down()
    point(curve, 0.2, 0.5)
    point(curve, 0.3, 0.5)
    page.mouse.up()
    page.keyboard.up("Shift")
    word_of(page, "t1")
    low, high = (float(word) for word in words_of(page, "t0", "t1"))
    assert 0 <= low < high < 1.0
    see(tab(page), "the tables are of this part")
    see(tab(page), "1 allocation;")
    page.reload()
    see(tab(page), "1 allocation;")
    page.keyboard.press("Escape")
    see(tab(page), "3 allocations;")

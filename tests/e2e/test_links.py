"""A link opens, in another browser, what was seen where it was copied."""

from __future__ import annotations

import operator
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from tests.e2e.looking import (
    HOST,
    HOST_PAGE,
    eventually,
    hash_holds,
    opened,
    point,
    see,
    tab,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SEEN = """() => {
  const small = new OffscreenCanvas(32, 12);
  const context = small.getContext("2d", { willReadFrequently: true });
  const grey = canvas => {
    context.clearRect(0, 0, 32, 12);
    if (canvas.width > 0 && canvas.height > 0) context.drawImage(canvas, 0, 0, 32, 12);
    const { data } = context.getImageData(0, 0, 32, 12);
    return Array.from({ length: 32 * 12 }, (_, i) =>
      data[4 * i] + data[4 * i + 1] + data[4 * i + 2]);
  };
  const main = document.querySelector("iframe").contentDocument.querySelector("main");
  const all = selector => [...main.querySelectorAll(selector)];
  const marked = "[aria-selected=true], [aria-pressed=true], [aria-expanded], [aria-sort]";
  const states = ["aria-selected", "aria-pressed", "aria-expanded", "aria-sort"];
  return {
    texts: main.innerText.split("\\n").map(line => line.trim()).filter(Boolean),
    values: all("input, select").map(({ value, checked }) => `${value} ${checked}`),
    marks: all(marked).map(element =>
      [element.innerText, ...states.map(name => element.getAttribute(name))].join(" ")),
    pictures: all("canvas").map(grey),
  };
}"""
"""Texts, the state of controls and rows, and every canvas, small and grey."""

ALIKE = 150
"""Of 765: a range in the address is as exact as a pixel, and bins begin where it does."""

INSECURE = "http://board.test/"
"""Of another machine and without https: the clipboard's API is not there."""


def choose(page: Page, control: str, option: str) -> None:
    tab(page).get_by_label(control).select_option(option)


def press(page: Page, *names: str) -> None:
    for name in names:
        tab(page).get_by_role("button", name=name, exact=True).first.click()


def zoomed(page: Page, plot: str) -> None:
    point(tab(page).locator(plot).first, 0.6, 0.4)
    page.mouse.wheel(0, -400)


def timeline(page: Page) -> None:
    zoomed(page, ".chart-plot")
    hash_holds(page, "p.memboard.x0=")
    tab(page).get_by_label("Series").select_option(index=1)
    press(page, "View")
    tab(page).get_by_label("Log scale").check()
    press(page, "View")
    tab(page).locator(".plot-legend button").first.click()
    hash_holds(page, "p.memboard.hidden=")


def blocks(page: Page) -> None:
    plot = ".block-plot[data-draw-ms]"
    zoomed(page, plot)
    hash_holds(page, "p.memboard.h0=")
    tab(page).get_by_placeholder("function, file, module").fill("model.py")
    point(tab(page).get_by_role("slider", name="Moment of the flamegraph"), 0.4, 0.3)
    page.mouse.down()
    page.mouse.up()
    hash_holds(page, "p.memboard.moment=")
    press(page, "My code")
    tab(page).locator(".flame canvas").click(position={"x": 300, "y": 45})
    hash_holds(page, "p.memboard.flame_zoom=")


def sandwich(page: Page) -> None:
    """A range of the slider, its bytes from both sides of a frame, and blocks as rows."""
    slider = tab(page).get_by_role("slider", name="Moment of the flamegraph")
    point(slider, 0.2, 0.3)
    page.keyboard.down("Shift")
    page.mouse.down()
    point(slider, 0.6, 0.3)
    page.mouse.up()
    page.keyboard.up("Shift")
    hash_holds(page, "p.memboard.flame_bytes=allocated")
    tab(page).get_by_label("Bytes of").get_by_text("Still live").click()
    hash_holds(page, "p.memboard.flame_bytes=live")
    tab(page).locator(".flame canvas").click(
        position={"x": 300, "y": 45}, modifiers=["Shift"]
    )
    hash_holds(page, "p.memboard.flame=sandwich")
    see(tab(page), "callers above, callees below of")
    page.mouse.click(*lowest(page, ".flame canvas"))
    hash_holds(page, "p.memboard.callers_zoom=")
    press(page, "View as table")
    hash_holds(page, "p.memboard.as_table=blocks")


def lowest(page: Page, canvas: str) -> tuple[float, float]:
    """In the box that stands on the bottom of a flamegraph."""
    box = tab(page).locator(canvas).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 3, box["y"] + box["height"] - 9


def segments(page: Page) -> None:
    slider = tab(page).get_by_role("slider", name="Moment of the history")
    point(slider, 0.4, 0.3)
    page.mouse.down()
    page.mouse.up()
    page.mouse.wheel(0, -400)
    hash_holds(page, "p.memboard.s0=")
    choose(page, "Sort", "age")


def modules(page: Page) -> None:
    head = tab(page).get_by_role("columnheader", name="Optimizer")
    head.get_by_role("button").click()
    tab(page).get_by_role("gridcell", name="embedding").click()
    hash_holds(page, "p.memboard.sort=")
    tab(page).get_by_role("button", name="Collapse").first.click()
    hash_holds(page, "p.memboard.turned=")
    edge = head.locator(".row-table-edge")
    point(edge, 0.5, 0.5)
    page.mouse.down()
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 5)
    page.mouse.up()
    hash_holds(page, "p.memboard.widths=")


def steps(page: Page) -> None:
    zoomed(page, ".chart-plot")
    hash_holds(page, "p.memboard.x0=")
    page.mouse.click(*middle(page, ".chart-plot"))
    hash_holds(page, "p.memboard.step=")


def trace(page: Page) -> None:
    name = tab(page).locator(".trace-name.is-track").nth(1)
    name.hover()
    name.locator(".trace-pin").click()
    hash_holds(page, "p.memboard.pins=")
    canvas = tab(page).locator(".trace-canvas").last
    point(canvas, 0.3, 0.1)
    page.mouse.wheel(0, -200)
    page.keyboard.down("Shift")
    page.mouse.down()
    point(canvas, 0.5, 0.3)
    point(canvas, 0.7, 0.4)
    page.mouse.up()
    page.keyboard.up("Shift")
    press(page, "By track")
    hash_holds(page, "p.memboard.r_by=track")
    hash_holds(page, "p.memboard.w0=")


def middle(page: Page, plot: str) -> tuple[float, float]:
    box = tab(page).locator(plot).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def seen(page: Page) -> dict[str, list[str]]:
    """What stands still: twice the same, with the pointer elsewhere."""
    page.mouse.move(2, 2)
    before: list[dict[str, list[str]]] = [{}]

    def again() -> tuple[dict, dict]:
        page.wait_for_timeout(400)
        before.append(page.evaluate(SEEN))
        return before[-2], before[-1]

    eventually(page, again, lambda pair: pair[0] == pair[1])
    return before[-1]


def differences(here: dict[str, list], there: dict[str, list]) -> list[str]:
    others = [
        f"{key}: {a} / {b}"
        for key in ("texts", "values", "marks")
        for a, b in zip_longest(here[key], there[key])
        if a != b
    ]
    pictures = zip_longest(here["pictures"], there["pictures"], fillvalue=[])
    for number, (a, b) in enumerate(pictures):
        apart = max(map(abs, map(operator.sub, a, b)), default=0)
        if len(a) != len(b) or apart > ALIKE:
            others.append(f"canvas {number} differs by {apart}")
    return others


def pasted(page: Page) -> str:
    page.evaluate(
        """() => {
          const area = document.createElement("textarea");
          area.style = "position: fixed; top: 0; left: 0; z-index: 9";
          document.body.append(area);
          area.focus();
        }"""
    )
    page.keyboard.press("Control+V")
    text = page.evaluate("document.activeElement.value")
    page.evaluate("document.activeElement.remove()")
    return text


@pytest.mark.parametrize(
    "change",
    [timeline, blocks, sandwich, segments, modules, steps, trace],
    ids=lambda f: f.__name__,
)
def test_a_link_opens_what_was_seen(
    board_of, open_page, simulated, change: Callable[[Page], None]
):
    view = "blocks" if change is sandwich else change.__name__
    page = opened(board_of(simulated), open_page, view, "rank=41")
    change(page)
    press(page, "Copy link (C)")
    see(tab(page), "Link copied")
    link = pasted(page)
    assert "p.memboard.run=" in link
    here = seen(page)
    there = open_page(link)
    eventually(
        there,
        lambda: differences(here, seen(there)),
        lambda others: others == [],
    )


def test_tables_and_findings_are_copied_without_https(board_of, open_page, simulated):
    board = board_of(simulated)
    page = open_page("about:blank")

    def serve(route) -> None:
        path = route.request.url.removeprefix(INSECURE)
        if path == HOST:
            route.fulfill(content_type="text/html", body=HOST_PAGE)
            return
        route.fulfill(response=route.fetch(url=board.url + path))

    page.context.route(f"{INSECURE}**", serve)
    page.goto(f"{INSECURE}{HOST}#memboard&p.memboard.view=overview")
    assert HOST in page.url
    copies = tab(page).get_by_role("button", name="Copy as Markdown")
    copies.first.click()
    see(tab(page), "Copied as Markdown")
    finding = pasted(page)
    assert finding.startswith("## Out of memory: memory retained across steps; rank 41")
    assert f"(simulated data): <{INSECURE}" in finding

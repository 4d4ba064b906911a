"""Locators and waits for MemBoard's page inside TensorBoard's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import FrameLocator, Locator, Page

    from tests.browser import Server

PATIENCE_MS = 120_000
"""What a page shows comes by and by, on a loaded machine late: it is waited for."""

expect.set_options(timeout=PATIENCE_MS)

_T = TypeVar("_T")


def eventually(page: Page, look: Callable[[], _T], is_so: Callable[[_T], object]) -> _T:
    """What one sees once it is as it should be."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not is_so(found := look()):
        assert time.monotonic() < deadline, found
        page.wait_for_timeout(50)
    return found


def texts(
    page: Page, items: Locator, is_so: Callable[[list[str]], object]
) -> list[str]:
    """What stands in each of some elements, once it is as it should be."""
    return eventually(page, items.all_inner_texts, is_so)


def tab(page: Page) -> FrameLocator:
    """MemBoard's own page inside TensorBoard's."""
    return page.frame_locator("iframe")


def enter(page: Page) -> None:
    """Choose MemBoard among TensorBoard's tabs, which are drawn anew while they load."""
    ours = page.get_by_role("tab", name="MemBoard")

    def clicked() -> str | None:
        ours.click()
        return ours.get_attribute("aria-selected")

    eventually(page, clicked, lambda chosen: chosen == "true")


def see(scope: FrameLocator | Locator | Page, text: str) -> None:
    """Wait until `text` is visible."""
    scope.get_by_text(text).first.wait_for(state="visible", timeout=PATIENCE_MS)


HOST = "host-of-memboard"
HOST_PAGE = """<!doctype html><title>host</title>
<body><iframe src="data/plugin_entry.html?name=memboard"
  style="position: fixed; top: 64px; width: 100%; height: calc(100% - 64px); border: 0">
</iframe><script>
if (matchMedia("(prefers-color-scheme: dark)").matches)
  document.body.classList.add("dark-mode");
</script></body>
"""
"""What of TensorBoard's page MemBoard's sees: the frame, the address, the theme."""


def opened(
    board: Server, open_page: Callable[..., Page], view: str, *words: str, **options
) -> Page:
    """A view with words of ours in its address: `rank=19`; TensorBoard serves the frame.

    TensorBoard's own page, which takes longer to load than ours, stands around it in the
    tests that open `#memboard`.
    """
    state = "&".join(f"p.memboard.{word}" for word in (f"view={view}", *words))
    return open_page(f"{board.url}{HOST}#memboard&{state}", **options)


def hash_holds(page: Page, words: str) -> None:
    """Wait until the address holds `words`: links and reloads keep the place."""
    page.wait_for_function(
        "words => decodeURIComponent(location.hash).includes(words)",
        arg=words,
        timeout=PATIENCE_MS,
    )


def word_of(page: Page, name: str) -> str:
    """One of our words in the address; waited for."""
    hash_holds(page, f"p.memboard.{name}=")
    return page.evaluate(
        "name => new URLSearchParams(location.hash.slice(1)).get(name)",
        f"p.memboard.{name}",
    )


def words_of(page: Page, *names: str) -> tuple[str, ...]:
    """Several of our words as the address has them at one moment; "" for one it lacks."""
    found = page.evaluate(
        """names => {
          const words = new URLSearchParams(location.hash.slice(1));
          return names.map(name => words.get(`p.memboard.${name}`) ?? "");
        }""",
        names,
    )
    return tuple(found)


def point(target: Locator, x: float, y: float) -> None:
    """Move the mouse onto an element that holds still, to shares of its width and height."""
    box = target.bounding_box()
    assert box is not None
    target.hover(position={"x": x * box["width"], "y": y * box["height"]})


def drawn(page: Page, scope: FrameLocator | Page | None = None) -> Locator:
    """The picture of allocations, once its blocks are drawn; in our tab or `scope`."""
    plot = (scope or tab(page)).locator(".block-plot[data-draw-ms]")
    plot.wait_for(timeout=PATIENCE_MS)
    return plot


def painted(page: Page, scope: FrameLocator | Page | None = None) -> Locator:
    """The same, once who holds the memory stands beside it: no block, no range is chosen."""
    scope = scope or tab(page)
    plot = drawn(page, scope)
    rows = scope.get_by_role("grid", name="Top holders")
    rows.locator(".row-table-row").first.wait_for(timeout=PATIENCE_MS)
    return plot


COLOURS = """canvas => {
  const { width, height } = canvas;
  if (width === 0 || height === 0) return 0;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


def is_coloured(canvas: Locator, least: int) -> bool:
    """Whether a canvas gets to show so many colours: it is cleared before it is drawn."""
    canvas.wait_for(timeout=PATIENCE_MS)
    for _ in range(PATIENCE_MS // 100):
        if canvas.evaluate(COLOURS) >= least:
            return True
        canvas.page.wait_for_timeout(100)
    return False


def shares_filled(bars: Locator) -> list[float]:
    """Of each bar of parts, the share of the widest that its parts take in pixels."""
    shares: list[float] = bars.locator(".part-bar > [role=img]").evaluate_all(
        """bars => bars.map((bar) => {
            const widths = [...bar.children].map((part) => part.getBoundingClientRect().width);
            const sum = widths.reduce((sum, width) => sum + width, 0);
            return sum / bar.getBoundingClientRect().width;
        })"""
    )
    return shares

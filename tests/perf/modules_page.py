"""Paints of the Modules page: 50,000 modules on 64 ranks, in Chromium without a GPU.

    python -m tests.perf.modules_page [--layers 5000] [--ranks 64] [--rounds 5]

Writes the run of `modules_scale.py`, starts TensorBoard on it and opens the Overview;
then the Modules page is opened by its key. "rows" is from that key to the first rows of
the table drawn, "chart" to the stacked categories. The first round reads the run cold;
its page code is loaded before, as it is for a person who comes from another page. Then:
all rows at once as a list, sorted, searched, the whole tree opened, and a scroll to the
end, each from the action to the frame that shows it.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tests.browser import chromium, tensorboard
from tests.perf import bench
from tests.perf.modules_scale import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame

OPEN = """() => new Promise((resolve) => {
  const found = {};
  const begin = performance.now();
  document.dispatchEvent(new KeyboardEvent('keydown', {key: '3', bubbles: true}));
  const look = () => {
    const rows = document.querySelectorAll('.tree-table .row-table-row').length;
    if (rows > 1) found.rows ??= performance.now() - begin;
    const chart = document.querySelector('.stack-plot canvas');
    if (chart?.width > 300) found.chart ??= performance.now() - begin;
    if (found.rows && found.chart) return void requestAnimationFrame(() => resolve(found));
    requestAnimationFrame(look);
  };
  look();
})"""

AFTER = """([act, test]) => new Promise((resolve) => {
  const begin = performance.now();
  new Function(act)();
  const done = new Function('return ' + test);
  const look = () => {
    if (!done()) return void setTimeout(look, 1);
    requestAnimationFrame(() => resolve(performance.now() - begin));
  };
  look();
})"""

CLICK = "[...document.querySelectorAll('button')].find((b) => b.textContent === '{}').click()"
HEIGHT = "document.querySelector('.tree-table').scrollHeight"
HEADING = (
    "[...document.querySelectorAll('.tree-table .row-table-head button')][2].click()"
)
SEARCH = (
    "const box = document.querySelector('.modules-controls input'); box.value = {!r};"
    "box.dispatchEvent(new Event('input', {{bubbles: true}}))"
)
DEPTH = (
    "const s = document.querySelector('.modules-controls .menu select'); s.value = '64';"
    "s.dispatchEvent(new Event('change', {bubbles: true}))"
)
SCROLL = "const h = document.querySelector('.tree-table'); h.scrollTop = 1e9"
LAST = "document.querySelector('.tree-table').textContent.includes('head')"


def opened(browser: Browser, url: str) -> Frame:
    """The Overview of the run, with every page's code loaded."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}#memboard")
    page.frame_locator("iframe").locator(".cards").wait_for(timeout=60_000)
    page.wait_for_timeout(5_500)
    return next(frame for frame in page.frames if "app.html" in frame.url)


def actions(frame: Frame) -> dict[str, float]:
    """Milliseconds of what a person does with the table."""
    steps = {
        "all as a list": (CLICK.format("List"), f"{HEIGHT} > 1e6"),
        "sorted": (
            HEADING,
            "document.querySelector('.tree-table [aria-sort=descending]') !== null",
        ),
        "searched": (SEARCH.format("layers.4321."), f"{HEIGHT} < 1e5"),
        "search undone": (SEARCH.format(""), f"{HEIGHT} > 1e6"),
        "tree again": (CLICK.format("Tree"), f"{HEIGHT} < 1e5"),
        "all opened": (DEPTH, f"{HEIGHT} > 1e6"),
        "scrolled to the end": (SCROLL, LAST),
    }
    return {name: frame.evaluate(AFTER, list(step)) for name, step in steps.items()}


def main() -> None:
    given = bench.options(__doc__, layers=5000, ranks=64, rounds=5)
    rounds: list[dict[str, float]] = []
    with bench.folder() as folder, chromium() as browser:
        write(folder / "runs" / "scale", given.ranks, given.layers)
        with tensorboard(["--logdir", folder / "runs"], folder / "log.txt") as board:
            for _ in range(given.rounds):
                frame = opened(browser, board.url)
                rounds.append(frame.evaluate(OPEN) | actions(frame))
                frame.page.close()
    head = f"{given.layers * 10 + 5:,} modules x {given.ranks} ranks, ms"
    row = bench.table(head, "first", "median", "highest", "of the rows (median)")
    rows = statistics.median(one["rows"] for one in rounds)
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        middle = statistics.median(values)
        row(name, values[0], middle, max(values), middle / rows)


if __name__ == "__main__":
    main()

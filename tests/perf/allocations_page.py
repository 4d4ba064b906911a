"""How fast the Allocations page paints, pans, zooms and reads, in Chromium without a GPU.

Run: python -m tests.perf.allocations_page --events 1000000   (simulates a history)
     python -m tests.perf.allocations_page --logdir DIR [--run NAME]
     python -m tests.perf.allocations_page --url URL [--run NAME]

First paint is from navigation to the first picture that counts every allocation. It is
measured cold, with an empty cache of imported files, and again with a filled one. The
pan and the zoom move at every animation frame, so each interval between frames is one
figure. `hover` is from a move of the pointer to the frame that shows what it found;
`flame` is the drawing of one flamegraph. Memory is that of the page's renderer process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.browser import launch, tensorboard
from tests.simulate import Form, trained_rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Frame, Page

FRAMES = 240
PAINT_LIMIT_S = 180.0

WAIT_FOR_PICTURE = """() => new Promise((resolve) => {
  const look = () => {
    const plot = document.querySelector('.block-plot');
    if (plot?.dataset.drawMs === undefined) return void requestAnimationFrame(look);
    requestAnimationFrame(() => resolve(Number(plot.dataset.drawMs)));
  };
  look();
})"""

# The mouse button is held for real; moves come from the page itself, one each frame.
PAN = """(frames) => new Promise((resolve) => {
  const target = document.querySelector('.block-plot');
  const box = target.getBoundingClientRect();
  const intervals = [];
  let last = null;
  let frame = 0;
  const step = (now) => {
    if (last !== null) intervals.push(now - last);
    last = now;
    frame += 1;
    if (frame > frames) return void resolve(intervals);
    // Four and a half turns: the pan ends elsewhere than it began.
    const turn = (frame / frames) * 4.5 * Math.PI;
    target.dispatchEvent(new PointerEvent('pointermove', {
      pointerId: 1, bubbles: true, pointerType: 'mouse', buttons: 1,
      clientX: box.left + box.width * (0.5 + 0.35 * Math.sin(turn)),
      clientY: box.top + box.height * 0.5,
    }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""

ZOOM = """(frames) => new Promise((resolve) => {
  const target = document.querySelector('.block-plot');
  const box = target.getBoundingClientRect();
  const intervals = [];
  let last = null;
  let frame = 0;
  const step = (now) => {
    if (last !== null) intervals.push(now - last);
    last = now;
    frame += 1;
    if (frame > frames) return void resolve(intervals);
    target.dispatchEvent(new WheelEvent('wheel', {
      bubbles: true, cancelable: true, deltaMode: 0,
      deltaY: frame < frames / 2 ? -40 : 40,
      clientX: box.left + box.width * 0.62,
      clientY: box.top + box.height * 0.5,
    }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""

# A move, then the frame in which its card and its line were painted.
HOVER = """(moves) => new Promise((resolve) => {
  const target = document.querySelector('.block-plot');
  const flame = document.querySelector('.flame canvas');
  const box = target.getBoundingClientRect();
  const [hover, flames] = [[], []];
  let move = 0;
  const next = () => {
    if (move >= moves) return void resolve({ hover, flames });
    move += 1;
    const begin = performance.now();
    target.dispatchEvent(new PointerEvent('pointermove', {
      bubbles: true, pointerType: 'mouse',
      clientX: box.left + 80 + (box.width - 100) * ((move * 37) % 101) / 101,
      clientY: box.top + box.height * (0.4 + 0.4 * ((move * 17) % 29) / 29),
    }));
    const handled = performance.now() - begin;
    requestAnimationFrame(() => {
      const painting = performance.now();
      setTimeout(() => {
        hover.push(handled + performance.now() - painting);
        if (flame?.dataset.drawMs) flames.push(Number(flame.dataset.drawMs));
        next();
      });
    });
  };
  next();
})"""


def table(title: str, rows: list[tuple[str, list[float], str]]) -> None:
    """Medians and 95th percentiles of samples."""
    print(f"\n{title}")
    print(f"  {'':<34}{'median':>10}{'p95':>10}{'most':>10}")
    for name, values, unit in rows:
        if not values:
            print(f"  {name:<34}{'-':>10}")
            continue
        ordered = sorted(values)
        p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        figures = (statistics.median(ordered), p95, ordered[-1])
        print(f"  {name:<34}" + "".join(f"{f:>10.1f}" for f in figures) + f" {unit}")


def frame_of(page: Page) -> Frame:
    """The plugin's page inside TensorBoard."""
    deadline = time.monotonic() + PAINT_LIMIT_S
    while time.monotonic() < deadline:
        for frame in page.frames:
            if "memboard" in frame.url and frame.url.endswith("app.html"):
                return frame
        page.wait_for_timeout(10)
    raise SystemExit("the MemBoard page did not appear")


def open_page(page: Page, url: str, run: str, words: str = "") -> tuple[Frame, float]:
    """Navigate, and wait for the picture; seconds until it was painted."""
    state = "#memboard&p.memboard.view=allocations" + words
    if run:
        state += f"&p.memboard.run={run}"
    begin = time.perf_counter()
    page.goto(url.rstrip("/") + "/" + state, wait_until="commit")
    frame = frame_of(page)
    frame.evaluate(WAIT_FOR_PICTURE)
    return frame, time.perf_counter() - begin


def renderer_mib(browser: Browser) -> float:
    """Private memory of the largest renderer process, MiB."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for process in found:
        if process["type"] != "renderer":
            continue
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{process['id']}/smaps_rollup").read_text()
            private = re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)
            sizes.append(sum(map(int, private)) / 1024)
    return max(sizes, default=float("nan"))


def measure(browser: Browser, url: str, run: str, first: str) -> None:
    """All figures of one history."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    frame, paint_s = open_page(page, url, run)
    print(f"\nfirst paint, {first}: {paint_s:.2f} s")
    page.wait_for_timeout(3000)
    plot = frame.locator(".block-plot")
    box = plot.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    zoomed = frame.evaluate(ZOOM, FRAMES)
    for _ in range(30):
        page.mouse.wheel(0, -120)
        page.wait_for_timeout(16)
    page.wait_for_timeout(2500)
    page.mouse.down()
    panned = frame.evaluate(PAN, FRAMES)
    page.mouse.up()
    page.wait_for_timeout(2500)
    page.keyboard.press("f")
    page.wait_for_timeout(2500)
    read = frame.evaluate(HOVER, 120)
    drawn = frame.evaluate(WAIT_FOR_PICTURE)
    table(
        "of the page",
        [
            ("frame while zooming", zoomed, "ms"),
            ("frame while panning, zoomed in", panned, "ms"),
            ("hover: work of a move", read["hover"], "ms"),
            ("flamegraph at the cursor", read["flames"], "ms"),
            ("picture in the worker", [drawn], "ms"),
        ],
    )
    print(f"\nrenderer: {renderer_mib(browser):.0f} MiB private")
    page.close()
    again = browser.new_page(viewport={"width": 1600, "height": 1000})
    _, again_s = open_page(again, url, run)
    print(f"first paint again: {again_s:.2f} s, {paint_s / again_s:.1f}x faster")
    again.close()


@contextlib.contextmanager
def served(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The URL that is measured; a TensorBoard is started where none was named."""
    if options.url:
        yield options.url
        return
    logdir = options.logdir
    if logdir is None:
        logdir = folder / "logs" / "run"
        logdir.mkdir(parents=True)
        rank = trained_rank(options.events, seed=1)
        rank.write(logdir / "snapshot_rank0.pickle", Form())
        size = (logdir / "snapshot_rank0.pickle").stat().st_size
        print(f"{rank.history.num_recorded:,} events, {size / 1e6:,.0f} MB")
        logdir = logdir.parent
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    os.environ["MEMBOARD_CACHE_DIR"] = str(cache)
    with tensorboard(["--logdir", logdir], folder / "log") as url:
        yield url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--logdir", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--run", default="")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(options, Path(folder)) as url,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        measure(browser, url, options.run, "cold" if not options.url else "as found")
        browser.close()


if __name__ == "__main__":
    main()

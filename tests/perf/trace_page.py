"""How fast the Trace page paints, pans and zooms, in Chromium without a GPU.

Run: python -m tests.perf.trace_page [--slices 5000000]

A trace is generated as our columns (see `trace_server`) and served by a process of its own.
First paint is from navigation to the first picture of the timeline, with the columns at
hand and nothing derived from them. The pan and the zoom move at every animation frame, so
each interval between two frames is one figure; "paint" is the page's own part of a frame.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.browser import launch

if TYPE_CHECKING:
    from playwright.sync_api import Page

FRAMES = 180

FRAMES_OF = """([kind, count]) => new Promise((done) => {
  const target = document.querySelector(".trace-canvas");
  const plot = document.querySelector(".trace-plot");
  const box = target.getBoundingClientRect();
  const send = (type, x, more = {}) => target.dispatchEvent(new PointerEvent(type, {
    bubbles: true, pointerId: 1, button: 0, clientX: box.left + x,
    clientY: box.top + 200, ...more,
  }));
  target.setPointerCapture = () => {};
  const gaps = [], paints = [];
  let last = performance.now(), i = 0;
  const middle = box.width / 2;
  if (kind === "pan") send("pointerdown", middle);
  const frame = (now) => {
    gaps.push(now - last);
    paints.push(Number(plot.dataset.paintMs));
    last = now;
    i += 1;
    if (i > count) {
      if (kind === "pan") send("pointerup", middle);
      done({ gaps: gaps.slice(2), paints });
      return;
    }
    if (kind === "pan") send("pointermove", middle - Math.sin(i / 30) * middle * 0.8);
    else target.dispatchEvent(new WheelEvent("wheel", {
      bubbles: true, cancelable: true, deltaY: i < count / 2 ? -30 : 30,
      clientX: box.left + middle, clientY: box.top + 200,
    }));
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def serve(num_slices: int) -> None:
    """Generate a trace and serve it; prints the page's address, and goes on."""
    from tensorboard.plugins import base_plugin
    from werkzeug.serving import make_server

    from tb_plugin.plugin import MemBoardPlugin
    from tb_plugin.server.access import Access
    from tb_plugin.server.standalone import PAGE, Application
    from tests.builders import RunBuilder
    from tests.perf.trace_server import found, made

    with tempfile.TemporaryDirectory() as folder:
        rank = RunBuilder(Path(folder) / "exp").rank(0)
        rank.steps(range(2))
        rank.close()
        plugin = MemBoardPlugin(base_plugin.TBContext(logdir=folder, flags=None))
        source = found(made(num_slices))
        plugin.state().traces._files = lambda _run, _budget: [source]
        access = Access()
        application = Application(plugin, access)
        server = make_server("127.0.0.1", 0, application, threaded=True)
        url = f"http://127.0.0.1:{server.port}{PAGE}?token={access.token}"
        print(url, flush=True)
        server.serve_forever()


def first_paint(page: Page, url: str) -> float:
    """Seconds to the first picture."""
    begin = time.perf_counter()
    page.goto(f"{url}#view=trace")
    drawn = ".trace-plot[data-draw-ms][data-pieces]:not([data-pieces='0'])"
    page.locator(drawn).wait_for(timeout=120_000)
    return time.perf_counter() - begin


def words(found: dict[str, list[float]]) -> str:
    """What intervals between frames say."""
    gaps = sorted(found["gaps"])
    median, late = statistics.median(gaps), gaps[int(len(gaps) * 0.95)]
    paint = statistics.median(found["paints"])
    return f"{1000 / median:.0f} fps | {median:.1f} | {late:.1f} | {paint:.1f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=5_000_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.slices)
        return
    command = [
        sys.executable,
        "-m",
        "tests.perf.trace_page",
        "--serve",
        "--slices",
        str(options.slices),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = launch(playwright)
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            print(f"first paint of {options.slices:,}: {first_paint(page, url):.2f} s")
            again = browser.new_page(viewport={"width": 1600, "height": 1000})
            print(f"first paint again: {first_paint(again, url):.2f} s")
            again.close()
            page.keyboard.press("w")
            for _ in range(12):
                page.keyboard.press("w")
            page.wait_for_timeout(1500)
            print("| gesture | frames | median ms | p95 ms | paint ms |")
            print("|" + "---|" * 5)
            for kind in ("pan", "zoom"):
                found = page.evaluate(FRAMES_OF, [kind, FRAMES])
                print(f"| {kind} | {words(found)} |")
            browser.close()
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    main()

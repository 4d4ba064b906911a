"""How long a step takes to show in the open tab: recorder -> disk -> plugin -> pixel.

Run: python -m tests.perf.live_latency [--steps 60]

A training ends a step every 500 ms and prints when; a Chromium page that is open on it
through TensorBoard notes when each step number appears in the rail. The figure is the
delay per step: the recorder's flush (2 s at most), the page's poll and the drawing.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.browser import launch, tensorboard

ROOT = Path(__file__).parent.parent.parent
TRAINING = """
import sys, time, collector
with collector.record(sys.argv[1] + "/live") as rec:
    for step in range(int(sys.argv[2])):
        time.sleep(0.5)
        rec.step(step)
        print(step, time.time(), flush=True)
"""

# Notes the first moment at which the rail shows each step, at every frame.
WATCH = """() => {
    window.seen = {};
    const look = () => {
        const note = document.querySelector('.rail-note');
        const step = note?.textContent?.match(/step ([0-9,]+)/)?.[1];
        if (step) window.seen[step.replace(/,/g, '')] ??= Date.now() / 1000;
        requestAnimationFrame(look);
    };
    look();
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        logdir = Path(folder) / "runs"
        logdir.mkdir()
        log = Path(folder) / "tensorboard.log"
        with tensorboard(["--logdir", logdir], log) as url:
            browser = launch(playwright)
            page = browser.new_page()
            page.goto(f"{url}#memboard&p.memboard.view=timeline")
            frame = page.frame_locator("iframe")
            frame.get_by_text("No memory data yet").wait_for(timeout=60_000)
            frame.locator("body").evaluate(WATCH)
            training = subprocess.Popen(
                [sys.executable, "-c", TRAINING, str(logdir), str(steps)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert training.stdout is not None
            ended = dict(line.split() for line in training.stdout)
            time.sleep(4)
            seen = frame.locator("body").evaluate("() => window.seen")
            browser.close()
    # A step that shares its flush with later ones is visible when the last of them is.
    delays = []
    for step, at in ended.items():
        shown = [when for number, when in seen.items() if int(number) >= int(step)]
        if shown:
            delays.append(min(shown) - float(at))
    assert len(delays) == len(ended), "some steps never showed"
    delays.sort()
    p95 = delays[int(len(delays) * 0.95) - 1]
    print(f"{len(delays)} steps: median {statistics.median(delays):.2f} s,"
          f" p95 {p95:.2f} s, longest {delays[-1]:.2f} s")  # fmt: skip


if __name__ == "__main__":
    main()

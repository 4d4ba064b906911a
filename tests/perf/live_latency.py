"""Delay of a step in the open tab: recorder -> disk -> plugin -> pixel.

    python -m tests.perf.live_latency [--steps 60]

A training ends a step every 500 ms and prints when; a Chromium page that is open on it
through TensorBoard notes when each step number appears in the rail. The figure is the
delay per step: the recorder's flush (2 s at most), the page's poll and the drawing.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tests.browser import chromium, tensorboard
from tests.perf import bench

TRAINING = """
import sys, time, memboard as mb
with mb.record(sys.argv[1] + "/live") as rec:
    for step in range(int(sys.argv[2])):
        time.sleep(0.5)
        rec.step(step)
        print(step, time.time(), flush=True)
"""

# Notes the first moment at which the rail shows each step, at every frame.
WATCH = """() => {
    window.seen = {};
    const look = () => {
        const note = document.querySelector('.run-facts');
        const step = note?.textContent?.match(/step ([0-9,]+)/)?.[1];
        if (step) window.seen[step.replace(/,/g, '')] ??= Date.now() / 1000;
        requestAnimationFrame(look);
    };
    look();
}"""


def main() -> None:
    steps = bench.options(__doc__, steps=60).steps
    with bench.folder() as folder, chromium() as browser:
        logdir = folder / "runs"
        logdir.mkdir()
        with tensorboard(["--logdir", logdir], folder / "tensorboard.log") as board:
            page = browser.new_page()
            page.goto(f"{board.url}#memboard&p.memboard.view=timeline")
            frame = page.frame_locator("iframe")
            frame.get_by_text("No memory data yet").wait_for(timeout=60_000)
            frame.locator("body").evaluate(WATCH)
            training = subprocess.Popen(
                [sys.executable, "-c", TRAINING, str(logdir), str(steps)],
                cwd=bench.ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert training.stdout is not None
            ended = dict(line.split() for line in training.stdout)
            time.sleep(4)
            seen = frame.locator("body").evaluate("() => window.seen")
    # A step that shares its flush with later ones is visible when the last of them is.
    delays = []
    for step, at in ended.items():
        shown = [when for number, when in seen.items() if int(number) >= int(step)]
        if shown:
            delays.append(min(shown) - float(at))
    assert len(delays) == len(ended), "some steps never showed"
    cuts = statistics.quantiles(delays, n=20, method="inclusive")
    row = bench.table("steps", "median s", "p95 s", "longest s")
    row(len(delays), statistics.median(delays), cuts[-1], max(delays))


if __name__ == "__main__":
    main()

"""Paints and pans of the rank x step heatmap, in Chromium without a GPU.

     python -m tests.perf.heatmap_pan --logdir DIR     (starts TensorBoard on it)
     python -m tests.perf.heatmap_pan --url URL        (a TensorBoard that runs)
     python -m tests.perf.heatmap_pan --synthetic RxS  (the page alone, made-up answers)

First paint is from navigation to the first drawing of cells in the tab, everything
cold: page, answers and, with --logdir, the plugin itself. The pan holds the mouse and
moves it at every animation frame, so each interval between frames is one figure.
`--synthetic 4096x10000` measures the page without the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import statistics
import time
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tb_plugin.api.base import RunsResponse, RunSummary
from tb_plugin.api.timeline import (
    HeatmapResponse,
    RankBand,
    SeriesInfo,
    TimelineResponse,
)
from tb_plugin.contract import wire
from tests.browser import chromium, tensorboard
from tests.perf import bench

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

STATIC = bench.ROOT / "tb_plugin" / "static"
FRAMES = 300
GIB = 2**30

WAIT_FOR_CELLS = """() => new Promise((resolve) => {
  const look = () => {
    const plot = document.querySelector('.heatmap-input');
    if (plot?.dataset.drawMs === undefined) return void requestAnimationFrame(look);
    requestAnimationFrame(() => resolve(Number(plot.dataset.drawMs)));
  };
  look();
})"""

# The mouse button is held for real; moves come from the page itself, one each frame.
PAN = """(frames) => new Promise((resolve) => {
  const target = document.querySelector('.heatmap-input');
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
      clientY: box.top + box.height * (0.5 + 0.3 * Math.sin(turn)),
    }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


class Synthetic:
    """Answers of the size asked for, straight from an array."""

    def __init__(self, num_ranks: int, num_steps: int) -> None:
        rng = np.random.default_rng(0)
        steps = np.arange(num_steps, dtype=np.float32)
        wave = 30000 + 9000 * np.sin(steps / 37)
        cells = wave[None, :] + rng.normal(0, 900, (num_ranks, 1)).astype(np.float32)
        self.cells = np.clip(cells, 1, 65535).astype("<u2")
        self.cells[num_ranks // 3] = 60000
        self.cells[num_ranks // 2, num_steps // 2 :] = 0
        self.num_ranks, self.num_steps = self.cells.shape
        self.run = RunSummary(
            id="synthetic",
            name="synthetic",
            num_ranks=num_ranks,
            world_size=num_ranks,
            num_attempts=1,
            first_ms=0.0,
            last_ms=0.0,
            last_step=num_steps - 1,
            live=False,
            virtual_gpu="",
            simulated=True,
            imported=False,
            made_of="recording",
            device_type="cuda",
            num_problems=0,
        )
        self.series = SeriesInfo(
            key="step/allocated_peak_bytes",
            unit="bytes",
            group="device",
            headline=True,
            num_ranks=num_ranks,
        )

    def runs(self, _: dict[str, str]) -> RunsResponse:
        return RunsResponse(("synthetic",), (self.run,), (), (), "0", 0)

    def timeline(self, query: dict[str, str]) -> TimelineResponse:
        num = int(query["px"])
        x = np.linspace(0, self.num_steps - 1, num).round()
        y = self.cells[0, x.astype(int)] * (80.0 * GIB / 65535)
        column = np.asarray(y, "<f8")
        band = RankBand(
            num_ranks=self.num_ranks,
            x=np.asarray(x, "<f8"),
            low=column,
            p5=column,
            median=column,
            p95=column,
            high=column,
            high_rank=np.zeros(num, "<i4"),
        )
        return TimelineResponse(
            run=self.run,
            series=self.series,
            x="step",
            x_low=0.0,
            x_high=self.num_steps - 1.0,
            rows_per_point=max(1, self.num_steps // num),
            lines=(),
            band=band,
            capacity_bytes=80.0 * GIB,
            capacity_kind="device",
            marks=(),
            available=(self.series,),
            absent=(),
            phases=("train",),
            problems=(),
        )

    def heatmap(self, query: dict[str, str]) -> HeatmapResponse:
        first, last = _bounds(query.get("ranks", ""), self.num_ranks)
        x0 = max(0, int(float(query.get("x0", 0))))
        x1 = min(self.num_steps - 1, int(float(query.get("x1", self.num_steps))))
        part = self.cells[first : last + 1, x0 : x1 + 1]
        per_row = -(-part.shape[0] // int(query["rows"]))
        per_column = -(-part.shape[1] // int(query["px"]))
        rows, columns = -(-part.shape[0] // per_row), -(-part.shape[1] // per_column)
        padded = np.zeros((rows * per_row, columns * per_column), "<u2")
        padded[: part.shape[0], : part.shape[1]] = part
        pooled = padded.reshape(rows, per_row, columns, per_column).max((1, 3))
        row_rank = np.arange(first, last + 1, per_row, dtype="<i4")
        return HeatmapResponse(
            run=self.run,
            series=self.series,
            x_low=0.0,
            x_high=self.num_steps - 1.0,
            x0=float(x0),
            steps_per_column=float(per_column),
            num_rows=rows,
            num_columns=columns,
            ranks_per_row=per_row,
            row_rank=row_rank,
            values=np.ascontiguousarray(pooled),
            value_low=0.0,
            value_high=80.0 * GIB,
            capacity_bytes=80.0 * GIB,
            exact=True,
            marks=(),
            absent=(),
        )


def _bounds(ranks: str, num_ranks: int) -> tuple[int, int]:
    numbers = [int(text) for text in re.findall(r"\d+", ranks)]
    return (min(numbers), max(numbers)) if numbers else (0, num_ranks - 1)


def synthetic_page(size: str) -> contextlib.AbstractContextManager[str]:
    """The built page over made-up answers; its URL."""
    answers = Synthetic(*(int(part) for part in size.split("x")))

    def answer(path: str) -> tuple[str, bytes] | None:
        url = urllib.parse.urlsplit(path)
        name = url.path.strip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        made = getattr(answers, name, None)
        if callable(made):
            return wire.CONTENT_TYPE, wire.envelope(made(query))
        return None if (STATIC / name).is_file() else ("application/json", b"{}")

    return bench.served(answer, STATIC)


def heatmap_frame(page: Page) -> Frame:
    """The frame that holds the plugin's page: TensorBoard's iframe, or the page."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for frame in page.frames:
            with contextlib.suppress(Exception):
                if frame.query_selector(".heatmap-input"):
                    return frame
        page.wait_for_timeout(20)
    raise SystemExit("no heatmap appeared within 60 s")


def measure(url: str, width: int, height: int) -> dict[str, float]:
    """First paint in s; frame intervals of the pan in ms."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        start = time.perf_counter()
        page.goto(url, wait_until="commit")
        frame = heatmap_frame(page)
        draw_ms = frame.evaluate(WAIT_FOR_CELLS)
        first_paint_s = time.perf_counter() - start
        plot = frame.locator(".heatmap-input")
        plot.scroll_into_view_if_needed()
        page.wait_for_timeout(4000)  # the rest of the page may still be loading
        box = plot.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        for _ in range(5):
            page.mouse.wheel(0, -120)
            page.wait_for_timeout(60)
        page.wait_for_timeout(1500)
        before = page.url
        page.mouse.down()
        intervals = sorted(frame.evaluate(PAN, FRAMES))
        page.mouse.up()
        page.wait_for_timeout(1000)
        if page.url == before:
            raise SystemExit("the page did not follow the pan: nothing was measured")
    return {
        "first_paint_s": round(first_paint_s, 2),
        "draw_ms": round(draw_ms, 1),
        "frame_median_ms": round(statistics.median(intervals), 1),
        "frame_p95_ms": round(intervals[int(len(intervals) * 0.95)], 1),
        "frame_max_ms": round(intervals[-1], 1),
        # Drawing without a GPU needs every core: figures of a busy machine say little.
        "load_1min": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Measure and print one line of JSON."""
    given = bench.options(
        __doc__, logdir=Path, url=str, synthetic=str, width=1280, height=1400
    )
    tab = "#memboard&p.memboard.view=timeline"
    with contextlib.ExitStack() as stack:
        if given.synthetic:
            base = stack.enter_context(synthetic_page(given.synthetic))
            url = f"{base}app.html#view=timeline"
        elif given.logdir:
            log = stack.enter_context(bench.folder()) / "tensorboard.log"
            flags = ["--logdir", given.logdir.resolve()]
            url = stack.enter_context(tensorboard(flags, log)).url + tab
        else:
            url = f"{given.url.rstrip('/')}/{tab}"
        print(json.dumps(measure(url, given.width, given.height)))


if __name__ == "__main__":
    main()

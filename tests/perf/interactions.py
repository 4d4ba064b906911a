"""Frames and long tasks while the pointer moves pictures, in a browser without a GPU.

     python -m tests.perf.interactions --heatmap DIR|URL|RxS
     python -m tests.perf.interactions --blocks [EVENTS|DIR] [--keep DIR]

A logdir gets a TensorBoard of its own; RxS is the page alone over made-up answers of so
many ranks and steps (4096x10000). `--blocks` simulates a training of so many allocator
events (5,000,000), writes its snapshot as torch's pickle and opens Blocks on it; or it
opens Blocks on what a logdir holds, such as the demo's.

"First" is from navigation to the first drawing in the tab, everything cold. Then come the
gestures: the pointer moves over the picture, the wheel zooms in and out, the held button
pans. Each moves once every animation frame, so each interval between frames is one figure;
what kept the main thread longer than 50 ms is counted as the browser itself reports it. Of
the longest task there is also the processor's time, which says the same on a busy machine.
Of Blocks, how many blocks are in view is read from "View as table".
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
from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.tb_plugin.api.base import RunsResponse, RunStanding, RunSummary
from memboard.tb_plugin.api.timeline import (
    HeatmapResponse,
    RankBand,
    SeriesInfo,
    TimelineResponse,
)
from memboard.tb_plugin.contract import wire
from tests.browser import chromium, tensorboard
from tests.perf import bench
from tests.perf.allocations_server import write_pickle

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

STATIC = bench.ROOT / "tb_plugin" / "static"
FRAMES = 300
MOST_S = 300
NUM_EVENTS = 5_000_000
GIB = 2**30

PLOTS = {"heatmap": ".heatmap-input", "blocks": ".block-plot"}

WAIT_FOR_DRAWING = """(selector) => new Promise((resolve) => {
  const look = () => {
    const plot = document.querySelector(selector);
    if (plot?.dataset.drawMs === undefined) return void requestAnimationFrame(look);
    requestAnimationFrame(() => resolve(Number(plot.dataset.drawMs)));
  };
  look();
})"""

# A held mouse button is held for real; moves come from the page itself, one each frame.
GESTURE = """([selector, kind, frames]) => new Promise((resolve) => {
  const target = document.querySelector(selector);
  const box = target.getBoundingClientRect();
  const found = { intervals: [], long: [] };
  const observer = new PerformanceObserver((list) => {
    for (const one of list.getEntries()) found.long.push(one.duration);
  });
  if (PerformanceObserver.supportedEntryTypes.includes("longtask")) {
    observer.observe({ type: "longtask" });
  } else found.long = null;
  let last = null;
  let frame = 0;
  const step = (now) => {
    if (last !== null) found.intervals.push(now - last);
    last = now;
    frame += 1;
    if (frame > frames) {
      return void setTimeout(() => { observer.disconnect(); resolve(found); }, 400);
    }
    // Four and a half turns: the pan ends elsewhere than it began.
    const turn = (frame / frames) * 4.5 * Math.PI;
    const at = {
      bubbles: true,
      cancelable: true,
      clientX: box.left + box.width * (0.5 + 0.35 * Math.sin(turn)),
      clientY: box.top + box.height * (0.5 + 0.3 * Math.sin(turn)),
    };
    if (kind === "zoom") {
      const deltaY = Math.cos(turn) > 0 ? -40 : 40;
      target.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY }));
    } else {
      const mouse = { pointerId: 1, pointerType: "mouse", buttons: kind === "pan" ? 1 : 0 };
      target.dispatchEvent(new PointerEvent("pointermove", { ...at, ...mouse }));
    }
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
            label="Allocated peak",
            unit="bytes",
            group="device",
            headline=True,
            num_ranks=num_ranks,
        )

    def runs(self, _: dict[str, str]) -> RunsResponse:
        standing = RunStanding(self.run.id, None, None)
        return RunsResponse(("synthetic",), (self.run,), (standing,), (), (), "0", 0)

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


def frame_with(page: Page, selector: str) -> Frame:
    """The frame that holds the plugin's page: TensorBoard's iframe, or the page."""
    deadline = time.monotonic() + MOST_S
    while time.monotonic() < deadline:
        for frame in page.frames:
            with contextlib.suppress(Exception):
                if frame.query_selector(selector):
                    return frame
        page.wait_for_timeout(20)
    raise SystemExit(f"no {selector} appeared within {MOST_S} s")


def measure(url: str, what: str, width: int, height: int) -> dict[str, float | None]:
    """Seconds to the first drawing; of each gesture frames in ms and long tasks."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        start = time.perf_counter()
        page.goto(url, wait_until="commit")
        selector = PLOTS[what]
        frame = frame_with(page, selector)
        figures = {"draw_ms": frame.evaluate(WAIT_FOR_DRAWING, selector)}
        figures["first_s"] = time.perf_counter() - start
        plot = frame.locator(selector)
        plot.scroll_into_view_if_needed()
        page.wait_for_timeout(4000)  # the rest of the page may still be loading
        if what == "blocks":
            figures["blocks_in_view"] = _blocks_in_view(frame)
            plot = frame.locator(f"{selector}[data-draw-ms]")
            page.wait_for_timeout(2000)
        box = plot.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for kind in ("hover", "zoom", "pan"):
            if kind == "pan":
                for _ in range(5):
                    page.mouse.wheel(0, -120)
                    page.wait_for_timeout(60)
                page.wait_for_timeout(1500)
                before = page.url
                page.mouse.down()
            browser.start_tracing(page=page, categories=["toplevel"])
            found = frame.evaluate(GESTURE, [selector, kind, FRAMES])
            figures |= {f"{kind}_{name}": of for name, of in _summed(found).items()}
            events = json.loads(browser.stop_tracing())["traceEvents"]
            figures[f"{kind}_longest_task_cpu_ms"] = _longest_task_ms(events)
            page.wait_for_timeout(1000)
        page.mouse.up()
        page.wait_for_timeout(1000)
        if page.url == before:
            raise SystemExit("the page did not follow the pan: nothing was measured")
    # Drawing without a GPU needs every core: figures of a busy machine say little.
    figures["load_1min"] = os.getloadavg()[0]
    return {name: of and round(of, 1) for name, of in figures.items()}


def _summed(found: dict[str, list[float] | None]) -> dict[str, float | None]:
    intervals, long = sorted(found["intervals"] or ()), found["long"]
    return {
        "median_ms": statistics.median(intervals),
        "p95_ms": intervals[int(len(intervals) * 0.95)],
        "max_ms": intervals[-1],
        "long_tasks": None if long is None else len(long),
        "longest_task_ms": None if long is None else max(long, default=0),
    }


def _longest_task_ms(events: list[dict[str, Any]]) -> float:
    """Of a processor, on the main threads of pages."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return max(
        event.get("tdur", 0) / 1e3
        for event in events
        if event["ph"] == "X" and (event["pid"], event["tid"]) in threads
    )


def _blocks_in_view(frame: Frame) -> int:
    figure = frame.locator("figure.chart", has=frame.locator(PLOTS["blocks"]))
    figure.hover()
    figure.get_by_label("View as table").click()
    table = frame.locator("figure.chart [role=grid]").first
    table.wait_for()
    num = int(table.get_attribute("aria-rowcount") or 1) - 1
    frame.locator("figure.chart").first.get_by_label("View as chart").click()
    return num


def main() -> None:
    """Measure and print one line of JSON."""
    given = bench.options(
        __doc__, heatmap=str, blocks=str, keep=Path, width=1280, height=1400
    )
    what = "heatmap" if given.heatmap else "blocks"
    view = "timeline" if given.heatmap else "blocks"
    tab = f"#memboard&p.memboard.view={view}"
    with contextlib.ExitStack() as stack:
        target = given.heatmap or given.blocks or str(NUM_EVENTS)
        if re.fullmatch(r"\d+x\d+", target):
            base = stack.enter_context(synthetic_page(target))
            url = f"{base}app.html#view={view}"
        elif target.startswith("http"):
            url = f"{target.rstrip('/')}/{tab}"
        else:
            logdir = Path(target)
            if target.isdecimal():
                num_events = int(target)
                logdir = stack.enter_context(bench.folder(given.keep)) / str(num_events)
                write_pickle(logdir / "job" / "snapshot_rank0.pickle", num_events)
            log = stack.enter_context(bench.folder()) / "tensorboard.log"
            flags = ["--logdir", logdir.resolve()]
            url = stack.enter_context(tensorboard(flags, log)).url + tab
        print(json.dumps(measure(url, what, given.width, given.height)))


if __name__ == "__main__":
    main()

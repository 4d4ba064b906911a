"""The memory timeline as one page that needs nothing else: no server, no network, no script.

What is held is stacked by category, as the viewer draws it, in its colours; each device has a
picture of its own, and a table of the moment at which it held most.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.memory import FOLDS_INTO, NOUNS
from memboard.collector.format.sizes import bytes_text
from memboard.collector.torch_profiler.digest.memory_timeline import CATEGORIES, thinned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memboard.collector.format.records import FloatArray, IntArray
    from memboard.collector.torch_profiler.digest.memory_timeline import DeviceTimeline

COLOURS: Final = {
    "param": "#425ed4",
    "optimizer": "#28bbf7",
    "activation": "#065721",
    "activation_grad": "#b03070",
    "grad": "#df612b",
    "comm": "#62008a",
    "temp": "#e7ad51",
    "unknown": "#8a8f98",
}
"""By group of categories: those of the viewer (`frontend/src/model/category.ts`)."""

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 1180, 420, 84, 28
_MAX_POINTS: Final = 2_000
_NUM_TICKS: Final = 5
_ABOUT: Final = (
    "Memory by category through one trace of torch's profiler. Only what the trace saw is"
    " here: tensors that it allocated, and of those from before, the ones it touched."
)
_STYLE: Final = """
body { font: 14px system-ui, sans-serif; margin: 24px; color: #1f2328; background: #fff; }
h1 { font-size: 18px; } h2 { font-size: 15px; margin: 28px 0 6px; }
p { max-width: 76ch; color: #59636e; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; }
td, th { padding: 2px 14px 2px 0; text-align: left; font-weight: normal; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
i { display: inline-block; width: 11px; height: 11px; margin-right: 6px; }
"""


def timeline_page(timelines: Iterable[DeviceTimeline], title: str) -> str:
    """HTML of all devices.

    Args:
        timelines: by device, in the order in which they are drawn.
        title: of the page: which rank and which steps.
    """
    shown = escape(title)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{shown}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{shown}</h1>",
        f"<p>{_ABOUT}</p>",
    ]
    for timeline in timelines:
        parts += _device(timeline)
    return "\n".join([*parts, "</body></html>", ""])


def _device(timeline: DeviceTimeline) -> Iterator[str]:
    yield f"<h2>{escape(timeline.device)}</h2>"
    if not len(timeline.time_ns):
        yield "<p>Nothing was allocated here.</p>"
        return
    peak = int(np.argmax(timeline.total))
    peak_bytes = np.maximum(timeline.held[peak], 0)
    at_ms = (int(timeline.time_ns[peak]) - int(timeline.time_ns[0])) / 1e6
    yield from _picture(thinned(timeline, _MAX_POINTS))
    total = bytes_text(int(timeline.total[peak]))
    yield f"<table><tr><th>At the peak, {at_ms:,.3f} ms<th class='n'>{total}</tr>"
    for category in np.argsort(-peak_bytes, kind="stable").tolist():
        if peak_bytes[category]:
            category_name = CATEGORIES[category]
            yield (
                f"<tr><td><i style='background:{_colour(category_name)};opacity:{_opacity(category_name)}'></i>{NOUNS[category_name]}"
                f"<td class='n'>{bytes_text(int(peak_bytes[category]))}</tr>"
            )
    yield "</table>"


def _picture(timeline: DeviceTimeline) -> Iterator[str]:
    """Areas upon each other; a level lasts until the next moment."""
    live_bytes = np.maximum(timeline.held, 0)
    most = max(1, int(live_bytes.sum(axis=1).max()))
    since = timeline.time_ns - timeline.time_ns[0]
    lasts = max(1, int(since[-1]))
    x = _LEFT + since / lasts * (_WIDTH - _LEFT)
    height = _HEIGHT - _BOTTOM
    yield f"<svg viewBox='0 0 {_WIDTH + 4} {_HEIGHT}' width='{_WIDTH}' role='img'>"
    for number in range(_NUM_TICKS + 1):
        share = number / _NUM_TICKS
        y = height * (1 - share) + 8 * share
        yield (
            f"<line x1='{_LEFT}' x2='{_WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#d8dee4'/>"
            f"<text x='{_LEFT - 8}' y='{y + 4:.1f}' text-anchor='end'>"
            f"{bytes_text(round(most * share))}</text>"
        )
        tick = _LEFT + share * (_WIDTH - _LEFT)
        anchor = "start" if number == 0 else "end" if number == _NUM_TICKS else "middle"
        yield (
            f"<text x='{tick:.1f}' y='{_HEIGHT - 8}' text-anchor='{anchor}'>"
            f"{lasts * share / 1e6:,.3f} ms</text>"
        )
    below = np.zeros(len(since), np.int64)
    for index, category in enumerate(CATEGORIES):
        above = below + live_bytes[:, index]
        if live_bytes[:, index].any():
            area = _area(x, _y(below, most), _y(above, most))
            yield (
                f"<path d='{area}' fill='{_colour(category)}'"
                f" fill-opacity='{_opacity(category)}'>"
                f"<title>{NOUNS[category]}, at most {bytes_text(int(live_bytes[:, index].max()))}"
                "</title></path>"
            )
        below = above
    yield "</svg>"


def _y(live_bytes: IntArray, most: int) -> FloatArray:
    height = _HEIGHT - _BOTTOM
    y: FloatArray = height - live_bytes / most * (height - 8)
    return y


def _area(x: FloatArray, lower: FloatArray, upper: FloatArray) -> str:
    """A path along the upper steps and back along the lower ones."""

    def steps(y: FloatArray) -> list[str]:
        points = [f"{x[0]:.1f},{y[0]:.1f}"]
        for index in range(1, len(x)):
            points += [
                f"{x[index]:.1f},{y[index - 1]:.1f}",
                f"{x[index]:.1f},{y[index]:.1f}",
            ]
        return points

    return f"M{' '.join(steps(upper))} {' '.join(reversed(steps(lower)))}Z"


def _opacity(category: str) -> float:
    return 0.66 if category == "input" else 1  # beside activations, whose colour it has


def _colour(category: str) -> str:
    return COLOURS[FOLDS_INTO[category]]

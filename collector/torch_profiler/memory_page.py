"""The memory timeline as one page that needs nothing but a browser: no network, no files.

A stacked picture per device in the colours of the other pages, light and dark, in GiB;
under it the peak as a table. The script only reads values out under the pointer: without
it the page says the same.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.torch_profiler.memory_timeline import CATEGORIES, thinned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.torch_profiler.memory_timeline import DeviceTimeline

MAX_DRAWN: Final = 2000
"""Moments that a picture shows; of more, the highest of neighbours."""

_GIB: Final = 2**30
_WIDTH, _HEIGHT = 1120, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 28, 36

_LABELS: Final = {
    "param": "Parameters",
    "grad": "Gradients",
    "optimizer": "Optimizer state",
    "activation": "Activations",
    "input": "Inputs",
    "temp": "Temporary",
    "other": "Unknown",
}

_COLOURS: Final = {
    "param": ("#425ED4", "#6B7BEA"),
    "grad": ("#DF612B", "#E0662E"),
    "optimizer": ("#28BBF7", "#6CC4FA"),
    "activation": ("#065721", "#B5F8BF"),
    "input": ("#065721", "#B5F8BF"),
    "temp": ("#E7AD51", "#E2B84F"),
    "other": ("#8A8F98", "#9A9FA8"),
}
"""Light and dark; inputs are hatched, as they share the colour of activations."""

_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fff; --text: #212121; --soft: #616161;
  --line: #ebebeb; LIGHT }
@media (prefers-color-scheme: dark) { :root { --bg: #303030; --text: #fff;
  --soft: #bdbdbd; --line: #555; DARK } }
body { background: var(--bg); color: var(--text); margin: 24px auto; max-width: 1120px;
  padding: 0 16px; font: 13px/20px Roboto, Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
h1 { font-size: 20px; font-weight: 500; line-height: 28px; margin: 0;
  overflow-wrap: anywhere; }
h2 { font-size: 15px; font-weight: 500; margin: 24px 0 4px; }
p { color: var(--soft); margin: 0 0 8px; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; }
.grid { stroke: var(--line); }
.area { stroke: var(--bg); stroke-width: .5; }
.at { stroke: var(--text); stroke-dasharray: 3 3; visibility: hidden; }
.read { min-height: 20px; color: var(--text); }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: 2px 16px 2px 0; text-align: right;
  font-weight: 400; }
th:first-child, td:first-child { text-align: left; }
.swatch { display: inline-block; width: 10px; height: 10px; margin-right: 8px; }
"""

_HATCH: Final = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect width="6" height="6" fill="var(--input)"/>'
    '<path d="M0 0V6" stroke="var(--bg)" stroke-width="3"/></pattern></defs>'
)

_HATCHED: Final = (
    "repeating-linear-gradient(135deg,var(--input) 0 2px,var(--bg) 2px 4px)"
)
"""The same for a small square."""

_SCRIPT: Final = """
for (const figure of document.querySelectorAll("figure")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector("svg"), line = figure.querySelector(".at");
  const read = figure.querySelector(".read"), rest = read.textContent;
  const shown = (bytes) => Number((bytes / 2 ** 30).toPrecision(4)).toString();
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * data.width;
    const ms = (x - data.left) / data.perMs;
    let at = 0, end = data.ms.length;
    while (end - at > 1) {
      const middle = (at + end) >> 1;
      if (data.ms[middle] <= ms) at = middle; else end = middle;
    }
    const held = data.held[at], sum = held.reduce((a, b) => a + b, 0);
    const parts = data.labels.map((label, i) => [label, held[i]])
      .filter((part) => part[1]).map((part) => part[0] + " " + shown(part[1]));
    read.textContent = data.ms[at].toFixed(3) + " ms: " + shown(sum) + " GiB ("
      + parts.join(", ") + ")";
    for (const name of ["x1", "x2"]) line.setAttribute(name, x);
    line.style.visibility = "visible";
  });
  svg.addEventListener("pointerleave", () => {
    read.textContent = rest;
    line.style.visibility = "hidden";
  });
}
"""


def memory_page(title: str, facts: str, timelines: Sequence[DeviceTimeline]) -> str:
    """The whole page.

    Args:
        title: what is shown: the run and the rank; any text.
        facts: one line below it; any text.
        timelines: one per device.
    """
    figures = "".join(_figure(timeline) for timeline in timelines)
    if not figures:
        figures = "<p>Nothing was allocated or released in this trace.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_style()}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>{escape(facts)}</p>{figures}"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _style() -> str:
    def values(at: int) -> str:
        pairs = (f"--{name}: {colours[at]};" for name, colours in _COLOURS.items())
        return " ".join(pairs)

    return _STYLE.replace("LIGHT", values(0)).replace("DARK", values(1))


def _figure(timeline: DeviceTimeline) -> str:
    drawn = thinned(timeline, MAX_DRAWN)
    peak = int(np.argmax(timeline.total))
    total = int(timeline.total[peak])
    at_ms = (int(timeline.time_ns[peak]) - int(timeline.time_ns[0])) / 1e6
    summary = f"Peak {_gib(total)} GiB at {at_ms:.3f} ms."
    device = escape(timeline.device)
    return (
        f'<h2>{device}</h2><figure style="margin:0"><p class="read">{summary}</p>'
        f"{_picture(drawn, summary)}{_data(drawn)}</figure>"
        f"{_peak_table(timeline, peak)}"
    )


def _scale(drawn: DeviceTimeline) -> tuple[float, float, float]:
    """Milliseconds shown, pixels per millisecond, GiB shown."""
    span_ms = max((int(drawn.time_ns[-1]) - int(drawn.time_ns[0])) / 1e6, 1e-3)
    highest = max(int(drawn.total.max(initial=0)) / _GIB, 1e-6)
    step = _nice(highest / 5)
    top = step * np.ceil(highest / step)
    return span_ms, (_WIDTH - _LEFT - _RIGHT) / span_ms, float(top)


def _picture(drawn: DeviceTimeline, summary: str) -> str:
    span_ms, per_ms, top = _scale(drawn)
    floor = _HEIGHT - _BOTTOM
    per_gib = (floor - _TOP) / top
    label = f"Memory by category. {summary}"
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">',
        _HATCH,
    ]
    step = _nice(top / 5)
    for index in range(round(top / step) + 1):
        y = floor - index * step * per_gib
        parts.append(
            f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{index * step:.6g}</text>"
        )
    parts.append(f'<text x="{_LEFT - 8}" y="12" text-anchor="end">GiB</text>')
    parts += _areas(drawn, per_ms, per_gib, floor)
    parts += _time_axis(span_ms, per_ms, floor)
    parts.append(f'<line class="at" y1="{_TOP}" y2="{floor}"/></svg>')
    return "".join(parts)


def _areas(
    drawn: DeviceTimeline, per_ms: float, per_gib: float, floor: float
) -> list[str]:
    """One stepped area per category that ever holds anything, one on the other."""
    x = _LEFT + (drawn.time_ns - drawn.time_ns[0]) / 1e6 * per_ms
    below = np.zeros(len(x))
    areas = []
    for column, name in enumerate(CATEGORIES):
        # What torch missed may leave less than nothing, which has no height.
        height = np.maximum(drawn.held[:, column], 0) / _GIB * per_gib
        if not height.any():
            continue
        above = below + height
        path = _steps(x, floor - above) + _steps_back(x, floor - below)
        fill = "url(#hatch)" if name == "input" else f"var(--{name})"
        label = _LABELS[name]
        areas.append(
            f'<path class="area" fill="{fill}" d="M{path}Z"><title>{label}</title></path>'
        )
        below = above
    return areas


def _steps(x: np.ndarray, y: np.ndarray) -> str:
    """From left to right: each level lasts until the next one."""
    steps = (f"H{x[at]:.1f}V{y[at]:.1f}" for at in range(1, len(x)))
    return f"{x[0]:.1f} {y[0]:.1f}{''.join(steps)}"


def _steps_back(x: np.ndarray, y: np.ndarray) -> str:
    back = range(len(x) - 1, 0, -1)
    steps = (f"V{y[at - 1]:.1f}H{x[at - 1]:.1f}" for at in back)
    return f"L{x[-1]:.1f} {y[-1]:.1f}{''.join(steps)}"


def _time_axis(span_ms: float, per_ms: float, floor: float) -> list[str]:
    step = _nice(span_ms / 8)
    marks = []
    for index in range(int(span_ms / step) + 1):
        x = _LEFT + index * step * per_ms
        marks.append(
            f'<text x="{x:.1f}" y="{floor + 18}" text-anchor="middle">'
            f"{index * step:.6g}</text>"
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    marks.append(
        f'<text x="{middle:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">milliseconds'
        " since the first change</text>"
    )
    return marks


def _data(drawn: DeviceTimeline) -> str:
    """What the script reads: JSON that cannot end its element."""
    _, per_ms, _ = _scale(drawn)
    data = {
        "width": _WIDTH,
        "left": _LEFT,
        "perMs": per_ms,
        "ms": ((drawn.time_ns - drawn.time_ns[0]) / 1e6).round(6).tolist(),
        "held": drawn.held.tolist(),
        "labels": [_LABELS[name] for name in CATEGORIES],
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def _peak_table(timeline: DeviceTimeline, peak: int) -> str:
    rows = [
        "<tr><th>Category</th><th>At the peak, GiB</th><th>Highest, GiB</th></tr>",
    ]
    for column, name in enumerate(CATEGORIES):
        here = int(timeline.held[peak, column])
        most = int(timeline.held[:, column].max())
        if most or here:
            fill = f"background:{_HATCHED if name == 'input' else f'var(--{name})'}"
            rows.append(
                f'<tr><td><span class="swatch" style="{fill}"></span>{_LABELS[name]}</td>'
                f"<td>{_gib(here)}</td><td>{_gib(most)}</td></tr>"
            )
    total = _gib(int(timeline.total[peak]))
    rows.append(f"<tr><td>All</td><td>{total}</td><td>{total}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / _GIB:.4g}"


def _nice(value: float) -> float:
    """The next number up that begins with 1, 2 or 5."""
    power = 10.0 ** np.floor(np.log10(value))
    for factor in (1, 2, 5):
        if factor * power >= value:
            return float(factor * power)
    return float(10 * power)

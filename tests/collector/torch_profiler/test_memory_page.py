"""The memory timeline as a page of its own."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from memboard.collector.format.memory import FOLDS_INTO
from memboard.collector.torch_profiler.digest.memory_page import COLOURS, timeline_page
from memboard.collector.torch_profiler.digest.memory_timeline import (
    CATEGORIES,
    DeviceTimeline,
)

FRONTEND = Path(__file__).parents[3] / "frontend" / "src" / "model" / "category.ts"


def timeline(device="cuda:0", num=4, **held) -> DeviceTimeline:
    columns = np.zeros((num, len(CATEGORIES)), np.int64)
    for name, values in held.items():
        columns[:, CATEGORIES.index(name)] = values
    return DeviceTimeline(device, np.arange(num) * 1_000_000 + 5, columns)


class Page(HTMLParser):
    """Checks that what begins ends, and keeps texts and paths."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.paths: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.loads += [given[name] for name in ("src", "href") if name in given]
        if tag == "path":
            self.paths.append(given["d"])

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_each_device_has_its_picture_and_the_table_of_its_peak():
    text = timeline_page(
        [
            timeline(param=1 << 20, activation=[0, 3 << 20, 1 << 20, 0]),
            timeline("cpu", temp=[0, 10, 0, 0]),
        ],
        "Rank 3, steps 4 to 5",
    )
    page = Page(text)
    assert "Rank 3, steps 4 to 5" in page.texts
    assert [t for t in page.texts if t in ("cuda:0", "cpu")] == ["cuda:0", "cpu"]
    assert len(page.paths) == 3
    said = " ".join(filter(None, page.texts))
    assert "At the peak, 1.000 ms 4.00 MiB activations 3.00 MiB parameters" in said
    assert page.loads == []
    assert "<script" not in text


def test_areas_lie_upon_each_other_and_reach_the_peak():
    page = Page(timeline_page([timeline(param=100, grad=[0, 50, 300, 0])], "t"))
    heights = []
    for path in page.paths:
        y = [float(point.split(",")[1]) for point in path.strip("MZ").split()]
        heights.append((min(y), max(y)))
    (param_top, base), (top, grad_base) = heights
    assert param_top == pytest.approx(grad_base)
    assert (base - param_top) / (base - top) == pytest.approx(1 / 4, abs=0.01)


def test_a_page_of_many_moments_stays_small_and_keeps_the_peak():
    num = 300_000
    grads = np.random.default_rng(0).integers(0, 1 << 30, num)
    grads[123_456] = 5 << 30
    text = timeline_page([timeline(num=num, grad=grads)], "t")
    assert len(text) < 400_000
    assert "At the peak, 123,456.000 ms" in text
    assert "gradients, at most 5.00 GiB" in text


@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "a & b"])
def test_names_are_text(title):
    text = timeline_page([timeline("<b>")], title)
    assert title not in text
    assert "<b>" not in text


def test_a_device_on_which_nothing_was_allocated():
    empty = DeviceTimeline("cpu", np.zeros(0, np.int64), np.zeros((0, len(CATEGORIES))))
    assert "Nothing was allocated here." in timeline_page([empty], "t")


def test_every_category_has_the_viewers_colour():
    light = FRONTEND.read_text().partition("light: {")[2].partition("}")[0]
    assert dict(re.findall(r'(\w+): "(#\w+)"', light)) == COLOURS
    assert {FOLDS_INTO[name] for name in CATEGORIES} <= set(COLOURS)

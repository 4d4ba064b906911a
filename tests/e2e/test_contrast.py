"""Texts can be read: their contrast is at least WCAG's AA, in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.looking import opened

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LEAST_TEXTS = 20

CONTRASTS = """() => {
  const page = document.querySelector("iframe").contentDocument;
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const rgba = colour => {
    if (!colours.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      colours.set(colour, [r, g, b, a / 255]);
    }
    return colours.get(colour);
  };
  const over = (top, below) =>
    [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = value =>
    value <= 0.04045 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) =>
    0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const style = element => page.defaultView.getComputedStyle(element);
  const read = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    if (text === "" || element.closest("script, style, option, :disabled, .off-screen"))
      continue;
    const { width, height } = element.getBoundingClientRect();
    const own = style(element);
    if (width < 2 || height < 2 || own.visibility === "hidden") continue;
    let opacity = 1;
    const layers = [];
    for (let above = element; above; above = above.parentElement) {
      opacity *= Number(style(above).opacity);
      layers.push(rgba(style(above).backgroundColor));
    }
    // What shows on hover alone.
    if (opacity < 0.05) continue;
    const ground = layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
    const [r, g, b, a] = rgba(own.color);
    const ink = over([r, g, b, a * opacity], ground);
    const [dark, bright] = [luminance(ink), luminance(ground)].sort((x, y) => x - y);
    const px = parseFloat(own.fontSize);
    const isLarge = px >= 24 || (px >= 18.66 && Number(own.fontWeight) >= 700);
    const ratio = (bright + 0.05) / (dark + 0.05);
    read.push([text.slice(0, 40), element.className, ratio, isLarge ? 3 : 4.5]);
  }
  return read;
}"""
"""Of every text: itself, its class, its contrast and the least that it may have."""


def contrasts(page: Page) -> list[tuple[str, str, float, float]]:
    page.wait_for_function(
        f"({CONTRASTS})().length >= {LEAST_TEXTS}", polling=500, timeout=60_000
    )
    return [tuple(row) for row in page.evaluate(CONTRASTS)]


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_texts_stand_out_from_what_is_behind_them(
    board_of, open_page, simulated, dark: bool
):
    faint = []
    for view in ("overview", "blocks", "segments", "modules", "steps", "trace"):
        page = opened(board_of(simulated), open_page, view, "rank=41", dark=dark)
        page.wait_for_load_state("networkidle")
        faint += [(view, *row) for row in contrasts(page) if row[2] < row[3]]
        page.close()
    assert faint == []

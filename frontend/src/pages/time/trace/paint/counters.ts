/** Counters over time: each value holds on to the next one. */

import type { TraceTrack } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { categoryColour } from "../../../../model/category";
import { COUNTER_PX, rowsBetween, type Row } from "../plot/layout";
import type { Canvas } from "./canvas";
import type { TraceTile } from "../tiles/tile";

/** No kind of work and no category of memory has it. */
const COUNTER_COLOUR: Readonly<Record<Theme, string>> = {
  light: "#00796b",
  dark: "#4db6ac",
};

function counterColour(theme: Theme, track: TraceTrack): string {
  if (track.process === "Memory") return categoryColour(theme, "param");
  return COUNTER_COLOUR[theme];
}

export function paintCounters(canvas: Canvas): void {
  const { layout, view, tiles } = canvas;
  for (const row of rowsBetween(layout, view.y0, view.y1)) {
    if (row.track?.kind !== "counter") continue;
    for (const tile of tiles) {
      if (tile.lines.has(row.trackKey)) paintCounter(canvas, row, tile);
    }
  }
}

function paintCounter(canvas: Canvas, row: Row, tile: TraceTile): void {
  const { context, view, theme, toX, widthPx, tiles } = canvas;
  const { track } = row;
  if (track === null) return;
  const most = track.most ?? 1;
  // Shares are compared with all there is.
  const high = track.unit === "percent" ? Math.max(100, most) : most;
  const low = Math.min(0, track.least ?? 0);
  const span = high - low || 1;
  const tall = Math.max(4, Math.min(COUNTER_PX, row.heightPx - 6) - 2);
  const bottom = row.y - view.y0 + tall + 1;
  // A finer tile is drawn over what a coarser one says there.
  const from = Math.max(0, toX(tile.lowNs));
  const to = Math.min(widthPx, toX(tile.highNs));
  if (to <= from) return;
  const colour = counterColour(theme, track);
  context.save();
  context.beginPath();
  context.rect(from, bottom - tall - 1, to - from, tall + 2);
  context.clip();
  if (tiles.length > 1 && tile === tiles.at(-1)) {
    context.fillStyle = tokens(theme).bg;
    context.fillRect(from, bottom - tall - 1, to - from, tall + 2);
  }
  for (const line of tile.lines.get(row.trackKey) ?? []) {
    context.beginPath();
    let y = bottom;
    let begun = false;
    let lastX = from;
    for (let i = 0; i < line.timeNs.length; i += 1) {
      const value = line.value[i] ?? NaN;
      const x = toX(tile.lowNs + (line.timeNs[i] ?? 0));
      if (!Number.isFinite(value)) continue;
      if (begun) context.lineTo(x, y);
      else context.moveTo(x, bottom);
      begun = true;
      y = bottom - ((value - low) / span) * tall;
      context.lineTo(x, y);
      lastX = x;
    }
    if (!begun) continue;
    // The last value holds on where the recording does.
    const end = Math.min(to, Math.max(lastX + 1, toX(canvas.picture.endNs)));
    context.lineTo(end, y);
    context.lineTo(end, bottom);
    context.globalAlpha = 0.35;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.stroke();
  }
  context.restore();
}

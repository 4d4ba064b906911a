/** Names on the slices that are wide enough for them. */

import { isLight } from "./colours";
import { LANE_PX } from "./layout";
import type { Canvas } from "./paint_canvas";
import { fitting, widthOf } from "./paint_text";

const LABEL_LEAST_PX = 24;
const MOST_LABELS = 900;
const PAD_PX = 4;

export function paintLabels(canvas: Canvas): void {
  const { context, picture, view, widthPx, heightPx } = canvas;
  const { quads } = picture;
  const perPx = (view.x1 - view.x0) / widthPx;
  const least = LABEL_LEAST_PX * perPx;
  let painted = 0;
  for (let i = 0; i < quads.id.length && painted < MOST_LABELS; i += 1) {
    const start = Math.max(quads.x0[i] ?? 0, view.x0);
    const end = Math.min(quads.x1[i] ?? 0, view.x1);
    if (end - start < least) continue;
    const top = (quads.y0[i] ?? 0) - view.y0;
    if (top + LANE_PX < 0 || top > heightPx) continue;
    const tile = picture.tiles[picture.tile[i] ?? 0];
    const piece = picture.piece[i] ?? 0;
    if (tile === undefined) continue;
    const count = tile.answer.count[piece] ?? 1;
    const name = tile.nameOf(piece);
    const text = count > 1 ? `${count.toLocaleString("en-US")} slices` : name;
    const x = canvas.toX(start);
    const room = (end - start) / perPx - 2 * PAD_PX;
    const words = fitting(text, widthOf(context, text), room);
    if (words === "") continue;
    painted += 1;
    context.fillStyle = isLight(quads.colour[i] ?? 0) ? "#1c1c1c" : "#ffffff";
    context.fillText(words, x + PAD_PX, top + LANE_PX / 2);
  }
}

/** A flamegraph on a canvas; only the rows that are scrolled to are drawn. */

import { tokens, type Theme } from "../../base/tokens";
import { ROOT_FRAME, type FlameBoxes } from "../../model/stacks/flame_tree";
import {
  boxFills,
  boxInks,
  LABEL_LEAST_PX,
  LEAST_BOX_PX,
  ROW_PX,
  type FlameLabels,
} from "./layout";
import { FONT, type Pen } from "../export/pen";
import type { FlameData } from "./types";

/** How wide labels are in the drawing's font. */
export function labelWidths(): (text: string) => number {
  const context = document.createElement("canvas").getContext("2d");
  if (context !== null) context.font = FONT;
  return (text) => context?.measureText(text).width ?? 0;
}

export interface FlamePaint {
  readonly data: FlameData;
  readonly boxes: FlameBoxes;
  readonly labels: FlameLabels;
  readonly theme: Theme;
  readonly widthPx: number;
  readonly heightPx: number;
  /** CSS px that are scrolled away above. */
  readonly scrollPx: number;
  /** CSS px of all rows. */
  readonly totalPx: number;
  readonly upwards: boolean;
  readonly hideRoot: boolean;
  readonly found: Uint8Array | null;
  readonly hovered: number;
  readonly selected: number;
  readonly rootText: string;
}

/** Top of a row in px of all rows. */
export function rowTop(
  row: number,
  { upwards, hideRoot, totalPx }: Pick<FlamePaint, "upwards" | "hideRoot" | "totalPx">,
): number {
  const shown = hideRoot ? row - 1 : row;
  return upwards ? totalPx - (shown + 1) * ROW_PX : shown * ROW_PX;
}

/** The row at a height, or below 0 where there is none. */
export function rowAt(
  y: number,
  { upwards, hideRoot, totalPx }: Pick<FlamePaint, "upwards" | "hideRoot" | "totalPx">,
): number {
  const shown = Math.floor((upwards ? totalPx - y : y) / ROW_PX);
  return hideRoot ? shown + 1 : shown;
}

export function paintFlame(pen: Pen, paint: FlamePaint): void {
  const { data, boxes, theme, widthPx, heightPx, scrollPx, hideRoot, found } = paint;
  const { tree } = data;
  const fillOf = boxFills(data, theme);
  const inkOf = boxInks();
  const { text, link, border } = tokens(theme);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (let i = 0; i < boxes.num; i += 1) {
    const row = boxes.row[i] ?? 0;
    if (hideRoot && row === 0) continue;
    const top = rowTop(row, paint) - scrollPx;
    if (top + ROW_PX < 0 || top > heightPx) continue;
    const node = boxes.node[i] ?? 0;
    const left = (boxes.x[i] ?? 0) * widthPx;
    const wide = (boxes.width[i] ?? 0) * widthPx;
    const frame = tree.frame[node] ?? ROOT_FRAME;
    const dimmed = found !== null && (frame < 0 || found[frame] !== 1);
    pen.globalAlpha = dimmed ? 0.35 : 1;
    const fill = fillOf(node);
    pen.fillStyle = fill;
    const width = Math.max(wide - 1, LEAST_BOX_PX);
    pen.fillRect(left, top, width, ROW_PX - 1);
    if (wide < LABEL_LEAST_PX) continue;
    pen.fillStyle = dimmed ? text : inkOf(fill);
    const words = row === 0 ? paint.rootText : paint.labels.fitting(frame, wide - 8);
    if (words !== "") pen.fillText(words, left + 4, top + ROW_PX / 2);
  }
  pen.globalAlpha = 1;
  outlineBox(pen, paint, paint.selected, link, 2);
  if (paint.hovered !== paint.selected) {
    outlineBox(pen, paint, paint.hovered, text, 1);
  }
  if (boxes.num > 0) return;
  pen.fillStyle = border;
  pen.fillRect(0, ROW_PX, widthPx, 1);
}

function outlineBox(
  pen: Pen,
  paint: FlamePaint,
  index: number,
  colour: string,
  lineWidth: number,
): void {
  const { boxes, widthPx, scrollPx } = paint;
  if (index < 0 || index >= boxes.num) return;
  const top = rowTop(boxes.row[index] ?? 0, paint) - scrollPx;
  const left = (boxes.x[index] ?? 0) * widthPx;
  const wide = (boxes.width[index] ?? 0) * widthPx;
  pen.strokeStyle = colour;
  pen.lineWidth = lineWidth;
  const inset = lineWidth / 2;
  pen.strokeRect(
    left + inset,
    top + inset,
    Math.max(1, wide - 1 - lineWidth),
    ROW_PX - 1 - lineWidth,
  );
}

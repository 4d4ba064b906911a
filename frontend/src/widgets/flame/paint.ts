import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { ROOT_FRAME } from "../../model/stacks/flame_tree";
import type { Table } from "../../model/table";
import { figureOf } from "../export/figure";
import { FONT, type Pen } from "../export/pen";
import type { Figure } from "../export/source";
import {
  boxFills,
  boxInks,
  LABEL_LEAST_PX,
  LEAST_BOX_PX,
  rootText,
  ROW_PX,
  FlameLabels,
  type FlameLayout,
  placed,
  type FlameData,
  type FlameShape,
  type FrameNames,
} from "./layout";

export function labelWidths(): (text: string) => number {
  const context = document.createElement("canvas").getContext("2d");
  if (context !== null) context.font = FONT;
  return (text) => context?.measureText(text).width ?? 0;
}

interface FlamePaint extends FlameLayout {
  readonly labels: FlameLabels;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly scrollPx: number;
  readonly frameMatches: Uint8Array | null;
  /** Nodes; -1: none. */
  readonly hovered: number;
  readonly selected: number;
}

type Rows = Pick<FlameLayout, "upwards" | "hideRoot" | "totalPx">;

/** Px from the top of all rows. */
export function rowTop(row: number, { upwards, hideRoot, totalPx }: Rows): number {
  const shown = row - Number(hideRoot);
  return upwards ? totalPx - (shown + 1) * ROW_PX : shown * ROW_PX;
}

/** Below 0: none. */
export function rowAt(y: number, { upwards, hideRoot, totalPx }: Rows): number {
  return Math.floor((upwards ? totalPx - y : y) / ROW_PX) + Number(hideRoot);
}

export function paintFlame(pen: Pen, paint: FlamePaint): void {
  const { data, boxes, theme, widthPx, heightPx, scrollPx, hideRoot, frameMatches } =
    paint;
  const { hovered, selected } = paint;
  const fillOf = boxFills(data, theme);
  const inkOf = boxInks();
  const { text, link, border } = tokens(theme);
  const outlines: (() => void)[] = [];
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const { node, x, width, row } of boxes) {
    if (hideRoot && row === 0) continue;
    const top = rowTop(row, paint) - scrollPx;
    if (top + ROW_PX < 0 || top > heightPx) continue;
    const [left, wide] = [x * widthPx, width * widthPx];
    const frame = data.tree.frame[node] ?? ROOT_FRAME;
    const dimmed = frameMatches !== null && (frame < 0 || frameMatches[frame] !== 1);
    pen.globalAlpha = dimmed ? 0.35 : 1;
    const fill = fillOf(node);
    pen.fillStyle = fill;
    pen.fillRect(left, top, Math.max(wide - 1, LEAST_BOX_PX), ROW_PX - 1);
    if (node === hovered || node === selected) {
      const [colour, px] = node === selected ? [link, 2] : [text, 1];
      outlines.push(() => {
        pen.strokeStyle = colour;
        pen.lineWidth = px;
        const inside = Math.max(1, wide - 1 - px);
        pen.strokeRect(left + px / 2, top + px / 2, inside, ROW_PX - 1 - px);
      });
    }
    if (wide < LABEL_LEAST_PX) continue;
    pen.fillStyle = dimmed ? text : inkOf(fill);
    const name =
      row === 0
        ? rootText(data, paint.byteUnit)
        : paint.labels.fitting(frame, wide - 8);
    if (name !== "") pen.fillText(name, left + 4, top + ROW_PX / 2);
  }
  pen.globalAlpha = 1;
  for (const outline of outlines) outline();
  if (boxes.length > 0) return;
  pen.fillStyle = border;
  pen.fillRect(0, ROW_PX, widthPx, 1);
}

interface FlameFigure extends FlameShape {
  readonly data: FlameData;
  readonly stacks: FrameNames;
  readonly title: string;
  readonly key: readonly (readonly [colour: string, label: string])[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
}

export function flameFigure(of: FlameFigure): Figure {
  const { data, theme, byteUnit, widthPx, title } = of;
  const all = placed(data, of, widthPx);
  const heightPx = all.totalPx;
  return figureOf({
    title,
    theme,
    widthPx,
    heightPx,
    paint: (pen) => {
      const labels = new FlameLabels(of.stacks, (text) => pen.measureText(text).width);
      const whole = { scrollPx: 0, frameMatches: null, hovered: -1, selected: -1 };
      paintFlame(pen, {
        ...all,
        ...whole,
        labels,
        theme,
        byteUnit,
        widthPx,
        heightPx,
      });
    },
    legend: of.key.map(([colour, label]) => ({ colour, label })),
  });
}

/** Own bytes of every stack; of a difference, on both sides. */
export function flameTable(
  { tree, values, change }: FlameData,
  stacks: FrameNames,
): Table {
  const own = (of: Float64Array): Float64Array => {
    const left = Float64Array.from(of);
    for (let node = 1; node < tree.numNodes; node += 1) {
      const parent = tree.parent[node] ?? 0;
      left[parent] = (left[parent] ?? 0) - (of[node] ?? 0);
    }
    return left;
  };
  const sides =
    change === null
      ? [["bytes", own(values)] as const]
      : [
          ["before_bytes", own(change.before)] as const,
          ["after_bytes", own(change.after)] as const,
        ];
  const rows: number[] = [];
  for (let node = 1; node < tree.numNodes; node += 1) {
    if (sides.some(([, bytes]) => (bytes[node] ?? 0) > 0)) rows.push(node);
  }
  const path = (node: number): string =>
    tree
      .path(node)
      .map((frame) => stacks.frameLabel(frame))
      .join(";");
  return {
    numRows: rows.length,
    columns: [
      { name: "stack", values: rows.map(path) },
      ...sides.map(([name, bytes]) => ({
        name,
        values: Float64Array.from(rows, (node) => bytes[node] ?? 0),
      })),
    ],
  };
}

import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import { valueTicks } from "../../../model/lines/axis";
import { pxToX, xToPx, yToPx, type SizePx } from "../../../render/viewport";
import { strokeLine } from "../../export/figure";
import { FONT, type Pen } from "../../export/pen";
import { AXIS_PX, clipTo, paintAxes as paintPlotAxes, SIDES } from "../../plot/axes";
import type { PlotSight } from "../../plot/reader";
import { paintNames, paintStrip, STRIP_ROW_PX, stripTop } from "../../plot/strip";
import { haloText } from "../../plot/canvas";
import { inkOn } from "./colours";
import type { DrawnMarks, PointMark, SpanMark } from "../marks";
import type { BlockPicture, DirectLabel } from "../picture";
import type { BlockTile } from "../tile";

export const GUTTER = { ...SIDES, top: 20 } as const;

export const BOLD = `500 ${FONT.replace(/^\d+/, "12")}`;
const RESERVED = "reserved";

interface MarkScene extends PlotSight {
  readonly of: Pick<
    BlockPicture,
    "axis" | "byteUnit" | "marked" | "marks" | "moment" | "theme"
  >;
}

export interface BlockScene extends MarkScene {
  readonly of: BlockPicture;
  readonly tile: BlockTile | null;
  readonly labels: readonly ColouredLabel[];
}

export interface ColouredLabel extends DirectLabel {
  /** The label's background; null: faded, or of several colours. */
  readonly colour: string | null;
}

export function stripHeight({ numRows }: DrawnMarks): number {
  return numRows * STRIP_ROW_PX;
}

/** CSS px of gutters, plot, axis and spans. */
export function totalHeight({ heightPx }: SizePx, marks: DrawnMarks): number {
  const strip = stripHeight(marks);
  return GUTTER.top + heightPx + AXIS_PX + strip + (strip > 0 ? 4 : 0);
}

export function widthIn(pen: Pen, font: string): (text: string) => number {
  const widthByText = new Map<string, number>();
  return (text) => {
    let width = widthByText.get(text);
    if (width === undefined) {
      pen.font = font;
      width = pen.measureText(text).width;
      widthByText.set(text, width);
    }
    return width;
  };
}

function write(
  pen: Pen,
  colour: string,
  textAlign: CanvasTextAlign = "left",
  textBaseline: CanvasTextBaseline = "alphabetic",
  font = FONT,
): void {
  Object.assign(pen, { fillStyle: colour, textAlign, textBaseline, font });
}

function plotX({ view, size, left }: PlotSight, x: number): number {
  return left + xToPx(view, size.widthPx, x);
}

function plotY({ view, size, top }: PlotSight, y: number): number {
  return top + yToPx(view, size.heightPx, y);
}

export function paintAxes(pen: Pen, scene: MarkScene): void {
  const { view, size } = scene;
  const { theme, axis, byteUnit } = scene.of;
  const most = Math.max(2, Math.floor(size.heightPx / 44));
  paintPlotAxes(pen, {
    ...scene,
    theme,
    grid: "y",
    x: axis.ticks(view.x0, view.x1, size.widthPx),
    y: valueTicks(view.y1, view.y0, most, "bytes", byteUnit),
  });
}

/** Above the blocks; does not change while the pointer moves. */
export function paintLines(pen: Pen, scene: BlockScene): void {
  const { size } = scene;
  clipTo(pen, GUTTER.left, GUTTER.top, size.widthPx, size.heightPx);
  paintReserved(pen, scene);
  paintCapacity(pen, scene);
  paintLabels(pen, scene);
  pen.restore();
  paintMarks(pen, scene);
}

export function paintMarks(pen: Pen, scene: MarkScene): void {
  paintMoments(pen, scene);
  paintPoints(pen, scene);
  paintSpans(pen, scene);
}

/** Active as an area, reserved as a line. */
export function paintHistory(
  pen: Pen,
  { device, axis, theme }: Pick<BlockPicture, "axis" | "device" | "theme">,
  toX: (x: number) => number,
  toY: (bytes: number) => number,
): void {
  const { event, active, reserved } = device.curve;
  const { link, text } = tokens(theme);
  const path = (values: Float64Array): void => {
    pen.beginPath();
    values.forEach((bytes, i) => {
      const next = event[i + 1];
      pen.lineTo(toX(axis.xAfter((event[i] ?? 0) - 1)), toY(bytes));
      pen.lineTo(
        toX(next === undefined ? axis.high : axis.xAfter(next - 1)),
        toY(bytes),
      );
    });
  };
  path(active);
  pen.lineTo(toX(axis.high), toY(0));
  pen.lineTo(toX(axis.low), toY(0));
  pen.closePath();
  pen.fillStyle = link;
  pen.globalAlpha = 0.45;
  pen.fill();
  pen.globalAlpha = 0.7;
  path(reserved);
  pen.strokeStyle = text;
  pen.lineWidth = 1;
  pen.stroke();
  pen.globalAlpha = 1;
}

function paintReserved(pen: Pen, scene: BlockScene): void {
  const { tile, view } = scene;
  if (tile === null || tile.numColumns === 0) return;
  const { edge, reserved } = tile.answer.columns;
  pen.strokeStyle = tokens(scene.of.theme).text;
  pen.globalAlpha = 0.75;
  pen.lineWidth = 1.5;
  pen.setLineDash([]);
  pen.beginPath();
  let last = NaN;
  for (let column = 0; column < tile.numColumns; column += 1) {
    const end = edge[column + 1] ?? 0;
    if (end < view.x0) continue;
    const begin = edge[column] ?? 0;
    if (begin > view.x1) break;
    const y = plotY(scene, reserved[column] ?? NaN);
    if (Number.isNaN(last)) pen.moveTo(plotX(scene, begin), y);
    else if (y !== last) pen.lineTo(plotX(scene, begin), y);
    pen.lineTo(plotX(scene, end), y);
    last = y;
  }
  pen.stroke();
  pen.globalAlpha = 1;
  paintReservedLabel(pen, scene, tile);
}

/** At the right, above the line; below it where there is no room above. */
function paintReservedLabel(pen: Pen, scene: BlockScene, tile: BlockTile): void {
  const { view, size, of } = scene;
  const { capacityBytes } = of.device;
  const { reserved } = tile.answer.columns;
  write(pen, tokens(of.theme).text);
  const left = size.widthPx - pen.measureText(RESERVED).width - 6;
  const columnAt = (x: number): number =>
    tile.columnAt(Math.max(tile.low, Math.min(x, tile.high)));
  const from = columnAt(pxToX(view, size.widthPx, left));
  const shown = reserved.subarray(from, columnAt(view.x1) + 1);
  const [y, low] = [Math.max(...shown), Math.min(...shown)].map((bytes) =>
    plotY(scene, bytes),
  ) as [number, number];
  const limit = capacityBytes === null ? -Infinity : plotY(scene, capacityBytes);
  const isFree = y > GUTTER.top + 16 && (limit < y - 18 || limit > y + 2);
  haloText(pen, of.theme, RESERVED, GUTTER.left + left, isFree ? y - 4 : low + 13);
}

function paintCapacity(pen: Pen, scene: BlockScene): void {
  const { view, size } = scene;
  const { theme, byteUnit, device } = scene.of;
  const { capacityBytes } = device;
  if (capacityBytes === null || capacityBytes > view.y0) return;
  const y = Math.round(plotY(scene, capacityBytes)) + 0.5;
  pen.strokeStyle = tokens(theme).bad;
  pen.lineWidth = 1.5;
  pen.setLineDash([6, 4]);
  strokeLine(pen, GUTTER.left, y, GUTTER.left + size.widthPx, y);
  pen.setLineDash([]);
  const text = `device ${formatBytes(capacityBytes, byteUnit)}`;
  write(pen, tokens(theme).bad);
  haloText(pen, theme, text, GUTTER.left + 6, y + (y < GUTTER.top + 14 ? 12 : -4));
}

function paintLabels(pen: Pen, scene: BlockScene): void {
  const { labels, view, of } = scene;
  for (const label of labels) {
    if (label.x < view.x0 || label.x > view.x1) continue;
    if (label.y > view.y0 || label.y < view.y1) continue;
    const { colour } = label;
    const ink = colour === null ? tokens(of.theme).text : inkOn(colour);
    write(pen, ink, "center", "middle", label.kind === "band" ? BOLD : FONT);
    const [x, y] = [plotX(scene, label.x), plotY(scene, label.y) + 0.5];
    if (colour === null) haloText(pen, of.theme, label.text, x, y);
    else pen.fillText(label.text, x, y);
  }
}

function paintMoments(pen: Pen, scene: MarkScene): void {
  const { view, size } = scene;
  const { axis, theme, marks, moment, marked } = scene.of;
  const { link, bg, warn } = tokens(theme);
  const bottom = stripTop(scene) + stripHeight(marks);
  const flags = [
    [marked, warn, "M"],
    [moment, link, "●"],
  ] as const;
  for (const [flagged, colour, sign] of flags) {
    const momentX = flagged === null ? NaN : axis.xOf(flagged);
    if (!(momentX >= view.x0 && momentX <= view.x1)) continue;
    const x = Math.round(plotX(scene, momentX)) + 0.5;
    pen.strokeStyle = bg;
    pen.lineWidth = 4;
    pen.globalAlpha = 0.6;
    strokeLine(pen, x, GUTTER.top, x, GUTTER.top + size.heightPx);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    strokeLine(pen, x, GUTTER.top - 4, x, bottom);
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(x, GUTTER.top - 9, 7, 0, 2 * Math.PI);
    pen.fill();
    write(pen, bg, "center", "middle", `500 ${FONT.replace(/^\d+/, "9")}`);
    pen.fillText(sign, x, GUTTER.top - 8.5);
  }
}

function pointLabel({ kind, bytes, label }: PointMark, byteUnit: ByteUnit): string {
  if (kind === "snapshot") return label === "" ? "snapshot" : `snapshot ${label}`;
  return Number.isFinite(bytes)
    ? `out of memory, requested ${formatBytes(bytes, byteUnit)}`
    : "out of memory";
}

/** A name is drawn where it hides no other. */
function paintPoints(pen: Pen, scene: MarkScene): void {
  const { view, size } = scene;
  const { marks, theme, byteUnit } = scene.of;
  const { bad, secondary } = tokens(theme);
  const oomsFirst = marks.points
    .filter(({ x }) => x >= view.x0 && x <= view.x1)
    .sort((a, b) => Number(b.kind === "oom") - Number(a.kind === "oom") || a.x - b.x);
  const names = oomsFirst.map((mark) => {
    const x = Math.round(plotX(scene, mark.x)) + 0.5;
    const isOom = mark.kind === "oom";
    const colour = isOom ? bad : secondary;
    pen.strokeStyle = colour;
    pen.lineWidth = isOom ? 1.5 : 1;
    pen.setLineDash(isOom ? [] : [4, 3]);
    strokeLine(pen, x, GUTTER.top - 4, x, GUTTER.top + size.heightPx);
    pen.setLineDash([]);
    write(pen, colour, "center", "middle");
    pen.fillText(isOom ? "✖" : "▼", x, GUTTER.top - 9.5);
    return { x, text: pointLabel(mark, byteUnit), colour };
  });
  paintNames(pen, scene, names, GUTTER.top - 9.5, 9);
}

function spanFill(span: SpanMark, index: number, theme: Theme): string {
  const dark = theme === "dark";
  const even = index % 2 === 0;
  if (span.kind === "step") {
    if (dark) return even ? "#4a5462" : "#404854";
    return even ? "#dfe5ec" : "#eef1f5";
  }
  if (span.kind === "tag") return dark ? "#3f5872" : "#d6e6f7";
  return dark ? "#5b5470" : "#e6e0f3";
}

function paintSpans(pen: Pen, scene: MarkScene): void {
  const { marks, theme } = scene.of;
  if (marks.numRows === 0) return;
  const { widthPx } = scene.size;
  clipTo(pen, GUTTER.left, stripTop(scene), widthPx, stripHeight(marks));
  const spans = marks.spans.map((span, i) => ({
    ...span,
    name: span.label,
    colour: spanFill(span, i, theme),
    short: span.label.replace(/^step /, ""),
  }));
  paintStrip(pen, scene, spans, theme);
  pen.restore();
}

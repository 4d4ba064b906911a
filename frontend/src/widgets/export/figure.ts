import { tokens, type Theme } from "../../base/tokens";
import { FONT, SvgPen, type Pen } from "./pen";
import type { Figure } from "./source";

export interface LegendItem {
  readonly label: string;
  readonly colour: string;
  /** A line with this dash; absent: a square. */
  readonly dash?: readonly number[];
  readonly scale?: readonly string[];
}

const TITLE_PX = 32;
const MARGIN_PX = 8;
const ROW_PX = 18;
const SQUARE_PX = 10;
const LINE_PX = 18;
const ITEM_GAP_PX = 18;

function swatchPx({ dash, scale = [""] }: LegendItem): number {
  return dash === undefined ? scale.length * SQUARE_PX : LINE_PX;
}

function paintSwatch(pen: Pen, item: LegendItem, x: number, y: number): void {
  const { colour, dash, scale = [colour] } = item;
  pen.strokeStyle = colour;
  pen.lineWidth = 2.5;
  pen.setLineDash(dash ?? []);
  if (dash !== undefined) {
    strokeLine(pen, x, y, x + LINE_PX, y);
    return;
  }
  scale.forEach((fill, i) => {
    pen.fillStyle = fill;
    // Overlaps the next one: no seam at any zoom.
    const spare = i < scale.length - 1 ? 0.5 : 0;
    pen.fillRect(x + i * SQUARE_PX, y - SQUARE_PX / 2, SQUARE_PX + spare, SQUARE_PX);
  });
}

export function strokeLine(
  pen: Pen,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

export function figureOf(parts: {
  readonly title: string;
  readonly axisName?: string | undefined;
  readonly theme: Theme;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly paint: (pen: SvgPen) => void;
  readonly legend: readonly LegendItem[];
}): Figure {
  const { title, theme, widthPx } = parts;
  const { bg, text, secondary } = tokens(theme);
  const pen = new SvgPen();
  pen.fillStyle = text;
  pen.font = FONT.replace(/^\d+/, "14");
  pen.fillText(title, MARGIN_PX, 20);
  pen.font = FONT;
  pen.textAlign = "right";
  pen.fillStyle = secondary;
  pen.fillText(parts.axisName ?? "", widthPx - MARGIN_PX, 20);
  pen.save();
  pen.translate(0, TITLE_PX);
  pen.textAlign = "left";
  parts.paint(pen);
  pen.restore();
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let [x, y] = [MARGIN_PX, TITLE_PX + parts.heightPx + MARGIN_PX + ROW_PX / 2];
  for (const item of parts.legend) {
    const wide = swatchPx(item) + 5 + pen.measureText(item.label).width;
    if (x > MARGIN_PX && x + wide > widthPx) [x, y] = [MARGIN_PX, y + ROW_PX];
    paintSwatch(pen, item, x, y);
    pen.fillStyle = text;
    pen.fillText(item.label, x + swatchPx(item) + 5, y);
    x += wide + ITEM_GAP_PX;
  }
  const heightPx =
    parts.legend.length === 0 ? y - ROW_PX / 2 : y + ROW_PX / 2 + MARGIN_PX;
  return { svg: pen.file(title, widthPx, heightPx, bg), widthPx, heightPx };
}

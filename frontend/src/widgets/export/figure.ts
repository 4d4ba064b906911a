/** A chart as a picture of its own: its title, what the chart paints, and its legend. */

import { tokens, type Theme } from "../../base/tokens";
import { FONT, SvgPen, type Pen } from "./pen";
import type { Figure } from "./source";
import { svgDocument } from "./svg";

/** One of the legend's: a swatch and its name. */
export interface LegendItem {
  readonly label: string;
  readonly colour: string;
  /** The swatch is a line with this dash; a square where absent. */
  readonly dash?: readonly number[];
  /** The swatch is a scale of these colours. */
  readonly scale?: readonly string[];
}

interface FigureParts {
  readonly title: string;
  /** What the x axis measures; stands opposite the title. */
  readonly axisName?: string | undefined;
  readonly theme: Theme;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly paint: (pen: SvgPen) => void;
  readonly legend: readonly LegendItem[];
}

const TITLE_PX = 32;
const MARGIN_PX = 8;
const ROW_PX = 18;
const SQUARE_PX = 10;
const LINE_PX = 18;
const ITEM_GAP_PX = 18;

function swatchPx({ dash, scale }: LegendItem): number {
  if (scale !== undefined) return scale.length * SQUARE_PX;
  return dash === undefined ? SQUARE_PX : LINE_PX;
}

/** Rows of the legend with what stands in each, and where. */
function placed(
  pen: Pen,
  legend: readonly LegendItem[],
  widthPx: number,
): readonly { readonly item: LegendItem; readonly x: number; readonly row: number }[] {
  let [x, row] = [MARGIN_PX, 0];
  return legend.map((item) => {
    const wide = swatchPx(item) + 5 + pen.measureText(item.label).width;
    if (x > MARGIN_PX && x + wide > widthPx) [x, row] = [MARGIN_PX, row + 1];
    const at = { item, x, row };
    x += wide + ITEM_GAP_PX;
    return at;
  });
}

function paintItem(pen: Pen, item: LegendItem, x: number, y: number): void {
  pen.fillStyle = item.colour;
  pen.strokeStyle = item.colour;
  if (item.scale !== undefined) {
    item.scale.forEach((colour, i) => {
      pen.fillStyle = colour;
      // Each reaches below the next: no seam shows, however large it is drawn.
      pen.fillRect(x + i * SQUARE_PX, y - SQUARE_PX / 2, SQUARE_PX + 0.5, SQUARE_PX);
    });
  } else if (item.dash === undefined)
    pen.fillRect(x, y - SQUARE_PX / 2, SQUARE_PX, SQUARE_PX);
  else {
    pen.lineWidth = 2.5;
    pen.setLineDash([...item.dash]);
    strokeLine(pen, x, y, x + LINE_PX, y);
  }
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

export function figureOf(parts: FigureParts): Figure {
  const { title, theme, widthPx } = parts;
  const { bg, text, secondary } = tokens(theme);
  const pen = new SvgPen();
  const legend = placed(pen, parts.legend, widthPx);
  const top = TITLE_PX + parts.heightPx + MARGIN_PX;
  const last = legend.at(-1);
  const heightPx = last === undefined ? top : top + (last.row + 1) * ROW_PX + MARGIN_PX;
  pen.fillStyle = bg;
  pen.fillRect(0, 0, widthPx, heightPx);
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
  for (const { item, x, row } of legend) {
    const y = top + (row + 0.5) * ROW_PX;
    paintItem(pen, item, x, y);
    pen.fillStyle = text;
    pen.fillText(item.label, x + swatchPx(item) + 5, y);
  }
  return {
    svg: svgDocument(widthPx, heightPx, title, ...pen.nodes()),
    widthPx,
    heightPx,
  };
}

/** The part of the map in sight as a picture of its own. Pure but for the pixels given. */

import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { figureOf } from "../export/figure";
import type { Pen } from "../export/pen";
import type { Figure } from "../export/source";
import { clipTo } from "../plot/axes";
import { legendOf, type SegmentFill } from "./fills";
import type { SegmentLayout } from "./layout";
import { paintOverlay } from "./overlay";
import { headWords } from "./words";

const RIGHT_PX = 16;
/** Height of the words beside a segment. */
const HEAD_PX = 28;

export interface MapPicture {
  readonly title: string;
  readonly answer: SegmentsResponse;
  readonly facts: Pick<HistoryFacts, "pools" | "streams">;
  readonly layout: SegmentLayout;
  readonly fill: SegmentFill;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  /** A PNG of the blocks, as an address of data. */
  readonly cellsUrl: string;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly headPx: number;
  readonly rows: readonly [number, number];
  readonly scrollPx: number;
  /** What pins a segment open, by its address. */
  readonly pinned: ReadonlyMap<number, string>;
}

export function mapFigure(of: MapPicture): Figure {
  const { answer, theme, byteUnit, headPx, widthPx, heightPx } = of;
  return figureOf({
    ...{ title: of.title, theme, heightPx },
    widthPx: headPx + widthPx + RIGHT_PX,
    paint: (pen) => {
      paintHeads(pen, of);
      pen.image(of.cellsUrl, headPx, 0, widthPx, heightPx);
      clipTo(pen, headPx, 0, widthPx, heightPx);
      pen.translate(headPx, 0);
      paintOverlay(pen, { ...of, hovered: -1, selected: -1, stack: null });
      pen.restore();
    },
    legend: legendOf(answer, of.fill, theme).map(({ label, colour, bytes }) => ({
      label: `${label} ${formatBytes(bytes, byteUnit)}`,
      colour,
    })),
  });
}

function paintHeads(pen: Pen, of: MapPicture): void {
  const { answer, layout, rows, scrollPx, heightPx } = of;
  const { text, secondary } = tokens(of.theme);
  for (let row = rows[0]; row < rows[1]; row += 1) {
    const y = (layout.top[row] ?? 0) - scrollPx;
    const folded = layout.numFolded[row] ?? 1;
    if (folded === 0) continue;
    if (y < -1 || y + HEAD_PX > heightPx) continue;
    const { size, address, stream, below } = headWords(
      answer,
      row,
      folded,
      of.facts,
      of.byteUnit,
    );
    const above = `${size}  ${address}`;
    pen.fillStyle = text;
    pen.fillText(stream === "" ? above : `${above} · ${stream}`, 8, y + 12);
    pen.fillStyle = secondary;
    pen.fillText(below, 8, y + 26);
  }
}

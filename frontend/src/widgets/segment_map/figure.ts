/** The part of the map in sight as a picture of its own. Pure but for the pixels given. */

import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import type { Figure } from "../export/source";
import { svg, svgDocument, type SvgNode } from "../export/svg";
import { legendOf, type SegmentFill } from "./fills";
import type { SegmentLayout } from "./layout";
import { headWords } from "./head";

const TITLE_PX = 34;
const LEGEND_PX = 30;
const LETTER_PX = 6;

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
}

export function mapFigure(of: MapPicture): Figure {
  const { answer, theme, byteUnit, layout, rows, scrollPx } = of;
  const { bg, text, secondary } = tokens(theme);
  const widthPx = of.headPx + of.widthPx + 16;
  const heightPx = TITLE_PX + of.heightPx + LEGEND_PX;
  const heads: SvgNode[] = [];
  for (let row = rows[0]; row < rows[1]; row += 1) {
    const y = TITLE_PX + (layout.top[row] ?? 0) - scrollPx;
    if (y < TITLE_PX - 1 || y + 28 > TITLE_PX + of.heightPx) continue;
    const words = headWords(answer, row, of.facts, byteUnit);
    const above = `${words.size}  ${words.address}`;
    heads.push(
      svg(
        "text",
        { x: 8, y: y + 12, fill: text },
        words.stream === "" ? above : `${above} · ${words.stream}`,
      ),
      svg("text", { x: 8, y: y + 26, fill: secondary }, words.below),
    );
  }
  const legend: SvgNode[] = [];
  let x = 8;
  const y = TITLE_PX + of.heightPx + 19;
  for (const { label, colour, bytes } of legendOf(answer, of.fill, theme)) {
    const words = `${label} ${formatBytes(bytes, byteUnit)}`;
    legend.push(
      svg("rect", { x, y: y - 9, width: 10, height: 10, fill: colour }),
      svg("text", { x: x + 15, y, fill: text }, words),
    );
    x += 15 + words.length * LETTER_PX + 16;
  }
  return {
    widthPx,
    heightPx,
    svg: svgDocument(
      widthPx,
      heightPx,
      of.title,
      svg("rect", { x: 0, y: 0, width: widthPx, height: heightPx, fill: bg }),
      svg("text", { x: 8, y: 22, "font-size": 14, fill: text }, of.title),
      svg("image", {
        x: of.headPx,
        y: TITLE_PX,
        width: of.widthPx,
        height: of.heightPx,
        href: of.cellsUrl,
        preserveAspectRatio: "none",
      }),
      ...heads,
      ...legend,
    ),
  };
}

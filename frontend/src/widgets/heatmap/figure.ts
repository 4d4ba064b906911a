/** The heatmap as SVG: axes and words as vectors, cells as an embedded picture. */

import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { FLAGGED_SHARE, hexOf, paletteAt } from "../../render/palette";
import { xToPx, yToPx, type SizePx, type Viewport } from "../../render/viewport";
import { svg, svgDocument, type SvgNode } from "../export/svg";
import { heatColours, paletteOf } from "./colours";
import type { Domain } from "./layout";
import { rankTicks, stepTicks } from "./paint";

const LEFT_PX = 72;
const TOP_PX = 52;
const BAR_PX = 160;

export interface FigureInput {
  readonly title: string;
  readonly view: Viewport;
  readonly size: SizePx;
  readonly ranks: Int32Array;
  readonly theme: Theme;
  readonly domain: Domain;
  /** Texts at the two ends of the colour scale. */
  readonly lowText: string;
  readonly highText: string;
  /** The cells, as a data: URL of a PNG. */
  readonly cellsUrl: string;
}

function colourBar(input: FigureInput): readonly SvgNode[] {
  const { theme, domain, lowText, highText } = input;
  const { text } = tokens(theme);
  const stops = Array.from({ length: 13 }, (_, i) =>
    svg("stop", {
      offset: i / 12,
      "stop-color": hexOf(paletteAt(paletteOf(domain, theme), i / 12)),
    }),
  );
  const flagPx = domain.capacity ? Math.max(4, BAR_PX * FLAGGED_SHARE) : 0;
  const y = 28;
  return [
    svg("defs", {}, svg("linearGradient", { id: "scale" }, ...stops)),
    svg("text", { x: LEFT_PX, y: y + 9, fill: text }, lowText),
    svg("rect", {
      x: LEFT_PX + 70,
      y,
      width: BAR_PX - flagPx,
      height: 10,
      fill: "url(#scale)",
    }),
    svg("rect", {
      x: LEFT_PX + 70 + BAR_PX - flagPx,
      y,
      width: flagPx,
      height: 10,
      fill: heatColours(theme).flag,
    }),
    svg("text", { x: LEFT_PX + 78 + BAR_PX, y: y + 9, fill: text }, highText),
  ];
}

export function heatmapFigure(input: FigureInput): {
  readonly svg: string;
  readonly widthPx: number;
  readonly heightPx: number;
} {
  const { size, view, ranks, theme } = input;
  const { bg, text, secondary } = tokens(theme);
  const widthPx = LEFT_PX + size.widthPx + 16;
  const heightPx = TOP_PX + size.heightPx + 40;
  const label = { fill: secondary };
  const document = svgDocument(
    widthPx,
    heightPx,
    input.title,
    svg("rect", { width: widthPx, height: heightPx, fill: bg }),
    svg("text", { x: LEFT_PX, y: 18, fill: text, "font-size": 14 }, input.title),
    ...colourBar(input),
    svg(
      "g",
      { transform: `translate(${LEFT_PX} ${TOP_PX})` },
      svg("image", {
        href: input.cellsUrl,
        width: size.widthPx,
        height: size.heightPx,
        preserveAspectRatio: "none",
      }),
      ...stepTicks(view, size.widthPx).map((tick) =>
        svg(
          "text",
          {
            x: xToPx(view, size.widthPx, tick.value),
            y: size.heightPx + 16,
            "text-anchor": "middle",
            ...label,
          },
          tick.text,
        ),
      ),
      ...rankTicks(view, ranks, size.heightPx).map((tick) =>
        svg(
          "text",
          {
            x: -8,
            y: yToPx(view, size.heightPx, tick.value) + 4,
            "text-anchor": "end",
            ...label,
          },
          tick.text,
        ),
      ),
      svg(
        "text",
        { x: size.widthPx, y: size.heightPx + 32, "text-anchor": "end", ...label },
        "step",
      ),
      svg(
        "text",
        { transform: "translate(-52 0) rotate(-90)", "text-anchor": "end", ...label },
        "rank",
      ),
    ),
  );
  return { svg: document, widthPx, heightPx };
}

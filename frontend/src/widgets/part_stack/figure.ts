/** The stacked parts as a vector drawing, and as a table. Pure. */

import { tokens, type Theme } from "../../base/tokens";
import { valueTicks, X_LABEL, xTicks } from "../../model/lines/axis";
import type { Table } from "../../model/table";
import { partLabel } from "../../model/words/step_part";
import { X_COLUMN } from "../../model/lines/x_kind";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { Figure } from "../export/source";
import { pathData, svg, svgDocument, type SvgNode } from "../export/svg";
import { centreOf, columnsWithin, layersOf, stackOutlines } from "./layout";
import type { StackedSteps } from "./types";

const LEFT_PX = 76;
const TOP_PX = 40;
const AXIS_PX = 40;
const LEGEND_ROW_PX = 16;
const LEGEND_ITEM_PX = 120;

export interface StackFigure {
  readonly title: string;
  readonly answer: StackedSteps;
  readonly colours: readonly string[];
  readonly view: Viewport;
  readonly size: SizePx;
  readonly theme: Theme;
}

function axes({ answer, view, size, theme }: StackFigure): SvgNode[] {
  const { grid, secondary } = tokens(theme);
  const text = { fill: secondary };
  const y = valueTicks(0, view.y0, 5, "seconds").flatMap((tick) => {
    const at = yToPx(view, size.heightPx, tick.value);
    return [
      svg("line", { x1: 0, x2: size.widthPx, y1: at, y2: at, stroke: grid }),
      svg("text", { x: -6, y: at + 4, "text-anchor": "end", ...text }, tick.text),
    ];
  });
  const most = Math.max(2, Math.floor(size.widthPx / 96));
  const x = xTicks(view.x0, view.x1, most, answer.x).map((tick) =>
    svg(
      "text",
      {
        x: xToPx(view, size.widthPx, tick.value),
        y: size.heightPx + 15,
        "text-anchor": "middle",
        ...text,
      },
      tick.text,
    ),
  );
  const name = svg(
    "text",
    { x: size.widthPx, y: size.heightPx + 30, "text-anchor": "end", ...text },
    X_LABEL[answer.x],
  );
  return [...y, ...x, name];
}

export function stackFigure(input: StackFigure): Figure {
  const { answer, colours, view, size, theme } = input;
  const { bg, text } = tokens(theme);
  const layers = layersOf(answer);
  const perRow = Math.max(1, Math.floor(size.widthPx / LEGEND_ITEM_PX));
  const legendTop = TOP_PX + size.heightPx + AXIS_PX;
  const legendRows = Math.ceil(layers.length / perRow);
  const widthPx = LEFT_PX + size.widthPx + 16;
  const heightPx = legendTop + legendRows * LEGEND_ROW_PX + 8;
  const outlines = stackOutlines(answer, view, size).map((points, i) =>
    svg("path", { d: pathData(points, true), fill: colours[i] ?? "none" }),
  );
  const legend = layers.map(({ name }, i) => {
    const x = LEFT_PX + (i % perRow) * LEGEND_ITEM_PX;
    const y = legendTop + Math.floor(i / perRow) * LEGEND_ROW_PX;
    return svg(
      "g",
      { transform: `translate(${x} ${y})` },
      svg("rect", { width: 10, height: 10, fill: colours[i] ?? "none" }),
      svg("text", { x: 15, y: 9, fill: text }, partLabel(name)),
    );
  });
  const clip = svg("rect", { width: size.widthPx, height: size.heightPx });
  const document = svgDocument(
    widthPx,
    heightPx,
    input.title,
    svg("rect", { width: widthPx, height: heightPx, fill: bg }),
    svg("text", { x: LEFT_PX, y: 18, fill: text, "font-size": 14 }, input.title),
    svg("defs", {}, svg("clipPath", { id: "plot" }, clip)),
    svg(
      "g",
      { transform: `translate(${LEFT_PX} ${TOP_PX})` },
      ...axes(input),
      svg("g", { "clip-path": "url(#plot)" }, ...outlines),
    ),
    ...legend,
  );
  return { svg: document, widthPx, heightPx };
}

/** One row per column in sight, with every digit. */
export function stackTable(answer: StackedSteps, view: Viewport): Table {
  const columns = columnsWithin(answer, view.x0, view.x1);
  const pick = (values: ArrayLike<number>): number[] =>
    columns.map((column) => values[column] ?? NaN);
  const x =
    answer.x === "step"
      ? []
      : [
          {
            name: X_COLUMN[answer.x],
            values: columns.map((column) => centreOf(answer, column)),
          },
        ];
  return {
    numRows: columns.length,
    columns: [
      ...x,
      { name: "step", values: pick(answer.shownStep) },
      { name: "rank", values: pick(answer.columnRank) },
      { name: "step time (seconds)", values: pick(answer.seconds) },
      ...answer.parts.map(({ name, seconds }) => ({
        name: `${name} (seconds)`,
        values: pick(seconds),
      })),
    ],
  };
}

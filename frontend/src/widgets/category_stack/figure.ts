/** The stacked categories as a vector drawing, and as a table. Pure. */

import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import { categoryLabel } from "../../model/category";
import type { Table } from "../../model/table";
import type { SizePx, Viewport } from "../../render/viewport";
import { xToPx, yToPx } from "../../render/viewport";
import type { Figure } from "../export/source";
import { pathData, svg, svgDocument, type SvgNode } from "../export/svg";
import { axisLabel, axisTicks } from "./axis";
import { stackOutlines } from "./layout";
import { MARK_LABEL, SPAN_ROW_PX, spanFill } from "./paint";
import { numRows, shortName, spansOf } from "./spans";
import type { StackAnswer } from "./types";

const LEFT_PX = 76;
const TOP_PX = 44;
const AXIS_PX = 40;
const LEGEND_ROW_PX = 16;
const LEGEND_ITEM_PX = 150;
/** About the width of a letter; SVG cannot measure text without a page. */
const LETTER_PX = 6;

export interface StackFigure {
  readonly title: string;
  readonly answer: StackAnswer;
  readonly began: string;
  readonly colours: readonly string[];
  readonly view: Viewport;
  readonly size: SizePx;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

function axes({ answer, began, view, size, theme, byteUnit }: StackFigure): SvgNode[] {
  const { grid, secondary } = tokens(theme);
  const text = { fill: secondary };
  const y = valueTicks(0, view.y0, 5, "bytes", byteUnit).flatMap((tick) => {
    const at = yToPx(view, size.heightPx, tick.value);
    return [
      svg("line", { x1: 0, x2: size.widthPx, y1: at, y2: at, stroke: grid }),
      svg("text", { x: -6, y: at + 4, "text-anchor": "end", ...text }, tick.text),
    ];
  });
  const x = axisTicks(view.x0, view.x1, size.widthPx, answer.axis).map((tick) =>
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
    axisLabel(answer.axis, began),
  );
  return [...y, ...x, name];
}

function marks({ answer, view, size, theme }: StackFigure): SvgNode[] {
  const { secondary } = tokens(theme);
  return answer.marks.flatMap(({ kind, x }) => {
    if (x < view.x0 || x > view.x1) return [];
    const at = xToPx(view, size.widthPx, x);
    const near = at > size.widthPx - 60;
    return [
      svg("line", {
        x1: at,
        x2: at,
        y1: 0,
        y2: size.heightPx,
        stroke: secondary,
        "stroke-dasharray": "4 3",
      }),
      svg(
        "text",
        {
          x: near ? at - 3 : at + 3,
          y: -4,
          fill: secondary,
          "text-anchor": near ? "end" : "start",
        },
        MARK_LABEL[kind],
      ),
    ];
  });
}

function spanNodes({ answer, view, size, theme }: StackFigure): SvgNode[] {
  const { text } = tokens(theme);
  const top = size.heightPx + AXIS_PX;
  return spansOf(answer.spans).flatMap((span) => {
    const left = Math.max(0, xToPx(view, size.widthPx, span.x0));
    const right = Math.min(size.widthPx, xToPx(view, size.widthPx, span.x1));
    const width = right - left - 1;
    if (!(width > 0)) return [];
    const y = top + span.row * SPAN_ROW_PX;
    const name = shortName(span.module);
    return [
      svg(
        "rect",
        {
          x: left,
          y,
          width,
          height: SPAN_ROW_PX - 2,
          fill: spanFill(span.kind, theme),
        },
        svg("title", {}, `${span.module}, ${span.kind}`),
      ),
      ...(name.length * LETTER_PX + 6 < width
        ? [svg("text", { x: left + 3, y: y + 11, fill: text }, name)]
        : []),
    ];
  });
}

export function stackFigure(input: StackFigure): Figure {
  const { answer, colours, view, size, theme } = input;
  const { bg, text } = tokens(theme);
  const perRow = Math.max(1, Math.floor(size.widthPx / LEGEND_ITEM_PX));
  const legendTop =
    TOP_PX +
    size.heightPx +
    AXIS_PX +
    numRows(spansOf(answer.spans)) * SPAN_ROW_PX +
    12;
  const legendRows = Math.ceil(answer.categories.length / perRow);
  const widthPx = LEFT_PX + size.widthPx + 16;
  const heightPx = legendTop + legendRows * LEGEND_ROW_PX + 8;
  const outlines = stackOutlines(answer, view, size).map((points, i) =>
    svg("path", {
      d: pathData(points, true),
      fill: colours[i] ?? "none",
      stroke: bg,
      "stroke-width": 0.25,
    }),
  );
  const legend = answer.categories.map(({ name }, i) => {
    const x = LEFT_PX + (i % perRow) * LEGEND_ITEM_PX;
    const y = legendTop + Math.floor(i / perRow) * LEGEND_ROW_PX;
    return svg(
      "g",
      { transform: `translate(${x} ${y})` },
      svg("rect", { width: 10, height: 10, fill: colours[i] ?? "none" }),
      svg("text", { x: 15, y: 9, fill: text }, categoryLabel(name)),
    );
  });
  const document = svgDocument(
    widthPx,
    heightPx,
    input.title,
    svg("rect", { width: widthPx, height: heightPx, fill: bg }),
    svg("text", { x: LEFT_PX, y: 18, fill: text, "font-size": 14 }, input.title),
    svg(
      "defs",
      {},
      svg(
        "clipPath",
        { id: "plot" },
        svg("rect", { width: size.widthPx, height: size.heightPx }),
      ),
    ),
    svg(
      "g",
      { transform: `translate(${LEFT_PX} ${TOP_PX})` },
      ...axes(input),
      svg("g", { "clip-path": "url(#plot)" }, ...outlines),
      ...marks(input),
      ...spanNodes(input),
    ),
    ...legend,
  );
  return { svg: document, widthPx, heightPx };
}

/** A row for each column in sight; x is where the column's highest total stands. */
export function stackTable(answer: StackAnswer, view: Viewport): Table {
  const shown = Array.from(answer.totalBytes.keys()).filter((c) => {
    const left = answer.x0 + c * answer.xPerColumn;
    return left < view.x1 && left + answer.xPerColumn > view.x0;
  });
  const pick = (values: Float64Array): Float64Array =>
    Float64Array.from(shown, (c) => values[c] ?? NaN);
  const unit = answer.axis === "time" ? "time_us" : "event";
  return {
    numRows: shown.length,
    columns: [
      { name: unit, values: pick(answer.peakX) },
      { name: "total_bytes", values: pick(answer.totalBytes) },
      ...answer.categories.map(({ name, bytes }) => ({
        name: `${name}_bytes`,
        values: pick(bytes),
      })),
    ],
  };
}

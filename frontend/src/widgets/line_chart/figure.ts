/** The chart as a vector drawing: the shapes on screen, with axes and a legend. */

import type { Theme } from "../../base/tokens";
import { tokens } from "../../base/tokens";
import { X_LABEL } from "../../model/lines/axis";
import { pathData, svg, svgDocument, type SvgNode } from "../export/svg";
import { groupMarks } from "./cursor";
import { markLook } from "./marks";
import { dashOf, lineColour } from "./palette";
import { ticksOf, type PlotState } from "./plot";
import type { Frame, Shape } from "./shapes";
import { chartShapes, projectX, projectY, strokeRuns } from "./shapes";
import type { Mark } from "../../api/types.gen";

const LEFT_PX = 76;
const TOP_PX = 34;
const BOTTOM_PX = 40;
const LEGEND_ROW_PX = 16;
const LEGEND_ITEM_PX = 240;

function shapeNode(shape: Shape): SvgNode {
  const data = strokeRuns(shape)
    .map((run) => pathData(run, shape.kind === "fill"))
    .join("");
  if (shape.kind === "fill") {
    return svg("path", { d: data, fill: shape.colour, "fill-opacity": shape.opacity });
  }
  return svg("path", {
    d: data,
    fill: "none",
    stroke: shape.colour,
    "stroke-opacity": shape.opacity,
    "stroke-width": shape.widthPx,
    "stroke-linejoin": "round",
    "stroke-dasharray": shape.dash.length === 0 ? null : shape.dash.join(" "),
  });
}

function axisNodes(state: PlotState, frame: Frame): readonly SvgNode[] {
  const { grid: gridColour, secondary } = tokens(state.theme);
  const ticks = ticksOf(state, frame);
  const [toX, toY] = [projectX(frame), projectY(frame)];
  const grid = { stroke: gridColour, "stroke-width": 1 };
  const { widthPx, heightPx } = frame;
  return [
    ...ticks.x.flatMap((tick) => {
      const x = toX(tick.value);
      return [
        svg("line", { x1: x, x2: x, y1: 0, y2: heightPx, ...grid }),
        svg(
          "text",
          { x, y: heightPx + 16, fill: secondary, "text-anchor": "middle" },
          tick.text,
        ),
      ];
    }),
    ...ticks.y.flatMap((tick) => {
      const y = toY(tick.value);
      return [
        svg("line", { x1: 0, x2: widthPx, y1: y, y2: y, ...grid }),
        svg(
          "text",
          { x: -6, y: y + 4, fill: secondary, "text-anchor": "end" },
          tick.text,
        ),
      ];
    }),
    svg(
      "text",
      { x: widthPx, y: heightPx + 32, fill: secondary, "text-anchor": "end" },
      X_LABEL[state.xKind],
    ),
  ];
}

function markNodes(
  marks: readonly Mark[],
  state: PlotState,
  frame: Frame,
): readonly SvgNode[] {
  return groupMarks(marks, frame.x, frame.widthPx).map((group) => {
    const x = projectX(frame)(group.x);
    const look = markLook(group.kind, state.theme);
    return svg(
      "line",
      {
        x1: x,
        x2: x,
        y1: frame.heightPx - (look.heightPx ?? frame.heightPx),
        y2: frame.heightPx,
        stroke: look.colour,
        "stroke-opacity": look.opacity,
        "stroke-dasharray": look.dash.length === 0 ? null : look.dash.join(" "),
      },
      svg("title", {}, group.marks.map((mark) => mark.label || mark.kind).join("; ")),
    );
  });
}

interface LegendItem {
  readonly label: string;
  readonly colour: string;
  readonly dash: readonly number[];
}

function legendItems(state: PlotState, theme: Theme): readonly LegendItem[] {
  const { band, lines, hidden, limit } = state.data;
  const items: LegendItem[] = [];
  if (band !== null) {
    const label = `${band.label}: median, p5–p95, min–max`;
    items.push({ label, colour: tokens(theme).link, dash: [] });
  }
  for (const line of lines) {
    if (hidden.has(line.id)) continue;
    const colour = lineColour(theme, line.colour);
    items.push({ label: line.label, colour, dash: dashOf(line.colour, line.dash) });
  }
  if (limit !== null) {
    items.push({ label: limit.label, colour: tokens(theme).bad, dash: [7, 4] });
  }
  return items;
}

/** The whole figure as an SVG file of its own. */
export function chartFigure(
  title: string,
  state: PlotState,
  frame: Frame,
  marks: readonly Mark[],
): { readonly svg: string; readonly widthPx: number; readonly heightPx: number } {
  const { theme } = state;
  const items = legendItems(state, theme);
  const perRow = Math.max(1, Math.floor(frame.widthPx / LEGEND_ITEM_PX));
  const legendPx = Math.ceil(items.length / perRow) * LEGEND_ROW_PX;
  const widthPx = LEFT_PX + frame.widthPx + 16;
  const heightPx = TOP_PX + frame.heightPx + BOTTOM_PX + legendPx + 8;
  const { bg, text } = tokens(theme);
  const clip = svg(
    "clipPath",
    { id: "plot" },
    svg("rect", { width: frame.widthPx, height: frame.heightPx }),
  );
  const legend = items.map((item, i) => {
    const x = LEFT_PX + (i % perRow) * LEGEND_ITEM_PX;
    const y = TOP_PX + frame.heightPx + BOTTOM_PX + Math.floor(i / perRow) * 16 + 8;
    return svg(
      "g",
      { transform: `translate(${x} ${y})` },
      svg("line", {
        x2: 18,
        stroke: item.colour,
        "stroke-width": 2.5,
        "stroke-dasharray": item.dash.length === 0 ? null : item.dash.join(" "),
      }),
      svg("text", { x: 24, y: 4, fill: text }, item.label),
    );
  });
  const document = svgDocument(
    widthPx,
    heightPx,
    title,
    svg("rect", { width: widthPx, height: heightPx, fill: bg }),
    svg("text", { x: LEFT_PX, y: 20, fill: text, "font-size": 14 }, title),
    svg("defs", {}, clip),
    svg(
      "g",
      { transform: `translate(${LEFT_PX} ${TOP_PX})` },
      ...axisNodes(state, frame),
      svg(
        "g",
        { "clip-path": "url(#plot)" },
        ...markNodes(marks, state, frame),
        ...chartShapes(state.data, frame, theme).map(shapeNode),
      ),
    ),
    ...legend,
  );
  return { svg: document, widthPx, heightPx };
}

/** The picture of blocks as SVG, and what is in sight as a table. Pure. */

import type { AllocationGroup } from "../../api/types.gen";
import { formatBytes } from "../../base/bytes";
import { tokens } from "../../base/tokens";
import { valueTicks } from "../../model/lines/axis";
import type { CallStacks } from "../../model/stacks/call_stacks";
import type { Table } from "../../model/table";
import { xToPx, yToPx, type Viewport } from "../../render/viewport";
import type { Figure } from "../export/source";
import { pathData, svg, svgDocument, type SvgNode } from "../export/svg";
import { groupLabel, inkOn } from "./colours";
import { pointLabel, spanFill, SPAN_ROW_PX, type BlockScene } from "./paint";
import type { BlockTile } from "./tile";

const LEFT_PX = 76;
const TOP_PX = 56;
const AXIS_PX = 40;
const LEGEND_ROW_PX = 16;
const LEGEND_ITEM_PX = 190;
/** About the width of a letter; SVG cannot measure text without a page. */
const LETTER_PX = 6;

export interface BlockFigure {
  readonly title: string;
  readonly scene: BlockScene;
  readonly groups: readonly AllocationGroup[];
  readonly colours: readonly string[];
  /** The blocks, as a data: URL of a PNG. */
  readonly cellsUrl: string;
}

function axes({ view, size, theme, axis, byteUnit }: BlockScene): SvgNode[] {
  const { grid, secondary } = tokens(theme);
  const text = { fill: secondary };
  const y = valueTicks(view.y1, view.y0, 6, "bytes", byteUnit).flatMap((tick) => {
    const at = yToPx(view, size.heightPx, tick.value);
    return [
      svg("line", { x1: 0, x2: size.widthPx, y1: at, y2: at, stroke: grid }),
      svg("text", { x: -6, y: at + 4, "text-anchor": "end", ...text }, tick.text),
    ];
  });
  const x = axis.ticks(view.x0, view.x1, size.widthPx).map((tick) => {
    const at = xToPx(view, size.widthPx, tick.value);
    const place = { x: at, y: size.heightPx + 15, "text-anchor": "middle" };
    return svg("text", { ...place, ...text }, tick.text);
  });
  const place = { x: size.widthPx, y: size.heightPx + 30, "text-anchor": "end" };
  return [...y, ...x, svg("text", { ...place, ...text }, axis.name)];
}

function lines(scene: BlockScene): SvgNode[] {
  const { tile, view, size, theme, capacityBytes, showReserved, byteUnit } = scene;
  const nodes: SvgNode[] = [];
  if (tile !== null && showReserved) {
    const { edge, reserved } = tile.answer.columns;
    const points: number[] = [];
    reserved.forEach((bytes, column) => {
      const y = yToPx(view, size.heightPx, bytes);
      const [a, b] = [edge[column] ?? 0, edge[column + 1] ?? 0];
      if (b < view.x0 || a > view.x1) return;
      points.push(xToPx(view, size.widthPx, a), y, xToPx(view, size.widthPx, b), y);
    });
    const d = pathData(Float64Array.from(points), false);
    nodes.push(svg("path", { d, fill: "none", stroke: tokens(theme).text }));
  }
  if (capacityBytes !== null && capacityBytes <= view.y0) {
    const y = yToPx(view, size.heightPx, capacityBytes);
    const { bad } = tokens(theme);
    const line = { x1: 0, x2: size.widthPx, y1: y, y2: y, stroke: bad };
    nodes.push(svg("line", { ...line, "stroke-dasharray": "6 4" }));
    const words = `device ${formatBytes(capacityBytes, byteUnit)}`;
    nodes.push(svg("text", { x: 6, y: y + 12, fill: bad }, words));
  }
  return nodes;
}

function points({ marks, view, size, theme, byteUnit }: BlockScene): SvgNode[] {
  const { bad, secondary } = tokens(theme);
  return marks.points.flatMap((mark) => {
    if (mark.x < view.x0 || mark.x > view.x1) return [];
    const x = xToPx(view, size.widthPx, mark.x);
    const colour = mark.kind === "oom" ? bad : secondary;
    const near = x > size.widthPx - 180;
    const line = { x1: x, x2: x, y1: 0, y2: size.heightPx, stroke: colour };
    const place = { x: near ? x - 4 : x + 4, y: -5, fill: colour };
    return [
      svg("line", line),
      svg(
        "text",
        { ...place, "text-anchor": near ? "end" : "start" },
        pointLabel(mark, byteUnit),
      ),
    ];
  });
}

function spans({ marks, view, size, theme }: BlockScene): SvgNode[] {
  const { text } = tokens(theme);
  const top = size.heightPx + AXIS_PX;
  return marks.spans.flatMap((span, i) => {
    const left = Math.max(0, xToPx(view, size.widthPx, span.x0));
    const right = Math.min(size.widthPx, xToPx(view, size.widthPx, span.x1));
    const width = right - left - 1;
    if (!(width > 0)) return [];
    const y = top + span.row * SPAN_ROW_PX;
    const box = { x: left, y, width, height: SPAN_ROW_PX - 2 };
    const fits = span.label.length * LETTER_PX + 6 < width;
    return [
      svg(
        "rect",
        { ...box, fill: spanFill(span, i, theme) },
        svg("title", {}, span.label),
      ),
      ...(fits
        ? [svg("text", { x: left + 3, y: y + 11, fill: text }, span.label)]
        : []),
    ];
  });
}

function labels(scene: BlockScene): SvgNode[] {
  const { labels: placed, view, size, labelColour, theme } = scene;
  return placed.flatMap((label) => {
    if (label.x < view.x0 || label.x > view.x1) return [];
    const x = xToPx(view, size.widthPx, label.x);
    const y = yToPx(view, size.heightPx, label.y) + 4;
    const colour = labelColour(label);
    const fill = colour === null ? tokens(theme).text : inkOn(colour);
    return [svg("text", { x, y, fill, "text-anchor": "middle" }, label.text)];
  });
}

export function blockFigure(input: BlockFigure): Figure {
  const { scene, groups, colours } = input;
  const { size, marks, theme } = scene;
  const { bg, text } = tokens(theme);
  const perRow = Math.max(1, Math.floor(size.widthPx / LEGEND_ITEM_PX));
  const legendTop = TOP_PX + size.heightPx + AXIS_PX + marks.numRows * SPAN_ROW_PX + 12;
  const widthPx = LEFT_PX + size.widthPx + 16;
  const legendRows = Math.ceil(groups.length / perRow);
  const heightPx = legendTop + legendRows * LEGEND_ROW_PX + 8;
  const legend = groups.map((group, i) => {
    const x = LEFT_PX + (i % perRow) * LEGEND_ITEM_PX;
    const y = legendTop + Math.floor(i / perRow) * LEGEND_ROW_PX;
    return svg(
      "g",
      { transform: `translate(${x} ${y})` },
      svg("rect", { width: 10, height: 10, fill: colours[i] ?? "none" }),
      svg("text", { x: 15, y: 9, fill: text }, groupLabel(group).slice(0, 28)),
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
      ...axes(scene),
      svg("image", {
        href: input.cellsUrl,
        width: size.widthPx,
        height: size.heightPx,
        preserveAspectRatio: "none",
      }),
      svg("g", { "clip-path": "url(#plot)" }, ...lines(scene), ...labels(scene)),
      ...points(scene),
      ...spans(scene),
    ),
    ...legend,
  );
  return { svg: document, widthPx, heightPx };
}

/** Rows of the blocks that have a part in sight, the largest first. */
export function seenSlots(tile: BlockTile, view: Viewport): readonly number[] {
  const { first, last, edges, slot, size } = tile.runs;
  const seen = new Set<number>();
  slot.forEach((block, run) => {
    const begin = edges[first[run] ?? 0] ?? 0;
    const end = edges[(last[run] ?? 0) + 1] ?? 0;
    if (end > view.x0 && begin < view.x1) seen.add(block);
  });
  return [...seen].sort((a, b) => (size[b] ?? 0) - (size[a] ?? 0) || a - b);
}

function named(group: AllocationGroup | undefined): string {
  return group === undefined ? "" : groupLabel(group);
}

/** The blocks drawn in sight; those too thin to be drawn are not among them. */
export function blockTable(
  tile: BlockTile,
  view: Viewport,
  stacks: CallStacks | null,
  found: ((slot: number) => boolean) | null,
): Table {
  const { lives, groups, bands } = tile.answer;
  const all = seenSlots(tile, view);
  const slots = found === null ? all : all.filter(found);
  const pick = (values: ArrayLike<number>): Float64Array =>
    Float64Array.from(slots, (slot) => values[slot] ?? NaN);
  const words = (text: (slot: number) => string): readonly string[] => slots.map(text);
  const stackOf = (slot: number): number => lives.stack[slot] ?? -1;
  return {
    numRows: slots.length,
    columns: [
      { name: "life", values: pick(lives.life) },
      { name: "size_bytes", values: pick(lives.size) },
      { name: "born_event", values: pick(lives.born) },
      { name: "freed_event", values: pick(lives.freed) },
      { name: "gone_event", values: pick(lives.gone) },
      {
        name: "group",
        values: words((slot) => named(groups[lives.group[slot] ?? -1])),
      },
      {
        name: "stacked_in",
        values: words((slot) => named(bands[lives.band[slot] ?? -1])),
      },
      { name: "module", values: words((slot) => stacks?.module(stackOf(slot)) ?? "") },
      {
        name: "allocated_at",
        values: words((slot) => stacks?.stackLabel(stackOf(slot)) ?? ""),
      },
      { name: "stack", values: pick(lives.stack) },
    ],
  };
}

/** A flamegraph as a file: a picture of all its rows, and a table of its stacks. */

import type { ByteUnit } from "../../base/bytes";
import { tokens, type Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { flameBoxes, ROOT_FRAME } from "../../model/stacks/flame_tree";
import type { Table } from "../../model/table";
import type { Figure } from "../export/source";
import { svg, svgDocument, type SvgNode } from "../export/svg";
import {
  boxFills,
  boxInks,
  FlameLabels,
  LABEL_LEAST_PX,
  LEAST_BOX_PX,
  rootText,
  ROW_PX,
  zoomedNode,
} from "./layout";
import type { FlameData } from "./types";

const TITLE_PX = 32;
const KEY_PX = 22;
const SWATCH_PX = 10;

export interface FlameFigure {
  readonly data: FlameData;
  readonly stacks: CallStacks;
  /** The frames from the root that is zoomed to. */
  readonly zoom: readonly number[];
  readonly title: string;
  /** What colours mean, below the picture. */
  readonly key: readonly (readonly [colour: string, words: string])[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly widthOf: (text: string) => number;
}

export function flameFigure(of: FlameFigure): Figure {
  const { data, theme, widthPx, title, key } = of;
  const { bg, text } = tokens(theme);
  const root = zoomedNode(data.tree, of.zoom);
  const boxes = flameBoxes(data.tree, data.values, root, LEAST_BOX_PX / widthPx);
  const fillOf = boxFills(data, theme);
  const inkOf = boxInks();
  const labels = new FlameLabels(of.stacks, of.widthOf);
  const nodes: SvgNode[] = [];
  for (let i = 0; i < boxes.num; i += 1) {
    const [node, row] = [boxes.node[i] ?? 0, boxes.row[i] ?? 0];
    const [x, y] = [(boxes.x[i] ?? 0) * widthPx, row * ROW_PX];
    const wide = (boxes.width[i] ?? 0) * widthPx;
    const width = Math.max(wide - 1, LEAST_BOX_PX);
    const fill = fillOf(node);
    nodes.push(svg("rect", { x, y, width, height: ROW_PX - 1, fill }));
    if (wide < LABEL_LEAST_PX) continue;
    const frame = data.tree.frame[node] ?? ROOT_FRAME;
    const words =
      frame === ROOT_FRAME
        ? rootText(data, of.byteUnit)
        : labels.fitting(frame, wide - 8);
    if (words !== "")
      nodes.push(
        svg("text", { x: x + 4, y: y + ROW_PX / 2 + 4, fill: inkOf(fill) }, words),
      );
  }
  const rowsPx = boxes.numRows * ROW_PX;
  const heightPx = TITLE_PX + rowsPx + (key.length === 0 ? 0 : KEY_PX);
  let x = 8;
  const swatches = key.flatMap(([fill, words]) => {
    const left = x;
    x += SWATCH_PX + 20 + of.widthOf(words);
    const y = heightPx - 7;
    return [
      svg("rect", {
        x: left,
        y: y - SWATCH_PX + 1,
        width: SWATCH_PX,
        height: SWATCH_PX,
        fill,
      }),
      svg("text", { x: left + SWATCH_PX + 4, y, fill: text }, words),
    ];
  });
  return {
    widthPx,
    heightPx,
    svg: svgDocument(
      widthPx,
      heightPx,
      title,
      svg("rect", { x: 0, y: 0, width: widthPx, height: heightPx, fill: bg }),
      svg("text", { x: 8, y: 20, "font-size": 14, fill: text }, title),
      svg("g", { transform: `translate(0 ${TITLE_PX})` }, ...nodes),
      ...swatches,
    ),
  };
}

/** Every stack of a tree with what it holds itself; of a difference, on both sides. */
export function flameTable(
  { tree, values, change }: FlameData,
  stacks: CallStacks,
): Table {
  const own = (of: Float64Array): Float64Array => {
    const left = Float64Array.from(of);
    for (let node = 1; node < tree.numNodes; node += 1) {
      const parent = tree.parent[node] ?? 0;
      left[parent] = (left[parent] ?? 0) - (of[node] ?? 0);
    }
    return left;
  };
  const sides =
    change === null
      ? [["bytes", own(values)] as const]
      : [
          ["before_bytes", own(change.before)] as const,
          ["after_bytes", own(change.after)] as const,
        ];
  const rows: number[] = [];
  for (let node = 1; node < tree.numNodes; node += 1) {
    if (sides.some(([, bytes]) => (bytes[node] ?? 0) > 0)) rows.push(node);
  }
  const path = (node: number): string =>
    tree
      .path(node)
      .map((frame) => stacks.frameLabel(frame))
      .join(";");
  return {
    numRows: rows.length,
    columns: [
      { name: "stack", values: rows.map(path) },
      ...sides.map(([name, bytes]) => ({
        name,
        values: Float64Array.from(rows, (node) => bytes[node] ?? 0),
      })),
    ],
  };
}

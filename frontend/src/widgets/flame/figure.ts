/** A flamegraph as a file: a picture of all its rows, and a table of its stacks. */

import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { flameBoxes } from "../../model/stacks/flame_tree";
import type { Table } from "../../model/table";
import { figureOf } from "../export/figure";
import type { Figure } from "../export/source";
import { FlameLabels, LEAST_BOX_PX, rootText, ROW_PX, zoomedNode } from "./layout";
import { paintFlame } from "./paint";
import type { FlameData } from "./types";

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
}

export function flameFigure(of: FlameFigure): Figure {
  const { data, theme, widthPx, title } = of;
  const root = zoomedNode(data.tree, of.zoom);
  const boxes = flameBoxes(data.tree, data.values, root, LEAST_BOX_PX / widthPx);
  const heightPx = boxes.numRows * ROW_PX;
  return figureOf({
    ...{ title, theme, widthPx, heightPx },
    paint: (pen) => {
      const labels = new FlameLabels(of.stacks, (text) => pen.measureText(text).width);
      const whole = { heightPx, totalPx: heightPx, scrollPx: 0, upwards: false };
      const plain = { hideRoot: false, found: null, hovered: -1, selected: -1 };
      const words = rootText(data, of.byteUnit);
      paintFlame(pen, {
        ...{ data, boxes, labels, theme, widthPx, rootText: words },
        ...whole,
        ...plain,
      });
    },
    legend: of.key.map(([colour, label]) => ({ colour, label })),
  });
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

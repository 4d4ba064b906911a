import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import type { Table } from "../../model/table";
import { figureOf } from "../export/figure";
import type { Figure } from "../export/source";
import {
  FlameLabels,
  placed,
  type FlameData,
  type FlameShape,
  type FrameNames,
} from "./layout";
import { paintFlame } from "./paint";

interface FlameFigure extends FlameShape {
  readonly data: FlameData;
  readonly stacks: FrameNames;
  readonly title: string;
  readonly key: readonly (readonly [colour: string, words: string])[];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
}

export function flameFigure(of: FlameFigure): Figure {
  const { data, theme, byteUnit, widthPx, title } = of;
  const all = placed(data, of, widthPx);
  const heightPx = all.totalPx;
  return figureOf({
    ...{ title, theme, widthPx, heightPx },
    paint: (pen) => {
      const labels = new FlameLabels(of.stacks, (text) => pen.measureText(text).width);
      const whole = { scrollPx: 0, found: null, hovered: -1, selected: -1 };
      paintFlame(pen, {
        ...{ ...all, ...whole, labels, theme, byteUnit, widthPx, heightPx },
      });
    },
    legend: of.key.map(([colour, label]) => ({ colour, label })),
  });
}

/** Own bytes of every stack; of a difference, on both sides. */
export function flameTable(
  { tree, values, change }: FlameData,
  stacks: FrameNames,
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

/** From A to B, category by category: where each step of the waterfall stands. Pure. */

import type { CompareResponse } from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import {
  categoryColour,
  categoryLabel,
  divergingColours,
} from "../../../model/category";
import { formatSigned } from "../../../model/words/signed";
import { svg, type SvgNode } from "../../../widgets/export/svg";

/** A bar of the waterfall: from one height to another. */
export interface WaterfallStep {
  readonly kind: "a" | "change" | "b";
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly colour: string;
}

/** A, then categories by how much they differ, then B; those alike are left out. */
export function waterfallSteps(
  answer: CompareResponse,
  theme: Theme,
): readonly WaterfallStep[] {
  const table = answer.tables.find(({ by }) => by === "category");
  const [a, b] = [answer.a.activeBytes, answer.b.activeBytes];
  const { text } = tokens(theme);
  const steps: WaterfallStep[] = [
    { kind: "a", label: "A", from: 0, to: a, colour: text },
  ];
  let at = a;
  table?.labels.forEach((label, i) => {
    const change = (table.bBytes[i] ?? 0) - (table.aBytes[i] ?? 0);
    if (change === 0) return;
    const group = answer.categories.find((category) => category === label);
    steps.push({
      kind: "change",
      label: categoryLabel(label),
      from: at,
      to: at + change,
      colour: categoryColour(theme, group ?? "unknown"),
    });
    at += change;
  });
  steps.push({ kind: "b", label: "B", from: 0, to: b, colour: text });
  return steps;
}

const LABEL_PX = 34;
const TOP_PX = 20;

/** The waterfall as drawn, on the page and in files. */
export function waterfallNodes(
  steps: readonly WaterfallStep[],
  of: {
    readonly widthPx: number;
    readonly heightPx: number;
    readonly theme: Theme;
    readonly byteUnit: ByteUnit;
  },
): readonly SvgNode[] {
  const { widthPx, heightPx, theme, byteUnit } = of;
  const { text, secondary, border } = tokens(theme);
  const [less, more] = divergingColours(theme);
  const plot = heightPx - LABEL_PX - TOP_PX;
  const ends = steps.flatMap(({ from, to }) => [from, to]);
  const highest = Math.max(1, ...ends);
  // Where little differs, the part in common is cut off, and said to be.
  const changes = steps.filter(({ kind }) => kind === "change");
  const lowest = Math.min(...changes.flatMap(({ from, to }) => [from, to]), highest);
  const base = lowest > 0.85 * highest ? lowest - 0.25 * (highest - lowest) : 0;
  const y = (bytes: number): number =>
    TOP_PX + plot * (1 - (Math.max(bytes, base) - base) / (highest - base || 1));
  const pitch = widthPx / Math.max(steps.length, 1);
  const bar = Math.min(88, pitch * 0.62);
  const nodes: SvgNode[] = [
    svg("line", {
      x1: 0,
      x2: widthPx,
      y1: TOP_PX + plot,
      y2: TOP_PX + plot,
      stroke: border,
    }),
  ];
  steps.forEach(({ kind, label, from, to, colour }, i) => {
    const x = i * pitch + (pitch - bar) / 2;
    const [top, bottom] = [y(Math.max(from, to)), y(Math.min(from, to))];
    const isChange = kind === "change";
    const height = Math.max(1.5, bottom - top);
    nodes.push(
      svg("rect", {
        x,
        y: top,
        width: bar,
        height,
        fill: colour,
        "fill-opacity": isChange ? 1 : 0.75,
      }),
    );
    if (isChange) {
      // A category's colour says what; the edge says which way.
      const edge = to > from ? top : bottom - 3;
      nodes.push(
        svg("rect", {
          x,
          y: edge,
          width: bar,
          height: 3,
          fill: to > from ? more : less,
        }),
      );
    }
    if (i + 1 < steps.length) {
      nodes.push(
        svg("line", {
          x1: x + bar,
          x2: x + pitch,
          y1: y(to),
          y2: y(to),
          stroke: secondary,
          "stroke-dasharray": "2 2",
        }),
      );
    }
    const middle = x + bar / 2;
    const value = isChange
      ? formatSigned(to - from, "bytes", byteUnit)
      : formatBytes(to, byteUnit);
    nodes.push(
      svg(
        "text",
        { x: middle, y: top - 6, fill: text, "text-anchor": "middle" },
        value,
      ),
      svg(
        "text",
        { x: middle, y: heightPx - 16, fill: secondary, "text-anchor": "middle" },
        label,
      ),
    );
  });
  if (base > 0) {
    nodes.push(
      svg(
        "text",
        { x: 0, y: heightPx - 2, fill: secondary },
        `The axis begins at ${formatBytes(base, byteUnit)}`,
      ),
    );
  }
  return nodes;
}

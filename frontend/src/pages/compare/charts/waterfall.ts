/** From A to B, part by part: where each step of the waterfall stands. Pure. */

import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import type { CompareTable } from "../../../api/types.gen";
import { divergingColours } from "../../../model/category";
import { formatSigned } from "../../../model/words/signed";
import { strokeLine } from "../../../widgets/export/figure";
import { FONT, type Pen } from "../../../widgets/export/pen";
import { partColour, partLabel } from "../parts";

/** A bar of the waterfall: from one height to another. */
interface WaterfallStep {
  readonly kind: "a" | "change" | "b";
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly colour: string;
  /** A finding blames it. */
  readonly isCulprit: boolean;
}

/** More bars would be too narrow for their words. */
const MAX_CHANGES = 7;

/** A, then parts by how much they differ, then B; those alike are left out. */
export function waterfallSteps(
  { by, labels, aBytes, bBytes }: Omit<CompareTable, "aBlocks" | "bBlocks">,
  theme: Theme,
  culprits: ReadonlySet<string>,
): readonly WaterfallStep[] {
  const { text, secondary } = tokens(theme);
  const sum = (values: Float64Array): number => values.reduce((x, y) => x + y, 0);
  const [first, last] = [sum(aBytes), sum(bBytes)];
  const end = { isCulprit: false, colour: text, from: 0 };
  const changed = labels
    .map((label, row) => ({ label, change: (bBytes[row] ?? 0) - (aBytes[row] ?? 0) }))
    .filter(({ change }) => change !== 0);
  const num = changed.length > MAX_CHANGES + 1 ? MAX_CHANGES : changed.length;
  let at = first;
  const steps = changed.slice(0, num).map(({ label, change }): WaterfallStep => {
    const from = at;
    at += change;
    return {
      ...{ kind: "change", label: partLabel(by, label), from, to: at },
      isCulprit: culprits.has(label),
      colour: partColour(by, label, change, culprits, theme),
    };
  });
  if (num < changed.length) {
    const others = { ...end, from: at, to: last, colour: secondary };
    steps.push({ kind: "change", label: "all others", ...others });
  }
  return [
    { kind: "a", label: "A", ...end, to: first },
    ...steps,
    { kind: "b", label: "B", ...end, to: last },
  ];
}

const ROW_PX = 24;
const BAR_PX = 14;
const LABEL_PX = 200;
const VALUE_PX = 84;
const FOOT_PX = 16;
/** About as wide as a letter of a label. */
const LETTER_PX = 6.2;

export function waterfallPx(steps: readonly WaterfallStep[]): number {
  return steps.length * ROW_PX + FOOT_PX;
}

/** What fits, the middle left out: a module's own name stands at its end. */
function fitted(label: string, widthPx: number): string {
  const room = Math.max(4, Math.floor(widthPx / LETTER_PX));
  if (label.length <= room) return label;
  const end = Math.floor((2 * (room - 1)) / 3);
  return `${label.slice(0, room - 1 - end)}…${label.slice(label.length - end)}`;
}

interface WaterfallLook {
  readonly widthPx: number;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}

/** The waterfall on the page and in files: a row for each step. */
export function paintWaterfall(
  pen: Pen,
  steps: readonly WaterfallStep[],
  { widthPx, theme, byteUnit }: WaterfallLook,
): void {
  const { text, secondary, border, bad } = tokens(theme);
  const [less, more] = divergingColours(theme);
  const letters = Math.max(0, ...steps.map(({ label }) => label.length));
  const labelPx = Math.min(letters * LETTER_PX + 12, LABEL_PX, 0.4 * widthPx);
  const plot = Math.max(1, widthPx - labelPx - VALUE_PX);
  const highest = Math.max(1, ...steps.flatMap(({ from, to }) => [from, to]));
  // Where little differs, the part in common is cut off, and said to be.
  const changes = steps.filter(({ kind }) => kind === "change");
  const lowest = Math.min(...changes.flatMap(({ from, to }) => [from, to]), highest);
  const isCut = changes.length > 0 && lowest > 0.85 * highest;
  const base = isCut ? lowest - 0.25 * (highest - lowest) : 0;
  const x = (bytes: number): number =>
    labelPx + (plot * (Math.max(bytes, base) - base)) / (highest - base || 1);
  const bottom = steps.length * ROW_PX;
  const write = (words: string, at: number, y: number, colour: string): void => {
    pen.fillStyle = colour;
    pen.fillText(words, at, y);
  };
  pen.font = FONT;
  pen.textAlign = "left";
  pen.strokeStyle = border;
  strokeLine(pen, labelPx, 0, labelPx, bottom);
  steps.forEach(({ kind, label, from, to, colour, isCulprit }, i) => {
    const y = i * ROW_PX + (ROW_PX - BAR_PX) / 2;
    const [left, right] = [x(Math.min(from, to)), x(Math.max(from, to))];
    const isChange = kind === "change";
    pen.fillStyle = colour;
    pen.globalAlpha = isChange ? 1 : 0.75;
    pen.fillRect(left, y, Math.max(1.5, right - left), BAR_PX);
    pen.globalAlpha = 1;
    if (isChange) {
      // A category's colour says what; the edge says which way.
      pen.fillStyle = to > from ? more : less;
      pen.fillRect(to > from ? right - 3 : left, y, 3, BAR_PX);
    }
    if (i + 1 < steps.length) {
      pen.strokeStyle = secondary;
      pen.setLineDash([2, 2]);
      strokeLine(pen, x(to), y + BAR_PX, x(to), y + ROW_PX);
      pen.setLineDash([]);
    }
    const value = isChange
      ? formatSigned(to - from, "bytes", byteUnit)
      : formatBytes(to, byteUnit);
    write(value, right + 6, y + BAR_PX - 3, text);
    const ink = isCulprit ? bad : secondary;
    write(fitted(label, labelPx - 8), 0, y + BAR_PX - 3, ink);
  });
  if (base === 0) return;
  const said = `The axis begins at ${formatBytes(base, byteUnit)}`;
  write(said, labelPx, bottom + 12, secondary);
}

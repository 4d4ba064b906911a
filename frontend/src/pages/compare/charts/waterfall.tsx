import { useMemo, useRef, useState } from "preact/hooks";
import type {
  CompareResponse,
  CompareRunsResponse,
  CompareTable,
  TableRows,
} from "../../../api/types.gen";
import { formatBytes } from "../../../base/bytes";
import { tokens, type Theme } from "../../../base/tokens";
import {
  categoryColour,
  categoryLabel,
  divergingColours,
  groupNamed,
  siteColour,
} from "../../../model/category";
import { figureTitle, originOf } from "../../../model/words/origin";
import { formatSigned } from "../../../model/words/quantity";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { figureOf, strokeLine } from "../../../widgets/export/figure";
import { FONT, type Pen } from "../../../widgets/export/pen";
import type { ExportSource } from "../../../widgets/export/source";
import { fitted, useWidth } from "../../../widgets/plot/canvas";
import { tableOf } from "../../../widgets/row_table/columns";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { columnsOf, numbersOf } from "../../shared/table/columns";
import { ROW_WORDS } from "../params";

export function Waterfall(props: {
  readonly view: ViewProps;
  /** At least one. */
  readonly parts: readonly CompareTable[];
  /** The moment, where the sides do not name it. */
  readonly of: string;
  /** Numbers of these moments; the first is what A and B hold. */
  readonly totals: TableRows | undefined;
  readonly culprits: ReadonlySet<string>;
}) {
  const { view, parts, of, totals, culprits } = props;
  const { theme, byteUnit } = view;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const [wanted, setWanted] = useState<CompareTable["by"] | null>(null);
  const shown = parts.find(({ by }) => by === wanted) ?? usualPart(parts);
  const steps = useMemo(
    () => (shown === undefined ? [] : waterfallSteps(shown, theme, culprits, totals)),
    [shown, theme, culprits, totals],
  );
  if (shown === undefined) return null;
  const { by } = shown;
  const look = { widthPx, theme, byteUnit };
  const heightPx = waterfallPx(steps);
  const origin = originOf(view.run);
  const source: ExportSource = {
    origin,
    name: `difference by ${by}`,
    table: () =>
      tableOf(columnsOf(shown.rows, view), [...Array(shown.rows.numRows).keys()]),
    about: () => ({ of }),
    figure: () =>
      figureOf({
        title: figureTitle(`From A to B by ${by}`, origin),
        theme,
        widthPx,
        heightPx,
        legend: [],
        paint: (pen) => paintWaterfall(pen, steps, look),
      }),
  };
  const changeTexts = steps
    .filter(({ kind }) => kind === "change")
    .map(
      ({ label, from, to }) => `${label} ${formatSigned(to - from, "bytes", byteUnit)}`,
    );
  return (
    <section aria-label={`From A to B by ${by}`}>
      <div class="panel-head">
        <h2>From A to B</h2>
        <Segmented
          label="Group by, from A to B"
          options={parts.map((part) => part.by)}
          chosen={by}
          labels={ROW_WORDS}
          onChoose={setWanted}
        />
        <span class="quiet">{of}</span>
        <ExportMenu subject="the waterfall" source={source} />
      </div>
      <div ref={box}>
        <canvas
          ref={(canvas) => {
            const context = widthPx > 0 ? fitted(canvas, widthPx, heightPx) : null;
            if (context !== null) paintWaterfall(context, steps, look);
          }}
          role="img"
          aria-label={
            changeTexts.length === 0 ? `No ${by} differs` : changeTexts.join(", ")
          }
        />
      </div>
    </section>
  );
}

/** Those of the two moments, else of the tracked steps. */
export function partsOf(
  runs: CompareRunsResponse | null,
  moments: CompareResponse | null,
): readonly CompareTable[] {
  const tables = (moments ?? runs)?.tables ?? [];
  return tables.filter(({ rows }) => rows.numRows > 0);
}

/** The category list may contain a line: the largest without a category. */
function isSite(by: CompareTable["by"], label: string): boolean {
  return by === "category" && label !== "unknown" && groupNamed(label) === "unknown";
}

export function partLabel(by: CompareTable["by"], label: string): string {
  return by === "category" && !isSite(by, label) ? categoryLabel(label) : label;
}

function partColour(
  by: CompareTable["by"],
  label: string,
  change: number,
  culprits: ReadonlySet<string>,
  theme: Theme,
): string {
  const isCulprit = culprits.has(label);
  if (isCulprit || isSite(by, label)) return siteColour(theme, isCulprit);
  if (by === "category") return categoryColour(theme, groupNamed(label));
  const [less, more] = divergingColours(theme);
  return change < 0 ? less : more;
}

/** Categories, unless most of the difference has none: then lines. */
export function usualPart(parts: readonly CompareTable[]): CompareTable | undefined {
  const lines = parts.find(({ by }) => by === "line");
  const [first] = parts;
  return first?.rows.columns[0]?.texts[0] === "unknown" ? (lines ?? first) : first;
}

interface WaterfallStep {
  readonly kind: "a" | "change" | "b";
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly colour: string;
  readonly isCulprit: boolean;
}

/** More bars would be too narrow for their labels. */
const MAX_CHANGES = 7;

export function waterfallSteps(
  { by, rows }: CompareTable,
  theme: Theme,
  culprits: ReadonlySet<string>,
  totals?: TableRows,
): readonly WaterfallStep[] {
  const { text, secondary } = tokens(theme);
  // Of many rows only the first are in the table.
  const total = (side: "a" | "b"): number =>
    (totals && numbersOf(totals, side)[0]) ??
    numbersOf(rows, `${side}_bytes`).reduce((x, y) => x + (y || 0), 0);
  const [first, last] = [total("a"), total("b")];
  const end = { isCulprit: false, colour: text, from: 0 };
  const changes = numbersOf(rows, "difference_bytes");
  const changed = (rows.columns[0]?.texts ?? [])
    .map((label, row) => ({ label, change: changes[row] ?? 0 }))
    .filter(({ change }) => Math.abs(change) > 0);
  const num = changed.length > MAX_CHANGES + 1 ? MAX_CHANGES : changed.length;
  let level = first;
  const steps = changed.slice(0, num).map(({ label, change }): WaterfallStep => {
    const from = level;
    level += change;
    return {
      kind: "change",
      label: partLabel(by, label),
      from,
      to: level,
      isCulprit: culprits.has(label),
      colour: partColour(by, label, change, culprits, theme),
    };
  });
  if (num < changed.length || Math.abs(last - level) >= 1) {
    const others = { ...end, from: level, to: last, colour: secondary };
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
/** Approximate width of a label's character. */
const LETTER_PX = 6.2;

function waterfallPx(steps: readonly WaterfallStep[]): number {
  return steps.length * ROW_PX + FOOT_PX;
}

/** Cuts the middle: a module's own name is at the end. */
function shortened(label: string, widthPx: number): string {
  const room = Math.max(4, Math.floor(widthPx / LETTER_PX));
  if (label.length <= room) return label;
  const end = Math.floor((2 * (room - 1)) / 3);
  return `${label.slice(0, room - 1 - end)}…${label.slice(label.length - end)}`;
}

export function paintWaterfall(
  pen: Pen,
  steps: readonly WaterfallStep[],
  {
    widthPx,
    theme,
    byteUnit,
  }: Pick<ViewProps, "byteUnit" | "theme"> & { readonly widthPx: number },
): void {
  const { text, secondary, border, bad } = tokens(theme);
  const [less, more] = divergingColours(theme);
  const letters = Math.max(0, ...steps.map(({ label }) => label.length));
  const labelPx = Math.min(letters * LETTER_PX + 12, LABEL_PX, 0.4 * widthPx);
  const plot = Math.max(1, widthPx - labelPx - VALUE_PX);
  const highest = Math.max(1, ...steps.flatMap(({ from, to }) => [from, to]));
  // With small changes the common part is cut off; a label says so.
  const changes = steps.filter(({ kind }) => kind === "change");
  const lowest = Math.min(...changes.flatMap(({ from, to }) => [from, to]), highest);
  const isCut = changes.length > 0 && lowest > 0.85 * highest;
  const base = isCut ? lowest - 0.25 * (highest - lowest) : 0;
  const x = (bytes: number): number =>
    labelPx + (plot * (Math.max(bytes, base) - base)) / (highest - base || 1);
  const bottom = steps.length * ROW_PX;
  const write = (label: string, left: number, y: number, colour: string): void => {
    pen.fillStyle = colour;
    pen.fillText(label, left, y);
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
      // The colour is the category's; the edge shows the direction.
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
    write(shortened(label, labelPx - 8), 0, y + BAR_PX - 3, ink);
  });
  if (base === 0) return;
  const note = `The axis begins at ${formatBytes(base, byteUnit)}`;
  write(note, labelPx, bottom + 12, secondary);
}

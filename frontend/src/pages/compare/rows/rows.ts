/** The rows of the comparison's table: both sides, their difference, and what is left out. Pure. */

import type { CompareResponse, StacksResponse } from "../../../api/types.gen";
import { formatBytes } from "../../../base/bytes";
import { CallStacks } from "../../../model/stacks/call_stacks";
import { categoryLabel } from "../../../model/category";
import type { Table } from "../../../model/table";
import { changePercent } from "../difference_table";
import type { CompareOnly, CompareRows } from "../params";

export interface Rows {
  readonly labels: readonly string[];
  /** The whole text of each, for the tooltip. */
  readonly titles: readonly string[];
  readonly a: Float64Array;
  readonly b: Float64Array;
  readonly aBlocks: Int32Array;
  readonly bBlocks: Int32Array;
}

/** Stacks of both sides as one set, for labels and trees. */
export function comparedStacks({ stacks }: CompareResponse): CallStacks {
  const answer: StacksResponse = {
    strings: stacks.strings,
    name: stacks.name,
    filename: stacks.filename,
    line: stacks.line,
    kind: stacks.kind,
    start: stacks.start,
    frame: stacks.frame,
    userFrame: stacks.userFrame,
    module: new Int32Array(stacks.aBytes.length).fill(-1),
    numStacks: stacks.aBytes.length,
  };
  return new CallStacks(answer);
}

export function rowsOf(
  answer: CompareResponse,
  stacks: CallStacks,
  by: CompareRows,
): Rows {
  if (by === "stack") {
    const { aBytes: a, bBytes: b, aBlocks, bBlocks } = answer.stacks;
    const rows = Array.from(a, (_, i) => i);
    return {
      labels: rows.map((row) => stackWords(stacks, row)),
      titles: rows.map((row) => stacks.text(row)),
      a,
      b,
      aBlocks,
      bBlocks,
    };
  }
  const table = answer.tables.find((one) => one.by === by);
  if (table === undefined) {
    const none = new Float64Array(0);
    const nothing = new Int32Array(0);
    return {
      labels: [],
      titles: [],
      a: none,
      b: none,
      aBlocks: nothing,
      bBlocks: nothing,
    };
  }
  const labels = table.labels.map((label) => labelOf(by, label));
  return {
    labels,
    titles: labels,
    a: table.aBytes,
    b: table.bBytes,
    aBlocks: table.aBlocks,
    bBlocks: table.bBlocks,
  };
}

/** The line, and who called it: stacks of one line differ above it. */
function stackWords(stacks: CallStacks, row: number): string {
  const path = Array.from(stacks.path(row, "user"));
  const callers = path.slice(0, -1).reverse();
  const from = callers.slice(0, 3).map((frame) => stacks.frameLabel(frame));
  const label = stacks.stackLabel(row);
  return from.length === 0 ? label : `${label}  ←  ${from.join("  ←  ")}`;
}

function labelOf(by: CompareRows, label: string): string {
  if (by === "category") return categoryLabel(label);
  if (by !== "size") return label;
  const bytes = Number(label);
  return `${sizeName(bytes)} to ${sizeName(2 * bytes)}`;
}

function sizeName(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+ /, " ");
}

/** Rows that are shown, in order. */
export function chosenRows(
  rows: Rows,
  of: {
    readonly only: CompareOnly;
    readonly find: string;
    readonly sort: { readonly key: string; readonly descending: boolean };
  },
): Int32Array {
  const words = of.find.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = Array.from(rows.a, (_, row) => row).filter((row) => {
    const [a, b] = [rows.a[row] ?? 0, rows.b[row] ?? 0];
    if (of.only === "a" && b > 0) return false;
    if (of.only === "b" && a > 0) return false;
    if (words.length === 0) return true;
    const text = `${rows.labels[row] ?? ""} ${rows.titles[row] ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const key = (row: number): number => {
    const [a, b] = [rows.a[row] ?? 0, rows.b[row] ?? 0];
    switch (of.sort.key) {
      case "a":
        return a;
      case "b":
        return b;
      case "percent":
        return changePercent(a, b);
      case "signed":
        return b - a;
      default:
        return Math.abs(b - a);
    }
  };
  const sign = of.sort.descending ? -1 : 1;
  if (of.sort.key === "label") {
    const text = (row: number): string => rows.labels[row] ?? "";
    kept.sort((x, y) => -sign * (text(x) < text(y) ? 1 : text(x) > text(y) ? -1 : 0));
  } else kept.sort((x, y) => compared(key(x), key(y), sign) || x - y);
  return Int32Array.from(kept);
}

function compared(x: number, y: number, sign: number): number {
  return x === y ? 0 : sign * (x < y ? -1 : 1);
}

/** Which moment a side is, in exported files. */
export function about({
  reference,
  device,
  moment,
  run,
}: CompareResponse["a"]): unknown {
  return { run: run.name, history: reference.id, device, moment: moment.moment };
}

export function rowsTable(
  rows: Rows,
  shown: ArrayLike<number>,
  by: CompareRows,
): Table {
  const pick = (values: ArrayLike<number>): Float64Array =>
    Float64Array.from(shown, (row) => values[row] ?? NaN);
  const texts = by === "stack" ? rows.titles : rows.labels;
  return {
    numRows: shown.length,
    columns: [
      { name: by, values: Array.from(shown, (row) => texts[row] ?? "") },
      { name: "a_bytes", values: pick(rows.a) },
      { name: "b_bytes", values: pick(rows.b) },
      {
        name: "difference_bytes",
        values: Float64Array.from(
          shown,
          (row) => (rows.b[row] ?? 0) - (rows.a[row] ?? 0),
        ),
      },
      { name: "a_blocks", values: pick(rows.aBlocks) },
      { name: "b_blocks", values: pick(rows.bBlocks) },
    ],
  };
}

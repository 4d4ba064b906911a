import type { ComparedNumber, Unit } from "../../api/types.gen";
import { threeDigits } from "../../base/bytes";
import { divergingColours } from "../../model/category";
import type { Table } from "../../model/table";
import {
  formatExact,
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../model/words/quantity";
import {
  absentCell,
  changeBar,
  longestOf,
  numberColumn,
  textColumn,
} from "../../widgets/row_table/columns";
import { ROW_PX, RowTable, type RowColumn } from "../../widgets/row_table/row_table";
import type { ViewProps } from "../shared/view_props";

type Look = Pick<ViewProps, "theme" | "byteUnit">;

/** Above this the change is shown as a factor, */
const MANY_PERCENT = 1000;
/** and above this not at all: the values tell more. */
const MOST_PERCENT = 10_000;

/** How much more B is, in percent of A; infinite where A is zero. */
export function changePercent(a: number, b: number): number {
  if (a === b) return 0;
  return a === 0 ? Number.POSITIVE_INFINITY : (100 * (b - a)) / a;
}

export function percentText(a: number, b: number): string {
  const percent = changePercent(a, b);
  if (!Number.isFinite(percent)) return "new";
  if (percent >= MOST_PERCENT) return "";
  if (percent >= MANY_PERCENT) return `${threeDigits(b / a)} ×`;
  return `${percent > 0 ? "+" : ""}${threeDigits(percent)} %`;
}

export interface Sides {
  readonly a: Float64Array;
  readonly b: Float64Array;
  /** The only side that has the row; "" where both do. */
  readonly only: readonly ("" | "a" | "b")[];
}

/** B less A; a missing row counts as zero. */
export function changes({ a, b, only }: Sides): Float64Array {
  return Float64Array.from(only, (side, row) => {
    const [x, y] = [a[row] ?? NaN, b[row] ?? NaN];
    return side === "a" ? 0 - x : side === "b" ? y : y - x;
  });
}

/** A, B and B less A; `longest`: the change whose bar fills one half. */
export function sideColumns(
  of: Sides,
  unit: (row: number) => Unit,
  { theme, byteUnit }: Look,
  longest: (row: number) => number,
) {
  const { only } = of;
  const change = changes(of);
  const percent = Float64Array.from(only, (side, row) => {
    const [a, b] = [of.a[row] ?? NaN, of.b[row] ?? NaN];
    if (side !== "") return side === "a" ? -100 : Infinity;
    return a > 0 || a === b ? changePercent(a, b) : NaN;
  });
  const side = (key: "a" | "b"): RowColumn =>
    numberColumn(key, key.toUpperCase(), "66px", of[key], (value, row) =>
      only[row] !== "" && only[row] !== key
        ? absentCell("Only the other side has it")
        : {
            text: formatQuantity(value, unit(row), byteUnit),
            title: formatExact(value, unit(row)),
          },
    );
  return {
    a: side("a"),
    b: side("b"),
    change: numberColumn(
      ...(["change", "B − A", "84px", change.map(Math.abs)] as const),
      (size, row) => {
        const by = change[row] ?? NaN;
        return {
          text: formatSigned(by, unit(row), byteUnit),
          title: formatSignedExact(by, unit(row)),
          ...(size > 0 && {
            bar: changeBar(by, longest(row), divergingColours(theme)),
          }),
        };
      },
      "Positive where B has more; sorted by the size of the difference",
    ),
    percent: {
      ...numberColumn(
        ...(["percent", "%", "54px", percent] as const),
        (value, row) => {
          if (only[row] === "a") return { text: "gone", title: "Only A has it" };
          if (value === Infinity) return { text: "new", title: "Only B has it" };
          if (Number.isNaN(value)) return { text: "–" };
          const text = percentText(of.a[row] ?? NaN, of.b[row] ?? NaN);
          return { text, title: `${value} %` };
        },
        "(B − A) ÷ A; a small difference of a small value is a large percentage",
      ),
      exported: null,
    },
  };
}

export interface DifferenceRow extends Pick<
  ComparedNumber,
  "label" | "unit" | "a" | "b"
> {
  readonly hint?: string;
  readonly note?: string;
  readonly swatch?: string;
}

function sidesOf(rows: readonly DifferenceRow[]): Sides {
  return {
    a: Float64Array.from(rows, ({ a }) => a ?? NaN),
    b: Float64Array.from(rows, ({ b }) => b ?? NaN),
    only: rows.map(() => ""),
  };
}

const HEAD_PX = 30;

export function DifferenceTable(props: {
  readonly title: string;
  readonly rows: readonly DifferenceRow[];
  /** Rows are parts of one whole; otherwise each bar is the share that changed. */
  readonly areParts?: true;
  readonly view: Look;
}) {
  const { title, rows, areParts, view } = props;
  const sides = sidesOf(rows);
  const all = longestOf(changes(sides).filter(Number.isFinite));
  const columns = sideColumns(
    ...([sides, (row: number) => rows[row]?.unit ?? "count", view] as const),
    (row) => (areParts ? all : longestOf([sides.a[row] ?? 0, sides.b[row] ?? 0])),
  );
  const name = textColumn(
    ...(["name", title, "minmax(120px, 1fr)"] as const),
    rows.map(({ label }) => label),
    undefined,
    (text, row) => {
      const { hint = "", note = "", swatch } = rows[row] ?? {};
      const words = [text, note].filter(Boolean).join(", ");
      return {
        ...{ text, note, title: hint === "" ? words : `${words}: ${hint}` },
        ...(swatch !== undefined && { swatch }),
      };
    },
  );
  return (
    <RowTable
      label={`A and B: ${title}`}
      columns={[name, ...Object.values(columns)]}
      rows={[...rows.keys()]}
      sort={null}
      empty=""
      heightPx={HEAD_PX + rows.length * ROW_PX}
    />
  );
}

export function differenceTable(
  tables: readonly (readonly [title: string, rows: readonly DifferenceRow[]])[],
): Table {
  const rows = tables.flatMap(([title, of]) => of.map((row) => ({ title, row })));
  const sides = sidesOf(rows.map(({ row }) => row));
  return {
    numRows: rows.length,
    columns: [
      { name: "of", values: rows.map(({ title }) => title) },
      { name: "name", values: rows.map(({ row }) => row.label) },
      { name: "unit", values: rows.map(({ row }) => row.unit) },
      { name: "a", values: sides.a },
      { name: "b", values: sides.b },
      { name: "difference", values: changes(sides) },
    ],
  };
}

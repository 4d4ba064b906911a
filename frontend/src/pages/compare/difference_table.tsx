import type { ComparedNumber } from "../../api/types.gen";
import { threeDigits } from "../../base/bytes";
import { divergingColours } from "../../model/category";
import type { Table } from "../../model/table";
import {
  formatExact,
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../model/words/quantity";
import { changeBar, longestOf } from "../../widgets/row_table/columns";
import { PlainTable, type PlainColumn } from "../../widgets/row_table/plain_table";
import type { ViewProps } from "../shared/view_props";

export interface DifferenceRow extends Pick<
  ComparedNumber,
  "label" | "unit" | "a" | "b"
> {
  readonly hint?: string;
  readonly note?: string;
  readonly swatch?: string;
}

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

function changeOf({ a, b }: DifferenceRow): number | null {
  return a === null || b === null ? null : b - a;
}

export function DifferenceTable(props: {
  readonly title: string;
  readonly rows: readonly DifferenceRow[];
  /** Rows are parts of one whole; otherwise each bar is the share that changed. */
  readonly areParts?: true;
  readonly view: Pick<ViewProps, "theme" | "byteUnit">;
}) {
  const { title, rows, areParts } = props;
  const { theme, byteUnit } = props.view;
  const colours = divergingColours(theme);
  const longest = longestOf(rows.map((row) => changeOf(row) ?? 0));
  const side = (of: "a" | "b"): PlainColumn<DifferenceRow> => ({
    title: of.toUpperCase(),
    look: "num",
    cell: ({ unit, [of]: one }) => (
      <span title={formatExact(one, unit)}>{formatQuantity(one, unit, byteUnit)}</span>
    ),
  });
  const columns: readonly PlainColumn<DifferenceRow>[] = [
    { title, cell: rowLabel },
    side("a"),
    side("b"),
    {
      title: "B − A",
      look: "num",
      cell: (row) => (
        <b title={formatSignedExact(changeOf(row), row.unit)}>
          {formatSigned(changeOf(row), row.unit, byteUnit)}
        </b>
      ),
    },
    {
      title: "",
      look: "num",
      cell: ({ a, b }) => (a === null || b === null ? "" : percentText(a, b)),
    },
    {
      title: "",
      cell: (row) => {
        const full = areParts ? longest : longestOf([row.a ?? 0, row.b ?? 0]);
        const bar = changeBar(changeOf(row) ?? 0, full, colours);
        return (
          <span class="difference-bar">
            <i
              style={{
                left: `${100 * (bar.from ?? 0)}%`,
                width: `${100 * bar.share}%`,
                background: bar.colour,
              }}
            />
          </span>
        );
      },
    },
  ];
  return (
    <div class="difference-table">
      <PlainTable label={`A and B: ${title}`} columns={columns} rows={rows} />
    </div>
  );
}

function rowLabel({ label, hint, note, swatch }: DifferenceRow) {
  return (
    <span title={hint === undefined || hint === "" ? label : hint}>
      {swatch !== undefined && <span class="swatch" style={{ background: swatch }} />}
      {label} <span class="quiet">{note}</span>
    </span>
  );
}

export function differenceTable(
  tables: readonly (readonly [title: string, rows: readonly DifferenceRow[]])[],
): Table {
  const rows = tables.flatMap(([title, of]) => of.map((row) => ({ title, row })));
  const numbers = (of: (row: DifferenceRow) => number | null): Float64Array =>
    Float64Array.from(rows, ({ row }) => of(row) ?? NaN);
  return {
    numRows: rows.length,
    columns: [
      { name: "of", values: rows.map(({ title }) => title) },
      { name: "name", values: rows.map(({ row }) => row.label) },
      { name: "unit", values: rows.map(({ row }) => row.unit) },
      { name: "a", values: numbers(({ a }) => a) },
      { name: "b", values: numbers(({ b }) => b) },
      { name: "difference", values: numbers(changeOf) },
    ],
  };
}

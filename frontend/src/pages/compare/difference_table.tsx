import type { ComparedNumber } from "../../api/types.gen";
import { divergingColours } from "../../model/category";
import type { Table } from "../../model/table";
import {
  formatExact,
  formatQuantity,
  formatSigned,
  formatSignedExact,
} from "../../model/words/quantity";
import { changeBar, longestOf } from "../../widgets/row_table/columns";
import {
  ROW_PX,
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../widgets/row_table/row_table";
import type { ViewProps } from "../shared/view_props";
import { changeText } from "../time/profiled/answer_table";

/** How much more B is, as a share of A; infinite where A is zero. */
export function changeShare(a: number, b: number): number {
  if (a === b) return 0;
  return a === 0 ? Number.POSITIVE_INFINITY : (b - a) / a;
}

export interface DifferenceRow extends Pick<
  ComparedNumber,
  "label" | "unit" | "a" | "b"
> {
  readonly hint?: string;
  readonly note?: string;
  readonly swatch?: string;
}

const HEAD_PX = 30;

export function DifferenceTable(props: {
  readonly title: string;
  readonly rows: readonly DifferenceRow[];
  /** Rows are parts of one whole; otherwise each bar is the share that changed. */
  readonly areParts?: true;
  readonly view: Pick<ViewProps, "theme" | "byteUnit">;
}) {
  const { title, rows, areParts } = props;
  const { theme, byteUnit } = props.view;
  const all = longestOf(rows.map(changeOf).filter(Number.isFinite));
  const column = (
    key: string,
    heading: string,
    width: string,
    cell: (of: DifferenceRow) => RowCell,
    hint?: string,
  ): RowColumn => ({
    ...{ key, title: heading, width, numeric: key !== "name" },
    cell: (row) => (rows[row] === undefined ? { text: "" } : cell(rows[row])),
    ...(hint !== undefined && { hint }),
  });
  const side = (key: "a" | "b"): RowColumn =>
    column(key, key.toUpperCase(), "66px", ({ unit, [key]: value }) => ({
      text: formatQuantity(value, unit, byteUnit),
      title: formatExact(value, unit),
    }));
  const columns = [
    column("name", title, "minmax(120px, 1fr)", ({ label, hint = "", ...of }) => {
      const words = [label, of.note].filter(Boolean).join(", ");
      const { note = "" } = of;
      return {
        ...{ text: label, note, title: hint === "" ? words : `${words}: ${hint}` },
        ...(of.swatch !== undefined && { swatch: of.swatch }),
      };
    }),
    side("a"),
    side("b"),
    column(
      ...(["change", "B − A", "84px"] as const),
      (of) => {
        const [by, longest] = [
          changeOf(of),
          areParts ? all : longestOf([of.a ?? 0, of.b ?? 0]),
        ];
        return {
          text: formatSigned(by, of.unit, byteUnit),
          title: formatSignedExact(by, of.unit),
          ...(by !== 0 && { bar: changeBar(by, longest, divergingColours(theme)) }),
        };
      },
      "Positive where B has more",
    ),
    column(
      ...(["percent", "%", "54px"] as const),
      ({ a, b }) => {
        const share = changeShare(a ?? NaN, b ?? NaN);
        return { text: Number.isNaN(share) ? "–" : changeText(share) };
      },
      "(B − A) ÷ A; a small difference of a small value is a large percentage",
    ),
  ];
  return (
    <RowTable
      label={`A and B: ${title}`}
      columns={columns}
      rows={[...rows.keys()]}
      sort={null}
      empty=""
      heightPx={HEAD_PX + rows.length * ROW_PX}
    />
  );
}

function changeOf({ a, b }: DifferenceRow): number {
  return (b ?? NaN) - (a ?? NaN);
}

export function differenceTable(
  tables: readonly (readonly [title: string, rows: readonly DifferenceRow[]])[],
): Table {
  const rows = tables.flatMap(([title, of]) => of.map((row) => ({ title, ...row })));
  return {
    numRows: rows.length,
    columns: [
      { name: "of", values: rows.map(({ title }) => title) },
      { name: "name", values: rows.map(({ label }) => label) },
      { name: "unit", values: rows.map(({ unit }) => unit) },
      { name: "a", values: rows.map(({ a }) => a ?? NaN) },
      { name: "b", values: rows.map(({ b }) => b ?? NaN) },
      { name: "difference", values: rows.map(changeOf) },
    ],
  };
}

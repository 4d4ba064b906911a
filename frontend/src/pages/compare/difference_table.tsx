/** Numbers of A and B beside each other: their difference, its share, and which way. */

import type { ComparedNumber } from "../../api/types.gen";
import { threeDigits, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { divergingColours } from "../../model/category";
import type { Table } from "../../model/table";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { formatSigned, formatSignedExact } from "../../model/words/signed";
import { changeBar, longestOf } from "../../widgets/row_table/columns";
import { PlainTable, type PlainColumn } from "../../widgets/row_table/plain_table";

export interface DifferenceRow extends Pick<
  ComparedNumber,
  "label" | "unit" | "a" | "b"
> {
  readonly hint?: string;
  /** Said quietly beside the label. */
  readonly note?: string;
  readonly swatch?: string;
}

export interface DifferenceGroup {
  readonly title: string;
  /** At which moment, of which window. */
  readonly note?: string;
  /** Rows of different quantities: each bar is the share that changed of the larger. */
  readonly mixed?: true;
  readonly rows: readonly DifferenceRow[];
}

/** How much more B is, in percent of A; infinite where A is nothing. */
export function changePercent(a: number, b: number): number {
  if (a === b) return 0;
  return a === 0 ? Number.POSITIVE_INFINITY : (100 * (b - a)) / a;
}

export function percentText(a: number, b: number): string {
  const percent = changePercent(a, b);
  if (!Number.isFinite(percent)) return "new";
  return `${percent > 0 ? "+" : ""}${threeDigits(percent)} %`;
}

function changeOf({ a, b }: DifferenceRow): number | null {
  return a === null || b === null ? null : b - a;
}

export function DifferenceTable(props: {
  readonly label: string;
  readonly groups: readonly DifferenceGroup[];
  /** What A and B are, beside their letters. */
  readonly names?: readonly [string, string];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { label, groups, names = ["", ""], byteUnit } = props;
  const colours = divergingColours(props.theme);
  const side = (of: "a" | "b", name: string): PlainColumn<DifferenceRow> => ({
    title: `${of.toUpperCase()} ${name}`,
    hint: name,
    look: "num",
    cell: ({ unit, [of]: one }) => (
      <span title={formatExact(one, unit)}>{formatQuantity(one, unit, byteUnit)}</span>
    ),
  });
  return (
    <div class="difference-table">
      {groups.map(({ title, note, mixed, rows }) => {
        const heading = [title, note].filter(Boolean).join(", ");
        const longest = longestOf(rows.map((row) => changeOf(row) ?? 0));
        const columns: readonly PlainColumn<DifferenceRow>[] = [
          { title: heading, hint: heading, cell: rowLabel },
          side("a", names[0]),
          side("b", names[1]),
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
              const by = changeOf(row) ?? 0;
              const full =
                mixed === true ? longestOf([row.a ?? 0, row.b ?? 0]) : longest;
              const bar = changeBar(by, full, colours);
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
          <PlainTable
            key={title}
            label={`${label}: ${title}`}
            columns={columns}
            rows={rows}
          />
        );
      })}
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

/** The same as a file has it. */
export function differenceTable(groups: readonly DifferenceGroup[]): Table {
  const rows = groups.flatMap((group) => group.rows.map((row) => ({ group, row })));
  const numbers = (of: (row: DifferenceRow) => number | null): Float64Array =>
    Float64Array.from(rows, ({ row }) => of(row) ?? NaN);
  const words = (of: (one: (typeof rows)[number]) => string): string[] => rows.map(of);
  return {
    numRows: rows.length,
    columns: [
      { name: "of", values: words(({ group }) => group.title) },
      { name: "name", values: words(({ row }) => row.label) },
      { name: "unit", values: words(({ row }) => row.unit) },
      { name: "a", values: numbers(({ a }) => a) },
      { name: "b", values: numbers(({ b }) => b) },
      { name: "difference", values: numbers(changeOf) },
    ],
  };
}

/** Numbers of A and B beside each other: their difference, its share, and which way. */

import type { ComparedNumber } from "../../api/types.gen";
import { threeDigits, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { divergingColours } from "../../model/category";
import type { Table } from "../../model/table";
import { formatExact, formatQuantity } from "../../model/words/quantity";
import { formatSigned, formatSignedExact } from "../../model/words/signed";
import { longestOf } from "../../widgets/row_table/columns";

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
  /** What A and B are, below their letters. */
  readonly names?: readonly [string, string];
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { label, groups, names, theme, byteUnit } = props;
  return (
    <table class="data-table difference-table" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">{groups[0]?.title}</th>
          {["A", "B"].map((letter, side) => (
            <th key={letter} scope="col" class="num" title={names?.[side]}>
              {letter} <span class="quiet">{names?.[side]}</span>
            </th>
          ))}
          <th scope="col" class="num">
            B − A
          </th>
          <th scope="col" class="num" />
          <th scope="col" class="difference-bar" />
        </tr>
      </thead>
      {groups.map(({ title, note, mixed, rows }, at) => {
        const most = longestOf(rows.map((row) => changeOf(row) ?? 0));
        return (
          <tbody key={title}>
            {at > 0 && (
              <tr class="difference-group">
                <th colSpan={6} scope="rowgroup">
                  {title} <span class="quiet">{note}</span>
                </th>
              </tr>
            )}
            {rows.map((row) => (
              <Row
                key={row.label}
                row={row}
                full={mixed === true ? longestOf([row.a ?? 0, row.b ?? 0]) : most}
                theme={theme}
                byteUnit={byteUnit}
              />
            ))}
          </tbody>
        );
      })}
    </table>
  );
}

function Row(props: {
  readonly row: DifferenceRow;
  /** The difference of a full bar. */
  readonly full: number;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
}) {
  const { row, full, byteUnit } = props;
  const { label, hint, note, swatch, unit, a, b } = row;
  const by = changeOf(row);
  const [less, more] = divergingColours(props.theme);
  const half = full > 0 ? Math.min(50, (50 * Math.abs(by ?? 0)) / full) : 0;
  return (
    <tr>
      <th scope="row" title={hint === undefined || hint === "" ? label : hint}>
        {swatch !== undefined && <span class="swatch" style={{ background: swatch }} />}{" "}
        {label} <span class="quiet">{note}</span>
      </th>
      {[a, b].map((one, side) => (
        <td key={side} class="num" title={formatExact(one, unit)}>
          {formatQuantity(one, unit, byteUnit)}
        </td>
      ))}
      <td class="num" title={formatSignedExact(by, unit)}>
        <b>{formatSigned(by, unit, byteUnit)}</b>
      </td>
      <td class="num quiet">{a === null || b === null ? "" : percentText(a, b)}</td>
      <td class="difference-bar">
        {/* Left and blue for less, right and orange for more. */}
        <span>
          <i
            style={{
              left: `${(by ?? 0) < 0 ? 50 - half : 50}%`,
              width: `${half}%`,
              background: (by ?? 0) < 0 ? less : more,
            }}
          />
        </span>
      </td>
    </tr>
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

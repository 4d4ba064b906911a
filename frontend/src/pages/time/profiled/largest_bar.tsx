/** The largest rows of a table as one bar, so that shares are seen before numbers. */

import type { TableRows } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { counted } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { partColour } from "../../../render/palette";
import { inkOn } from "../../../widgets/block_stack/paint/colours";
import { columnOf } from "../../shared/table/columns";
import { shortNames } from "../../shared/table/kernel_name";

/** Narrower rows, as a share of all, are the rest. */
const LEAST_SHARE = 0.02;
const MOST_PARTS = 12;

interface LargestPart {
  /** null: the rest. */
  readonly row: number | null;
  readonly name: string;
  readonly ms: number;
  readonly share: number;
  readonly colour: string;
}

/** Empty where nothing took any time. */
export function largestParts(table: TableRows, theme: Theme): readonly LargestPart[] {
  const column = columnOf(table, table.usual);
  const texts = table.columns.find(({ unit }) => unit === "name")?.texts ?? [];
  const sum = column?.sum ?? 0;
  if (column === undefined || !(sum > 0)) return [];
  const { numbers, bar } = column;
  const names = shortNames(texts);
  const largest = Array.from(numbers, (ms, row) => ({ row, ms }))
    .filter(({ ms }) => ms >= LEAST_SHARE * sum)
    .sort((a, b) => b.ms - a.ms)
    .slice(0, MOST_PARTS)
    .map(({ row, ms }): LargestPart => ({
      row,
      name: names[row] ?? "",
      ms,
      share: ms / sum,
      colour: partColour(theme, (table.colours[row] ?? "") || bar),
    }));
  const rest = largest.reduce((left, { ms }) => left - ms, sum);
  if (rest <= 1e-9 * sum) return largest;
  const name = counted(table.numAll - largest.length, "other");
  const colour = partColour(theme, "other");
  return [...largest, { row: null, name, ms: rest, share: rest / sum, colour }];
}

export function LargestBar(props: {
  readonly table: TableRows;
  readonly theme: Theme;
  readonly onChoose?: (row: number) => void;
}) {
  const { table, theme, onChoose } = props;
  const parts = largestParts(table, theme);
  if (parts.length < 2) return null;
  return (
    <ul class="largest-bar" aria-label={`The largest ${table.title.toLowerCase()}`}>
      {parts.map(({ row, name, ms, share, colour }) => {
        const percent = `${(100 * share).toFixed(1)} %`;
        const label = (
          <>
            <span>{name}</span> {percent}
          </>
        );
        return (
          <li
            key={row ?? "rest"}
            title={`${name}\n${formatSeconds(ms / 1e3)}, ${percent}`}
            style={{ flexGrow: share, backgroundColor: colour, color: inkOn(colour) }}
          >
            {onChoose !== undefined && row !== null ? (
              <button type="button" onClick={() => onChoose(row)}>
                {label}
              </button>
            ) : (
              label
            )}
          </li>
        );
      })}
    </ul>
  );
}

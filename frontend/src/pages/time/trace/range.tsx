/** A range of time, summed up by name. */

import { useMemo, useState } from "preact/hooks";
import type { TraceRangeResponse } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import type { Sort } from "../../../model/shown_rows";
import {
  countCell,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import {
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/row_table";
import { useSort } from "../../../widgets/row_table/use_sort";
import { familyColour } from "../profiled/family_colours";
import type { SliceRef } from "./state/params";
import { formatNs, formatNsExact } from "./words";

const USUAL: Sort = { key: "total", descending: true };

export function RangeTable(props: {
  readonly sums: TraceRangeResponse;
  readonly theme: Theme;
  readonly heightPx: number;
  readonly onSlice: (slice: SliceRef) => void;
}) {
  const { sums, theme } = props;
  const columns = useMemo(() => rangeColumns(sums, theme), [sums, theme]);
  const [word, setWord] = useState<string | null>(null);
  const sorted = useSort(columns, sums.names.length, USUAL, word ?? undefined, setWord);
  return (
    <RowTable
      label="Slices of the range by name"
      columns={columns}
      {...sorted}
      selected={null}
      onSelect={(row) => {
        const source = sums.sources[sums.source[row] ?? 0];
        if (source !== undefined) props.onSlice({ source, row: sums.row[row] ?? 0 });
      }}
      empty="Nothing runs in this range."
      heightPx={props.heightPx}
    />
  );
}

export function rangeColumns(
  sums: TraceRangeResponse,
  theme: Theme,
): readonly RowColumn[] {
  const most = Math.max(1, ...sums.totalNs.subarray(0, 50));
  const colourOf = (row: number): string =>
    familyColour(theme, sums.families[sums.family[row] ?? 0] ?? "other");
  const time = (key: string, title: string, ns: Float64Array, hint: string) =>
    numberColumn(key, title, "68px", ns, timeCell, hint);
  const name = (text: string, row: number) => ({ text, swatch: colourOf(row) });
  const inRange = "What of their times lies in the range";
  const total = (ns: number, row: number) => ({
    ...timeCell(ns),
    bar: { share: ns / most, colour: colourOf(row) },
  });
  const touching = "Slices that touch the range";
  const own = "The same without what lies in slices inside them";
  const whole = "The whole duration of the longest; click a row to see it";
  return [
    textColumn("name", "Name", "minmax(112px, 1fr)", sums.names, undefined, name),
    numberColumn("total", "Total", "72px", sums.totalNs, total, inRange),
    numberColumn("count", "Count", "52px", sums.count, countCell, touching),
    time("self", "Self", sums.selfNs, own),
    time("mean", "Mean", meanNs(sums), "Total by count"),
    time("max", "Longest", sums.maxNs, whole),
    textColumn("category", "Category", "112px", sums.categories),
  ];
}

function timeCell(ns: number): RowCell {
  return { text: formatNs(ns), title: formatNsExact(ns) };
}

function meanNs({ totalNs, count }: TraceRangeResponse): Float64Array {
  return totalNs.map((total, row) => {
    const num = count[row] ?? 0;
    return num > 0 ? total / num : 0;
  });
}

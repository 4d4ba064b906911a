/** A range of time, summed up by name. */

import { useMemo, useState } from "preact/hooks";
import type { TraceRangeResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
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
import { Drawer } from "../../shared/panels/drawer";
import { familyColour } from "../profiled/family_colours";
import type { SliceRef } from "./state/params";
import { formatNs, formatNsExact } from "./words";

const TABLE_PX = 236;

const USUAL: Sort = { key: "total", descending: true };

export function RangeDrawer(props: {
  readonly sums: TraceRangeResponse | null;
  readonly spanNs: number;
  readonly ofTracks: string;
  readonly theme: Theme;
  readonly onSlice: (slice: SliceRef) => void;
  readonly onZoom: () => void;
  readonly close: () => void;
}) {
  const { sums, spanNs, theme } = props;
  const columns = useMemo(
    () => (sums === null ? [] : rangeColumns(sums, theme)),
    [sums, theme],
  );
  const [word, setWord] = useState<string | null>(null);
  const num = sums?.names.length ?? 0;
  const sorted = useSort(columns, num, USUAL, word ?? undefined, setWord);
  const words =
    sums === null
      ? "summing up"
      : `${formatInteger(sums.numSlices)} slices of ${formatInteger(sums.numNames)} names${props.ofTracks}`;
  return (
    <Drawer
      label="The chosen range"
      title={`${formatNs(spanNs)} summed up`}
      actions={
        <>
          <span class="drawer-name quiet">{words}</span>
          <button type="button" class="text-button" onClick={props.onZoom}>
            Zoom to it
          </button>
        </>
      }
      close={props.close}
    >
      {sums !== null && (
        <RowTable
          label="Slices of the range by name"
          columns={columns}
          {...sorted}
          selected={null}
          onSelect={(row) => {
            const source = sums.sources[sums.source[row] ?? 0];
            if (source !== undefined)
              props.onSlice({ source, row: sums.row[row] ?? 0 });
          }}
          empty="Nothing runs in this range."
          heightPx={TABLE_PX}
        />
      )}
    </Drawer>
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
    numberColumn(key, title, "96px", ns, timeCell, hint);
  const wide = "minmax(160px, 1fr)";
  const name = (text: string, row: number) => ({ text, swatch: colourOf(row) });
  const inRange = "What of their times lies in the range";
  const total = (ns: number, row: number) => ({
    ...timeCell(ns),
    bar: { share: ns / most, colour: colourOf(row) },
  });
  return [
    textColumn("name", "Name", wide, sums.names, undefined, name),
    textColumn("category", "Category", "132px", sums.categories),
    numberColumn(
      "count",
      "Count",
      "80px",
      sums.count,
      countCell,
      "Slices that touch the range",
    ),
    numberColumn("total", "Total", "96px", sums.totalNs, total, inRange),
    time(
      "self",
      "Self",
      sums.selfNs,
      "The same without what lies in slices inside them",
    ),
    time("mean", "Mean", meanNs(sums), "Total by count"),
    time(
      "max",
      "Longest",
      sums.maxNs,
      "The whole duration of the longest; click a row to see it",
    ),
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

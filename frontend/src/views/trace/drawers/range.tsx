/** A range of time, summed up by name. */

import { useMemo, useState } from "preact/hooks";
import type { TraceRangeResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import type { Theme } from "../../../base/tokens";
import { RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import { Drawer } from "../../panels/drawer";
import { familyColour } from "../../profiled/family_colours";
import type { SliceRef } from "../state/params";
import { formatNs, formatNsExact } from "../words";

const TABLE_PX = 236;

type SortKey = "name" | "category" | "count" | "total" | "self" | "mean" | "max";

export interface RangeSort {
  readonly key: SortKey;
  readonly descending: boolean;
}

function valueOf(sums: TraceRangeResponse, key: SortKey, row: number): number {
  const count = sums.count[row] ?? 0;
  switch (key) {
    case "count":
      return count;
    case "self":
      return sums.selfNs[row] ?? 0;
    case "max":
      return sums.maxNs[row] ?? 0;
    case "mean":
      return count > 0 ? (sums.totalNs[row] ?? 0) / count : 0;
    case "total":
    case "name":
    case "category":
      return sums.totalNs[row] ?? 0;
  }
}

/** Rows of the table in order; equal ones as the server gave them. */
export function sortedRows(
  sums: TraceRangeResponse,
  { key, descending }: RangeSort,
): readonly number[] {
  const rows = sums.names.map((_, row) => row);
  const sign = descending ? -1 : 1;
  if (key === "name" || key === "category") {
    const texts = key === "name" ? sums.names : sums.categories;
    return rows.sort(
      (a, b) => sign * (texts[a] ?? "").localeCompare(texts[b] ?? "") || a - b,
    );
  }
  return rows.sort(
    (a, b) => sign * (valueOf(sums, key, a) - valueOf(sums, key, b)) || a - b,
  );
}

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
  const [sort, setSort] = useState<RangeSort>({ key: "total", descending: true });
  const rows = useMemo(
    () => (sums === null ? [] : sortedRows(sums, sort)),
    [sums, sort],
  );
  const columns = useMemo(
    () => (sums === null ? [] : columnsOf(sums, theme)),
    [sums, theme],
  );
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
          rows={rows}
          selected={null}
          onSelect={(row) => {
            const source = sums.sources[sums.source[row] ?? 0];
            if (source !== undefined)
              props.onSlice({ source, row: sums.row[row] ?? 0 });
          }}
          sort={sort}
          onSort={(key) =>
            setSort((before) =>
              before.key === key
                ? { ...before, descending: !before.descending }
                : {
                    key: key as SortKey,
                    descending: key !== "name" && key !== "category",
                  },
            )
          }
          empty="Nothing runs in this range."
          heightPx={TABLE_PX}
        />
      )}
    </Drawer>
  );
}

function columnsOf(sums: TraceRangeResponse, theme: Theme): readonly RowColumn[] {
  const most = Math.max(1, ...sums.totalNs.subarray(0, 50));
  const colourOf = (row: number): string =>
    familyColour(theme, sums.families[sums.family[row] ?? 0] ?? "other");
  const time = (key: SortKey, title: string, hint: string): RowColumn => ({
    key,
    title,
    hint,
    numeric: true,
    width: "96px",
    sortable: true,
    cell: (row) => {
      const value = valueOf(sums, key, row);
      return {
        text: formatNs(value),
        title: formatNsExact(value),
        ...(key === "total"
          ? { bar: { share: value / most, colour: colourOf(row) } }
          : {}),
      };
    },
  });
  return [
    {
      key: "name",
      title: "Name",
      numeric: false,
      width: "minmax(160px, 1fr)",
      sortable: true,
      cell: (row) => ({ text: sums.names[row] ?? "", swatch: colourOf(row) }),
    },
    {
      key: "category",
      title: "Category",
      numeric: false,
      width: "132px",
      sortable: true,
      cell: (row) => ({ text: sums.categories[row] ?? "" }),
    },
    {
      key: "count",
      title: "Count",
      hint: "Slices that touch the range",
      numeric: true,
      width: "80px",
      sortable: true,
      cell: (row) => ({ text: formatInteger(sums.count[row] ?? 0) }),
    },
    time("total", "Total", "What of their times lies in the range"),
    time("self", "Self", "The same without what lies in slices inside them"),
    time("mean", "Mean", "Total by count"),
    time("max", "Longest", "The whole duration of the longest; click a row to see it"),
  ];
}

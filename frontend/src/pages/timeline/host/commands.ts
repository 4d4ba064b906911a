/** What the Host page writes into files: every line it shows, with every digit. */

import type { HostResponse } from "../../../api/types.gen";
import { X_AXES } from "../../../model/lines/axis";
import type { Table } from "../../../model/table";

/** One row for each point: lines sampled at different times share no column of x. */
export function hostTable({ tracks, x }: Pick<HostResponse, "tracks" | "x">): Table {
  const lines = tracks.flatMap((track) => track.lines.map((line) => ({ track, line })));
  const each = <T>(read: (of: (typeof lines)[number], i: number) => T): T[] =>
    lines.flatMap((of) => Array.from(of.line.x, (_, i) => read(of, i)));
  const values = each(({ line }, i) => line.y[i] ?? Number.NaN);
  return {
    numRows: values.length,
    columns: [
      { name: "track", values: each(({ track }) => track.key) },
      { name: "column", values: each(({ line }) => line.name) },
      { name: "unit", values: each(({ track }) => track.unit) },
      { name: "host", values: each(({ line }) => line.host) },
      { name: "rank", values: each(({ line }) => line.rank) },
      {
        name: X_AXES[x].column,
        values: each(({ line }, i) => line.x[i] ?? Number.NaN),
      },
      { name: "high", values },
      { name: "low", values: each(({ line }, i) => line.yLow[i] ?? Number.NaN) },
    ],
  };
}

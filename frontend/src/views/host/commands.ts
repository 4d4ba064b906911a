/** What the Host page writes into files: every line it shows, with every digit. */

import type { HostResponse, XKind } from "../../api/types.gen";
import type { Command } from "../../base/commands";
import { X_COLUMN } from "../../model/x_kind";
import type { Table } from "../../model/table";
import { toCsv, toJson } from "../../widgets/export/csv";
import { downloadText } from "../../widgets/export/download";

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
      { name: X_COLUMN[x], values: each(({ line }, i) => line.x[i] ?? Number.NaN) },
      { name: "high", values },
      { name: "low", values: each(({ line }, i) => line.yLow[i] ?? Number.NaN) },
    ],
  };
}

/** `newest` is asked when the user exports, so the file holds what is on the page. */
export function hostExports(
  newest: () => HostResponse | null,
  say: (sentence: string) => void,
): readonly Command[] {
  return (["csv", "json"] as const).map((format) => ({
    id: `host.export.${format}`,
    label: `All tracks as ${format.toUpperCase()}`,
    group: "Export",
    run: () => {
      const data = newest();
      if (data === null) {
        say("There is nothing to export yet");
        return;
      }
      const table = hostTable(data);
      const text = format === "csv" ? toCsv(table) : toJson(table, about(data));
      downloadText(`${data.run.name}-host`, format, text);
    },
  }));
}

function about(data: HostResponse): Readonly<Record<string, unknown>> {
  const x: XKind = data.x;
  return { run: data.run.name, x, rank: data.rank, simulated: data.run.simulated };
}

/** Host tracks from the server as the line chart's lines, and as a table; pure. */

import type { HostResponse, HostTrack } from "../../../api/types.gen";
import { X_AXES } from "../../../model/lines/axis";
import type { Table } from "../../../model/table";
import { columnLabel } from "../../../model/words/column_label";
import { NUM_COLOURS } from "../../../widgets/line_chart/palette";
import type { ChartLine, ChartLimit } from "../../../widgets/line_chart/types";

/** Each track's title, and what its limit is called. */
export const TRACKS: Readonly<Record<HostTrack["key"], readonly [string, string]>> = {
  cpu: ["CPU", "all cores"],
  memory: ["Host memory", "total"],
  process_memory: ["Process memory", "memory limit"],
  swap: ["Swap", "total"],
  disk: ["Disk", "limit"],
  network: ["Network", "limit"],
  gpu_utilization: ["GPU utilization", "busy all the time"],
  gpu_memory: ["GPU memory", "device capacity"],
  gpu_temperature: ["GPU temperature", "limit"],
  gpu_power: ["GPU power", "power limit"],
};

const DASHES = ["solid", "dashed", "dotted"] as const;

/** A track's columns, in the server's order: the first says most. */
export function trackColumns(track: HostTrack): readonly string[] {
  return [...new Set(track.lines.map((line) => line.name))];
}

/** Whether several hosts speak: then one column is drawn at a time. */
export function hasManyHosts(track: HostTrack): boolean {
  return new Set(track.lines.map((line) => line.rank)).size > 1;
}

/**
 * Of one host every column is drawn, of several hosts only `column`: eight hosts times
 * four columns cannot be told apart.
 */
export function trackLines(track: HostTrack, column: string): readonly ChartLine[] {
  const many = hasManyHosts(track);
  const drawn = track.lines.filter(({ name }) => !many || name === column);
  return drawn.map(({ name, rank, host, x, y, yLow }, i) => ({
    ...{ x, y, yLow, id: `${name}#${rank}`, colour: i },
    label: many ? host : columnLabel(name),
    dash: DASHES[Math.floor(i / NUM_COLOURS) % DASHES.length] ?? "solid",
  }));
}

export function trackLimit({ key, limit, unit }: HostTrack): ChartLimit | null {
  // No swap at all is no limit that could be reached; 100 % says what the axis does.
  if (limit === null || limit <= 0 || unit === "percent") return null;
  return { value: limit, label: TRACKS[key][1] };
}

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

/** Host tracks from the server as the line chart's lines; pure. */

import type { HostLine, HostTrack, Unit } from "../../../api/types.gen";
import { columnLabel } from "../../../model/words/column_label";
import { NUM_COLOURS } from "../../../widgets/line_chart/palette";
import type { ChartLine, ChartLimit } from "../../../widgets/line_chart/types";

export interface TrackWords {
  readonly title: string;
  /** Said of the horizontal line where the track has a limit. */
  readonly limit: string;
}

export const TRACKS: Readonly<Record<HostTrack["key"], TrackWords>> = {
  cpu: { title: "CPU", limit: "all cores" },
  memory: { title: "Host memory", limit: "total" },
  process_memory: { title: "Process memory", limit: "memory limit" },
  swap: { title: "Swap", limit: "total" },
  disk: { title: "Disk", limit: "limit" },
  network: { title: "Network", limit: "limit" },
  gpu_utilization: { title: "GPU utilization", limit: "busy all the time" },
  gpu_memory: { title: "GPU memory", limit: "device capacity" },
  gpu_temperature: { title: "GPU temperature", limit: "limit" },
  gpu_power: { title: "GPU power", limit: "power limit" },
};

/** More lines cannot be told apart, and cost a frame. */
export const MAX_LINES = 32;

export interface TrackLines {
  readonly lines: readonly ChartLine[];
  /** Lines the server sent that are not drawn. */
  readonly numLeftOut: number;
}

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
export function trackLines(track: HostTrack, column: string): TrackLines {
  const many = hasManyHosts(track);
  const wanted = many
    ? highestFirst(track.lines.filter((line) => line.name === column))
    : track.lines;
  const drawn = wanted.slice(0, MAX_LINES);
  const lines = drawn.map((line, i): ChartLine => {
    return {
      id: `${line.name}#${line.rank}`,
      label: many ? line.host : columnLabel(line.name),
      x: line.x,
      y: line.y,
      yLow: line.yLow,
      colour: i,
      dash: DASHES[Math.floor(i / NUM_COLOURS) % DASHES.length] ?? "solid",
    };
  });
  return { lines, numLeftOut: wanted.length - drawn.length };
}

const DASHES = ["solid", "dashed", "dotted"] as const;

/** Kept in the server's order, unless some must be left out: then the highest stay. */
function highestFirst(lines: readonly HostLine[]): readonly HostLine[] {
  if (lines.length <= MAX_LINES) return lines;
  const highest = (line: HostLine): number =>
    line.y.reduce((a, b) => (b > a ? b : a), Number.NEGATIVE_INFINITY);
  return [...lines].sort((a, b) => highest(b) - highest(a));
}

export function trackLimit(track: HostTrack): ChartLimit | null {
  // No swap at all is no limit that could be reached.
  if (track.limit === null || track.limit <= 0) return null;
  // A line at 100 % says nothing the axis does not.
  if (track.unit === ("percent" satisfies Unit)) return null;
  return { value: track.limit, label: TRACKS[track.key].limit };
}

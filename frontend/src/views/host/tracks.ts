/** Host tracks from the server as the line chart's lines; pure. */

import type { HostTrack, Unit } from "../../api/types.gen";
import { columnLabel } from "../../model/column_label";
import type { ChartLine, ChartLimit } from "../../widgets/line_chart/types";

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

/** Lines of one rank share a label without its number; of many ranks each names its. */
export function trackLines(track: HostTrack): TrackLines {
  const ranks = new Set(track.lines.map((line) => line.rank));
  const names = [...new Set(track.lines.map((line) => line.name))];
  const drawn = track.lines.slice(0, MAX_LINES);
  const lines = drawn.map((line, i): ChartLine => {
    const label = columnLabel(line.name);
    const column = names.indexOf(line.name);
    return {
      id: `${line.name}#${line.rank}`,
      label: ranks.size > 1 ? `${label}, rank ${line.rank}` : label,
      x: line.x,
      y: line.y,
      yLow: line.yLow,
      // Of one column on many hosts each host has a colour; else each column has.
      colour: names.length === 1 ? i : column,
      dash:
        ranks.size > 1 && names.length > 1
          ? dashOf([...ranks].indexOf(line.rank))
          : "solid",
    };
  });
  return { lines, numLeftOut: track.lines.length - drawn.length };
}

const DASHES = ["solid", "dashed", "dotted"] as const;

function dashOf(host: number): (typeof DASHES)[number] {
  return DASHES[host % DASHES.length] ?? "solid";
}

export function trackLimit(track: HostTrack): ChartLimit | null {
  if (track.limit === null) return null;
  // A line at 100 % says nothing the axis does not.
  if (track.unit === ("percent" satisfies Unit)) return null;
  return { value: track.limit, label: TRACKS[track.key].limit };
}

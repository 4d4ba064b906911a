/** The answer of `/timeline` as what the chart draws. Pure. */

import type { RankLine, SeriesInfo, TimelineResponse } from "../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../base/bytes";
import { assignSlots } from "../../model/assign";
import { columnLabel } from "../../model/column_label";
import { LIMIT_WORDS } from "../../model/limit_label";
import { colourBesideBand } from "../../widgets/line_chart/palette";
import type { ChartBand, ChartLimit, ChartLine } from "../../widgets/line_chart/types";

const WHY_NOTE: Readonly<Record<RankLine["why"], string | null>> = {
  selected: null,
  pinned: "pinned",
  high: "far above the others",
  low: "lowest",
  oom: "ran out of memory",
};

const NUM_LOOKS = 16;

export function lineId(rank: number): string {
  return `rank ${rank}`;
}

/** The rank a line stands for. */
export function rankOfId(id: string): number {
  return Number(id.slice("rank ".length));
}

export function chartLines(
  lines: readonly RankLine[],
  slots: ReadonlyMap<string, number>,
  besideBand = false,
): readonly ChartLine[] {
  return lines.map((line) => {
    const id = lineId(line.rank);
    const note = WHY_NOTE[line.why];
    return {
      id,
      label: `rank ${line.rank}`,
      x: line.x,
      y: line.y,
      yLow: sameColumn(line.y, line.yLow) ? line.y : line.yLow,
      colour: besideBand ? colourBesideBand(slots.get(id) ?? 0) : (slots.get(id) ?? 0),
      weight: line.why === "pinned" ? "strong" : "normal",
      ...(note === null ? {} : { note }),
    };
  });
}

/** Whether nothing was merged: then there is no envelope to draw. */
function sameColumn(a: Float64Array, b: Float64Array): boolean {
  return a === b || a.every((value, i) => Object.is(value, b[i]));
}

export function nextSlots(
  lines: readonly RankLine[],
  previous: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  return assignSlots(
    lines.map((line) => lineId(line.rank)),
    previous,
    NUM_LOOKS,
  );
}

export function chartBand(answer: TimelineResponse): ChartBand | null {
  const { band } = answer;
  if (band === null) return null;
  const { numRanks, x, low, p5, median, p95, high, highRank } = band;
  const label = `${formatInteger(numRanks)} ranks`;
  return { label, x, low, p5, median, p95, high, highRank };
}

export function chartLimit(
  answer: TimelineResponse,
  byteUnit: ByteUnit,
): ChartLimit | null {
  const { capacityBytes, series } = answer;
  if (capacityBytes === null || series?.unit !== "bytes") return null;
  const what = LIMIT_WORDS[answer.capacityKind];
  return {
    value: capacityBytes,
    label: `${what} ${formatBytes(capacityBytes, byteUnit)}`,
  };
}

export const GROUP_WORDS: Readonly<Record<SeriesInfo["group"], string>> = {
  device: "Device memory",
  process: "Process memory",
  timing: "Step time",
  host: "Host",
  sensor: "Sensors",
  progress: "Progress",
};

export interface SeriesGroup {
  readonly group: SeriesInfo["group"];
  readonly series: readonly SeriesInfo[];
}

/** Series by group, headline ones first, in the order the groups are told. */
export function seriesGroups(available: readonly SeriesInfo[]): readonly SeriesGroup[] {
  const groups = new Map<SeriesInfo["group"], SeriesInfo[]>();
  for (const one of available) {
    const group = groups.get(one.group);
    if (group === undefined) groups.set(one.group, [one]);
    else group.push(one);
  }
  return [...groups].map(([group, series]) => ({
    group,
    series: series.sort((a, b) => Number(b.headline) - Number(a.headline)),
  }));
}

/** Two tables may have a column of one name: then the table's word tells them apart. */
export function seriesLabel(info: SeriesInfo, all: readonly SeriesInfo[]): string {
  const label = columnLabel(info.key);
  const twin = all.some(
    (other) => other.key !== info.key && columnLabel(other.key) === label,
  );
  return twin ? `${label} (${info.key.split("/")[0] ?? info.key})` : label;
}

/** Where the highest value of all lies; null where nothing was recorded. */
export function peakOf(
  answer: TimelineResponse,
): { readonly x: number; readonly value: number; readonly rank: number } | null {
  let best: { x: number; value: number; rank: number } | null = null;
  const look = (
    x: Float64Array,
    y: Float64Array,
    rankAt: (index: number) => number,
  ): void => {
    y.forEach((value, i) => {
      if (Number.isFinite(value) && value > (best?.value ?? -Infinity)) {
        best = { x: x[i] ?? NaN, value, rank: rankAt(i) };
      }
    });
  };
  const { band } = answer;
  if (band !== null) look(band.x, band.high, (i) => band.highRank[i] ?? -1);
  for (const line of answer.lines) look(line.x, line.y, () => line.rank);
  return best;
}

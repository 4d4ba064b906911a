/** Ranks of an answer of `/timeline` as lines and a band of a chart. Pure. */

import type { RankLine, TimelineResponse } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { colourBesideBand } from "../../widgets/line_chart/palette";
import type { ChartBand, ChartLine } from "../../widgets/line_chart/types";

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

/**
 * Give each id a slot (a colour) and keep it while the id stays: what was blue before
 * a refetch is blue after it. New ids take the slot used least.
 */
export function assignSlots(
  ids: readonly string[],
  previous: ReadonlyMap<string, number>,
  numSlots: number,
): ReadonlyMap<string, number> {
  const slots = new Map<string, number>();
  const used = new Array<number>(numSlots).fill(0);
  const take = (id: string, slot: number): void => {
    slots.set(id, slot);
    used[slot] = (used[slot] ?? 0) + 1;
  };
  for (const id of ids) {
    const slot = previous.get(id);
    if (slot !== undefined && slot < numSlots) take(id, slot);
  }
  for (const id of ids) {
    if (!slots.has(id)) take(id, used.indexOf(Math.min(...used)));
  }
  return slots;
}

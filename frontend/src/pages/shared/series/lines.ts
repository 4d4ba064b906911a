import type {
  Mark,
  RankLine,
  SeriesInfo,
  TimelineResponse,
} from "../../../api/types.gen";
import { counted, formatBytes, type ByteUnit } from "../../../base/bytes";
import { LIMIT_WORDS } from "../../../model/words/source_label";
import { colourBesideBand } from "../../../widgets/line_chart/palette";
import type {
  ChartBand,
  ChartLimit,
  ChartLine,
} from "../../../widgets/line_chart/types";

const WHY_NOTE: Readonly<Record<RankLine["why"], string | null>> = {
  selected: null,
  pinned: "pinned",
  high: "far above the others",
  low: "lowest",
  oom: "ran out of memory",
};

const NUM_LOOKS = 16;

function lineId({ rank }: RankLine): string {
  return `rank ${rank}`;
}

export function rankOfId(id: string): number {
  return Number(id.slice("rank ".length));
}

export function chartLines(
  lines: readonly RankLine[],
  slots: ReadonlyMap<string, number>,
  besideBand = false,
): readonly ChartLine[] {
  return lines.map((line) => {
    const { x, y, why } = line;
    const id = lineId(line);
    const slot = slots.get(id) ?? 0;
    const note = WHY_NOTE[why];
    // Unmerged points have no envelope.
    const isWhole = y.every((value, i) => Object.is(value, line.yLow[i]));
    return {
      id,
      label: id,
      x,
      y,
      yLow: isWhole ? y : line.yLow,
      colour: besideBand ? colourBesideBand(slot) : slot,
      weight: why === "pinned" ? "strong" : "normal",
      ...(note === null ? {} : { note }),
    };
  });
}

export function chartBand({ band }: TimelineResponse): ChartBand | null {
  return band && { ...band, label: counted(band.numRanks, "rank") };
}

/**
 * Assigns each line a slot (a colour) that stays across refetches. New lines take the
 * least used slot.
 */
export function nextSlots(
  lines: readonly RankLine[],
  previous: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const ids = lines.map(lineId);
  const slots = new Map<string, number>();
  const used = new Array<number>(NUM_LOOKS).fill(0);
  const take = (id: string, slot: number): void => {
    slots.set(id, slot);
    used[slot] = (used[slot] ?? 0) + 1;
  };
  for (const id of ids) {
    const slot = previous.get(id);
    if (slot !== undefined) take(id, slot);
  }
  for (const id of ids) {
    if (!slots.has(id)) take(id, used.indexOf(Math.min(...used)));
  }
  return slots;
}

export function chartLimit(
  answer: TimelineResponse,
  byteUnit: ByteUnit,
): ChartLimit | null {
  const { capacityBytes, series } = answer;
  if (capacityBytes === null || series?.unit !== "bytes") return null;
  const limitName = LIMIT_WORDS[answer.capacityKind];
  return {
    value: capacityBytes,
    label: `${limitName} ${formatBytes(capacityBytes, byteUnit)}`,
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

/** null: no rank ran out of memory. */
export function firstOom({ marks }: TimelineResponse): Mark | null {
  const ooms = marks.filter(({ kind }) => kind === "oom");
  return [...ooms].sort((a, b) => a.x - b.x)[0] ?? null;
}

export function chosenMark(step: number, answer: TimelineResponse): readonly Mark[] {
  if (answer.x !== "step" || step < answer.xLow || step > answer.xHigh) return [];
  return [{ kind: "user", x: step, rank: null, label: "chosen for all pages" }];
}

/** null where nothing was recorded. */
export function peakOf(
  answer: TimelineResponse,
): { readonly x: number; readonly value: number; readonly rank: number } | null {
  let best: { x: number; value: number; rank: number } | null = null;
  const look = (
    x: Float64Array,
    y: Float64Array,
    rankAt: (index: number) => number,
  ): void =>
    y.forEach((value, i) => {
      if (Number.isFinite(value) && value > (best?.value ?? -Infinity)) {
        best = { x: x[i] ?? NaN, value, rank: rankAt(i) };
      }
    });
  const { band } = answer;
  if (band !== null) look(band.x, band.high, (i) => band.highRank[i] ?? -1);
  for (const line of answer.lines) look(line.x, line.y, () => line.rank);
  return best;
}

/** The answer of `/timeline` as what the chart draws. Pure. */

import type { Mark, SeriesInfo, TimelineResponse } from "../../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../../base/bytes";
import { columnLabel } from "../../../model/words/column_label";
import { LIMIT_WORDS } from "../../../model/words/limit_label";
import type { ChartLimit } from "../../../widgets/line_chart/types";

export { chartBand, chartLines, lineId, nextSlots, rankOfId } from "../rank_lines";

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

interface SeriesGroup {
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

/** When the first rank ran out of memory; null where none did. */
export function firstOom({ marks }: TimelineResponse): Mark | null {
  const ooms = marks.filter(({ kind }) => kind === "oom");
  return ooms.reduce<Mark | null>(
    (first, one) => (first === null || one.x < first.x ? one : first),
    null,
  );
}

/** A mark at the step that was chosen for all pages. */
export function chosenMark(step: number, answer: TimelineResponse): readonly Mark[] {
  if (answer.x !== "step" || step < answer.xLow || step > answer.xHigh) return [];
  return [{ kind: "user", x: step, rank: null, label: "chosen for all pages" }];
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

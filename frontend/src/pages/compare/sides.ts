/** What is set against what, before anybody chose. Pure. */

import type { HistoriesResponse, HistoryDevice } from "../../api/types.gen";

/**
 * The history that B is at first: of the same run the one before A by the same rank, else
 * the nearest other one; A itself where there is no other. Of another run its default.
 */
export function otherHistory(
  { histories, default: first }: HistoriesResponse,
  a: string,
  sameRun: boolean,
): string {
  if (!sameRun) return first ?? histories.at(-1)?.reference.id ?? "";
  const at = histories.findIndex(({ reference }) => reference.id === a);
  const rank = histories[at]?.reference.rank ?? null;
  const before = histories
    .slice(0, Math.max(0, at))
    .findLast(({ reference }) => reference.rank === rank);
  const near = before ?? histories[at - 1] ?? histories[at + 1];
  return near?.reference.id ?? a;
}

/** A moment that can be chosen by its name. */
export interface NamedMoment {
  /** "" for the peak. */
  readonly value: string;
  readonly label: string;
}

export function lastMoment({ numEvents }: HistoryDevice): number {
  return numEvents - 1;
}

/** Peak, end, and every out-of-memory error (at most twenty). */
export function namedMoments(device: HistoryDevice): readonly NamedMoment[] {
  const { marks } = device;
  const ooms: NamedMoment[] = [];
  marks.kind.forEach((code, i) => {
    if (marks.kinds[code] !== "oom" || ooms.length >= 20) return;
    const moment = marks.moment[i] ?? -1;
    ooms.push({ value: moment.toString(), label: `out of memory, event ${moment}` });
  });
  return [
    { value: "", label: "peak of the history" },
    ...ooms,
    { value: lastMoment(device).toString(), label: "end" },
  ];
}

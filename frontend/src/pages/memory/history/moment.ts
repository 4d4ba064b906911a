/**
 * URL words that the four Memory tabs share: history, device, moment and search. The
 * rank is the shell's word (`view.ranks.rank`).
 */

import { OF_HISTORY } from "../../../widgets/finding/place";
import type { HistoryDevice, HistoryLevel } from "../../../api/types.gen";
import {
  readState,
  text,
  whole,
  writeState,
  type PageState,
  type Params,
} from "../../shared/page_state";
import type { RangeWords } from "../../shared/range/params";
import type { Changes, ViewProps } from "../../shared/view_props";
import { nextMark, type DrawnMarks } from "../../../widgets/block_stack/marks";

export const MEMORY = {
  /** "": the server chooses. */
  history: text("history"),
  /** -1: pinned host memory. */
  device: whole("history_device", -1),
  /** The pinned moment of `history`; null: the default one. */
  moment: whole("moment", -1),
  find: text("find"),
};

type MemoryWords = PageState<typeof MEMORY>;

export function readMemory(params: Params): MemoryWords {
  return readState(MEMORY, params);
}

export interface MomentPlace {
  readonly history: string;
  readonly device: HistoryDevice;
}

/** With `of` the words hold on every tab and rank; without, for the history shown. */
export function momentWords(moment: number | null, of?: MomentPlace): Changes {
  if (moment === null || of === undefined) return writeState(MEMORY, { moment });
  const { history, device } = of;
  return writeState(MEMORY, { moment, history, device: device.device });
}

/** null: no pin, or one of another history. */
export function pinnedMoment(state: MemoryWords, of: MomentPlace): number | null {
  const { history, device, moment } = state;
  if (moment === null || (history !== "" && history !== of.history)) return null;
  if (device !== null && device !== of.device.device) return null;
  return Math.min(moment, of.device.numEvents - 1);
}

export function shownMoment(state: MemoryWords, of: MomentPlace): number {
  return pinnedMoment(state, of) ?? firstMoment(of.device);
}

export function peakOf(device: HistoryDevice, level: HistoryLevel = "active") {
  return device.peaks.find((peak) => peak.level === level);
}

/** The first out-of-memory error, else the peak. */
export function firstMoment(device: HistoryDevice): number {
  const { kind, kinds, moment } = device.marks;
  const index = kind.findIndex((code) => kinds[code] === "oom");
  return index >= 0 ? (moment[index] ?? -1) : (peakOf(device)?.moment ?? -1);
}

/** "" where a moment is nothing of note. */
export function momentName(device: HistoryDevice, event: number): string {
  const { kind, kinds, moment } = device.marks;
  const out = kind.some((code, i) => kinds[code] === "oom" && moment[i] === event);
  const names = [
    out ? "out of memory" : "",
    peakOf(device)?.moment === event ? "the peak" : "",
  ];
  return names.filter((name) => name !== "").join(", ");
}

export function stepAt({ marks }: HistoryDevice, event: number): number | null {
  const { kind, kinds, moment, end, step } = marks;
  let lastStep: number | null = null;
  for (let i = 0; i < kind.length; i += 1) {
    const own = step[i] ?? NaN;
    const isStep = kinds[kind[i] ?? -1] === "step";
    const [from, to] = [moment[i] ?? 0, end[i] ?? 0];
    // A span begins after the event before it; any other mark is an event.
    const holds = isStep ? from < event && event <= to : from === event;
    if (holds && Number.isFinite(own)) lastStep = own;
  }
  return lastStep;
}

/** What keys and buttons of Blocks and Segments do to their moment. */
export function momentActions(of: {
  readonly view: Pick<ViewProps, "say" | "showPage">;
  readonly momentPlace: MomentPlace;
  readonly marks: DrawnMarks;
  readonly level: HistoryLevel;
  /** Errors after it are next. */
  readonly pinned: number;
  /** Marked to compare with; null: none. */
  readonly mark: number | null;
  readonly shown: () => number;
  readonly go: (moment: number) => void;
}) {
  const { view, momentPlace, marks, pinned, mark, shown, go } = of;
  const goTo = (moment: number | null | undefined, none: string): void => {
    if (moment === null || moment === undefined) view.say(none);
    else go(moment);
  };
  const ooms = marks.points.filter(({ kind }) => kind === "oom");
  return {
    ooms,
    toPeak: () =>
      goTo(peakOf(momentPlace.device, of.level)?.moment, "This history has no peak"),
    toOom: () => {
      const next = ooms.find(({ moment }) => moment > pinned) ?? ooms[0];
      goTo(next?.moment, "No out-of-memory error is in this history");
    },
    toMark: (side: -1 | 1) =>
      goTo(
        nextMark(marks, shown(), side),
        side > 0 ? "No later mark" : "No earlier mark",
      ),
    compare: () =>
      view.showPage("compare", {
        part: null,
        ...momentWords(shown(), momentPlace),
        a_run: SAME_RUN,
        a_history: mark === null ? null : momentPlace.history,
        a_device: mark === null ? null : momentPlace.device.device.toString(),
        a_moment: mark === null ? null : mark.toString(),
      }),
  };
}

/** Value of `a_run`: A is of the chosen run. */
export const SAME_RUN = "this";

type Words = Readonly<Record<string, string | null>>;

export const VIEW_X: RangeWords = { low: "h0", high: "h1" };
export const VIEW_Y: RangeWords = { low: "b0", high: "b1" };

const NOTHING_CHOSEN: Words = Object.fromEntries(
  ["moment", ...OF_HISTORY].map((word) => [word, null]),
);

export function historyWords(history: string): Words {
  return { ...NOTHING_CHOSEN, history, history_device: null };
}

export function deviceWords(device: number): Words {
  return { ...NOTHING_CHOSEN, history_device: device.toString() };
}

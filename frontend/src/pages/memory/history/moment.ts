/**
 * URL words that the four Memory tabs share: history, device, moment and search. The
 * rank is the shell's word (`view.ranks.rank`).
 */

import type { HistoryDevice, HistoryLevel } from "../../../api/types.gen";
import {
  readState,
  text,
  whole,
  writeState,
  type PageState,
  type Params,
} from "../../shared/page_state";
import type { Changes } from "../../shared/view_props";
import type { ViewProps } from "../../shared/view_props";
import { chosenDevice, useHistory } from "./use_history";

export const MEMORY = {
  /** "": the server chooses. */
  history: text("history"),
  device: whole("history_device"),
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
export function pinnedMoment(words: MemoryWords, of: MomentPlace): number | null {
  const { history, device, moment } = words;
  if (moment === null || (history !== "" && history !== of.history)) return null;
  if (device !== null && device !== of.device.device) return null;
  return Math.min(moment, of.device.numEvents - 1);
}

export function shownMoment(words: MemoryWords, of: MomentPlace): number {
  return pinnedMoment(words, of) ?? firstMoment(of.device);
}

export function peakOf(device: HistoryDevice, level: HistoryLevel = "active") {
  return device.peaks.find((peak) => peak.level === level);
}

/** The first out-of-memory error, else the peak. */
export function firstMoment(device: HistoryDevice): number {
  const { kind, kinds, moment } = device.marks;
  const at = kind.findIndex((code) => kinds[code] === "oom");
  return at >= 0 ? (moment[at] ?? -1) : (peakOf(device)?.moment ?? -1);
}

/** "" where a moment is nothing of note. */
export function momentName(device: HistoryDevice, at: number): string {
  const { kind, kinds, moment } = device.marks;
  const out = kind.some((code, i) => kinds[code] === "oom" && moment[i] === at);
  const names = [
    out ? "out of memory" : "",
    peakOf(device)?.moment === at ? "the peak" : "",
  ];
  return names.filter((name) => name !== "").join(", ");
}

export function stepAt({ marks }: HistoryDevice, at: number): number | null {
  const { kind, kinds, moment, end, step } = marks;
  let found: number | null = null;
  for (let i = 0; i < kind.length; i += 1) {
    const own = step[i] ?? NaN;
    const isStep = kinds[kind[i] ?? -1] === "step";
    const [from, to] = [moment[i] ?? 0, end[i] ?? 0];
    // A span begins after the event before it; any other mark is an event.
    const holds = isStep ? from < at && at <= to : from === at;
    if (holds && Number.isFinite(own)) found = own;
  }
  return found;
}

export interface MomentStep {
  readonly history: string;
  readonly moment: number;
  readonly step: number | null;
  readonly name: string;
}

/**
 * For tabs of steps and calls: the step of the moment pinned in Blocks or Segments;
 * null: no pin, so no request.
 */
export function useMomentStep(
  view: Pick<ViewProps, "client" | "run" | "params">,
): MomentStep | null {
  const words = readMemory(view.params);
  const { history, moment } = words;
  const asked = moment === null || history === "" ? null : history;
  const { answer } = useHistory(view.client, view.run.id, asked);
  const device = chosenDevice(answer?.facts ?? null, words.device);
  if (asked === null || moment === null || device === null) return null;
  return {
    history,
    moment,
    step: stepAt(device, moment) ?? answer?.reference.step ?? null,
    name: momentName(device, moment),
  };
}

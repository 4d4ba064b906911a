/** What a history is called, and what is said of it. Pure. */

import type {
  HistoryChoice,
  HistoryDevice,
  HistoryFacts,
  HistoryOrigin,
} from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import type { OpenHistory } from "./frame";

const ORIGIN_WORDS: Readonly<Record<HistoryOrigin, string>> = {
  call: "around a call",
  by_hand: "by hand",
  oom: "out of memory",
  exception: "uncaught exception",
  signal: "ended by a signal",
  file: "file",
};

type Titled = Pick<HistoryChoice, "reference" | "origin">;

/** What took a history: its label, its call, its file, or the error. */
export function historyTitle({ reference, origin }: Titled): string {
  const { label, function: name, phase, iteration, context, path } = reference;
  if (origin === "file") {
    const file = path.slice(path.lastIndexOf("/") + 1);
    return file === "" ? label : file;
  }
  if (name !== "") {
    const inPhase = phase === "" || phase === "train" ? "" : ` (${phase})`;
    const side = context === "" ? "" : `, ${context}`;
    return `${name}${inPhase} iteration ${formatInteger(iteration)}${side}`;
  }
  if (origin === "by_hand" && label !== "") return label;
  // The recorder labels errors by their kind, which the words say already.
  const said = label === "" || label === origin;
  return said ? ORIGIN_WORDS[origin] : `${ORIGIN_WORDS[origin]}: ${label}`;
}

export function rankWords({ reference }: HistoryChoice): string {
  return reference.rank === null ? "" : `rank ${reference.rank}`;
}

/** One line of the list, beside the title. */
export function historyNote(choice: Titled, byteUnit: ByteUnit): string {
  const { step, timeMs, numBytes } = choice.reference;
  const words = [
    step === null ? "" : `step ${formatInteger(step)}`,
    formatInstant(timeMs),
    formatBytes(numBytes, byteUnit),
  ];
  return words.filter((word) => word !== "").join(" · ");
}

/** Whether every word typed is found in what the list says of a history. */
export function historyMatches(choice: HistoryChoice, typed: string): boolean {
  const { reference, origin } = choice;
  const text = [
    rankWords(choice),
    historyTitle(choice),
    ORIGIN_WORDS[origin],
    reference.path,
    reference.step === null ? "" : `step ${reference.step}`,
  ]
    .join(" ")
    .toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => text.includes(word));
}

export interface HistoryNote {
  readonly text: string;
  readonly tone: "warn" | "quiet";
}

/** What is missing of a history, or odd about it: nothing is drawn without saying so. */
export function historyNotes(
  facts: HistoryFacts,
  device: HistoryDevice,
  byteUnit: ByteUnit,
): readonly HistoryNote[] {
  const notes: HistoryNote[] = [];
  const say = (when: boolean, tone: HistoryNote["tone"], text: string): void => {
    if (when) notes.push({ tone, text });
  };
  const num = formatInteger;
  const bytes = (value: number): string => formatBytes(value, byteUnit);
  const { numBefore, numLost, residualBytes: residual, marks } = device;
  const [listed, all] = [marks.kind.length, marks.numMarks];
  say(
    numBefore > 0,
    "quiet",
    `${bytes(device.beforeBytes)} in ${num(numBefore)} blocks are from before the first event: when they were allocated is not known, and where only for those still live at the end. The ring of events was full, or recording began later; max_entries keeps more.`,
  );
  say(
    numLost > 0,
    "warn",
    `${num(numLost)} frees are of memory that was free already: events in between are missing.`,
  );
  say(
    Math.abs(residual) > 0.02 * Math.max(device.activeBytes, 1),
    "quiet",
    `The blocks drawn add up to ${bytes(Math.abs(residual))} ${residual > 0 ? "less" : "more"} than torch counted: rounding of blocks, and what was lost.`,
  );
  for (const { what, count } of facts.oddities) {
    say(true, "warn", `The file holds ${num(count)} ${what}.`);
  }
  say(
    all > listed,
    "quiet",
    `${num(listed)} of ${num(all)} marks stand for all: errors, and everywhere the longest spans. Zooming in brings those in sight.`,
  );
  say(
    !facts.hasTensors,
    "quiet",
    "Categories are told from the stacks: the recording does not say which tensor lies where.",
  );
  return notes;
}

/** What a picture shows, of which rank and device. */
export function pictureLabel(
  what: string,
  { answer, device, facts }: OpenHistory,
): string {
  const { rank } = answer.reference;
  const ofRank = rank === null ? "" : `, rank ${rank}`;
  return `${what}${ofRank}${facts.devices.length > 1 ? `, device ${device.device}` : ""}`;
}

/** What a history is called, and what is said of it. Pure. */

import type { HistoryChoice, HistoryOrigin } from "../../../api/types.gen";
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

/** What a picture shows, of which rank and device. */
export function pictureLabel(
  what: string,
  { answer, device, facts }: OpenHistory,
): string {
  const { rank } = answer.reference;
  const ofRank = rank === null ? "" : `, rank ${rank}`;
  return `${what}${ofRank}${facts.devices.length > 1 ? `, device ${device.device}` : ""}`;
}

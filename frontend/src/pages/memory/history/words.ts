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
  // The recorder labels errors by kind, which the words already contain.
  const said = label === "" || label === origin;
  return said ? ORIGIN_WORDS[origin] : `${ORIGIN_WORDS[origin]}: ${label}`;
}

export function rankWords({ reference }: HistoryChoice): string {
  return reference.rank === null ? "" : `rank ${reference.rank}`;
}

export function historyNote(choice: Titled, byteUnit: ByteUnit): string {
  const { step, timeMs, numBytes } = choice.reference;
  const words = [
    step === null ? "" : `step ${formatInteger(step)}`,
    formatInstant(timeMs),
    formatBytes(numBytes, byteUnit),
  ];
  return words.filter((word) => word !== "").join(" · ");
}

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

export function pictureLabel(
  what: string,
  { answer, device, facts }: OpenHistory,
): string {
  const { rank } = answer.reference;
  const ofRank = rank === null ? "" : `, rank ${rank}`;
  return `${what}${ofRank}${facts.devices.length > 1 ? `, device ${device.device}` : ""}`;
}

import type { HistoryChoice, HistoryReference } from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import type { OpenHistory } from "./frame";

export function rankWords({ rank }: HistoryReference): string {
  return rank === null ? "" : `rank ${rank}`;
}

export function historyNote(
  { step, timeMs, numBytes }: HistoryReference,
  byteUnit: ByteUnit,
): string {
  const words = [
    step === null ? "" : `step ${formatInteger(step)}`,
    formatInstant(timeMs),
    formatBytes(numBytes, byteUnit),
  ];
  return words.filter((word) => word !== "").join(" · ");
}

export function historyMatches({ reference }: HistoryChoice, typed: string): boolean {
  const text = [
    rankWords(reference),
    reference.title,
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

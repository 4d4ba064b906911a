import type { HistoryChoice, HistoryReference } from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import { formatInstant } from "../../../base/durations";
import { searchOf } from "../../../model/shown_rows";
import type { OpenHistory } from "./use_history";

export function rankWords({ rank }: HistoryReference): string {
  return rank === null ? "" : `rank ${rank}`;
}

export function historyNote(
  { step, timeMs, numBytes }: HistoryReference,
  byteUnit: ByteUnit,
): string {
  const parts = [
    step === null ? "" : `step ${formatInteger(step)}`,
    formatInstant(timeMs),
    formatBytes(numBytes, byteUnit),
  ];
  return parts.filter((word) => word !== "").join(" · ");
}

export function historyMatches({ reference }: HistoryChoice, typed: string): boolean {
  const { title, path, step } = reference;
  const stepText = step === null ? "" : `step ${step}`;
  return (
    searchOf(typed)?.([rankWords(reference), title, path, stepText].join(" ")) !== false
  );
}

export function pictureLabel(
  subject: string,
  { answer, device, facts }: OpenHistory,
): string {
  const { rank } = answer.reference;
  const ofRank = rank === null ? "" : `, rank ${rank}`;
  return `${subject}${ofRank}${facts.devices.length > 1 ? `, ${device.title}` : ""}`;
}

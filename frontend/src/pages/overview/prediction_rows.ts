/** The ledger of a run on a virtual GPU: what a real one would hold, line by line. */

import type { Prediction } from "../../api/types.gen";
import { formatByteRange, formatBytes, type ByteUnit } from "../../base/bytes";
import { asSentence } from "../../model/words/source_label";
import type { StatusLook } from "../../widgets/status/status";

export interface LedgerRow {
  readonly label: string;
  readonly size: string;
  readonly mark: "" | "estimated" | "measured";
  /** Where the size comes from. */
  readonly source: string;
  readonly isTotal: boolean;
}

const LOOKS: Readonly<Record<Prediction["fit"], StatusLook>> = {
  fits: { word: "Fits", icon: "check", tone: "ok" },
  "does not fit": { word: "Does not fit", icon: "cross", tone: "bad" },
  "too close to call": { word: "Too close to call", icon: "warning", tone: "warn" },
  "cannot say": { word: "Cannot say", icon: "info", tone: "quiet" },
};

export function fitLook({ fit }: Prediction): StatusLook {
  return LOOKS[fit];
}

/** Why, whose answer it is among several, and what would decide. */
export function fitSentences(found: Prediction): readonly string[] {
  const of =
    found.numRanks > 1 ? `Rank ${found.rank}, the worst of ${found.numRanks}: ` : "";
  return [
    of === "" ? asSentence(found.reason) : `${of}${found.reason}.`,
    asSentence(found.decides),
  ].filter(Boolean);
}

export function ledgerRows(found: Prediction, unit: ByteUnit): readonly LedgerRow[] {
  const { devices, estimates } = found;
  const on = (device: number): string =>
    devices.length > 1 ? ` of device ${device}` : "";
  const plain = { mark: "", isTotal: false } as const;
  const rows: LedgerRow[] = devices.map(({ device, peakReservedBytes }) => ({
    ...plain,
    label: `Peak reserved${on(device)}`,
    size: formatBytes(peakReservedBytes, unit),
    source: "PyTorch’s own allocator, on the virtual GPU",
  }));
  for (const { name, lowBytes, highBytes, source } of estimates) {
    rows.push({
      ...plain,
      label: name,
      size: formatByteRange(lowBytes, highBytes, unit),
      mark: lowBytes === highBytes ? "measured" : "estimated",
      source,
    });
  }
  for (const { device, othersLowBytes: low, othersHighBytes: high } of devices) {
    if (high > 0) {
      rows.push({
        ...plain,
        label: `Other ranks${on(device)}`,
        size: formatByteRange(low, high, unit),
        mark: low === high ? "" : "estimated",
        source: "what they reserved, and their estimates",
      });
    }
  }
  const capacity = formatBytes(found.capacityBytes, unit);
  for (const { device, neededLowBytes: low, neededHighBytes: high } of devices) {
    const isKnown = low !== null && high !== null;
    rows.push({
      label: `Needed${on(device)}`,
      size: isKnown ? formatByteRange(low, high, unit) : "–",
      mark: isKnown && low !== high ? "estimated" : "",
      source: isKnown
        ? `of the device’s ${capacity}`
        : `of the device’s ${capacity}: not known, as it did not run its steps`,
      isTotal: true,
    });
  }
  return rows;
}

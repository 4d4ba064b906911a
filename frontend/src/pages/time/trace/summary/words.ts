/** What the Summary says of a trace, and which one it shows. Pure. */

import type { TraceReport } from "../../../../api/types.gen";
import { formatBytes, threeDigits } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";

/** The one that is named, else the newest of the lowest rank; null: there is none. */
export function chosenReport(
  reports: readonly TraceReport[],
  id: string | undefined,
): TraceReport | null {
  const named = reports.find((one) => one.id === id);
  if (named !== undefined) return named;
  const rank = reports[0]?.rank;
  return reports.findLast((one) => one.rank === rank) ?? null;
}

function stepWords({
  firstStep,
  lastStep,
}: Pick<TraceReport, "firstStep" | "lastStep">): string {
  if (firstStep === null || lastStep === null) return "";
  return firstStep === lastStep
    ? `step ${firstStep}`
    : `steps ${firstStep}–${lastStep}`;
}

/** `rank 0, cycle 2, steps 10–11`. */
export function reportTitle(report: TraceReport): string {
  const { rank, cycle } = report;
  const parts = [`rank ${rank}`];
  if (cycle !== null && cycle > 0) parts.push(`cycle ${cycle}`);
  const steps = stepWords(report);
  if (steps !== "") parts.push(steps);
  return parts.join(", ");
}

export function formatFlops(flops: number): string {
  const units = ["", "K", "M", "G", "T", "P", "E"];
  let scaled = flops;
  let at = 0;
  while (scaled >= 999.5 && at < units.length - 1) {
    scaled /= 1000;
    at += 1;
  }
  return `${threeDigits(scaled)} ${units[at] ?? ""}`.trim();
}

export function factsOf(report: TraceReport): readonly string[] {
  const { seconds, activities, options, flops, numBytes, kept, remote, path } = report;
  const where = remote !== "" ? ` at ${remote}` : kept ? "" : ", no longer kept";
  return [
    ...(seconds === null ? [] : [formatSeconds(seconds)]),
    ...(activities.length === 0 ? [] : [`recorded ${activities.join(", ")}`]),
    ...(options.length === 0 ? [] : [`with ${options.join(", ")}`]),
    ...(flops === null || flops === 0 ? [] : [`${formatFlops(flops)}FLOP counted`]),
    ...(path === ""
      ? ["its trace was not saved"]
      : [`${path.slice(path.lastIndexOf("/") + 1)}, ${formatBytes(numBytes)}${where}`]),
  ];
}

/** The run that another one is compared with until a person chooses. */

import type { RunSummary } from "../../../api/types.gen";

/**
 * Of the same kind of device, the latest earlier run of the same name without its number,
 * else of the same first word, else of the same folder, else with as many ranks; else such
 * a later run. If only one other run exists, that one.
 */
export function runBefore(
  others: readonly RunSummary[],
  run: RunSummary,
): RunSummary | null {
  const ordered = [...others].sort(
    (x, y) => x.firstMs - y.firstMs || byName(x.name, y.name),
  );
  const isLater = (other: RunSummary): boolean =>
    (other.firstMs - run.firstMs || byName(other.name, run.name)) > 0;
  const sameKind = ordered.filter((other) => kindOf(other) === kindOf(run));
  const alike = [nameStem, firstWord, folderOf, sizeOf].map((of) =>
    sameKind.filter((other) => of(run) !== "" && of(other) === of(run)),
  );
  const before = alike.map((alikeRuns) =>
    alikeRuns.findLast((other) => !isLater(other)),
  );
  const after = alike.map((alikeRuns) => alikeRuns.find(isLater));
  const [only, second] = ordered;
  const usual = second === undefined ? only : undefined;
  return (
    [...before, ...after, usual].find((candidate) => candidate !== undefined) ?? null
  );
}

function byName(x: string, y: string): number {
  return x.localeCompare(y, undefined, { numeric: true });
}

function nameStem({ name }: RunSummary): string {
  return name.replace(/[\d._-]+$/, "");
}

/** With its folder, of a name of several words. */
function firstWord({ name }: RunSummary): string {
  return /^(?:.*\/)?[A-Za-z]+(?=[-_. ])/.exec(name)?.[0] ?? "";
}

function folderOf({ name }: RunSummary): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

function sizeOf({ numRanks }: RunSummary): string {
  return numRanks === 0 ? "" : String(numRanks);
}

/** Memory and times of different devices say nothing about a change. */
function kindOf({ deviceType, simulated, virtualGpu }: RunSummary): string {
  return [deviceType, simulated, virtualGpu].join(" ");
}

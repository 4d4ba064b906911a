/** The strip of ranks as rows of a table. Pure. */

import type { RankStrip } from "../../api/types.gen";
import type { Table } from "../../model/table";

export interface RankRow {
  readonly rank: number;
  readonly host: string;
  readonly peakBytes: number;
  readonly peakStep: number;
  readonly capacityBytes: number;
  /** Peak over capacity; NaN where either is not known. */
  readonly share: number;
  readonly growthBytesPerStep: number;
  readonly numAllocRetries: number;
  readonly numOoms: number;
  readonly lastStep: number;
  readonly lost: boolean;
  readonly pinned: boolean;
}

export function rankRows(
  strip: RankStrip,
  ranks: ReadonlySet<number> | null,
  pinned: readonly number[],
): RankRow[] {
  const isPinned = new Set(pinned);
  const rows: RankRow[] = [];
  strip.rank.forEach((rank, i) => {
    if (ranks !== null && !ranks.has(rank)) return;
    const peakBytes = strip.peakBytes[i] ?? NaN;
    const capacityBytes = strip.capacityBytes[i] ?? NaN;
    rows.push({
      rank,
      host: strip.hosts[strip.host[i] ?? -1] ?? "",
      peakBytes,
      peakStep: strip.peakStep[i] ?? NaN,
      capacityBytes,
      share: capacityBytes > 0 ? peakBytes / capacityBytes : NaN,
      growthBytesPerStep: strip.growthBytesPerStep[i] ?? NaN,
      numAllocRetries: strip.numAllocRetries[i] ?? NaN,
      numOoms: strip.numOoms[i] ?? NaN,
      lastStep: strip.lastStep[i] ?? NaN,
      lost: strip.lost[i] === 1,
      pinned: isPinned.has(rank),
    });
  });
  return rows;
}

/** Absence sorts below every number, in either direction of the data. */
export function compareAbsentLow(a: number, b: number): number {
  const [left, right] = [Number.isFinite(a), Number.isFinite(b)];
  if (!left || !right) return Number(left) - Number(right);
  return a - b;
}

export function rowsTable(rows: readonly RankRow[]): Table {
  const numbers = (read: (row: RankRow) => number): Float64Array =>
    Float64Array.from(rows, read);
  return {
    numRows: rows.length,
    columns: [
      { name: "rank", values: numbers((row) => row.rank) },
      { name: "host", values: rows.map((row) => row.host) },
      { name: "peak (bytes)", values: numbers((row) => row.peakBytes) },
      { name: "at step", values: numbers((row) => row.peakStep) },
      { name: "capacity (bytes)", values: numbers((row) => row.capacityBytes) },
      {
        name: "growth (bytes per step)",
        values: numbers((row) => row.growthBytesPerStep),
      },
      { name: "allocator retries", values: numbers((row) => row.numAllocRetries) },
      { name: "out of memory", values: numbers((row) => row.numOoms) },
      { name: "last step", values: numbers((row) => row.lastStep) },
      { name: "lost", values: rows.map((row) => (row.lost ? "lost" : "")) },
    ],
  };
}

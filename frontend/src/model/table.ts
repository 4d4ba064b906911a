/** For "View as table" and exports. */

export interface TableColumn {
  /** With the unit: "rank 3 (bytes)". */
  readonly name: string;
  readonly values: ArrayLike<number> | readonly string[];
}

export interface Table {
  readonly columns: readonly TableColumn[];
  readonly numRows: number;
}

/** Every digit; absent numbers are empty, never zero. */
export function cellText(column: TableColumn, row: number): string {
  const value = column.values[row];
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return Number.isFinite(value) ? String(value) : "";
}

/** All x of the ascending columns, once each. */
export function mergeX(columns: readonly Float64Array[]): Float64Array {
  const distinct = [...new Set(columns)];
  const [first] = distinct;
  if (first !== undefined && distinct.length === 1) return first;
  const all = new Set<number>();
  for (const column of distinct) for (const value of column) all.add(value);
  return Float64Array.from(all).sort();
}

/** Both ascending; NaN where x has none. */
export function alignTo(
  targetX: Float64Array,
  x: Float64Array,
  y: Float64Array,
): Float64Array {
  if (targetX === x) return y;
  const out = new Float64Array(targetX.length).fill(NaN);
  let i = 0;
  for (let row = 0; row < targetX.length && i < x.length; row += 1) {
    const wanted = targetX[row] ?? NaN;
    while (i < x.length && (x[i] ?? NaN) < wanted) i += 1;
    if (x[i] !== wanted) continue;
    out[row] = y[i] ?? NaN;
    while (i < x.length && x[i] === targetX[row]) i += 1;
  }
  return out;
}

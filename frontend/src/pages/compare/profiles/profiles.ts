/** Two profiled traces beside each other: roles of their steps, tables joined by name. Pure. */

import type {
  KernelsResponse,
  ModuleTimesResponse,
  OperatorMemoryResponse,
  OperatorsResponse,
  ProfiledTrace,
  ProfileResponse,
  ProfileRole,
} from "../../../api/types.gen";
import { sortedRows, type Sort } from "../../../model/shown_rows";
import type { Table } from "../../../model/table";
import { modulePaths } from "../../../model/module_paths";
import { knowsBackward } from "../../time/profiled/module_backward";
import { ROLE_WORDS } from "../../time/profiled/roles";
import type { CompareOnly } from "../params";
import { MEASURES, type Measure, type ProfileTable } from "./words";
import { changePercent } from "../difference_table";

export type TableAnswer =
  OperatorsResponse | KernelsResponse | ModuleTimesResponse | OperatorMemoryResponse;

/** A table of one trace: a name per row, and a column per measure. */
export interface ProfileSide {
  readonly names: readonly string[];
  readonly columns: Readonly<Record<string, ArrayLike<number> | undefined>>;
  /** Rows that were left out of the answer, where there are very many. */
  readonly left: number;
  /** Whose memory it is; "" for the other tables. */
  readonly device: string;
}

/** null where the answer is of another table, as while it is being changed. */
export function sideOf(of: ProfileTable, answer: TableAnswer): ProfileSide | null {
  if ("rows" in answer) {
    const { name, ...columns } = answer.rows;
    if (of !== "memory") return null;
    const left = answer.numRows - name.length;
    return { names: name, columns, left, device: deviceWords(answer) };
  }
  if ("hasModules" in answer) {
    if (of !== "modules") return null;
    const names = modulePaths(answer.name, answer.parent);
    const left = answer.numModules - names.length;
    const known = knownOf(answer, answer.hasDevices, knowsBackward(answer));
    return { names, columns: known, left, device: "" };
  }
  const left = answer.numRows - answer.name.length;
  if ("hasKernels" in answer) {
    if (of !== "kernels") return null;
    return { names: answer.name, columns: knownOf(answer, true), left, device: "" };
  }
  if (of !== "operators") return null;
  return {
    names: answer.name,
    columns: knownOf(answer, answer.hasDevices),
    left,
    device: "",
  };
}

function deviceWords({ devices, device }: OperatorMemoryResponse): string {
  const found = devices.find(({ key }) => key === device);
  if (found === undefined) return "";
  return found.index < 0 ? found.kind : `${found.kind} ${found.index}`;
}

/** Columns of numbers; those of devices and of backward only where it has some. */
function knownOf(
  answer: object,
  hasDevices: boolean,
  hasBackward = true,
): ProfileSide["columns"] {
  return Object.fromEntries(
    Object.entries(answer).filter(
      ([key, values]) =>
        values instanceof Float64Array &&
        (hasDevices || !/device/i.test(key)) &&
        (hasBackward || !key.startsWith("backward")),
    ),
  );
}

/** Measures that at least one side has. */
export function measuresOf(
  of: ProfileTable,
  sides: readonly ProfileSide[],
): readonly Measure[] {
  return MEASURES[of].filter(({ column }) =>
    sides.some(({ columns }) => columns[column] !== undefined),
  );
}

/** Rows of both sides by name; -1 where a side has none of that name. */
export interface Joined {
  readonly names: readonly string[];
  readonly aRow: Int32Array;
  readonly bRow: Int32Array;
}

/** Of rows with equal names the first meets the first, the second the second. */
export function joined(a: readonly string[], b: readonly string[]): Joined {
  const waiting = new Map<string, number[]>();
  b.forEach((name, row) => {
    const rows = waiting.get(name);
    if (rows === undefined) waiting.set(name, [row]);
    else rows.push(row);
  });
  const met = a.map((name) => waiting.get(name)?.shift() ?? -1);
  const alone = [...waiting.values()].flat().sort((x, y) => x - y);
  return {
    names: [...a, ...alone.map((row) => b[row] ?? "")],
    aRow: Int32Array.from([...a.keys(), ...alone.map(() => -1)]),
    bRow: Int32Array.from([...met, ...alone]),
  };
}

/** Values of one measure on both sides; NaN where a side has none. */
export interface Pairs {
  readonly a: Float64Array;
  readonly b: Float64Array;
  /** B less A; a row that only one side has counts as zero on the other. */
  readonly change: Float64Array;
  /** Of A; NaN where A is nothing to be a share of. */
  readonly percent: Float64Array;
}

/** Numbers of steps that values are divided by; 1 for whole traces. */
export interface Per {
  readonly a: number;
  readonly b: number;
}

export function pairsOf(
  rows: Joined,
  measure: Measure,
  a: ProfileSide,
  b: ProfileSide,
  per: Per,
): Pairs {
  const values = (side: ProfileSide, of: Int32Array, steps: number): Float64Array => {
    const column = side.columns[measure.column];
    const factor = measure.factor / (measure.isOfCall === true ? 1 : steps);
    return Float64Array.from(of, (row) => (column?.[row] ?? NaN) * factor);
  };
  const [x, y] = [values(a, rows.aRow, per.a), values(b, rows.bRow, per.b)];
  const change = Float64Array.from(x, (value, row) => {
    const [p, q] = [value, y[row] ?? NaN];
    if (rows.aRow[row] === -1) return q;
    if (rows.bRow[row] === -1) return 0 - p;
    return q - p;
  });
  const percent = Float64Array.from(x, (value, row) =>
    value > 0 || value === y[row] ? changePercent(value, y[row] ?? NaN) : NaN,
  );
  return { a: x, b: y, change, percent };
}

export const SORT_KEYS: readonly string[] = ["name", "a", "b", "change", "percent"];
export const BY_CHANGE: Sort = { key: "change", descending: true };

/** Rows that are shown, in order. */
export function shownPairs(
  rows: Joined,
  pairs: Pairs,
  of: { readonly only: CompareOnly; readonly find: string; readonly sort: Sort },
): readonly number[] {
  const words = of.find.toLowerCase().split(/\s+/).filter(Boolean);
  const values: Readonly<Record<string, () => ArrayLike<number> | readonly string[]>> =
    {
      name: () => rows.names,
      a: () => pairs.a,
      b: () => pairs.b,
      change: () => pairs.change.map(Math.abs),
      percent: () => pairs.percent,
    };
  const sorted = sortedRows(
    rows.names.length,
    values[of.sort.key]?.(),
    of.sort.descending,
  );
  return sorted.filter((row) => {
    if (of.only === "a" && rows.bRow[row] !== -1) return false;
    if (of.only === "b" && rows.aRow[row] !== -1) return false;
    const name = (rows.names[row] ?? "").toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/** Every measure of the rows shown, of both sides. */
export function pairsTable(
  of: ProfileTable,
  rows: Joined,
  shown: readonly number[],
  a: ProfileSide,
  b: ProfileSide,
  per: Per,
): Table {
  const columns = measuresOf(of, [a, b]).flatMap((measure) => {
    const pairs = pairsOf(rows, measure, a, b, per);
    const pick = (values: Float64Array): Float64Array =>
      Float64Array.from(shown, (row) => values[row] ?? NaN);
    const name = `${measure.key}${measure.unit === "count" ? "" : `_${measure.unit}`}`;
    return [
      { name: `a_${name}`, values: pick(pairs.a) },
      { name: `b_${name}`, values: pick(pairs.b) },
      { name: `difference_${name}`, values: pick(pairs.change) },
    ];
  });
  const names = shown.map((row) => rows.names[row] ?? "");
  return {
    numRows: shown.length,
    columns: [{ name: "name", values: names }, ...columns],
  };
}

/** One role's time per step on both sides, in milliseconds. */
export interface RolePair {
  readonly role: ProfileRole;
  readonly a: number;
  readonly b: number;
}

const ROLES = Object.keys(ROLE_WORDS) as readonly ProfileRole[];

/** Roles that either has, in the order in which they claim time. */
export function rolePairs(
  a: Pick<ProfileResponse, "parts">,
  b: Pick<ProfileResponse, "parts">,
): readonly RolePair[] {
  const mean = (parts: ProfileResponse["parts"], role: ProfileRole): number | null =>
    parts.find((part) => part.role === role)?.meanMs ?? null;
  return ROLES.flatMap((role) => {
    const [x, y] = [mean(a.parts, role), mean(b.parts, role)];
    return x === null && y === null ? [] : [{ role, a: x ?? 0, b: y ?? 0 }];
  });
}

export function meanStepMs({
  durationMs,
}: Pick<ProfileResponse, "durationMs">): number {
  return durationMs.reduce((sum, one) => sum + one, 0) / Math.max(durationMs.length, 1);
}

/**
 * The trace that B is at first: of the run of A the one before A by the same rank, else
 * the nearest other one; A itself where there is no other.
 */
export function otherTrace(traces: readonly ProfiledTrace[], a: string): string {
  const at = traces.findIndex(({ id }) => id === a);
  const rank = traces[at]?.rank ?? null;
  const before = traces.slice(0, Math.max(0, at)).findLast((one) => one.rank === rank);
  const after = traces.slice(at + 1).find((one) => one.rank === rank);
  return (before ?? after ?? traces[at - 1] ?? traces[at + 1])?.id ?? a;
}

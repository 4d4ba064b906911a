/** Tables of two traces joined by name: operators, kernels, modules or memory. Pure. */

import type {
  KernelsResponse,
  ModuleTimesResponse,
  OperatorMemoryResponse,
  OperatorsResponse,
} from "../../../api/types.gen";
import { modulePaths } from "../../../model/module_paths";
import { knowsBackward } from "../../time/profiled/module_backward";
import { changes, type Compared } from "../difference_rows";
import type { TABLE_WORDS } from "../params";

export type TraceTable = keyof typeof TABLE_WORDS;

/** The route of each table, the heading of its rows, and what a trace without any lacks. */
export const TABLES = {
  operators: ["operators", "Operator", "no operators"],
  kernels: ["kernels", "Kernel", "no kernels: it was recorded without a device"],
  modules: ["module_times", "Module", "no modules: it was recorded without with_stack"],
  memory: [
    "operator_memory",
    "Operator",
    "no memory events: it was recorded without profile_memory",
  ],
} as const;

/**
 * What is compared, by its column, whose ending is its unit. Where none was chosen, the
 * first that a trace has is shown.
 */
const MEASURES: Readonly<Record<TraceTable, Readonly<Record<string, string>>>> = {
  operators: {
    deviceSelfMs: "Device self",
    deviceTotalMs: "Device total",
    hostSelfMs: "Host self",
    hostTotalMs: "Host total",
    numCalls: "Calls",
  },
  kernels: { totalMs: "Total", meanUs: "Mean", maxUs: "Max", numCalls: "Calls" },
  modules: {
    hostMs: "Host total",
    hostSelfMs: "Host self",
    deviceMs: "Device total",
    deviceSelfMs: "Device self",
    backwardHostMs: "Backward host",
    backwardHostSelfMs: "Backward host self",
    backwardDeviceMs: "Backward device",
    backwardDeviceSelfMs: "Backward device self",
    numCalls: "Calls",
  },
  memory: {
    selfIncreaseBytes: "Self increase",
    increaseBytes: "Increase",
    selfAllocatedBytes: "Self allocated",
    allocatedBytes: "Allocated",
    selfNumAllocations: "Self allocations",
    numCalls: "Calls",
  },
};

/** A table of one trace: a name per row, and a column per measure. */
export interface TraceSide {
  readonly names: readonly string[];
  readonly columns: Readonly<Record<string, ArrayLike<number> | undefined>>;
  /** Rows that were left out of the answer, where there are very many. */
  readonly left: number;
  /** Whose memory it is; "" for the other tables. */
  readonly device: string;
}

type Answer =
  OperatorsResponse | KernelsResponse | ModuleTimesResponse | OperatorMemoryResponse;

/** null where the answer is of another table, as while it is being changed. */
export function sideOf(of: TraceTable, answer: Answer): TraceSide | null {
  const device = "";
  if ("rows" in answer) {
    const { name: names, ...columns } = answer.rows;
    const left = answer.numRows - names.length;
    return of === "memory"
      ? { names, columns, left, device: deviceWords(answer) }
      : null;
  }
  if ("hasModules" in answer) {
    const names = modulePaths(answer.name, answer.parent);
    const columns = knownOf(answer, answer.hasDevices, knowsBackward(answer));
    const left = answer.numModules - names.length;
    return of === "modules" ? { names, columns, left, device } : null;
  }
  const isKernels = "hasKernels" in answer;
  if (of !== (isKernels ? "kernels" : "operators")) return null;
  const { name: names, numRows } = answer;
  const columns = knownOf(answer, isKernels || answer.hasDevices, true);
  return { names, columns, left: numRows - names.length, device };
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
  hasBackward: boolean,
): TraceSide["columns"] {
  return Object.fromEntries(
    Object.entries(answer).filter(
      ([key, values]) =>
        values instanceof Float64Array &&
        (hasDevices || !/device/i.test(key)) &&
        (hasBackward || !key.startsWith("backward")),
    ),
  );
}

/** Column and title of the measures that at least one side has. */
export function measuresOf(of: TraceTable, ...sides: readonly TraceSide[]) {
  return Object.entries(MEASURES[of]).filter(([column]) =>
    sides.some(({ columns }) => columns[column] !== undefined),
  );
}

/** Rows of both sides by name; -1 where a side has none of that name. */
export interface Joined {
  readonly names: readonly string[];
  readonly aRow: readonly number[];
  readonly bRow: readonly number[];
}

/** Of rows with equal names the first meets the first, the second the second. */
export function joined(a: readonly string[], b: readonly string[]): Joined {
  const waiting = new Map<string, number[]>();
  b.forEach((name, row) => {
    waiting.set(name, [...(waiting.get(name) ?? []), row]);
  });
  const met = a.map((name) => waiting.get(name)?.shift() ?? -1);
  const alone = [...waiting.values()].flat().sort((x, y) => x - y);
  return {
    names: [...a, ...alone.map((row) => b[row] ?? "")],
    aRow: [...a.keys(), ...alone.map(() => -1)],
    bRow: [...met, ...alone],
  };
}

/** What a column's numbers are times a factor; those of one call have no steps. */
function unitOf(column: string) {
  if (column.endsWith("Ms")) return { unit: "seconds", factor: 1e-3 } as const;
  if (column.endsWith("Us")) {
    return { unit: "seconds", factor: 1e-6, isOfCall: true } as const;
  }
  return { unit: column.endsWith("Bytes") ? "bytes" : "count", factor: 1 } as const;
}

export function pairsOf(
  rows: Joined,
  column: string,
  [a, b]: readonly [TraceSide, TraceSide],
  /** Numbers of steps that values are divided by; 1 for whole traces. */
  steps: readonly [number, number],
) {
  const { unit, factor, isOfCall = false } = unitOf(column);
  const values = (side: TraceSide, of: readonly number[], num: number) =>
    Float64Array.from(
      of,
      (row) => ((side.columns[column]?.[row] ?? NaN) * factor) / (isOfCall ? 1 : num),
    );
  return {
    unit,
    a: values(a, rows.aRow, steps[0]),
    b: values(b, rows.bRow, steps[1]),
    only: rows.names.map((_, row) =>
      rows.aRow[row] === -1 ? "b" : rows.bRow[row] === -1 ? "a" : "",
    ),
  } as const;
}

/** Both tables by one measure; files have all of them. */
export function comparedTraces(
  of: TraceTable,
  measure: string,
  sides: readonly [TraceSide, TraceSide],
  steps: readonly [number, number],
): Compared {
  const rows = joined(sides[0].names, sides[1].names);
  const exported = measuresOf(of, ...sides).flatMap(
    ([column, title]): Compared["exported"] => {
      if (column === measure) return [];
      const pairs = pairsOf(rows, column, sides, steps);
      const quantity = quantityOf(title, pairs.unit);
      return [
        { key: `a_${quantity}`, values: pairs.a },
        { key: `b_${quantity}`, values: pairs.b },
        { key: `difference_${quantity}`, values: changes(pairs) },
      ];
    },
  );
  const shown = pairsOf(rows, measure, sides, steps);
  return {
    ...shown,
    key: of,
    quantity: quantityOf(MEASURES[of][measure] ?? measure, shown.unit),
    title: TABLES[of][1],
    // Of a C++ template what it returns says nothing.
    names: rows.names.map((name) => name.replace(/^void /, "")),
    texts: rows.names,
    more: [],
    exported,
  };
}

/** In files: what it is, and its unit. */
function quantityOf(title: string, unit: string): string {
  const words = title.toLowerCase().replaceAll(" ", "_");
  return unit === "count" ? words : `${words}_${unit}`;
}

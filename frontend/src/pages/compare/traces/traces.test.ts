import { describe, expect, it } from "vitest";
import type {
  KernelsResponse,
  ModuleTimesResponse,
  OperatorMemoryResponse,
  OperatorsResponse,
  ProfiledTrace,
  ProfileResponse,
} from "../../../api/types.gen";
import { sortedRows } from "../../../model/shown_rows";
import { cellText } from "../../../model/table";
import { tableOf } from "../../../widgets/row_table/columns";
import { changes, differenceColumns, wantedRows } from "../difference_rows";
import { nearest } from "../sides";
import {
  comparedTraces,
  joined,
  measuresOf,
  pairsOf,
  sideOf,
  type TraceSide,
  type TraceTable,
} from "./joined";
import { meanStepMs, rolePairs } from "./part";

function operators(
  rows: readonly (readonly [name: string, selfMs: number, calls: number])[],
  numRows = rows.length,
): OperatorsResponse {
  const column = (at: 1 | 2): Float64Array => Float64Array.from(rows, (row) => row[at]);
  return {
    name: rows.map(([name]) => name),
    numCalls: column(2),
    hostSelfMs: column(1),
    hostTotalMs: column(1),
    deviceSelfMs: new Float64Array(rows.length),
    deviceTotalMs: new Float64Array(rows.length),
    numRows,
    hasDevices: false,
  } as unknown as OperatorsResponse;
}

function side(of: TraceTable, answer: Parameters<typeof sideOf>[1]): TraceSide {
  const found = sideOf(of, answer);
  if (found === null) throw new Error(of);
  return found;
}

const A = side(
  "operators",
  operators([
    ["aten::mm", 10, 4],
    ["aten::add", 8, 2],
    ["aten::gone", 3, 1],
  ]),
);
const B = side(
  "operators",
  operators([
    ["aten::add", 9, 2],
    ["aten::new", 5, 1],
    ["aten::mm", 4, 8],
  ]),
);
const ROWS = joined(A.names, B.names);
const WHOLE = [1, 1] as const;
const SELF = pairsOf(ROWS, "hostSelfMs", [A, B], WHOLE);
const COMPARED = comparedTraces("operators", "hostSelfMs", [A, B], WHOLE);
const COLUMNS = differenceColumns(COMPARED, { theme: "light", byteUnit: "auto" });

function shown(
  of: Partial<Parameters<typeof wantedRows>[2]>,
  key = "change",
  descending = true,
): readonly string[] {
  const values = COLUMNS.find((one) => one.key === key)?.values;
  const sorted = sortedRows(COMPARED.names.length, values, descending);
  const rows = wantedRows(COMPARED, sorted, { only: "all", find: "", ...of });
  return rows.map((row) => COMPARED.names[row] ?? "");
}

describe("joining rows by name", () => {
  it("keeps the rows of A in order, then those that only B has", () => {
    expect(ROWS.names).toEqual(["aten::mm", "aten::add", "aten::gone", "aten::new"]);
    expect([...ROWS.aRow]).toEqual([0, 1, 2, -1]);
    expect([...ROWS.bRow]).toEqual([2, 0, -1, 1]);
  });

  it("joins equal names in their order and loses none", () => {
    const rows = joined(["x", "x", "y"], ["x", "x", "x"]);
    expect([...rows.aRow]).toEqual([0, 1, 2, -1]);
    expect([...rows.bRow]).toEqual([0, 1, -1, 2]);
    expect(joined([], []).names).toEqual([]);
  });

  it("takes B less A, and a row of one side alone as zero on the other", () => {
    const ms = [...changes(SELF)].map((one) => Math.round(one * 1e3));
    expect(ms).toEqual([-6, 1, -3, 5]);
    expect(SELF.b[2]).toBeNaN();
    const percent = COLUMNS.find((one) => one.key === "percent");
    expect([0, 1, 2, 3].map((row) => percent?.cell(row).text)).toEqual([
      "-60.0 %".replace("-", "−"),
      "+12.5 %",
      "gone",
      "new",
    ]);
  });

  it("shows nothing less nothing without a sign", () => {
    const [some, none] = [side("operators", operators([["x", 0, 1]])), B];
    const rows = joined(some.names, none.names);
    const change = changes(pairsOf(rows, "hostSelfMs", [some, none], WHOLE));
    expect(Object.is(change[0], 0)).toBe(true);
  });

  it("divides sums by steps, but not what is of one call", () => {
    const steps = [2, 4] as const;
    const sums = pairsOf(ROWS, "numCalls", [A, B], steps);
    expect([sums.a[0], sums.b[0], changes(sums)[0]]).toEqual([2, 2, 0]);
    const kernels = {
      name: ["k"],
      meanUs: Float64Array.of(8),
      numRows: 1,
      hasKernels: true,
    } as unknown as KernelsResponse;
    const one = side("kernels", kernels);
    const rows = joined(one.names, one.names);
    const mean = pairsOf(rows, "meanUs", [one, one], steps);
    expect(mean.a[0]).toBeCloseTo(8e-6, 12);
  });
});

describe("the rows shown", () => {
  it("stand by the size of their difference", () =>
    expect(shown({})).toEqual(["aten::mm", "aten::new", "aten::gone", "aten::add"]));

  it("put those without a number last, whichever way", () => {
    for (const descending of [true, false]) {
      expect(shown({}, "a", descending).at(-1)).toBe("aten::new");
    }
  });

  it("are those of one side alone, or that hold the words", () => {
    expect(shown({ only: "a" })).toEqual(["aten::gone"]);
    expect(shown({ only: "b" })).toEqual(["aten::new"]);
    expect(shown({ find: "ATEN add" })).toEqual(["aten::add"]);
  });

  it("are exported with every measure of both sides", () => {
    const { columns } = tableOf(COMPARED.exported, [0, 3]);
    const names = columns.map(({ name }) => name);
    expect(names).toContain("difference_host_total_seconds");
    expect(names.some((name) => name.includes("device"))).toBe(false);
    const calls = columns.filter(({ name }) => name.endsWith("_calls"));
    expect(calls.map((one) => cellText(one, 1))).toEqual(["", "1", "1"]);
  });
});

describe("answers as sides", () => {
  it("are nothing while another table is asked for", () =>
    expect(sideOf("kernels", operators([]))).toBeNull());

  it("say how many rows were left out", () =>
    expect(side("operators", operators([["x", 1, 1]], 7)).left).toBe(6));

  it("have measures of devices where one side has devices", () => {
    const keys = (...sides: readonly TraceSide[]): readonly string[] =>
      measuresOf("operators", ...sides).map(([, title]) => title);
    expect(keys(A, B)).toEqual(["Host self", "Host total", "Calls"]);
    const other = side("operators", { ...operators([]), hasDevices: true });
    expect(keys(A, other)[0]).toBe("Device self");
  });

  it("name modules by their place", () => {
    const modules = {
      name: ["Net_0", "Linear_0"],
      parent: Int32Array.of(-1, 0),
      hostMs: Float64Array.of(2, 1),
      numModules: 2,
      hasModules: true,
      hasDevices: false,
    } as unknown as ModuleTimesResponse;
    expect(side("modules", modules).names).toEqual(["Net_0", "Net_0 / Linear_0"]);
  });

  it("know a decrease of memory", () => {
    const memory = (bytes: number): TraceSide =>
      side("memory", {
        rows: { name: ["x"], selfIncreaseBytes: Float64Array.of(bytes) },
        devices: [{ key: "1:0", kind: "CUDA", index: 0 }],
        device: "1:0",
        numRows: 1,
      } as unknown as OperatorMemoryResponse);
    const [a, b] = [memory(-10), memory(5)];
    const of = comparedTraces("memory", "selfIncreaseBytes", [a, b], WHOLE);
    expect(changes(of)[0]).toBe(15);
    const columns = differenceColumns(of, { theme: "light", byteUnit: "auto" });
    expect(columns.find(({ key }) => key === "percent")?.cell(0).text).toBe("–");
    expect(a.device).toBe("CUDA 0");
  });
});

describe("steps", () => {
  const part = (role: string, meanMs: number) => ({ role, meanMs });
  const parts = (...of: unknown[]) => ({ parts: of }) as unknown as ProfileResponse;

  it("have a row per role that either has, in the order of claims", () =>
    expect(
      rolePairs(parts(part("other", 2)), parts(part("kernel", 5), part("other", 1))),
    ).toEqual([
      { role: "kernel", a: 0, b: 5 },
      { role: "other", a: 2, b: 1 },
    ]));

  it("take their mean", () => {
    expect(meanStepMs({ durationMs: Float64Array.of(10, 20) })).toBe(15);
    expect(meanStepMs({ durationMs: new Float64Array(0) })).toBe(0);
  });
});

describe("the first A", () => {
  const trace = (id: string, rank: number) => ({ id, rank }) as ProfiledTrace;
  const traces = [trace("a0", 0), trace("a1", 1), trace("b0", 0), trace("b1", 1)];

  it("is the cycle before, of the same rank", () => {
    expect(nearest(traces, "b1")).toBe("a1");
    expect(nearest(traces, "a0")).toBe("b0");
  });

  it("is another rank where the rank has one, else A itself", () => {
    expect(nearest(traces.slice(0, 2), "a0")).toBe("a1");
    expect(nearest(traces.slice(0, 1), "a0")).toBe("a0");
  });
});

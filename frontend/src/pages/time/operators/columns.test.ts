import { describe, expect, it } from "vitest";
import type { OperatorMemoryResponse, OperatorsResponse } from "../../../api/types.gen";
import { sortedRows } from "../../../model/shown_rows";
import {
  allocationColumns,
  allocationsHolding,
  allocationsTable,
  lifetimes,
} from "./memory/allocation_columns";
import {
  HOLDERS_BY,
  holderColumns,
  holdersBy,
  holdersTable,
  peakParts,
  wholeBytes,
} from "./memory/holders";
import { BY_MEMORY, memoryColumns } from "./memory/columns";
import { BY_SHAPES, timeColumns, usualSort } from "./time/columns";

const RUN = {} as OperatorsResponse["run"];
const CHOICE = {} as OperatorsResponse["choice"];

function times(changes: Partial<OperatorsResponse> = {}): OperatorsResponse {
  return {
    run: RUN,
    choice: CHOICE,
    by: "name",
    name: ["aten::mm", "aten::add"],
    shapes: ["", ""],
    numCalls: Float64Array.of(3, 1200),
    hostSelfMs: Float64Array.of(1, 3),
    hostTotalMs: Float64Array.of(4, 3),
    deviceSelfMs: Float64Array.of(9, 0),
    deviceTotalMs: Float64Array.of(9, 0),
    isEligible: Uint8Array.of(1, 0),
    tensorCoreSelfShare: Float64Array.of(0.5, NaN),
    tensorCoreTotalShare: Float64Array.of(0.5, NaN),
    numRows: 2,
    totals: { hostSelfMs: 4, deviceSelfMs: 9, numCalls: 1203 },
    hasDevices: true,
    hasStacks: false,
    hasShapes: false,
    ...changes,
  };
}

function texts(
  columns: ReturnType<typeof timeColumns>,
  row: number,
): Record<string, string> {
  return Object.fromEntries(columns.map(({ key, cell }) => [key, cell(row).text]));
}

describe("operators by time", () => {
  it("have a help text for every column", () => {
    for (const by of ["name", "shapes"] as const) {
      for (const column of timeColumns(times({ by }), "light")) {
        expect(column.hint, column.key).toMatch(/\w{3}/);
      }
    }
  });

  it("say times in units that fit, and that no kernels are no share", () => {
    const columns = timeColumns(times(), "light");
    expect(texts(columns, 0)).toMatchObject({
      device_self_ms: "9.00 ms",
      tensor_core_self_share: "50 %",
    });
    expect(texts(columns, 1)).toMatchObject({
      num_calls: "1,200",
      tensor_core_self_share: "–",
    });
    const self = columns.find(({ key }) => key === "host_self_ms")?.cell(1);
    expect(self?.bar?.share).toBe(1);
    expect(self?.title).toBe("3 ms: 75.0 % of all operators");
  });

  it("have columns of devices and shapes only where there are any", () => {
    const keys = (data: OperatorsResponse): string[] =>
      timeColumns(data, "dark").map(({ key }) => key);
    expect(keys(times({ hasDevices: false }))).toEqual([
      ...["name", "num_calls", "host_self_ms", "host_total_ms"],
    ]);
    expect(keys(times({ by: "shapes" }))).toContain("shapes");
    expect(usualSort(false).key).toBe("host_self_ms");
  });

  it("sort by each key that a link may name", () => {
    const columns = timeColumns(times({ by: "shapes" }), "light");
    const sorted = columns.filter(({ sortable = true }) => sortable);
    expect(sorted.map(({ key }) => key).sort()).toEqual([...BY_SHAPES].sort());
    for (const { values } of columns) expect(values).toHaveLength(2);
  });
});

function memory(changes: Partial<OperatorMemoryResponse> = {}): OperatorMemoryResponse {
  const two = (a: number, b: number): Float64Array => Float64Array.of(a, b);
  return {
    run: RUN,
    choice: CHOICE,
    devices: [],
    device: "1:0",
    charge: "allocating",
    durationMs: 10,
    curve: { timeMs: two(1, 2), allocatedBytes: two(1, 2), reservedBytes: two(1, 2) },
    rows: {
      name: ["aten::empty", "aten::free"],
      numCalls: two(1, 2),
      increaseBytes: two(4096, -2048),
      selfIncreaseBytes: two(4096, -2048),
      numAllocations: two(1, 0),
      selfNumAllocations: two(1, 0),
      allocatedBytes: two(4096, 0),
      selfAllocatedBytes: two(4096, 0),
    },
    numRows: 2,
    operators: ["aten::empty"],
    categories: [
      { name: "activation", group: "activation" },
      { name: "other", group: "unknown" },
    ],
    evidence: ["no rule fits", "freed by a backward that did not make it"],
    modules: ["Linear_0"],
    phases: ["forward"],
    peak: null,
    allocations: {
      operator: Int32Array.of(0, -1, 0),
      numBytes: Float64Array.of(4096, 512, 100),
      allocatedMs: Float64Array.of(1, NaN, 2),
      releasedMs: Float64Array.of(3, 5, NaN),
      category: Uint8Array.of(0, 1, 1),
      evidence: Uint8Array.of(1, 0, 0),
      module: Int32Array.of(0, -1, -1),
      phase: Int32Array.of(0, -1, -1),
    },
    numAllocations: 3,
    hasAddresses: true,
    ...changes,
  };
}

describe("operators by memory", () =>
  it("say what was given back with its sign, and draw no bar for it", () => {
    const columns = memoryColumns(memory().rows, "auto", "#000000");
    const freed = columns.find(({ key }) => key === "self_increase_bytes")?.cell(1);
    expect(freed).toMatchObject({ text: "−2.00 KiB", title: "−2,048 bytes" });
    expect(freed?.bar?.share).toBeLessThan(0);
    const sorted = columns.filter(({ values }) => values?.length === 2);
    expect(sorted.map(({ key }) => key)).toEqual([...BY_MEMORY]);
  }));

describe("allocations", () => {
  it("say what the trace does not hold, instead of a time", () => {
    const columns = allocationColumns(memory(), "auto", "light");
    expect(texts(columns, 0)).toEqual({
      operator: "aten::empty",
      category: "Activations",
      module: "Linear_0",
      phase: "forward",
      size: "4.00 KiB",
      allocated: "1.00 ms",
      released: "3.00 ms",
      duration: "2.00 ms",
    });
    expect(texts(columns, 1)).toMatchObject({
      operator: "unknown",
      allocated: "before",
      category: "Other",
      module: "–",
      phase: "–",
    });
    const why = columns.find(({ key }) => key === "category")?.cell(0).title;
    expect(why).toBe("Activations: freed by a backward that did not make it");
    expect(texts(columns, 2)).toMatchObject({ released: "not freed", duration: "–" });
    const blind = memory({ hasAddresses: false });
    expect(texts(allocationColumns(blind, "auto", "light"), 2)["released"]).toBe("–");
  });

  it("sort with what is not known last", () => {
    expect(Array.from(lifetimes(memory().allocations))).toEqual([2, NaN, NaN]);
    const columns = allocationColumns(memory(), "auto", "light");
    const released = columns.find(({ key }) => key === "released");
    expect(sortedRows(3, released?.values, true)).toEqual([1, 0, 2]);
    for (const { values } of columns) expect(values).toHaveLength(3);
    expect(allocationsTable(memory()).columns[0]?.values).toEqual([
      ...["aten::empty", "", "aten::empty"],
    ]);
  });
});

describe("searching allocations", () =>
  it("looks at operator, category, module and phase", () => {
    const held = (text: string) => {
      const rows = allocationsHolding(memory(), text);
      return rows === null ? null : [...rows];
    };
    expect(held("")).toBeNull();
    expect(held("EMPTY")).toEqual([0, 2]);
    expect(held("linear")).toEqual([0]);
    expect(held("forward")).toEqual([0]);
    expect(held("other")).toEqual([1, 2]);
    expect(held("nothing")).toEqual([]);
  }));

describe("the peak", () => {
  const peak = {
    timeMs: 2,
    allocatedBytes: 1000,
    seenBytes: 900,
    unseenBytes: 100,
    unknownBytes: 300,
    holders: {
      category: Uint8Array.of(0, 1, 0),
      module: Int32Array.of(0, -1, -1),
      phase: Int32Array.of(0, 0, -1),
      numBytes: Float64Array.of(500, 200, 200),
      numAllocations: Float64Array.of(5, 2, 1),
    },
    numHolders: 3,
  };
  const data = memory({ peak });

  it.each(HOLDERS_BY)("adds up by %s", (by) => {
    const holders = holdersBy(peak, by);
    const sum = holders.reduce((bytes, one) => bytes + one.numBytes, 0);
    expect(sum).toBe(peak.seenBytes);
    const bytes = holders.map(({ numBytes }) => numBytes);
    expect(bytes).toEqual([...bytes].sort((a, b) => b - a));
    const columns = holderColumns(data, peak, holders, by, "light", "auto");
    for (const column of columns) expect(column.hint).toMatch(/\w{3}/);
    expect(columns.filter(({ numeric }) => !numeric)).toHaveLength(
      by === "all" ? 3 : 1,
    );
  });

  it("puts together what is alike, and says what is not known", () => {
    const modules = holdersBy(peak, "module");
    expect(modules.map(({ module, numBytes }) => [module, numBytes])).toEqual([
      [0, 500],
      [-1, 400],
    ]);
    const columns = holderColumns(data, peak, modules, "module", "dark", "auto");
    expect(texts(columns, 1)).toEqual({
      module: "–",
      bytes: "400 B",
      share: "40.0 %",
      allocations: "3",
    });
  });

  it("shows what no event explains as a part of its own", () => {
    const parts = peakParts(data, peak, "light");
    expect(parts.map(({ label }) => label)).toEqual([
      "Activations",
      "Other",
      "Not seen",
    ]);
    const sum = parts.reduce((bytes, one) => bytes + one.numBytes, 0);
    expect(sum).toBe(wholeBytes(peak));
    expect(wholeBytes({ ...peak, allocatedBytes: null })).toBe(900);
    expect(peakParts(data, { ...peak, unseenBytes: 0 }, "light")).toHaveLength(2);
  });

  it("is exported with names", () => {
    const table = holdersTable(data, peak);
    expect(table.numRows).toBe(3);
    expect(table.columns[1]?.values).toEqual(["Linear_0", "", ""]);
  });
});

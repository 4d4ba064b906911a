import { describe, expect, it } from "vitest";
import type { KernelsResponse } from "../../../api/types.gen";
import { routeSort } from "../../../model/shown_rows";
import { kernelColumns, kernelsTable, BY_LAUNCH } from "./columns";

function kernels(changes: Partial<KernelsResponse> = {}): KernelsResponse {
  return {
    run: {} as KernelsResponse["run"],
    choice: {} as KernelsResponse["choice"],
    by: "properties",
    name: ["void gemm<float>(int)", "ncclDevKernel_AllReduce"],
    operator: ["aten::mm", ""],
    grid: ["64,1,1", ""],
    block: ["256,1,1", ""],
    registers: Int32Array.of(128, -1),
    sharedMemoryBytes: Float64Array.of(4096, -1),
    numCalls: Float64Array.of(2, 1),
    totalMs: Float64Array.of(6, 2),
    minUs: Float64Array.of(1000, 2000),
    meanUs: Float64Array.of(3000, 2000),
    maxUs: Float64Array.of(5000, 2000),
    blocksPerSm: Float64Array.of(0.8, NaN),
    occupancy: Float64Array.of(0.25, NaN),
    usesTensorCores: Uint8Array.of(1, 0),
    isCommunication: Uint8Array.of(0, 1),
    numRows: 2,
    totalAllMs: 8,
    tensorCoreMs: 6,
    hasKernels: true,
    ...changes,
  };
}

describe("kernels", () => {
  it("say what they are, and what the trace does not say", () => {
    const columns = kernelColumns(kernels(), "light");
    const text = (key: string, row: number) =>
      columns.find((one) => one.key === key)?.cell(row).text;
    expect(text("name", 0)).toBe("gemm<…>");
    expect([text("mean_us", 0), text("occupancy", 0)]).toEqual(["3.00 ms", "25 %"]);
    for (const key of [
      "registers",
      "shared_memory_bytes",
      "blocks_per_sm",
      "occupancy",
    ]) {
      expect(text(key, 1)).toBe("–");
    }
    const total = columns.find(({ key }) => key === "total_ms")?.cell(1);
    expect(total?.title).toBe("2 ms: 25.0 % of all kernels’ time");
    expect(total?.bar?.share).toBeCloseTo(1 / 3);
  });

  it("have a help text for every column", () => {
    for (const column of kernelColumns(kernels(), "dark")) {
      expect(column.hint, column.key).toMatch(/\w{3}/);
    }
  });

  it("have values for each column that sorts; what is not known is no number", () => {
    const sorted = kernelColumns(kernels(), "light").filter(
      ({ sortable = true }) => sortable,
    );
    const keys = sorted.map(({ key }) => key).sort();
    expect(keys).toEqual([...BY_LAUNCH].sort());
    expect(sorted.find(({ key }) => key === "registers")?.values?.[1]).toBeNaN();
  });

  it("are exported with whole names, and asked for by the same words", () => {
    const { columns } = kernelsTable(kernels(), "light");
    expect(columns[0]).toEqual({ name: "name", values: kernels().name });
    expect(columns.every(({ values }) => values.length === 2)).toBe(true);
    const names = columns.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...BY_LAUNCH, "is_communication"]));
    expect(routeSort("-mean_us", BY_LAUNCH)).toBe("-mean_us");
    expect(routeSort("grid", BY_LAUNCH)).toBe(null);
  });
});

import { describe, expect, it } from "vitest";
import type {
  CompareTracesResponse,
  ProfiledTrace,
  ProfileResponse,
  TraceMeasure,
} from "../../../api/types.gen";
import { sortedRows } from "../../../model/shown_rows";
import { cellText } from "../../../model/table";
import { tableOf } from "../../../widgets/row_table/columns";
import { differenceColumns, wantedRows } from "../difference_rows";
import { changes } from "../difference_table";
import { nearest } from "../sides";
import { rolePairs } from "./part";
import { comparedTraces } from "./tables";

function measure(
  name: string,
  a: readonly number[],
  b: readonly number[],
  isOfCall = false,
): TraceMeasure {
  const sides = { a: Float64Array.from(a), b: Float64Array.from(b) };
  return { name, title: name, unit: "seconds", isOfCall, ...sides };
}

const SELF = measure("host_self_seconds", [10, 8, 3, NaN], [4, 9, NaN, 5]);
const CALLS: TraceMeasure = {
  ...measure("calls", [4, 2, 1, NaN], [8, 2, NaN, 1]),
  unit: "count",
};
const MEAN = measure("mean_seconds", [8, 1, 1, NaN], [8, 1, NaN, 1], true);

const ANSWER = {
  table: "operators",
  title: "Operator",
  names: ["aten::mm", "aten::add", "aten::gone", "void aten::new"],
  only: Uint8Array.of(0, 0, 1, 2),
  measures: [SELF, CALLS, MEAN],
} as unknown as CompareTracesResponse;

const COMPARED = comparedTraces(ANSWER, SELF, [1, 1]);
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

describe("rows of two traces", () => {
  it("are B less A, and one side alone counts as zero on the other", () => {
    expect([...changes(COMPARED)]).toEqual([-6, 1, -3, 5]);
    const percent = COLUMNS.find((one) => one.key === "percent");
    expect([0, 1, 2, 3].map((row) => percent?.cell(row).text)).toEqual([
      ...["−60.0 %", "+12.5 %", "gone", "new"],
    ]);
  });

  it("show nothing less nothing without a sign", () => {
    const none = { a: Float64Array.of(0), b: Float64Array.of(NaN) };
    expect(Object.is(changes({ ...none, only: ["a"] })[0], 0)).toBe(true);
  });

  it("divide sums by steps, but not what is of one call", () => {
    const sums = comparedTraces(ANSWER, CALLS, [2, 4]);
    expect([sums.a[0], sums.b[0]]).toEqual([2, 2]);
    expect(comparedTraces(ANSWER, MEAN, [2, 4]).a[0]).toBe(8);
  });

  it("stand by the size of their difference, those without a number last", () => {
    const all = ["aten::mm", "aten::new", "aten::gone", "aten::add"];
    expect(shown({})).toEqual(all);
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
    const { columns } = tableOf([...COLUMNS, ...COMPARED.exported], [0, 3]);
    expect(columns.slice(0, 4).map(({ name }) => name)).toEqual([
      ...["operators", "a_host_self_seconds", "b_host_self_seconds"],
      "difference_host_self_seconds",
    ]);
    const calls = columns.filter(({ name }) => name.endsWith("_calls"));
    expect(calls.map((one) => cellText(one, 1))).toEqual(["", "1", "1"]);
  });

  it("know a decrease of memory, which is no share of what it was", () => {
    const memory = measure("self_increase_bytes", [-10], [5]);
    const one = { ...ANSWER, names: ["x"], only: Uint8Array.of(0), measures: [memory] };
    const of = comparedTraces(one, memory, [1, 1]);
    expect(changes(of)[0]).toBe(15);
    const columns = differenceColumns(of, { theme: "light", byteUnit: "auto" });
    expect(columns.find(({ key }) => key === "percent")?.cell(0).text).toBe("–");
  });
});

describe("steps", () => {
  const part = (role: string, meanMs: number) => ({ role, meanMs });
  const parts = (...of: unknown[]) => ({ parts: of }) as unknown as ProfileResponse;

  it("have a row per role that either has, other last", () =>
    expect(
      rolePairs(
        parts(part("copies", 3), part("other", 2)),
        parts(part("kernel", 5), part("other", 1)),
      ).map(({ role, a, b }) => [role, a, b]),
    ).toEqual([
      ["kernel", 0, 5],
      ["copies", 3, 0],
      ["other", 2, 1],
    ]));
});

describe("the first A", () => {
  const trace = (id: string, rank: number) => ({ id, rank }) as ProfiledTrace;
  const traces = [trace("a0", 0), trace("a1", 1), trace("b0", 0), trace("b1", 1)];

  it("is the cycle before, of the same rank", () => {
    expect(nearest(traces, "b1")).toBe("a1");
    expect(nearest(traces, "a0")).toBe("b0");
  });

  it("is another rank where the rank has one, else B itself", () => {
    expect(nearest(traces.slice(0, 2), "a0")).toBe("a1");
    expect(nearest(traces.slice(0, 1), "a0")).toBe("a0");
  });
});

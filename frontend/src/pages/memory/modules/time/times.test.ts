import { describe, expect, it } from "vitest";
import type { ModuleTimesResponse, TableColumn } from "../../../../api/types.gen";
import { cellText } from "../../../../model/table";
import { tableOf } from "../../../../widgets/row_table/columns";
import { placed } from "../../../../widgets/flame/layout";
import { columnsOf } from "../../../shared/table/columns";
import { flameOf, flameTimes, moduleColumn } from "./times";

function column(key: string, title: string, ...numbers: readonly number[]) {
  const isTime = key.endsWith("_ms");
  const bar = key.startsWith("backward") ? "backward" : "forward";
  const own = { numbers: Float64Array.from(numbers), texts: [], notes: [], hints: [] };
  const texts = { key, title, help: title, absent: "", sorts: true };
  if (!isTime) return { ...own, ...texts, unit: "count", bar: "", sum: null };
  const [root = 0] = numbers;
  const all = key.includes("_self")
    ? numbers.reduce((sum, value) => sum + value)
    : root;
  const shares = { bar, sum: all, longest: all, shareOf: "of all modules" };
  return { ...own, ...texts, ...shares, unit: "ms" };
}

const COLUMNS = [
  column("num_calls", "Calls", 3, 3, 6, 6),
  column("num_operators", "Operators", 0, 1, 1, 1),
  column("host_ms", "Host\ntotal", 100, 80, 15, 5),
  column("host_self_ms", "Host\nself", 5, 1, 2, 2),
  column("backward_host_ms", "Backward\nhost", 50, 10, 40, 0),
  column("backward_host_self_ms", "Backward\nhost self", 0, 10, 40, 0),
] as unknown as readonly TableColumn[];

/** Net_0 holds Linear_0 (80 ms) and Conv_0 (15 ms), which holds ReLU_0. */
const DATA = {
  name: ["Net_0", "Linear_0", "Conv_0", "ReLU_0"],
  path: ["Net_0", "Net_0 / Linear_0", "Net_0 / Conv_0", "Net_0 / Conv_0 / ReLU_0"],
  parent: Int32Array.of(-1, 0, 0, 2),
  table: { columns: COLUMNS, numRows: 4, numAll: 4, usual: "host_ms", colours: [] },
  backward: "",
} as unknown as ModuleTimesResponse;
const VIEW = { theme: "light", byteUnit: "auto" } as const;

describe("time by module", () => {
  it("shows shares of the roots, and of self times of their sum", () => {
    const columns = columnsOf(DATA.table, VIEW);
    const cell = (key: string, id: number) =>
      columns.find((tableColumn) => tableColumn.key === key)?.cell(id);
    expect(cell("host_ms", 1)).toMatchObject({ text: "80.0 ms", bar: { share: 0.8 } });
    expect(cell("host_ms", 1)?.title).toBe("80 ms: 80.0 % of all modules");
    expect(cell("host_self_ms", 0)?.bar?.share).toBe(0.5);
    expect(cell("backward_host_ms", 2)?.bar?.share).toBe(0.8);
    expect(cell("num_calls", 2)?.text).toBe("6");
  });

  it("exports every module with every digit", () => {
    const table = tableOf(
      [moduleColumn(DATA), ...columnsOf(DATA.table, VIEW)],
      [0, 1, 2, 3],
    );
    expect(table.numRows).toBe(4);
    expect(table.columns.map(({ name }) => name)).toContain("backward_host_self_ms");
    expect(table.columns.map((tableColumn) => cellText(tableColumn, 2))).toEqual([
      "Net_0 / Conv_0",
      "6",
      "1",
      "15",
      "2",
      "40",
      "40",
    ]);
  });
});

describe("the flame graph of modules", () => {
  const [host] = flameTimes(DATA);
  if (host === undefined) throw new Error("host times");
  const boxes = (zoom: readonly number[], numbers = host.numbers) => {
    const flame = flameOf(DATA, { ...host, numbers }, "#888888");
    const all = placed(flame, { zoom }, 1000).boxes;
    return all.map(({ row, x, width }) => [
      row,
      Math.round(1000 * x),
      Math.round(1000 * width),
    ]);
  };

  it("has no box for what the host did in no module", () => {
    const numbers = Float64Array.of(100, NaN);
    const parent = Int32Array.of(-1, -1);
    const flame = flameOf({ parent }, { ...host, numbers, sum: 100 }, "#888888");
    const { boxes } = placed(flame, { zoom: [] }, 1000);
    expect(boxes.map(({ width }) => width)).toEqual([1, 1]);
  });

  it("has boxes as wide as their time, inside the one around, the longest first", () =>
    expect(boxes([])).toEqual([
      [0, 0, 1000],
      [1, 0, 1000],
      [2, 0, 800],
      [2, 800, 150],
      [3, 800, 50],
    ]));

  it("shows what is around a module that is zoomed to as wide as all", () =>
    expect(boxes([0, 2])).toEqual([
      [0, 0, 1000],
      [1, 0, 1000],
      [2, 0, 1000],
      [3, 0, 333],
    ]));

  it("leaves out what cannot be seen", () =>
    expect(boxes([], Float64Array.of(100, 99.95, 0.05, 0.05))).toHaveLength(3));

  it("offers times with the modules inside, of devices first", () => {
    expect(flameTimes(DATA).map(({ key }) => key)).toEqual([
      "host_ms",
      "backward_host_ms",
    ]);
    const device = column("device_ms", "Device\ntotal", 1, 1, 0, 0);
    const columns = [...COLUMNS, device as unknown as TableColumn];
    const table = { ...DATA.table, columns };
    expect(flameTimes({ ...DATA, table })[0]?.key).toBe("device_ms");
  });
});

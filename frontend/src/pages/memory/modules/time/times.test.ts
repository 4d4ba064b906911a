import { describe, expect, it } from "vitest";
import type { ModuleBackward, ModuleTimesResponse } from "../../../../api/types.gen";
import { modulePaths } from "../../../../model/module_paths";
import { cellText } from "../../../../model/table";
import { tableOf } from "../../../../widgets/row_table/columns";
import { placed } from "../../../../widgets/flame/layout";
import { BACKWARD_WORDS } from "../../../time/profiled/module_backward";
import { flameTimes, timeColumns } from "./columns";
import { flameOf } from "./flame";

/** Net_0 holds Linear_0 (80 ms) and Conv_0 (15 ms), which holds ReLU_0. */
const DATA = {
  name: ["Net_0", "Linear_0", "Conv_0", "ReLU_0"],
  parent: Int32Array.of(-1, 0, 0, 2),
  numCalls: Float64Array.of(3, 3, 6, 6),
  numOperators: Float64Array.of(0, 1, 1, 1),
  hostMs: Float64Array.of(100, 80, 15, 5),
  hostSelfMs: Float64Array.of(5, 1, 2, 2),
  deviceMs: new Float64Array(4),
  deviceSelfMs: new Float64Array(4),
  backwardHostMs: Float64Array.of(50, 10, 40, 0),
  backwardHostSelfMs: Float64Array.of(0, 10, 40, 0),
  backwardDeviceMs: new Float64Array(4),
  backwardDeviceSelfMs: new Float64Array(4),
  backward: "arrows",
  hasDevices: false,
  hasModules: true,
  numModules: 4,
} as unknown as ModuleTimesResponse;
const PATHS = modulePaths(DATA.name, DATA.parent);

describe("time by module", () => {
  it("names modules from the root down", () =>
    expect(PATHS[3]).toBe("Net_0 / Conv_0 / ReLU_0"));

  it("does not repeat what a name from Lightning holds", () =>
    expect(modulePaths(["net", "net.encoder"], [-1, 0])).toEqual([
      "net",
      "net.encoder",
    ]));

  it("shows shares of the roots, and of self times of their sum", () => {
    const columns = timeColumns(DATA, PATHS, "light");
    const cell = (key: string, id: number) =>
      columns.find((one) => one.key === key)?.cell(id);
    expect(cell("host", 1)).toMatchObject({ text: "80.0 ms", bar: { share: 0.8 } });
    expect(cell("host", 1)?.title).toBe("80 ms: 80.0 % of all modules");
    expect(cell("host_self", 0)?.bar?.share).toBe(0.5);
    expect(cell("backward_host", 2)?.bar?.share).toBe(0.8);
    expect(cell("calls", 2)?.text).toBe("6");
    expect(cell("operators", 0)?.tone).toBe("quiet");
  });

  it("has columns of devices only with devices", () => {
    const keys = (hasDevices: boolean): readonly string[] =>
      timeColumns({ ...DATA, hasDevices }, PATHS, "light").map(({ key }) => key);
    expect(keys(false)).not.toContain("device");
    expect(keys(true)).toContain("backward_device");
  });

  it("fits a screen of 1280 px, whatever the trace knows", () => {
    const columns = timeColumns({ ...DATA, hasDevices: true }, PATHS, "light");
    expect(columns).toHaveLength(11);
    const least = columns.reduce(
      (sum, { width }) => sum + Number(/\d+/.exec(width)?.[0]),
      0,
    );
    // Without the rail, the margins, the frame and a bar that scrolls the rows.
    expect(least).toBeLessThanOrEqual(1280 - 208 - 48 - 2 - 15);
  });

  it("exports every module with every digit", () => {
    const table = tableOf(timeColumns(DATA, PATHS, "light"), [0, 1, 2, 3]);
    expect(table.numRows).toBe(4);
    expect(table.columns.map(({ name }) => name)).toContain("backward_host_self_ms");
    expect(table.columns.map((one) => cellText(one, 2))).toEqual([
      ...["Net_0 / Conv_0", "6", "1", "15", "2", "40", "40"],
    ]);
  });

  it("has columns of backward only where the trace says whose it is, and why not", () => {
    const keys = (backward: ModuleBackward): readonly string[] =>
      timeColumns({ ...DATA, backward }, PATHS, "light").map(({ key }) => key);
    expect(keys("sequence_numbers")).toContain("backward_host_self");
    for (const backward of ["not_run", "not_linked", "not_in_modules"] as const) {
      expect(keys(backward).filter((key) => key.startsWith("backward"))).toEqual([]);
      expect(BACKWARD_WORDS[backward]).toMatch(/^No backward: .+\.$/);
    }
    expect(BACKWARD_WORDS.arrows).toBe("");
  });
});

describe("the flame graph of modules", () => {
  const [host] = flameTimes(DATA);
  if (host === undefined) throw new Error("host times");
  const boxes = (zoom: readonly number[], ms = host.ms) => {
    const all = placed(flameOf(DATA, { ...host, ms }, "#888888"), { zoom }, 1000).boxes;
    return Array.from(all.node, (_, i) => [
      all.row[i],
      Math.round(1000 * (all.x[i] ?? 0)),
      Math.round(1000 * (all.width[i] ?? 0)),
    ]);
  };

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

  it("offers times of devices only where there are devices", () => {
    const keys = (changes: Partial<ModuleTimesResponse>) =>
      flameTimes({ ...DATA, ...changes }).map(({ key }) => key);
    expect(keys({})).toEqual(["host", "backward_host"]);
    expect(keys({ hasDevices: true })[0]).toBe("device");
    expect(keys({ backward: "not_run" })).toEqual(["host"]);
    expect(host.words[0]).toBe("Host");
  });
});

import { describe, expect, it } from "vitest";
import type { ModuleBackward, ModuleTimesResponse } from "../../../../api/types.gen";
import { cellText } from "../../../../model/table";
import { Tree } from "../../../../model/tree";
import { modulePaths } from "../../../../model/module_paths";
import { flameTimes, flameValues, moduleBoxes } from "./boxes";
import { BACKWARD_WORDS } from "../../../time/profiled/module_backward";
import { timeColumns, timeRows, timesTable } from "./rows";

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
const TREE = new Tree(DATA.parent);
const PATHS = modulePaths(DATA.name, DATA.parent);

function rows(changes: Partial<Parameters<typeof timeRows>[3]>): readonly string[] {
  const usual = { key: "host", descending: true };
  const shown = { sort: usual, find: "", depth: 1, toggled: new Set<string>() };
  return timeRows(DATA, TREE, PATHS, { ...shown, ...changes }).map(
    ({ id, depth }) => `${"-".repeat(depth)}${DATA.name[id] ?? ""}`,
  );
}

describe("time by module", () => {
  it("names modules from the root down", () =>
    expect(PATHS[3]).toBe("Net_0 / Conv_0 / ReLU_0"));

  it("does not repeat what a name from Lightning holds", () =>
    expect(modulePaths(["net", "net.encoder"], [-1, 0])).toEqual([
      "net",
      "net.encoder",
    ]));

  it("orders children by the column, and opens as deep as is said", () => {
    expect(rows({})).toEqual(["Net_0", "-Linear_0", "-Conv_0"]);
    expect(rows({ sort: { key: "backward_host", descending: true } })).toEqual([
      "Net_0",
      "-Conv_0",
      "-Linear_0",
    ]);
    expect(rows({ sort: { key: "module", descending: false } })[1]).toBe("-Conv_0");
    expect(rows({ depth: 0 })).toEqual(["Net_0"]);
  });

  it("opens and closes by hand", () => {
    expect(rows({ toggled: new Set(["Net_0 / Conv_0"]) })).toContain("--ReLU_0");
    expect(rows({ toggled: new Set(["Net_0"]) })).toEqual(["Net_0"]);
  });

  it("opens the way to what is searched for", () => {
    expect(rows({ find: "relu" })).toEqual(["Net_0", "-Conv_0", "--ReLU_0"]);
    expect(rows({ find: "nothing" })).toEqual([]);
  });

  it("shows shares of the roots, and of self times of their sum", () => {
    const columns = timeColumns(DATA, PATHS, "light");
    const cell = (key: string, id: number) =>
      columns.find((one) => one.key === key)?.cell(id);
    expect(cell("host", 1)).toMatchObject({ text: "80.0 ms", bar: { to: 0.8 } });
    expect(cell("host_self", 0)?.bar?.to).toBe(0.5);
    expect(cell("backward_host", 2)?.bar?.to).toBe(0.8);
    expect(cell("calls", 2)?.text).toBe("6");
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
    const least = columns.reduce((sum, { minWidthPx }) => sum + minWidthPx, 0);
    // Without the rail, the margins, the frame and a bar that scrolls the rows.
    expect(least).toBeLessThanOrEqual(1280 - 208 - 48 - 2 - 15);
  });

  it("exports every module with every digit", () => {
    const table = timesTable(DATA, PATHS);
    expect(table.numRows).toBe(4);
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
  const host = flameValues(DATA, "host");

  it("has boxes as wide as their time, inside the one around, the longest first", () =>
    expect(moduleBoxes(TREE, host, null)).toEqual([
      { id: 0, x: 0, width: 1, row: 0 },
      { id: 1, x: 0, width: 0.8, row: 1 },
      { id: 2, x: 0.8, width: 0.15, row: 1 },
      { id: 3, x: 0.8, width: 0.05, row: 2 },
    ]));

  it("shows what is around a module that is zoomed to as wide as all", () =>
    expect(moduleBoxes(TREE, host, 2)).toEqual([
      { id: 0, x: 0, width: 1, row: 0 },
      { id: 2, x: 0, width: 1, row: 1 },
      { id: 3, x: 0, width: 5 / 15, row: 2 },
    ]));

  it("leaves out what cannot be seen, and all of it where nothing took time", () => {
    const thin = Float64Array.of(100, 99.95, 0.05, 0.05);
    expect(moduleBoxes(TREE, thin, null).map(({ id }) => id)).toEqual([0, 1]);
    expect(moduleBoxes(TREE, new Float64Array(4), null)).toEqual([]);
  });

  it("offers times of devices only where there are devices", () => {
    expect(flameTimes(DATA)).toEqual(["host", "backward_host"]);
    expect(flameTimes({ ...DATA, hasDevices: true })[0]).toBe("device");
    expect(flameTimes({ ...DATA, backward: "not_run" })).toEqual(["host"]);
    expect(flameValues(DATA, "backward_host")).toBe(DATA.backwardHostMs);
  });
});

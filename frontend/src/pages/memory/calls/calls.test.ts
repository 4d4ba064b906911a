import { describe, expect, it } from "vitest";
import type { FunctionStat } from "../../../api/types.gen";
import { readState, writeState } from "../../shared/page_state";
import { callLines } from "../../shared/panels/over_calls";
import { CALLS, foundStats, sidesAfterClick, SIDES, statsAfterClick } from "./params";

function stat(name: string, group: FunctionStat["group"] = "device"): FunctionStat {
  return { name, label: name, unit: "bytes", group };
}

const ALLOCATED = stat("allocated_bytes.all.current");
const RSS = stat("rss_bytes", "process");
const RETRIES = stat("num_alloc_retries");

describe("the statistics", () => {
  const stats = [ALLOCATED, RSS, RETRIES];

  it("are switched on and off, and back to the usual ones", () => {
    const after = (shown: readonly string[], clicked: string) =>
      statsAfterClick(stats, shown, "rss_bytes", clicked);
    expect(after(["rss_bytes"], "num_alloc_retries")).toBe(
      "rss_bytes,num_alloc_retries",
    );
    expect(after(["rss_bytes", "num_alloc_retries"], "num_alloc_retries")).toBeNull();
    expect(after(["rss_bytes"], "rss_bytes")).toBeNull();
  });

  it("are found by every word, group by group", () => {
    expect(foundStats(stats, "alloc ret")).toEqual([RETRIES]);
    expect(foundStats([RSS, ALLOCATED], "")).toEqual([ALLOCATED, RSS]);
  });
});

describe("the words of the URL", () =>
  it("keep at least one side of a call", () => {
    expect(sidesAfterClick(SIDES, "start")).toEqual(["end", "difference"]);
    expect(sidesAfterClick(["end"], "end")).toEqual(["end"]);
    const sides = (param: string) =>
      readState(CALLS, new Map([["sides", param]])).sides;
    expect(sides("<b>")).toEqual(SIDES);
    expect(sides("end")).toEqual(["end"]);
    expect(writeState(CALLS, { sides: SIDES })).toEqual({ sides: null });
  }));

describe("callLines", () =>
  it("runs over steps, or over the clock where steps do not ascend", () => {
    const calls = {
      step: Float64Array.of(2, 3, 4),
      startMs: Float64Array.of(1000, 2000, 3000),
    };
    const sides = [
      ["start", Float64Array.of(10, 10, 10)] as const,
      ["end", Float64Array.of(30, 5, NaN)] as const,
    ];
    const steps = callLines(calls.step, calls.startMs, sides);
    expect(steps).toMatchObject({ x: "step", extent: { low: 2, high: 4 } });
    expect(steps.lines.map(({ id }) => id)).toEqual(["start", "end"]);
    const again = callLines(Float64Array.of(2, 2, NaN), calls.startMs, sides);
    expect(again).toMatchObject({ x: "wall", extent: { low: 1000, high: 3000 } });
    const none = callLines(calls.step, calls.startMs, [
      ["held", Float64Array.of(NaN, NaN, NaN)],
    ]);
    expect(none.lines).toEqual([]);
  }));

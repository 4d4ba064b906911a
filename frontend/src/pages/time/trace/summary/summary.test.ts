import { idleColumns, idleSentence } from "./idle_part";
import { describe, expect, it } from "vitest";
import type { TraceReport, TraceReportOperators } from "../../../../api/types.gen";
import { sortedRows } from "../../../../model/shown_rows";
import { operatorColumns } from "./operators_part";
import { missingWords, stackOf } from "./memory_part";
import { chosenReport, factsOf, formatFlops, reportTitle } from "./summary";

function report(more: Partial<TraceReport> = {}): TraceReport {
  return {
    id: "0-a-1",
    rank: 0,
    cycle: 1,
    firstStep: 5,
    lastStep: 6,
    numSteps: 2,
    path: "torch_traces/rank0.7.pt.trace.json",
    numBytes: 2048,
    seconds: 0.5,
    activities: ["cpu"],
    options: ["with_flops"],
    flops: 1.14e9,
    kept: true,
    remote: "",
    problem: "",
    ...more,
  };
}

const OPERATORS: TraceReportOperators = {
  name: ["mm", "add", "zero"],
  calls: Float64Array.of(2, 9, 1),
  cpuNs: Float64Array.of(3_000, 500, 0),
  selfCpuNs: Float64Array.of(2_500, 500, 0),
  deviceNs: new Float64Array(3),
  selfDeviceNs: new Float64Array(3),
  cpuMemoryBytes: Float64Array.of(-4_096, 0, 0),
  selfCpuMemoryBytes: new Float64Array(3),
  deviceMemoryBytes: new Float64Array(3),
  selfDeviceMemoryBytes: new Float64Array(3),
  flops: new Float64Array(3),
};

describe("which trace is summed up", () => {
  const all = [
    report(),
    report({ id: "0-a-2", cycle: 2 }),
    report({ id: "1", rank: 1 }),
  ];

  it("is the newest of the lowest rank, or the one in the URL", () => {
    expect(chosenReport(all, undefined)?.id).toBe("0-a-2");
    expect(chosenReport(all, "1")?.rank).toBe(1);
    expect(chosenReport(all, "gone")?.id).toBe("0-a-2");
    expect(chosenReport([], undefined)).toBeNull();
  });

  it("is told by rank, cycle and steps", () => {
    expect(reportTitle(report())).toBe("rank 0, cycle 1, steps 5–6");
    expect(reportTitle(report({ cycle: null, lastStep: 5 }))).toBe("rank 0, step 5");
    const facts = factsOf(report()).join(" · ");
    expect(facts).toContain("1.14 GFLOP counted");
    expect(facts).toContain("rank0.7.pt.trace.json, 2.00 KiB");
    expect(factsOf(report({ path: "" }))).toContain("its trace was not saved");
    expect(factsOf(report({ kept: false })).join()).toContain("no longer kept");
  });
});

describe("operators", () => {
  it("have the columns that hold anything", () => {
    const columns = operatorColumns(OPERATORS, "auto");
    expect(columns.map(({ key }) => key)).toEqual([
      "name",
      "calls",
      "selfCpuNs",
      "cpuNs",
      "cpuMemoryBytes",
    ]);
    expect(columns.at(3)?.cell(0)).toEqual({ text: "3.00 µs", title: "3,000 ns" });
    expect(columns.at(4)?.cell(0).title).toBe("−4,096 bytes");
  });

  it("are sorted by any of them", () => {
    const columns = operatorColumns(OPERATORS, "auto");
    const by = (key: string, descending: boolean) =>
      sortedRows(3, columns.find((one) => one.key === key)?.values, descending);
    expect(by("calls", true)).toEqual([1, 0, 2]);
    expect(by("name", false)).toEqual([1, 0, 2]);
    expect(by("flops", true)).toEqual([0, 1, 2]);
  });

  it("have counts of operations that can be read", () => {
    expect(formatFlops(0)).toBe("0");
    expect(formatFlops(738_200_000)).toBe("738 M");
    expect(formatFlops(999_600)).toBe("1.00 M");
  });
});

describe("memory by category", () => {
  it("names the options it was recorded without", () => {
    expect(missingWords(["with_stack"], [], "")).toContain(
      "without torch_profiler.with_stack. Set it to true",
    );
    expect(missingWords(["record_shapes", "with_stack"], [], "")).toContain(
      "Set them to true",
    );
    expect(missingWords([], [], "")).toContain("memory_timeline was off");
  });

  it("says what the recorder says, with what to do", () => {
    const said = {
      source: "torch_profiler.memory_timeline",
      status: "absent",
      numRanks: 1,
      reason: "the trace has 343,345 events",
      remedy: "Trace fewer steps.",
      cost: "",
    } as const;
    expect(missingWords([], [said], "")).toBe(
      "It was not recorded. The trace has 343,345 events. Trace fewer steps.",
    );
    expect(missingWords([], [said], "no memory timeline: too many")).toBe(
      "It was not recorded. Trace fewer steps.",
    );
  });

  it("is drawn as it came", () => {
    const held = Float64Array.of(1, 5);
    const stack = stackOf({
      device: "cpu",
      devices: ["cpu"],
      xLow: 0,
      xHigh: 10,
      x0: 0,
      xPerColumn: 5,
      totalBytes: held,
      peakX: Float64Array.of(0, 7),
      categories: [{ name: "param", group: "param", bytes: held, baselineBytes: null }],
    });
    expect(stack.totalBytes).toBe(held);
    expect(stack.categories[0]).toMatchObject({ name: "param", baselineBytes: null });
    expect(stack.spans.numLeftOut).toBe(0);
  });
});

describe("idle time", () => {
  const gpu = {
    device: 0,
    stream: null,
    numWorks: 4,
    spanMs: 100,
    hostMs: 40,
    kernelMs: 0,
    otherMs: 10,
    numLaunched: 4,
    delayP50Us: 19,
    delayP95Us: null,
    queueMean: 0.92,
    queueMax: 2,
  };

  it("is said with its largest cause first, and what helps", () => {
    expect(idleSentence(gpu)).toMatch(
      /^GPU 0 was idle 50.0 % of 100 ms: 40.0 % the host launched late, 10.0 % other causes\. Fewer/,
    );
    expect(idleSentence({ ...gpu, hostMs: 0, otherMs: 0 })).toMatch(
      /^GPU 0 was idle 0.* of 100 ms\.$/,
    );
  });

  it("has a dash where nothing is known", () => {
    const cells = idleColumns([gpu, { ...gpu, stream: 7 }]).map(({ key, cell }) => [
      key,
      cell(1).text,
    ]);
    const text = new Map(cells.map(([key, said]) => [key ?? "", said]));
    expect(text.get("where")).toBe("stream 7");
    expect(text.get("p95")).toBe("–");
    expect(text.get("queue")).toBe("0.9");
  });
});

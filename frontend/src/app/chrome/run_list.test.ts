import { describe, expect, it } from "vitest";
import type { RunStanding, RunStatus, RunSummary } from "../../api/types.gen";
import { listedRuns } from "./run_list";

function run(name: string, lastMs: number, live = false): RunSummary {
  const kind = { simulated: false, virtualGpu: "", madeOf: "recording" };
  return { ...kind, id: name, name, lastMs, live } as unknown as RunSummary;
}

function standing(
  name: string,
  status: RunStatus | null,
  peakBytes: number | null,
  finding = "",
): RunStanding {
  return { run: name, status, peakBytes, finding };
}

const ANSWER = {
  runs: [run("exp-10", 3), run("exp-9", 2, true), run("base", 1)],
  standings: [
    standing("exp-9", "out_of_memory", 5),
    standing("base", "warned", 7, "Straggler"),
    standing("exp-10", null, null),
  ],
};

const names = (order: Parameters<typeof listedRuns>[1], text = ""): string =>
  listedRuns(ANSWER, order, text)
    .map(({ summary }) => summary.name)
    .join(" ");

describe("the list of runs", () => {
  it("has the order of the server, the worst first, unless another is chosen", () => {
    expect(names("worst")).toBe("exp-9 base exp-10");
    expect(names("newest")).toBe("exp-10 exp-9 base");
    expect(names("name")).toBe("base exp-9 exp-10");
    expect(names("peak")).toBe("base exp-9 exp-10");
  });

  it("is filtered by name, verdict and kind", () => {
    expect(names("name", "exp")).toBe("exp-9 exp-10");
    expect(names("worst", "STRAGGLER")).toBe("base");
    expect(names("worst", "live memory")).toBe("exp-9");
    expect(names("worst", "absent")).toBe("");
  });
});

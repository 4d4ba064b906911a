import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../../api/types.gen";
import { runBefore } from "./run_before";

describe("the run before", () => {
  const runOf = (name: string, firstMs: number, numRanks = 1): RunSummary =>
    ({ id: name, name, firstMs, numRanks }) as unknown as RunSummary;
  const runs = [
    runOf("exp-10", 5),
    runOf("exp-9", 3),
    runOf("base", 4),
    runOf("exp-2", 1),
    runOf("night/a", 6, 8),
    runOf("night/b", 7, 64),
    runOf("large", 8, 512),
    runOf("gpt-base", 9, 2),
    runOf("other", 10, 16),
    runOf("gpt-checkpointing", 11, 16),
  ];
  const before = (name: string): string | undefined => {
    const run = runs.find((candidate) => candidate.name === name);
    const others = runs.filter((candidate) => candidate !== run);
    return run === undefined ? undefined : runBefore(others, run)?.name;
  };

  it("is alike by its name, its first word, its folder or its ranks", () => {
    expect(before("exp-10")).toBe("exp-9");
    expect(before("base")).toBe("exp-9");
    expect(before("exp-2")).toBe("exp-9");
    expect(before("night/b")).toBe("night/a");
    expect(before("night/a")).toBe("night/b");
    expect(before("large")).toBeUndefined();
    expect(before("gpt-checkpointing")).toBe("gpt-base");
    const [first, two] = [runOf("one", 1, 2), runOf("two", 2, 3)];
    expect(runBefore([two], first)).toBe(two);
  });

  it("is of the same kind of device", () => {
    const [cpu, gpu, newGpu] = ["cpu", "cuda", "cuda"].map((deviceType, place) => ({
      ...runOf(`exp-${place}`, place),
      deviceType,
    }));
    if (cpu === undefined || gpu === undefined || newGpu === undefined) return;
    expect(runBefore([cpu, gpu], newGpu)).toBe(gpu);
    expect(runBefore([gpu, newGpu], cpu)).toBeNull();
  });
});

import { describe, expect, it } from "vitest";
import type { HistoryDevice } from "../../api/types.gen";
import { isSameRank, lastMoment, momentOfA, rankOfA } from "./defaults";
import type { SideState } from "./params";

const B = { run: "new", rank: 3 };
const NOTHING: SideState = { history: "", device: null, moment: null, source: null };
const DEVICE = { numEvents: 90 } as HistoryDevice;

describe("the rank of A", () => {
  it("is B's in another run, and all ranks of B's own run", () => {
    expect(rankOfA("old", "", B)).toEqual({ run: "old", rank: 3 });
    expect(rankOfA("new", "", B)).toEqual({ run: "new", rank: null });
  });

  it("is the one in the URL, whatever B shows", () => {
    expect(rankOfA("old", "5", B).rank).toBe(5);
    expect(rankOfA("new", "3", B)).toEqual(B);
    expect(rankOfA("old", "all", B).rank).toBeNull();
  });

  it("is the same only in the same run", () => {
    expect(isSameRank(rankOfA("new", "3", B), B)).toBe(true);
    expect(isSameRank(rankOfA("old", "3", B), B)).toBe(false);
    expect(isSameRank(rankOfA("new", "all", B), B)).toBe(false);
  });
});

describe("the moment of A", () => {
  it("is the end where both would show the same peak", () =>
    expect(momentOfA(NOTHING, NOTHING, DEVICE)).toBe(lastMoment(DEVICE)));

  it("is the peak where both show different devices or histories", () =>
    expect(momentOfA(NOTHING, NOTHING, null)).toBeNull());

  it.each([
    ["a moment of A", { ...NOTHING, moment: 7 }, NOTHING, 7],
    ["a history of A", { ...NOTHING, history: "1-2" }, NOTHING, null],
    ["a moment of B", NOTHING, { ...NOTHING, moment: 7 }, null],
  ] as const)("is as chosen after %s was", (_, a, b, moment) =>
    expect(momentOfA(a, b, DEVICE)).toBe(moment),
  );
});

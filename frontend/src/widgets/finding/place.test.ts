import { describe, expect, it } from "vitest";
import type { Finding, MemoryState, Place } from "../../api/types.gen";

import { apart, openPlace, placeWords, whereParts } from "./place";

const NOWHERE = {
  rank: null,
  step: null,
  source: null,
  history: null,
  device: null,
  moment: null,
};

function place(changes: Partial<Place>): Place {
  return { page: "steps", label: "Show", ...NOWHERE, ...changes };
}

function finding(changes: Partial<Finding> = {}): Finding {
  return {
    id: "1",
    key: "growth",
    severity: "error",
    title: "Out of memory",
    sentence: "",
    short: "",
    rank: 3,
    device: 0,
    step: 1412,
    timeMs: null,
    during: "backward",
    line: "model.py:128 forward",
    cost: null,
    unit: "bytes",
    also: [],
    evidence: [],
    advice: [],
    place: null,
    others: [],
    rule: "",
    notRecorded: [],
    state: null,
    markdown: "",
    ...changes,
  };
}

describe("the place of a finding", () => {
  it("is the history at the error, without what was chosen before", () => {
    const error = { page: "blocks", history: "3-a-99", device: 0 } as const;
    expect(placeWords(place({ ...error, moment: 421 }))).toMatchObject({
      history: "3-a-99",
      history_device: "0",
      moment: "421",
      life: null,
    });
    // Device and moment are left to the page where the history was not judged.
    expect(placeWords(place(error))).toMatchObject({
      history: "3-a-99",
      history_device: null,
      moment: null,
    });
  });

  it("is a step, or a page and a rank", () => {
    const seen: unknown[] = [];
    const opener = {
      chooseRank: (rank: number | null) => seen.push(rank),
      showPage: (name: string, changes: unknown) => seen.push(name, changes),
    };
    openPlace(place({ step: 399 }), opener);
    openPlace(place({ page: "timeline", rank: 12 }), opener);
    expect(seen).toEqual(["steps", { step: "399" }, 12, "timeline", {}]);
  });
});

describe("where it was", () =>
  it("says as much as is known", () => {
    const state = { origin: "file", file: "exp/rank3.pickle" } as MemoryState;
    expect(whereParts(finding({ state })).join(" · ")).toBe(
      "rank 3 · step 1,412 · backward · model.py:128 forward · exp/rank3.pickle",
    );
    const bare = { rank: null, device: null, step: null, during: "", line: "" };
    expect(whereParts(finding(bare))).toEqual([]);
  }));

describe("the line that is blamed", () =>
  it("is found with and without its function, and never inside another", () => {
    expect(apart("kept by model.py:17 f, not model.py:177 f", "model.py:17 f")).toEqual(
      ["kept by ", "model.py:17 f", ", not model.py:177 f"],
    );
    expect(apart("model.py:17 kept 50 GiB", "model.py:17 f")).toEqual([
      "",
      "model.py:17",
      " kept 50 GiB",
    ]);
    expect(apart("lines are unknown", "")).toEqual(["lines are unknown"]);
  }));

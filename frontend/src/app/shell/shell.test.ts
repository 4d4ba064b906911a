import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../api/types.gen";
import { matchCommands } from "../chrome/overlays";
import { findTab, nextTab, PAGES, TABS } from "../pages";
import { readDraft } from "../chrome/rank_chooser";
import { commandsOf } from "../../base/commands";
import { findRun, neighbourRanks } from "./run";

function run(id: string, lastMs: number): RunSummary {
  return {
    id,
    name: id,
    numRanks: 1,
    worldSize: 1,
    numAttempts: 1,
    firstMs: 0,
    lastMs,
    lastStep: null,
    live: false,
    simulated: false,
    virtualGpu: "",
    deviceType: "cpu",
    numProblems: 0,
    imported: false,
    madeOf: "recording",
  };
}

describe("findRun", () => {
  const runs = [run("old", 1), run("new", 9), run("mid", 5)];

  it("takes the one that needs a look where none is named", () => {
    expect(findRun(runs, "", "mid")?.id).toBe("mid");
    expect(findRun([], "", "")).toBeNull();
  });

  it("never shows another run than the one named", () => {
    expect(findRun(runs, "mid", "new")?.id).toBe("mid");
    expect(findRun(runs, "gone", "new")).toBeNull();
  });

  it("knows a run by the name a person types, but its id comes first", () => {
    const named = [{ ...run("a1", 1), name: "b2" }, run("b2", 2)];
    expect(findRun(named, "b2", "")?.id).toBe("b2");
    expect(findRun([{ ...run("a1", 1), name: "exp" }], "exp", "")?.id).toBe("a1");
  });
});

describe("neighbourRanks", () => {
  const runRanks = new Int32Array([0, 1, 5, 9]);

  it("skips ranks that recorded nothing and stops at the ends", () => {
    expect(neighbourRanks(runRanks, 5)).toEqual({ before: 1, after: 9 });
    expect(neighbourRanks(runRanks, 0)).toEqual({ before: null, after: 1 });
    expect(neighbourRanks(runRanks, 9)).toEqual({ before: 5, after: null });
    expect(neighbourRanks(runRanks, 7)).toEqual({ before: 5, after: 9 });
    expect(neighbourRanks(runRanks, null)).toEqual({ before: 9, after: 0 });
    expect(neighbourRanks(null, 5)).toEqual({ before: null, after: null });
  });
});

describe("readDraft", () => {
  const runRanks = new Int32Array([0, 1, 2, 3]);

  it("opens one rank, filters several, widens on nothing", () => {
    expect(readDraft("3", runRanks)).toEqual({ rank: 3, filter: "", problem: null });
    expect(readDraft("2-2", runRanks)).toEqual({ rank: 2, filter: "", problem: null });
    expect(readDraft("0 - 2, 3", runRanks)).toEqual({
      rank: null,
      filter: "0-3",
      problem: null,
    });
    expect(readDraft(" ", runRanks)).toEqual({ rank: null, filter: "", problem: null });
  });

  it("says which ranks there are when none of those named exists", () => {
    expect(readDraft("9", runRanks).problem).toBe(
      "Rank 9 is not in this run. This run has 0-3.",
    );
    expect(readDraft("8-9", runRanks).problem).toContain("None of these ranks is in");
    expect(readDraft("2-9", runRanks).problem).toBeNull();
    expect(readDraft("9", null).problem).toBeNull();
  });

  it("explains the grammar", () =>
    expect(readDraft("all", runRanks).problem).toContain("0-7,64"));
});

describe("commands", () => {
  const commands = [
    ...commandsOf("ranks", "Ranks", [["before", "Previous rank", () => undefined]]),
    ...commandsOf("page", "Page", [["copy", "Copy a link", () => undefined]]),
  ];

  it("lead to five pages, and each tab has a name of its own", () => {
    expect(PAGES).toHaveLength(5);
    expect(new Set(TABS.map((tab) => tab.name)).size).toBe(TABS.length);
  });

  it("go through the tabs of a page by its key", () => {
    const seen = ["overview"];
    for (let i = 0; i < 5; i += 1)
      seen.push(nextTab("Memory", findTab(seen.at(-1) ?? ""), []).name);
    expect(seen.slice(1)).toEqual(["blocks", "segments", "modules", "calls", "blocks"]);
    expect(nextTab("Compare", findTab("compare"), []).name).toBe("compare");
  });

  it("lead back to the tab that was shown last, unless this run has no data for it", () => {
    const overview = findTab("overview");
    expect(nextTab("Memory", overview, [], "modules").name).toBe("modules");
    const empty = [{ tab: "modules", missing: "", how: "" }];
    expect(nextTab("Memory", overview, empty, "modules").name).toBe("calls");
    expect(nextTab("Memory", findTab("calls"), empty, "calls").name).toBe("blocks");
  });

  it("pass over tabs without data, where any other has some", () => {
    const empty = ["blocks", "segments"].map((tab) => ({ tab, missing: "", how: "" }));
    expect(nextTab("Memory", findTab("overview"), empty).name).toBe("modules");
    expect(nextTab("Memory", findTab("calls"), empty).name).toBe("modules");
    const all = TABS.map(({ name }) => ({ tab: name, missing: "", how: "" }));
    expect(nextTab("Memory", findTab("overview"), all).name).toBe("blocks");
  });

  it("are found by words in any order and case", () => {
    const ids = (text: string): string[] =>
      matchCommands(commands, text).map((c) => c.id);
    expect(ids("LINK copy")).toEqual(["page.copy"]);
    expect(ids("rank prev")).toEqual(["ranks.before"]);
    expect(ids("")).toHaveLength(commands.length);
    expect(ids("nonsense")).toEqual([]);
    const finding = { id: "f", label: "Memory grows", group: "Finding", run: () => 0 };
    expect(matchCommands([finding], "leak")).toEqual([finding]);
  });
});

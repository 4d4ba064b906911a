import { describe, expect, it } from "vitest";
import type { DistributedResponse } from "../../../api/types.gen";
import { collectiveColumns, rankColumns } from "./columns";
import { groupColumns, USUAL_GROUPS } from "./group_columns";
import {
  collectivesHolding,
  missingWords,
  waitWords,
  ranksNamed,
  shownRank,
  spreadWords,
} from "./search";
import { HEAT_WORDS, RANK_HEATS, RANK_PARTS, rankHeat } from "./parts";

const numbers = (...values: readonly number[]) => Float64Array.from(values);

const DATA = {
  rank: Int32Array.of(0, 3),
  stepMs: numbers(10, NaN),
  computationMs: numbers(4, NaN),
  overlapMs: numbers(1, NaN),
  communicationMs: numbers(2, NaN),
  otherMs: numbers(3, NaN),
  transferMs: numbers(2, 1),
  waitingMs: numbers(0, 5),
  collectives: {
    rank: Int32Array.of(0, 3),
    kind: ["all_reduce", "all_gather"],
    group: ["0", ""],
    groupSize: Int32Array.of(2, -1),
    numCalls: numbers(4, 2),
    numBytes: numbers(1024, NaN),
    totalMs: numbers(8, 6),
    transferMs: numbers(2, NaN),
    busBytesPerSecond: numbers(5e9, NaN),
    numLast: numbers(1, NaN),
    numCompared: numbers(3, 0),
  },
} as unknown as DistributedResponse;

describe("ranks", () => {
  it("show the parts of their step, measured by the longest", () => {
    const columns = rankColumns(DATA, "light");
    const cell = columns.find(({ key }) => key === "computation_ms")?.cell(0);
    expect(cell?.text).toBe("4.00 ms");
    expect(cell?.bar?.share).toBeCloseTo(0.4);
  });

  it("say where a trace tells no rank", () => {
    const data = { ...DATA, rank: Int32Array.of(-1, 3) };
    const cells = rankColumns(data, "light").find(({ key }) => key === "rank");
    expect([cells?.cell(0).text, cells?.cell(1).text]).toEqual(["–", "3"]);
  });

  it("say where a rank has no such step", () => {
    const cell = rankColumns(DATA, "dark")
      .find(({ key }) => key === "step_ms")
      ?.cell(1);
    expect(cell?.text).toBe("–");
  });

  it("have values for each column that sorts", () => {
    for (const { values } of rankColumns(DATA, "light")) expect(values).toHaveLength(2);
  });

  it("have a help text for every metric", () => {
    const columns = [...rankColumns(DATA, "light"), ...collectiveColumns(DATA, "auto")];
    const plain = columns.filter(({ hint }) => hint === undefined);
    expect(plain.map(({ title }) => title)).toEqual(["Rank"]);
  });

  it("have a column of every part", () => {
    const names = rankColumns(DATA, "light").map(({ key }) => key);
    for (const part of RANK_PARTS) expect(names).toContain(`${part}_ms`);
  });
});

describe("collectives", () => {
  it("say what is not known as such", () => {
    const columns = collectiveColumns(DATA, "auto");
    const text = (key: string, row: number) =>
      columns.find((one) => one.key === key)?.cell(row).text;
    expect(text("bytes", 1)).toBe("–");
    expect(text("bus", 0)).toMatch(/\/s$/);
    expect(text("mean", 0)).toBe("2.00 ms");
    expect(text("group", 1)).toBe("–");
  });

  it("say what is not known without all their ranks, and of how many calls it is", () => {
    const columns = collectiveColumns(DATA, "auto");
    for (const key of ["transfer", "bus", "last"]) {
      const cell = columns.find((one) => one.key === key)?.cell(1);
      expect(cell?.text).toBe("–");
      expect(cell?.title).toContain("not all ranks");
    }
    expect(columns.find((one) => one.key === "last")?.cell(0)).toMatchObject({
      text: "1",
      note: "3 of 4 calls",
    });
  });

  it("have values for each column that sorts", () => {
    for (const { values } of collectiveColumns(DATA, "auto")) {
      expect(values).toHaveLength(2);
    }
  });
});

describe("ranks without a trace", () => {
  const without = (...missing: readonly number[]) =>
    missingWords({
      ...DATA,
      missing: Int32Array.from(missing),
      numMissing: missing.length,
      numCollectives: 2,
      numOpening: 0,
    });

  it("are named, and what is not known without them", () => {
    expect(without()).toBe("");
    expect(without(1)).toMatch(
      /^No trace of rank 1 is compared here\..* it takes part\.$/,
    );
    expect(without(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)).toContain(
      "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more",
    );
  });

  it("are not missing while they are read", () => {
    const opening = { ...DATA, missing: Int32Array.of(1), numMissing: 1 };
    expect(missingWords({ ...opening, numCollectives: 2, numOpening: 1 })).toBe("");
  });
});

describe("searching", () => {
  it("finds ranks as the rail does, also while a range is typed", () => {
    expect([...(ranksNamed("0-2, 64").ranks ?? [])]).toEqual([0, 1, 2, 64]);
    expect([...(ranksNamed("5-").ranks ?? [])]).toEqual([5]);
    expect(ranksNamed(" ")).toEqual({ ranks: null, problem: null });
    expect(ranksNamed("all").ranks).toBeNull();
    expect(ranksNamed("all").problem).toContain("0-7,64");
  });

  it("finds collectives by every word, and numbers by the whole rank", () => {
    const held = (text: string) => {
      const rows = collectivesHolding(DATA.collectives, text);
      return rows === null ? null : [...rows];
    };
    expect(held("")).toBeNull();
    expect(held("ALL_")).toEqual([0, 1]);
    expect(held("gather 3")).toEqual([1]);
    expect(held("reduce 3")).toEqual([]);
    expect(held("(")).toEqual([]);
  });
});

describe("a cell of several ranks", () =>
  it("stands for the one that differs most, also downwards", () => {
    const many = {
      rank: Int32Array.of(0, 1, 2, 3, 9),
      stepMs: numbers(10, 10, 10, 12, 10),
      communicationMs: numbers(3, 3, 1, 4, NaN),
    } as unknown as DistributedResponse;
    expect(shownRank(many, "communication", 0, 3)).toBe(2);
    expect(shownRank(many, "step", 0, 3)).toBe(3);
    expect(shownRank(many, "communication", 9, 9)).toBe(9);
    expect(shownRank(many, "communication", 4, 8)).toBe(4);
  }));

describe("what distinguishes ranks", () => {
  it("is said with the ranks at both ends", () => {
    const many = {
      rank: Int32Array.of(0, 1, 2),
      communicationMs: numbers(5, 1, 2),
    } as unknown as DistributedResponse;
    expect(spreadWords(many)).toBe(
      "Exposed communication of a step: 1.00 ms (rank 1) to 5.00 ms (rank 0), median 2.00 ms.",
    );
  });

  it("is nothing of one rank, or without communication", () => {
    expect(spreadWords(DATA)).toBe("");
    const none = { ...DATA, communicationMs: numbers(0, 0) } as DistributedResponse;
    expect(spreadWords(none)).toBe("");
  });

  it("is what is exposed unless the URL says another part", () => {
    expect(rankHeat(undefined)).toBe("communication");
    expect(rankHeat("constructor")).toBe("communication");
    for (const part of RANK_HEATS) {
      expect(rankHeat(part)).toBe(part);
      expect(HEAT_WORDS[part][1].length).toBeGreaterThan(20);
    }
  });
});

describe("process groups", () => {
  const data = {
    groups: {
      kind: ["all_gather", "reduce_scatter"],
      group: ["0", ""],
      numRanks: Int32Array.of(8, 2),
      numMatched: Int32Array.of(30, 3),
      meanSkewMs: numbers(2, 1),
      maxSkewMs: numbers(9, 1),
      lastRank: Int32Array.of(5, 0),
      lastShare: numbers(0.8, 0.5),
    },
  } as unknown as DistributedResponse;

  it("say who is waited for, and what each number is", () => {
    const columns = groupColumns(data, "light");
    const texts = columns.map(({ cell }) => cell(0).text);
    expect(texts).toEqual([
      ...["all_gather", "0", "8", "30", "2.00 ms", "9.00 ms", "rank 5", "80 %"],
    ]);
    for (const column of columns) {
      expect(column.hint).toMatch(/\w{3}/);
      expect(column.values).toHaveLength(2);
    }
    expect(columns.map(({ key }) => key)).not.toContain(USUAL_GROUPS.key);
  });
});

describe("waitWords", () => {
  const groups = {
    kind: ["all_gather", "all_reduce"],
    group: ["", "dp"],
    lastRank: Int32Array.of(-1, 3),
    lastShare: numbers(NaN, 0.8),
    meanSkewMs: numbers(NaN, 12),
    maxSkewMs: numbers(NaN, 45),
  };

  it("says who is waited for, and who waits longest", () => {
    const data = { ...DATA, groups } as unknown as DistributedResponse;
    expect(waitWords(data)).toBe(
      "The others wait for rank 3: it comes last in 80 % of all_reduce of group dp, 12.0 ms each on average, at most 45.0 ms. Rank 3 waits longest, 5.00 ms.",
    );
    const waitingMs = numbers(NaN, NaN);
    expect(waitWords({ ...data, waitingMs })).toMatch(/at most 45.0 ms\.$/);
  });

  it("says nothing where a rank may be missing", () => {
    const unknown = { ...groups, lastRank: Int32Array.of(-1, -1) };
    const data = { ...DATA, groups: unknown } as unknown as DistributedResponse;
    expect(waitWords(data)).toBe("");
  });
});

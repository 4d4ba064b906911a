import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../../../api/client";
import { readState, writeState } from "../../shared/page_state";
import { Answers } from "./answers";
import { SEGMENTS } from "./params";

describe("words of the URL", () => {
  it("are read and checked", () => {
    const words = new Map([
      ["part", "events"],
      ["scale", "fit"],
      ["size_class", "huge"],
      ["segment", "7f0000000000"],
      ["request", "536870912"],
      ["sort", "largest_free"],
      ["s0", "10"],
      ["s1", "20"],
    ]);
    expect(readState(SEGMENTS, words)).toMatchObject({
      part: "events",
      scale: "fit",
      sizeClass: null,
      segment: 0x7f0000000000,
      request: 536870912,
      sort: "largest_free",
      range: { low: 10, high: 20 },
    });
    expect(readState(SEGMENTS, new Map([["scale", "-4"]])).scale).toBe("auto");
  });

  it("come back as they went", () => {
    const written = { range: { low: 10, high: 19 }, segment: 0x7f0000000000 };
    expect(writeState(SEGMENTS, { ...written, scale: 65536, sort: "size" })).toEqual({
      ...{ s0: "10", s1: "19", segment: "7f0000000000", scale: "65536", sort: null },
    });
  });
});

/** A server whose answers arrive when the test says so. */
function slow() {
  const asked: number[] = [];
  const open = new Map<
    number,
    {
      readonly resolve: (word: string) => void;
      readonly reject: (why: unknown) => void;
    }
  >();
  const failed: (ApiError | null)[] = [];
  const answers = new Answers<string>(
    (key) =>
      new Promise((resolve, reject) => {
        asked.push(key);
        open.set(key, { resolve, reject });
      }),
    (error) => failed.push(error),
  );
  const settled = async (): Promise<void> => {
    await Promise.resolve();
    await Promise.resolve();
  };
  return {
    ...{ asked, answers, failed },
    answer: (key: number) => {
      open.get(key)?.resolve(`at ${key}`);
      return settled();
    },
    fail: (key: number) => {
      open.get(key)?.reject(new ApiError("no", "there", "wait", "server"));
      return settled();
    },
  };
}

describe("answers", () => {
  it("are asked for of the newest alone while a drag goes on", async () => {
    const { asked, answers, answer } = slow();
    for (const moment of [1, 2, 3, 4, 5]) answers.want([moment]);
    expect(asked).toEqual([1]);
    await answer(1);
    expect(asked).toEqual([1, 5]);
    // What came last is shown until the wanted one is there.
    expect(answers.newest).toBe("at 1");
    await answer(5);
    expect(answers.newest).toBe("at 5");
  });

  it("do not come after a newer one", async () => {
    const { answers, answer } = slow();
    answers.want([5]);
    await answer(5);
    answers.want([6]);
    answers.want([5]);
    await answer(6);
    expect(answers.newest).toBe("at 5");
    expect(answers.get(6)).toBe("at 6");
  });

  it("are at hand before they are due", async () => {
    const { asked, answers, answer } = slow();
    answers.want([10]);
    await answer(10);
    answers.want([10, 11, 12, 13, 14]);
    expect(asked).toEqual([10, 11, 12, 13]);
    await answer(12);
    expect(answers.newest).toBe("at 10");
    answers.want([12]);
    expect(answers.newest).toBe("at 12");
    expect(asked).toEqual([10, 11, 12, 13, 14]);
  });

  it("are asked for again a while after a failure", async () => {
    vi.useFakeTimers();
    try {
      const { asked, answers, answer, fail, failed } = slow();
      answers.want([3]);
      await fail(3);
      expect(failed[0]?.what).toBe("no");
      vi.advanceTimersByTime(2_000);
      expect(asked).toEqual([3, 3]);
      await answer(3);
      expect(answers.newest).toBe("at 3");
      expect(failed.at(-1)).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });

  it("are given up together", async () => {
    const { answers, answer, failed } = slow();
    answers.want([1]);
    answers.close();
    await answer(1);
    expect(answers.get(1)).toBeUndefined();
    expect(failed).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { TileLoader } from "../../../api/tiles";
import { readState, writeState } from "../../shared/page_state";
import { answerSource } from "./answers";
import { SEGMENTS } from "./params";

describe("words of the URL", () => {
  it("are read and checked", () => {
    const params = new Map([
      ["part", "events"],
      ["scale", "fit"],
      ["size_class", "huge"],
      ["segment", "7f0000000000"],
      ["request", "536870912"],
      ["sort", "largest_free"],
      ["s0", "10"],
      ["s1", "20"],
    ]);
    expect(readState(SEGMENTS, params)).toMatchObject({
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
      s0: "10",
      s1: "19",
      segment: "7f0000000000",
      scale: "65536",
      sort: null,
    });
  });
});

type Answer = Awaited<ReturnType<ReturnType<typeof answerSource<string>>["ask"]>>;

/** A server whose answers arrive when the test says so. */
function slow() {
  const asked: number[] = [];
  const open = new Map<number, (word: string) => void>();
  const loader = new TileLoader<readonly number[], number, Answer>();
  const ask = (key: number): Promise<string> =>
    new Promise((resolve) => {
      asked.push(key);
      open.set(key, resolve);
    });
  loader.about(answerSource({}, ask));
  return {
    asked,
    want: (...keys: readonly number[]) => loader.look(keys, true),
    loaded: () => loader.shown.map(({ answer }) => answer),
    answer: async (key: number) => {
      open.get(key)?.(`at ${key}`);
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    },
  };
}

describe("answers", () => {
  it("are asked for of the newest alone while a drag goes on", async () => {
    const { asked, want, loaded, answer } = slow();
    for (const moment of [1, 2, 3, 4, 5]) want(moment);
    expect(asked).toEqual([1]);
    await answer(1);
    expect(asked).toEqual([1, 5]);
    // What came last is shown until the wanted one is there.
    expect(loaded()).toEqual(["at 1"]);
    await answer(5);
    expect(loaded()).toEqual(["at 1", "at 5"]);
  });

  it("are at hand before they are due", async () => {
    const { asked, want, loaded, answer } = slow();
    want(10, 11, 12);
    for (const moment of [10, 11]) await answer(moment);
    expect(asked).toEqual([10, 11, 12]);
    want(11, 12, 13);
    expect(loaded()).toEqual(["at 10", "at 11"]);
    await answer(12);
    expect(asked).toEqual([10, 11, 12, 13]);
  });
});

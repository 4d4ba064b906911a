import { describe, expect, it } from "vitest";
import { readHash, START, withParams, writeHash, type Place } from "./location";

const FULL: Place = {
  view: "timeline",
  run: "llama/fsdp2 & co=<b>",
  rank: 12,
  ranks: "0-7,64",
  pinned: [3, 40],
  unit: "GiB",
  params: new Map([
    ["series", "step/allocated_peak_bytes"],
    ["x0", "12.5"],
  ]),
};

describe.each([true, false])("place and hash, embedded: %s", (embedded) => {
  it("come back as they went in", () => {
    expect(readHash(writeHash("", FULL, embedded), embedded)).toEqual(FULL);
    expect(readHash(writeHash("", START, embedded), embedded)).toEqual(START);
  });

  it("survive being read and written again, letter by letter", () => {
    const hash = writeHash("", FULL, embedded);
    const again = readHash(hash, embedded);
    expect(again === null ? null : writeHash("", again, embedded)).toBe(hash);
  });

  it("take anything typed by hand", () => {
    const prefix = embedded ? "#memboard&p.memboard." : "#";
    for (const text of ["rank=abc", "rank=-1", "rank=1e3", "rank=99999999999"]) {
      expect(readHash(prefix + text, embedded)?.rank, text).toBeNull();
    }
    expect(readHash(`${prefix}ranks=x-y`, embedded)?.ranks).toBe("");
    expect(readHash(`${prefix}unit=parsec`, embedded)?.unit).toBe("auto");
    expect(readHash(`${prefix}run=%E0%A4%A`, embedded)?.run).toBe("%E0%A4%A");
  });
});

describe("inside TensorBoard", () => {
  it("writes words as TensorBoard's plugins do", () => {
    const place = { ...START, view: "overview", rank: 12 };
    expect(writeHash("", place, true)).toBe(
      "#memboard&p.memboard.view=overview&p.memboard.rank=12",
    );
    expect(writeHash("#scalars", START, true)).toBe("#memboard");
  });

  it("leaves the words of others alone", () => {
    const hash = writeHash(
      "#memboard&p.memboard.rank=3&p.other.a=b%20c&x=1",
      START,
      true,
    );
    expect(hash).toBe("#memboard&p.other.a=b%20c&x=1");
  });

  it("knows when another tab is shown", () => {
    expect(readHash("#timeseries&p.memboard.rank=3", true)).toBeNull();
    expect(readHash("", true)).toEqual(START);
  });
});

describe("withParams", () => {
  it("changes, adds and removes the views' words only", () => {
    const place = withParams(FULL, { x0: null, x1: "9", series: "" });
    expect([...place.params]).toEqual([["x1", "9"]]);
    expect(place.rank).toBe(12);
    expect(FULL.params.size).toBe(2);
  });

  it("refuses a word of the shell", () =>
    expect(() => withParams(START, { rank: "1" })).toThrow(/rank/));
});

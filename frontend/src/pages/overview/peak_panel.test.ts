import { describe, expect, it } from "vitest";
import type { PeakComposition } from "../../api/types.gen";
import { peakParts } from "./peak_panel";

const GIB = 2 ** 30;

function composition(changes: Partial<PeakComposition>): PeakComposition {
  return {
    title: "",
    sentence: "",
    bytes: 4 * GIB,
    reservedBytes: 5 * GIB,
    capacityBytes: null,
    categories: [
      { label: "param", category: "param", bytes: 3 * GIB },
      { label: "grad", category: "grad", bytes: GIB },
    ],
    holdersTitle: "",
    holders: [],
    notRecorded: [],
    place: {
      page: "blocks",
      label: "",
      rank: null,
      step: null,
      source: null,
      history: null,
      device: null,
      moment: null,
    },
    ...changes,
  };
}

const drawn = (changes: Partial<PeakComposition>) =>
  peakParts(composition(changes), "light").map(({ name, value }) => [
    name,
    value / GIB,
  ]);

describe("peakParts", () => {
  it("ends with what is reserved beyond the categories", () => {
    expect(drawn({})).toEqual([
      ["param", 3],
      ["grad", 1],
      ["reserved", 1],
    ]);
    expect(drawn({ reservedBytes: null })).toEqual([
      ["param", 3],
      ["grad", 1],
    ]);
  });

  it("fills the device where the peak can be seen on it", () => {
    expect(drawn({ capacityBytes: 16 * GIB }).at(-1)).toEqual(["free", 11]);
    expect(drawn({ capacityBytes: 80 * GIB }).at(-1)).toEqual(["reserved", 1]);
  });
});

import { describe, expect, it } from "vitest";
import { testDevice } from "../../../widgets/block_stack/test_tile";
import {
  firstMoment,
  momentName,
  momentWords,
  pinnedMoment,
  readMemory,
  shownMoment,
  stepAt,
} from "./moment";

const device = testDevice();
const marked = (kind: readonly number[], moment: readonly number[]) => ({
  ...device,
  marks: {
    ...device.marks,
    kind: Uint8Array.from(kind),
    moment: Int32Array.from(moment),
  },
});
const read = (params: Readonly<Record<string, string>>) =>
  readMemory(new Map(Object.entries(params)));

describe("the moment of all tabs", () => {
  it("begins at the first error, else at the peak", () => {
    expect(firstMoment(device)).toBe(4);
    expect(firstMoment(marked([1, 0, 0], [1, 6, 8]))).toBe(6);
  });

  it("is named by what it is", () => {
    expect(momentName(device, 4)).toBe("the peak");
    expect(momentName(device, 5)).toBe("");
    const both = marked([0, 0], [4, 6]);
    expect(momentName(both, 4)).toBe("out of memory, the peak");
    expect(momentName(both, 6)).toBe("out of memory");
  });

  it("belongs to one device of one history", () => {
    const here = { history: "a", device };
    const params = momentWords(7, here);
    expect(params).toEqual({ moment: "7", history: "a", history_device: "0" });
    expect(momentWords(null, here)).toEqual({ moment: null });
    const state = read(params as Record<string, string>);
    expect(pinnedMoment(state, here)).toBe(7);
    expect(pinnedMoment(state, { ...here, history: "b" })).toBeNull();
    const other = { ...device, device: 1 };
    expect(pinnedMoment(state, { ...here, device: other })).toBeNull();
    expect(shownMoment(state, { ...here, history: "b" })).toBe(4);
    expect(shownMoment(read({ moment: "400" }), here)).toBe(9);
    expect(shownMoment(read({ moment: "x" }), here)).toBe(4);
  });

  it("lies in a step: the span that holds it, or the mark it is", () => {
    const stepped = {
      ...device,
      marks: {
        ...device.marks,
        kind: Uint8Array.of(3, 3, 0),
        moment: Int32Array.of(-1, 3, 9),
        end: Int32Array.of(3, 8, 9),
        step: Float64Array.of(6, 7, 8),
      },
    };
    expect([0, 3, 4, 8, 9].map((moment) => stepAt(stepped, moment))).toEqual([
      6, 6, 7, 7, 8,
    ]);
    expect(stepAt(device, 4)).toBeNull();
  });
});

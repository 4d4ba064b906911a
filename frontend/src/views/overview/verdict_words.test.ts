import { describe, expect, it } from "vitest";
import type { OutOfMemory } from "../../api/types.gen";
import {
  chipWords,
  figures,
  isAnalysing,
  openWords,
  titleParts,
  wordOf,
} from "./verdict_words";

const none = new Float64Array();

function error(changes: Partial<OutOfMemory> = {}): OutOfMemory {
  return {
    id: "3-a-77",
    origin: "oom",
    isOutOfMemory: true,
    rank: 3,
    attempt: 1,
    device: 0,
    step: 1412,
    phase: "train",
    during: "backward",
    askedAt: "model.py:128 forward",
    timeMs: null,
    message: "",
    analysed: true,
    cause: "fragmented",
    also: [],
    sentence: "",
    file: "exp/rank3.pickle",
    numEarlier: 0,
    heldSentence: "",
    requestedBytes: 2 ** 31,
    deviceFreeBytes: 2 ** 30,
    capacityBytes: null,
    reservedBytes: null,
    allocatedBytes: 5,
    activeBytes: 7,
    freeBytes: 100,
    numFreeBlocks: 1,
    largestFreeBytes: 60,
    evidence: [],
    advice: [],
    holders: [],
    stack: [],
    history: "3-a-99",
    moment: 421,
    peers: {
      rank: new Int32Array(),
      step: none,
      allocatedBytes: none,
      reservedBytes: none,
      peakBytes: none,
      ended: new Uint8Array(),
      ranOut: new Uint8Array(),
    },
    report: "",
    notRecorded: [],
    ...changes,
  };
}

describe("the verdict's words", () => {
  it("say where it happened, as far as that is known", () => {
    expect(titleParts(error({ origin: "file" })).join(" · ")).toBe(
      "rank 3 · device 0 · step 1,412 · backward · model.py:128 forward · exp/rank3.pickle",
    );
    const bare = {
      file: "",
      rank: null,
      step: null,
      during: "",
      askedAt: "",
      device: null,
    };
    expect(titleParts(error(bare))).toEqual([]);
  });

  it("name other ends for what they are", () => {
    expect(wordOf(error())).toBe("Out of memory");
    const signal = error({ origin: "signal", isOutOfMemory: false });
    expect(wordOf(signal)).toBe("Ended by a signal");
    expect(chipWords(signal)).toBe("rank 3 · step 1,412: Ended by a signal");
    expect(chipWords(error({ rank: null, step: null }))).toBe("device 0: Fragmented");
  });

  it("open the history at the error", () => {
    expect(openWords(error())).toMatchObject({
      history: "3-a-99",
      history_device: "0",
      moment: "421",
      life: null,
    });
  });

  it("leave device and moment to the page where the history was not judged", () => {
    expect(openWords(error({ moment: null }))).toMatchObject({
      history: "3-a-99",
      history_device: null,
      moment: null,
    });
  });

  it("show the figures that are known, active before allocated", () => {
    expect(figures(error()).map(({ key }) => key)).toEqual([
      "asked",
      "free",
      "blocks",
      "largest",
      "live",
    ]);
    expect(figures(error())[4]?.value).toBe(7);
    expect(figures(error())[2]?.note).toBe("in 1 block");
    expect(figures(error({ activeBytes: null }))[4]?.value).toBe(5);
  });
});

describe("isAnalysing", () => {
  it("holds until the history that may change the numbers is read", () => {
    const one = { analysed: false, history: "0-a-1" };
    expect(isAnalysing(one, { stillReading: true })).toBe(true);
    expect(isAnalysing(one, { stillReading: false })).toBe(false);
    expect(isAnalysing({ ...one, analysed: true }, { stillReading: true })).toBe(false);
    expect(isAnalysing({ ...one, history: null }, { stillReading: true })).toBe(false);
  });
});

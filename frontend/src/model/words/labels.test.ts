import { describe, expect, it } from "vitest";
import { asSentence, sourceLabel } from "./source_label";
import { sentenceCase } from "./sentence_case";
import { formatExact, formatQuantity } from "./quantity";

describe("sentenceCase", () =>
  it("has an answer for anything", () => {
    expect(sentenceCase("rank_lost")).toBe("Rank lost");
    expect(sentenceCase("_x__gpu_")).toBe("X GPU");
  }));

describe("formatQuantity", () => {
  it.each([
    [1536, "bytes", "1.50 KiB", "1,536 bytes"],
    [1536, "bytes_per_step", "1.50 KiB/step", "1,536 bytes per step"],
    [1536, "bytes_per_second", "1.50 KiB/s", "1,536 bytes per second"],
    [12, "count", "12", "12"],
    [0.5, "count", "0.50", "0.5"],
    [3.456, "per_second", "3.46/s", "3.456 per second"],
    [97.13, "percent", "97.1 %", "97.13 %"],
    [9.36, "percent", "9.4 %", "9.36 %"],
    [0.042, "percent", "0.04 %", "0.042 %"],
    [0.0213, "seconds", "21.3 ms", "0.0213 s"],
    [61, "celsius", "61.0 °C", "61 °C"],
    [612.4, "watts", "612 W", "612.4 W"],
  ] as const)("%d %s", (value, unit, text, exact) => {
    expect(formatQuantity(value, unit)).toBe(text);
    expect(formatExact(value, unit)).toBe(exact);
  });

  it("never makes a number of what is absent", () => {
    for (const absent of [null, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(formatQuantity(absent, "bytes")).toBe("–");
      expect(formatExact(absent, "seconds")).toBe("not recorded");
    }
  });
});

describe("asSentence", () =>
  it.each([
    ["this host has no swap", "This host has no swap."],
    ["Set it: yes.", "Set it: yes."],
    ["", ""],
  ])("%s", (text, sentence) => expect(asSentence(text)).toBe(sentence)));

describe("sourceLabel", () =>
  it("has words for sources whose name says little, and a name for new ones", () => {
    expect(sourceLabel("device_free")).toBe("Device memory free");
    expect(sourceLabel("new_gpu_thing")).toBe("New GPU thing");
  }));

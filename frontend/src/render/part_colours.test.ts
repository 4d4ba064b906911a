import { describe, expect, it } from "vitest";
import { tokens, type Theme } from "../base/tokens";
import { hexOf, paletteAt, partColour } from "./palette";
import { linear, worst } from "./test_sight";

const PARTS = [
  "dataloader",
  "forward",
  "backward",
  "optimizer",
  "zero_grad",
  "checkpoint",
  "eval",
  "communication",
  "other",
];

function contrast(colour: string, other: string): number {
  const light = (hex: string): number => {
    const [r, g, b] = linear(hex);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const [a, b] = [light(colour), light(other)];
  return Math.max(a, b) / Math.min(a, b);
}

describe("part colours", () => {
  it.each([
    ["light", 12.8, 1.8],
    ["dark", 11.3, 3],
  ] as const)("are told apart by every kind of sight in %s", (theme, least, on) => {
    const colours = PARTS.map((part) => partColour(theme, part));
    expect(worst(colours)).toBeGreaterThanOrEqual(least);
    for (const colour of colours) {
      expect(contrast(colour, tokens(theme).bg)).toBeGreaterThanOrEqual(on);
    }
  });

  it("draws what it does not know as what no part explains", () => {
    expect(partColour("light", "warp_drive")).toBe(partColour("light", "other"));
  });

  it.each([
    ["light", 10.6],
    ["dark", 9],
  ] as const)("of work in a trace are told apart in %s", (theme, least) => {
    const shared = ["kernel", "operator", "runtime", "communication", "memory"];
    for (const others of [
      ["forward", "backward", "optimizer", "dataloader", "other"],
      ["fill", "dataloader", "other"],
    ]) {
      const colours = [...shared, ...others].map((part) => partColour(theme, part));
      expect(worst(colours)).toBeGreaterThanOrEqual(least);
    }
  });
});

describe("diverging palettes", () =>
  it.each(["light", "dark"] as const)(
    "fade into the background in %s",
    (theme: Theme) => {
      const name = `diverging_${theme}` as const;
      const hexAt = (share: number): string => hexOf(paletteAt(name, share));
      const from = (share: number): number => contrast(hexAt(share), tokens(theme).bg);
      expect(from(0.5)).toBeLessThan(1.3);
      for (const [near, far] of [
        [0.4, 0],
        [0.6, 1],
      ] as const) {
        expect(from(near)).toBeGreaterThan(from(0.5));
        expect(from(far)).toBeGreaterThan(from(near));
      }
      expect(worst([hexAt(0), hexAt(0.5), hexAt(1)])).toBeGreaterThan(20);
    },
  ));

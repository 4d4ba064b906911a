import { describe, expect, it } from "vitest";
import { tokens, type Theme } from "../base/tokens";
import { hexOf, paletteAt, partColours } from "./palette";
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
  const light = (one: string): number => {
    const [r, g, b] = linear(one);
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
    const colours = partColours(theme, PARTS);
    expect(worst(colours)).toBeGreaterThanOrEqual(least);
    for (const colour of colours) {
      expect(contrast(colour, tokens(theme).bg)).toBeGreaterThanOrEqual(on);
    }
  });

  it("draws what it does not know as what no part explains", () => {
    const [known, unknown] = partColours("light", ["other", "warp_drive"]);
    expect(unknown).toBe(known);
  });
});

describe("diverging palettes", () =>
  it.each(["light", "dark"] as const)(
    "fade into the background in %s",
    (theme: Theme) => {
      const name = `diverging_${theme}` as const;
      const at = (share: number): string => hexOf(paletteAt(name, share));
      const from = (share: number): number => contrast(at(share), tokens(theme).bg);
      expect(from(0.5)).toBeLessThan(1.3);
      for (const [near, far] of [
        [0.4, 0],
        [0.6, 1],
      ] as const) {
        expect(from(near)).toBeGreaterThan(from(0.5));
        expect(from(far)).toBeGreaterThan(from(near));
      }
      expect(worst([at(0), at(0.5), at(1)])).toBeGreaterThan(20);
    },
  ));

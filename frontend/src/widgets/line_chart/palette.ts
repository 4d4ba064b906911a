/**
 * Found by search: the smallest OKLab distance between any two, over normal sight and
 * three simulated colour blindnesses, is 15.1 in light and 13.7 in dark, and each has a
 * contrast of at least 3:1 to its background. Lines beyond the eighth repeat the
 * colours with a dash.
 */

import type { Theme } from "../../base/tokens";

const COLOURS: Readonly<Record<Theme, readonly string[]>> = {
  light: "#1241e4 #ef6e18 #200f56 #af1a0d #5f91f9 #743b75 #a26b8c #4b1201".split(" "),
  dark: "#48bdfc #f3f94f #d0419e #94fbe0 #e98aa5 #978328 #636ffd #b7c725".split(" "),
};

export const NUM_COLOURS = 8;

/** The band is blue: lines over it have other colours. */
const BESIDE_BAND = [1, 2, 3, 5, 6, 7] as const;

export function colourBesideBand(slot: number): number {
  const round = Math.floor(slot / BESIDE_BAND.length);
  return (BESIDE_BAND[slot % BESIDE_BAND.length] ?? 1) + round * NUM_COLOURS;
}

export function lineColour(theme: Theme, index: number | string): string {
  if (typeof index === "string") return index;
  return COLOURS[theme][index % NUM_COLOURS] ?? "#888888";
}

const DASHES = [[], [8, 3, 2, 3], [2, 3]] as const;

/** Px; []: solid. */
export function dashOf(index: number | string): readonly number[] {
  if (typeof index === "string") return [];
  return DASHES[Math.floor(index / NUM_COLOURS) % DASHES.length] ?? [];
}

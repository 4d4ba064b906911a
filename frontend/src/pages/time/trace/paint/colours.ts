/** Colours of what runs: by kind of work the hue, by name a little of the lightness. */

import type { TraceFamily } from "../../../../api/types.gen";
import { tokens, type Theme } from "../../../../base/tokens";
import { familyColour } from "../../profiled/family_colours";
import { pixelOf } from "../../../../render/palette";
import { mixed } from "../../../../widgets/block_stack/colours";

export const FAMILY_WORDS: Readonly<Record<TraceFamily, string>> = {
  kernel: "Kernels",
  operator: "Operators",
  runtime: "Device runtime",
  python: "Python",
  communication: "Communication",
  memory: "Copies and fills",
  step: "Steps",
  forward: "Forward",
  backward: "Backward",
  optimizer: "Optimizer",
  dataloader: "Dataloader",
  annotation: "Annotations",
  other: "Other",
};

/** The same for a name whatever else is drawn: FNV-1a. */
export function nameHash(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  }
  return hash >>> 0;
}

/** Lightness differs by at most this share, up or down. */
const VARIES = 0.16;

export class TraceColours {
  readonly #theme: Theme;
  readonly #known = new Map<string, number>();
  readonly background: number;
  /** Second colour of blocks: half of it is mixed in. */
  readonly hatch: number;
  readonly #dark: number;

  constructor(theme: Theme) {
    this.#theme = theme;
    this.background = pixelOf(tokens(theme).bg);
    this.hatch = pixelOf(theme === "dark" ? "#4a4a4a" : "#e0e0e0");
    this.#dark = pixelOf(theme === "dark" ? "#000000" : "#202428");
  }

  /** A pixel, 0xAABBGGRR. */
  of(family: TraceFamily, name: string): number {
    const key = `${family}\n${name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const base = pixelOf(familyColour(this.#theme, family));
    const share = ((nameHash(name) % 9) / 4 - 1) * VARIES;
    const towards = share < 0 ? this.#dark : this.background;
    const colour = mixed(base, towards, 1 - Math.abs(share));
    if (this.#known.size > 50_000) this.#known.clear();
    this.#known.set(key, colour);
    return colour;
  }

  /** A block that is busy for a share of its time. */
  ofBlock(colour: number, busy: number): number {
    return mixed(colour, this.background, 0.3 + 0.6 * Math.min(1, busy));
  }

  /** What a search did not find. */
  dimmed(colour: number): number {
    return mixed(colour, this.background, 0.22);
  }
}

const luminances = new Map<number, boolean>();

/** Whether black text reads better on a colour than white. */
export function isLight(pixel: number): boolean {
  const known = luminances.get(pixel);
  if (known !== undefined) return known;
  const channel = (shift: number): number => {
    const value = ((pixel >>> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(16);
  const light = luminance > 0.179;
  if (luminances.size > 4_000) luminances.clear();
  luminances.set(pixel, light);
  return light;
}

/**
 * Cividis and viridis are perceptually even and safe for colour blindness (published
 * anchors). The diverging palettes go from blue over the background's colour to orange.
 */

import type { Theme } from "../base/tokens";

export type PaletteName = "cividis" | "viridis" | "diverging_light" | "diverging_dark";

const ANCHORS: Readonly<Record<PaletteName, string>> = {
  cividis:
    "#00224e #123570 #3b496c #575d6d #707173 " +
    "#8a8678 #a59c74 #c3b369 #e1cc55 #fee838",
  viridis:
    "#440154 #482878 #3e4989 #31688e #26828e " +
    "#1f9e89 #35b779 #6ece58 #b5de2b #fde725",
  diverging_light: "#1a5fb0 #6aa5dc #dce6ee #f4f3f1 #f6e4d2 #ee9a52 #b84e00",
  diverging_dark: "#64b5f6 #3f6f99 #3a4349 #3a3a3a #473e37 #a5622a #ffa95c",
};

/**
 * Colours of the parts of a step's time, and of the work in a trace. Found by search:
 * the smallest OKLab distance of any two, over normal sight and three simulated colour
 * blindnesses, is 12.8 in light and 11.3 in dark among parts, 10.6 and 9.0 among work.
 * Parents of other work are pale and left out of that, as are `fill` and `hidden`
 * (communication during computation), which no trace draws. Communication has the
 * colour it has among the categories of memory.
 */
const PART_COLOURS: Readonly<Record<Theme, Readonly<Record<string, string>>>> = {
  light: {
    dataloader: "#e36e13",
    forward: "#2e63ca",
    backward: "#90c3cc",
    optimizer: "#7e597a",
    zero_grad: "#f9a95a",
    checkpoint: "#871209",
    eval: "#bc3b00",
    communication: "#62008a",
    other: "#8a8f98",
    kernel: "#2a612f",
    operator: "#bcf0b0",
    memory: "#ecdb2f",
    fill: "#c8a8e8",
    hidden: "#c8a8e8",
    annotation: "#d8cfc4",
    runtime: "#24292a",
    python: "#c9ced6",
    step: "#e4e7eb",
  },
  dark: {
    dataloader: "#e68d00",
    forward: "#6c81f6",
    backward: "#68bffa",
    optimizer: "#dac3a3",
    zero_grad: "#c9f883",
    checkpoint: "#d35048",
    eval: "#6ef5ff",
    communication: "#a565b0",
    other: "#9a9fa8",
    kernel: "#2a8a40",
    operator: "#bdfdca",
    memory: "#effd4b",
    fill: "#e4b4fc",
    hidden: "#e4b4fc",
    annotation: "#8b8478",
    runtime: "#494e55",
    python: "#b9bec6",
    step: "#5b6068",
  },
};

/** Unknown parts have the colour of `other`. */
export function partColour(theme: Theme, part: string): string {
  const colours = PART_COLOURS[theme];
  return colours[part] ?? colours["other"] ?? "#888888";
}

/** Top share of the capacity that has the flag colour. */
export const FLAGGED_SHARE = 0.03;

type Rgb = readonly [number, number, number];

function parseHex(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function pack(rgb: Rgb): number {
  return ((255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0;
}

/** "#rrggbb" to 0xAABBGGRR. */
export function pixelOf(colour: string): number {
  return pack(parseHex(colour));
}

export function hexOf(pixel: number): string {
  const rgb = ((pixel & 255) << 16) | (pixel & 0xff00) | ((pixel >>> 16) & 255);
  return `#${rgb.toString(16).padStart(6, "0")}`;
}

export function paletteAt(name: PaletteName, share: number): number {
  const anchors = ANCHORS[name].split(" ");
  const place = Math.min(Math.max(share, 0), 1) * (anchors.length - 1);
  const index = Math.min(Math.floor(place), anchors.length - 2);
  const a = parseHex(anchors[index] ?? "#000000");
  const b = parseHex(anchors[index + 1] ?? "#000000");
  const t = place - index;
  const mix = (i: 0 | 1 | 2): number => Math.round(a[i] + (b[i] - a[i]) * t);
  return pack([mix(0), mix(1), mix(2)]);
}

interface LutOptions {
  readonly palette: PaletteName;
  /** Values of cells 1 and 65535. */
  readonly valueLow: number;
  readonly valueHigh: number;
  /** Values at the ends of the palette. */
  readonly domainLow: number;
  readonly domainHigh: number;
  readonly flagFrom: number | null;
  readonly flagColour: string;
  readonly absentColour: string;
}

/** NaN: not recorded. */
export function cellValue(cell: number, valueLow: number, valueHigh: number): number {
  if (cell === 0) return NaN;
  return valueLow + ((cell - 1) / 65534) * (valueHigh - valueLow);
}

export function buildLut(options: LutOptions): Uint32Array {
  const lut = new Uint32Array(65536);
  const span = options.domainHigh - options.domainLow || 1;
  const steps = Uint32Array.from({ length: 1024 }, (_, i) =>
    paletteAt(options.palette, i / 1023),
  );
  const flag = pixelOf(options.flagColour);
  lut[0] = pixelOf(options.absentColour);
  for (let cell = 1; cell < 65536; cell += 1) {
    const value = cellValue(cell, options.valueLow, options.valueHigh);
    const share = Math.min(Math.max((value - options.domainLow) / span, 0), 1);
    const flagged = options.flagFrom !== null && value >= options.flagFrom;
    lut[cell] = flagged ? flag : (steps[Math.round(share * 1023)] ?? 0);
  }
  return lut;
}

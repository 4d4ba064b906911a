/**
 * Sequential palettes as lookup tables for u16 cells. Both are perceptually even and
 * safe for every kind of colour blindness; the colours are the published anchors.
 */

export type PaletteName = "cividis" | "viridis";

const ANCHORS: Readonly<Record<PaletteName, readonly string[]>> = {
  cividis: [
    "#00224e",
    "#123570",
    "#3b496c",
    "#575d6d",
    "#707173",
    "#8a8678",
    "#a59c74",
    "#c3b369",
    "#e1cc55",
    "#fee838",
  ],
  viridis: [
    "#440154",
    "#482878",
    "#3e4989",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6ece58",
    "#b5de2b",
    "#fde725",
  ],
};

/** The part of the capacity, at its top, that is drawn in the flag colour. */
export const FLAGGED_SHARE = 0.03;

type Rgb = readonly [number, number, number];

function parseHex(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function pack(rgb: Rgb): number {
  return ((255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0;
}

/** "#rrggbb" as an opaque pixel, 0xAABBGGRR. */
export function pixelOf(colour: string): number {
  return pack(parseHex(colour));
}

/** A pixel as "#rrggbb". */
export function hexOf(pixel: number): string {
  const rgb = ((pixel & 255) << 16) | (pixel & 0xff00) | ((pixel >>> 16) & 255);
  return `#${rgb.toString(16).padStart(6, "0")}`;
}

/** The palette at 0..1, as a pixel. */
export function paletteAt(name: PaletteName, share: number): number {
  const anchors = ANCHORS[name];
  const place = Math.min(Math.max(share, 0), 1) * (anchors.length - 1);
  const index = Math.min(Math.floor(place), anchors.length - 2);
  const a = parseHex(anchors[index] ?? "#000000");
  const b = parseHex(anchors[index + 1] ?? "#000000");
  const t = place - index;
  const mix = (i: 0 | 1 | 2): number => Math.round(a[i] + (b[i] - a[i]) * t);
  return pack([mix(0), mix(1), mix(2)]);
}

export interface LutOptions {
  readonly palette: PaletteName;
  /** What cell value 1 and 65535 stand for. */
  readonly valueLow: number;
  readonly valueHigh: number;
  /** What the ends of the palette stand for. */
  readonly domainLow: number;
  readonly domainHigh: number;
  /** Values from here on take the flag colour; null flags nothing. */
  readonly flagFrom: number | null;
  readonly flagColour: string;
  readonly absentColour: string;
}

/** The value a cell stands for; NaN where nothing was recorded. */
export function cellValue(cell: number, valueLow: number, valueHigh: number): number {
  if (cell === 0) return NaN;
  return valueLow + ((cell - 1) / 65534) * (valueHigh - valueLow);
}

/** One colour for each of the 65,536 cell values. */
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

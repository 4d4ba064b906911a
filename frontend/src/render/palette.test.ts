import { describe, expect, it } from "vitest";
import { buildLut, cellValue, hexOf, paletteAt, pixelOf } from "./palette";

const OPTIONS = {
  palette: "cividis" as const,
  valueLow: 0,
  valueHigh: 80e9,
  domainLow: 0,
  domainHigh: 80e9,
  flagFrom: 77.6e9,
  flagColour: "#ff0000",
  absentColour: "#cccccc",
};

/** Relative luminance of a pixel. */
function luminance(pixel: number): number {
  const channel = (shift: number): number => {
    const c = ((pixel >>> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(16);
}

describe("palettes", () => {
  it.each(["cividis", "viridis"] as const)("%s only ever gets brighter", (name) => {
    let last = -1;
    for (let i = 0; i <= 64; i += 1) {
      const next = luminance(paletteAt(name, i / 64));
      expect(next).toBeGreaterThan(last);
      last = next;
    }
  });

  it("round-trips colours through pixels", () =>
    expect(hexOf(pixelOf("#12ab9f"))).toBe("#12ab9f"));
});

describe("buildLut", () => {
  it("flags the top of the capacity, and only that", () => {
    const lut = buildLut(OPTIONS);
    const red = pixelOf("#ff0000");
    for (let cell = 1; cell < 65536; cell += 1) {
      expect(lut[cell] === red).toBe(cellValue(cell, 0, 80e9) >= 77.6e9);
    }
    expect(lut[0]).toBe(pixelOf("#cccccc"));
  });

  it("gives the same value the same colour however the cells were quantised", () => {
    const fine = buildLut({ ...OPTIONS, valueHigh: 40e9 });
    const coarse = buildLut(OPTIONS);
    // 20e9 bytes is cell 32768 of 0..40e9 and cell 16384.5 of 0..80e9.
    expect(fine[32768]).toBe(coarse[16384]);
  });

  it("gives absence no value", () => {
    expect(cellValue(0, 5, 10)).toBeNaN();
    expect(cellValue(1, 5, 10)).toBe(5);
    expect(cellValue(65535, 5, 10)).toBe(10);
  });
});

import { describe, expect, it } from "vitest";
import {
  byteScale,
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
  threeDigits,
} from "./bytes";
import { formatAgo, formatSeconds } from "./durations";

const KIB = 1024;
const GIB = 1024 ** 3;

describe("counts", () => {
  it("are never negative zero, and one is one", () => {
    expect([-0, -0.3, Math.round(-0.4)].map(formatInteger)).toEqual(["0", "0", "0"]);
    expect(threeDigits(-38)).toBe("−38.0");
    expect([1, 2].map((num) => counted(num, "rank"))).toEqual(["1 rank", "2 ranks"]);
    expect(formatBytesExact(1)).toBe("1 byte");
  });
});

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [1, "1 B"],
    [1023, "1,023 B"],
    [KIB, "1.00 KiB"],
    [10 * KIB, "10.0 KiB"],
    [123 * KIB, "123 KiB"],
    [1000 * KIB, "1,000 KiB"],
    [GIB, "1.00 GiB"],
    [73.24 * GIB, "73.2 GiB"],
    [1e21, "888,178 PiB"],
    [-38 * 1024 ** 2, "−38.0 MiB"],
  ])("writes %d with three digits", (bytes, text) =>
    expect(formatBytes(bytes)).toBe(text),
  );

  it("steps up where rounding would reach the next unit", () => {
    expect(formatBytes(1024 * KIB - 1)).toBe("1.00 MiB");
    expect(formatBytes(9.996 * GIB)).toBe("10.0 GiB");
    expect(formatBytes(99.96 * GIB)).toBe("100 GiB");
  });

  it("keeps to the unit that was chosen", () => {
    expect(formatBytes(GIB, "MiB")).toBe("1,024 MiB");
    expect(formatBytes(512, "B")).toBe("512 B");
    expect(formatBytes(GIB / 2, "TiB")).toBe("0.0005 TiB");
  });

  it("never turns absence into zero", () => {
    expect(formatBytes(null)).toBe("–");
    expect(formatBytes(Number.NaN)).toBe("–");
    expect(formatBytesExact(Number.NaN)).toBe("not recorded");
  });

  it("never shows more than four digits before the unit, at any size", () => {
    for (let bytes = 1; bytes < 2 ** 59; bytes = Math.ceil(bytes * 1.37)) {
      const digits = formatBytes(bytes).replace(/[^0-9]/g, "");
      expect(digits.length, formatBytes(bytes)).toBeLessThanOrEqual(4);
    }
  });

  it("gives an axis one unit", () => {
    expect(byteScale(80 * GIB)).toEqual({ divisor: GIB, name: "GiB" });
    expect(byteScale(80 * GIB, "MiB")).toEqual({ divisor: 1024 ** 2, name: "MiB" });
  });
});

describe("threeDigits", () =>
  it.each([
    [0, "0"],
    [0.0004, "0.0004"],
    [0.05, "0.05"],
    [2, "2.00"],
    [99.94, "99.9"],
    [99.95, "100"],
    [1234567, "1,234,567"],
  ])("writes %d", (value, text) => expect(threeDigits(value)).toBe(text)));

describe("formatSeconds", () => {
  it.each([
    [0, "0 s"],
    [0.0000034, "3.40 µs"],
    [0.812, "812 ms"],
    [0.9996, "1.00 s"],
    [2.4, "2.40 s"],
    [185, "3 m 05 s"],
    [3599.6, "1 h 00 m"],
    [7620, "2 h 07 m"],
    [200_000, "2 d 7 h"],
    [-90, "−1 m 30 s"],
  ])("writes %d s", (seconds, text) => expect(formatSeconds(seconds)).toBe(text));

  it("knows absence", () => expect(formatSeconds(null)).toBe("–"));
});

describe("formatAgo", () =>
  it.each([
    [0, "just now"],
    [4_000, "4 s ago"],
    [180_000, "3 min ago"],
    [7_200_000, "2 h ago"],
    [-5_000, "just now"],
  ])("%d ms", (age, text) => expect(formatAgo(1e12 - age, 1e12)).toBe(text)));

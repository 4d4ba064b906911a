import { describe, expect, it } from "vitest";
import { valueTicks, X_AXES } from "./axis";

const GIB = 2 ** 30;
const texts = (ticks: readonly { readonly text: string }[]): readonly string[] =>
  ticks.map((tick) => tick.text);

describe("valueTicks", () => {
  it("shares one unit over a byte axis, zero without one", () => {
    expect(texts(valueTicks(0, 80 * GIB, 6, "bytes"))).toEqual([
      "0",
      "16 GiB",
      "32 GiB",
      "48 GiB",
      "64 GiB",
      "80 GiB",
    ]);
    expect(texts(valueTicks(0, 2 * GIB, 5, "bytes", "MiB"))).toContain("1,024 MiB");
  });

  it("gives neighbours the decimals that tell them apart", () => {
    const near = texts(valueTicks(63.9 * GIB, 64.1 * GIB, 8, "bytes"));
    expect(new Set(near).size).toBe(near.length);
    expect(near.length).toBeGreaterThan(4);
  });

  it("names the unit of what is measured", () => {
    expect(texts(valueTicks(0, 100, 2, "percent"))).toEqual(["0 %", "50 %", "100 %"]);
    expect(texts(valueTicks(0, 0.02, 2, "seconds"))).toEqual(["0", "10 ms", "20 ms"]);
    expect(texts(valueTicks(-1, 1, 2, "celsius"))).toEqual(["−1 °C", "0 °C", "1 °C"]);
  });

  it("gives each tick of a logarithmic axis its own unit", () => {
    const log = texts(valueTicks(1, 2 ** 40, 5, "bytes", "auto", true));
    expect(log.some((text) => text.endsWith("KiB"))).toBe(true);
    expect(log.some((text) => text.endsWith("GiB"))).toBe(true);
  });
});

describe("ticks of a horizontal axis", () => {
  it("counts whole steps", () =>
    expect(texts(X_AXES.step.ticks(0, 10_000, 5))).toEqual([
      "0",
      "2,000",
      "4,000",
      "6,000",
      "8,000",
      "10,000",
    ]));

  it("tells every tick of time apart at every zoom", () => {
    const start = Date.UTC(2026, 10, 20, 12, 0, 0);
    for (const span of [200, 5_000, 90_000, 7_200_000, 6e8]) {
      for (const x of ["relative", "wall"] as const) {
        const low = x === "wall" ? start : 0;
        const ticks = texts(X_AXES[x].ticks(low, low + span, 8));
        expect(ticks.length).toBeGreaterThan(1);
        expect(new Set(ticks).size).toBe(ticks.length);
      }
    }
  });
});

describe("x as text", () =>
  it("says the step, or the moment to the millisecond", () => {
    expect(X_AXES.step.text(1203.9999)).toBe("step 1,204");
    expect(X_AXES.relative.text(90_500)).toContain("after start");
    expect(X_AXES.wall.text(1_700_000_000_123)).toMatch(/:\d\d\.123$/);
  }));

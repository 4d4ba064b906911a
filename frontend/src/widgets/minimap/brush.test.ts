import { describe, expect, it } from "vitest";
import { brushAfter, partAt } from "./minimap";

describe("brushAfter", () => {
  const extent = { low: 0, high: 1000 };
  const range = { low: 200, high: 400 };

  it("moves the middle without changing its span, and stops at the ends", () => {
    expect(brushAfter("middle", range, 5000, extent)).toEqual({ low: 800, high: 1000 });
    expect(brushAfter("middle", range, -5000, extent)).toEqual({ low: 0, high: 200 });
  });

  it("turns around when an edge is dragged over the other", () => {
    expect(brushAfter("low", range, 300, extent)).toEqual({ low: 400, high: 500 });
    expect(brushAfter("high", range, -300, extent)).toEqual({ low: 100, high: 200 });
  });

  it("is everything once both ends are reached, and never nothing", () => {
    expect(brushAfter("high", { low: 0, high: 10 }, 5000, extent)).toBeNull();
    const least = brushAfter("new", { low: 1000, high: 1000 }, 0, extent);
    expect((least?.high ?? 0) - (least?.low ?? 0)).toBeGreaterThan(0);
    expect(least?.high).toBeLessThanOrEqual(1000);
  });

  it("takes hold of edges near them, of the middle inside, of nothing outside", () => {
    expect(partAt(203, range, 10)).toBe("low");
    expect(partAt(396, range, 10)).toBe("high");
    expect(partAt(300, range, 10)).toBe("middle");
    expect(partAt(700, range, 10)).toBe("new");
    expect(partAt(300, null, 10)).toBe("new");
    expect(partAt(205, { low: 204, high: 206 }, 10)).not.toBe("new");
  });
});

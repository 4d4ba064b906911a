import { describe, expect, it } from "vitest";
import { rankChips } from "../../app/chrome/rank_chooser";
import { sparklinePath } from "../../widgets/sparkline/sparkline";
import { placeBubble } from "../../widgets/tip/tip";
import type { Finding, RankStrip, TableColumn, TableRows } from "../../api/types.gen";
import { merged } from "./overview";
import { rankFacts } from "../shared/ranks_table";
import { declared } from "../shared/table/test_tables";
import { membersAt, orderRanks, rankAxis } from "../../widgets/rank_bars/bars";
const GIB = 1024 ** 3;

function stripOf(
  peaksGib: readonly number[],
  changes: Partial<RankStrip> = {},
): RankStrip {
  const n = peaksGib.length;
  const sorted = [...peaksGib].filter((p) => !Number.isNaN(p)).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  return {
    peakSeries: "step/allocated_peak_bytes",
    peakLabel: "Allocated peak",
    capacityKind: "device",
    rank: Int32Array.from(peaksGib, (_, i) => i),
    peakBytes: Float64Array.from(peaksGib, (peak) => peak * GIB),
    capacityBytes: new Float64Array(n).fill(80 * GIB),
    growthBytesPerStep: new Float64Array(n),
    numOoms: new Float64Array(n),
    lost: new Uint8Array(n),
    medianPeakBytes: median === undefined ? null : median * GIB,
    outliers: [],
    numUnread: 0,
    table: { columns: [] } as unknown as TableRows,
    ...changes,
  };
}

function ooms(n: number, ranks: readonly number[]): { readonly numOoms: Float64Array } {
  return {
    numOoms: Float64Array.from({ length: n }, (_, i) => (ranks.includes(i) ? 1 : 0)),
  };
}

describe("findings of all sources", () =>
  it("are one list, the worst first, and none twice", () => {
    const finding = (title: string, severity: string, rank: number | null): Finding =>
      ({ title, severity, rank }) as Finding;
    const own = [finding("Straggler", "warning", 5), finding("Peak", "info", 1)];
    const ofTrace = [
      finding("Straggler", "warning", 5),
      finding("Idle device", "warning", 0),
      finding("Straggler", "warning", 6),
    ];
    expect(merged(own, ofTrace)).toEqual([own[0], ofTrace[1], ofTrace[2], own[1]]);
  }));

describe("chips of ranks", () =>
  it("list each rank once, OOMs first, and at most four for a reason", () => {
    const strip = stripOf([60, 61, 79, 60], { ...ooms(4, [2]), outliers: [2, 0] });
    const [worst, outlier] = rankChips(strip);
    expect(worst).toEqual({
      rank: 2,
      bad: true,
      word: "OOM",
      title:
        "Rank 2 ran out of memory, is far above the other ranks, has the highest peak",
    });
    expect(outlier?.title).toBe("Rank 0 is far above the other ranks");
    const lost = stripOf(Array(100).fill(1), { lost: new Uint8Array(100).fill(1) });
    // The first of equal peaks is the highest.
    expect(rankChips(lost).map(({ rank }) => rank)).toEqual([0, 1, 2, 3]);
  }));

describe("orderRanks", () =>
  it("sorts from high to low, keeps ties in rank order, puts absence last", () => {
    const strip = stripOf([1, Number.NaN, 3, 1, 2]);
    expect(orderRanks(strip, "peak")).toEqual([2, 4, 0, 3, 1]);
    expect(orderRanks(strip, "rank")).toEqual([0, 1, 2, 3, 4]);
  }));

describe("bars of ranks", () => {
  const seen = (x0: number, x1: number) => ({
    view: { x0, x1, y0: 1, y1: 0 },
    left: 0,
    top: 0,
    size: { widthPx: 900, heightPx: 100 },
  });

  it("stand for themselves while they fit", () => {
    const strip = stripOf(Array(256).fill(1));
    const places = orderRanks(strip, "rank");
    expect(membersAt(strip, places, 7.5, seen(0, 256))).toEqual([7]);
  });

  it("stand for their neighbours where they are thin, and say the highest first", () => {
    const peaks = Array<number>(4096).fill(10);
    peaks[1000] = 70;
    peaks[1002] = Number.NaN;
    const strip = stripOf(peaks);
    const places = orderRanks(strip, "rank");
    const members = membersAt(strip, places, 1002.5, seen(0, 4096));
    expect(members[0]).toBe(1000);
    expect(members.at(-1)).toBe(1002);
    expect(membersAt(strip, places, 1002.5, seen(990, 1010))).toEqual([1002]);
  });

  it("are named by their ranks, every power of two of them", () => {
    const strip = stripOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    const axis = rankAxis(strip, orderRanks(strip, "peak"));
    const texts = (low: number, high: number) =>
      axis.ticks(low, high, 3).map(({ text }) => text);
    expect(texts(0, 12)).toEqual(["11", "9", "7", "5", "3", "1"]);
    expect(texts(2, 5)).toEqual(["9", "8", "7"]);
    expect(axis.text(0.5)).toBe("Rank 11");
  });

  it("stand none where there is no rank", () => {
    const strip = stripOf([]);
    expect(membersAt(strip, orderRanks(strip, "peak"), 0.5, seen(0, 1))).toEqual([]);
  });
});

describe("what the tip says of a rank", () => {
  const column = (key: string, unit: TableColumn["unit"], value: number) =>
    declared({ key, title: key, help: "", unit, numbers: Float64Array.of(value) });
  const factsOf = (...columns: readonly ReturnType<typeof column>[]) => {
    const table = { columns, numRows: 1, numAll: 1, colours: [] };
    const look = { theme: "light", byteUnit: "auto" } as const;
    return new Map(
      rankFacts(
        table as unknown as TableRows,
        look,
      )(0).map(([name, ...values]) => [name, values.join(" ")]),
    );
  };

  it("leaves out what was not recorded and never shows it as zero", () => {
    const facts = factsOf(
      column("rank", "rank", 3),
      column("peak_bytes", "bytes", NaN),
      column("peak_step", "count", NaN),
      column("num_ooms", "errors", 0),
      column("last_step", "count", 0),
    );
    expect(facts.get("peak_bytes")).toBe("not recorded");
    expect([...facts.keys()]).toEqual(["peak_bytes", "last_step"]);
  });

  it("has every digit of the peak", () =>
    expect(factsOf(column("peak_bytes", "bytes", 60 * GIB)).get("peak_bytes")).toBe(
      "60.0 GiB 64,424,509,440 bytes",
    ));
});

describe("sparklinePath", () => {
  const numbers = (path: string): number[] =>
    [...path.matchAll(/-?\d+\.\d/g)].map((match) => Number(match[0]));

  it("stays inside its box and starts anew after a gap", () => {
    const values = new Float64Array([3, 1, Number.NaN, 9, 4]);
    const path = sparklinePath(values, 120, 28);
    expect(path.match(/M/g)).toHaveLength(2);
    numbers(path).forEach((value, i) => {
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThanOrEqual(i % 2 === 0 ? 120 : 28);
    });
  });

  it("joins over the holes of slow sampling, not over a long absence", () => {
    const values = Float64Array.from({ length: 120 }, (_, i) =>
      i % 6 === 0 && (i < 40 || i > 80) ? i : Number.NaN,
    );
    const path = sparklinePath(values, 120, 28);
    expect(path.match(/M/g)).toHaveLength(2);
    expect(path.match(/L/g)).toHaveLength(11);
  });

  it("joins uneven samples that are far apart everywhere", () => {
    const indices = [0, 3, 29, 42, 55, 68, 84, 99];
    const values = new Float64Array(100).fill(Number.NaN);
    for (const i of indices) values[i] = i;
    expect(sparklinePath(values, 120, 28).match(/M/g)).toHaveLength(1);
  });

  it("puts the highest value on top", () => {
    const ys = numbers(sparklinePath(new Float64Array([0, 5, 1]), 100, 20)).filter(
      (_, i) => i % 2 === 1,
    );
    expect(ys).toEqual([18, 2, 14.8]);
  });

  it("draws a constant in the middle and nothing for fewer than two values", () => {
    expect(sparklinePath(new Float64Array([5, 5]), 100, 20)).toBe(
      "M0.0 10.0L100.0 10.0",
    );
    expect(sparklinePath(new Float64Array([5]), 100, 20)).toBe("");
    expect(sparklinePath(new Float64Array(9).fill(Number.NaN), 100, 20)).toBe("");
  });
});

describe("placeBubble", () => {
  const bubble = { width: 200, height: 60 };
  const anchorAt = (left: number, top: number) => ({
    left,
    top,
    bottom: top + 20,
    width: 20,
    height: 20,
  });

  it("never leaves the window", () => {
    for (const left of [0, 10, 400, 780, 799]) {
      for (const top of [0, 300, 580]) {
        const { xPx, yPx } = placeBubble(anchorAt(left, top), bubble, 800, 600);
        expect(xPx).toBeGreaterThanOrEqual(8);
        expect(xPx + bubble.width).toBeLessThanOrEqual(792);
        expect(yPx).toBeGreaterThanOrEqual(8);
        expect(yPx + bubble.height).toBeLessThanOrEqual(600);
      }
    }
  });

  it("does not cover its anchor", () => {
    expect(placeBubble(anchorAt(400, 100), bubble, 800, 600).yPx).toBeGreaterThan(120);
    expect(placeBubble(anchorAt(400, 570), bubble, 800, 600).yPx).toBe(504);
  });
});

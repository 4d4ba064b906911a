import { describe, expect, it } from "vitest";
import type { Mark } from "../../api/types.gen";
import type { Theme } from "../../base/tokens";
import { SvgPen } from "../export/pen";
import { onColumns } from "../plot/reader";
import { cursorRows, envelopeOf, groupMarks, nearestLine, pointAt } from "./cursor";
import { chartTable } from "./line_chart";
import { paintLines } from "./paint";
import { dashOf, lineColour, NUM_COLOURS } from "./palette";
import { BAND_ID, fitY, projectY, type ChartData, type Frame } from "./frame";
import type { ChartBand, ChartLine } from "./types";

const GIB = 2 ** 30;
const X = Float64Array.of(0, 1, 2, 3, 4);

function line(
  id: string,
  y: readonly number[],
  more: Partial<ChartLine> = {},
): ChartLine {
  const column = Float64Array.from(y);
  return { id, label: id, x: X, y: column, yLow: column, colour: 0, ...more };
}

const BAND: ChartBand = {
  label: "4,096 ranks",
  x: X,
  low: Float64Array.of(1, 1, 1, 1, 1),
  p5: Float64Array.of(2, 2, 2, 2, 2),
  median: Float64Array.of(3, 3, 3, 3, 3),
  p95: Float64Array.of(4, 4, 4, 4, 4),
  high: Float64Array.of(5, 5, 9, 5, 5),
  highRank: Int32Array.of(7, 7, 13, 7, 7),
};

function data(more: Partial<ChartData> = {}): ChartData {
  return {
    lines: [],
    band: null,
    limit: null,
    hidden: new Set(),
    smoothing: 0,
    ...more,
  };
}

const ALL = { low: 0, high: 4 };
const LINEAR = { logScale: false, fromZero: false };

describe("fitY", () => {
  it("holds every visible peak, also the one a single merged row kept", () => {
    const merged = line("a", [5, 5, 50, 5, 5], {
      yLow: Float64Array.of(5, 5, -3, 5, 5),
    });
    const { low, high } = fitY(data({ lines: [merged], band: BAND }), ALL, LINEAR);
    expect(high).toBeGreaterThan(50);
    expect(low).toBeLessThan(-3);
  });

  it("forgets what is hidden or out of sight", () => {
    const lines = [line("a", [1, 1, 1, 1, 900])];
    const near = fitY(data({ lines }), { low: 0, high: 2 }, LINEAR);
    expect(near.high).toBeLessThan(2);
    const hidden = new Set(["a", BAND_ID]);
    const none = fitY(data({ lines, band: BAND, hidden }), ALL, LINEAR);
    expect(none.low).toBe(0);
    expect(none.high).toBeCloseTo(1.06, 6);
  });

  it("shows the capacity once the data come near it, not before", () => {
    const limit = { value: 80 * GIB, label: "capacity" };
    const options = { logScale: false, fromZero: true };
    const full = data({
      lines: [
        line(
          "a",
          [70, 71, 72, 73, 74].map((v) => v * GIB),
        ),
      ],
      limit,
    });
    expect(fitY(full, ALL, options).high).toBeGreaterThan(80 * GIB);
    const idle = data({
      lines: [
        line(
          "a",
          [1, 1, 2, 1, 1].map((v) => v * GIB),
        ),
      ],
      limit,
    });
    const { high } = fitY(idle, ALL, options);
    expect(high).toBeLessThan(3 * GIB);
    // Its name stands above the lines: 12 px of text in a plot of 130 px.
    expect(1 - (2 * GIB) / high).toBeGreaterThan(14 / 130);
  });

  it("is above zero on a logarithmic axis even where the data are not", () => {
    const lines = [line("a", [0, 10, 1000, NaN, 5])];
    const { low, high } = fitY(data({ lines }), ALL, {
      logScale: true,
      fromZero: true,
    });
    expect(low).toBeGreaterThan(0);
    expect(high).toBeGreaterThan(1000);
  });
});

describe("paintLines", () => {
  const frame: Frame = {
    view: { x0: 0, x1: 4, y0: 10, y1: 0 },
    size: { widthPx: 400, heightPx: 100 },
    logScale: false,
  };

  /** The attributes of each path. */
  const painted = (of: ChartData, theme: Theme) => {
    const pen = new SvgPen();
    paintLines(pen, frame, of, theme);
    return Array.from(
      pen.written().matchAll(/<path ([^>]*)/g),
      ([, attributes = ""]) => {
        const pairs = attributes.matchAll(/([\w-]+)="([^"]*)"/g);
        return new Map(Array.from(pairs, ([, key = "", value = ""]) => [key, value]));
      },
    );
  };

  it("draws the highest of merged rows as the line, and the rest as an envelope", () => {
    const lines = [
      line("a", [2, 2, 9, 2, 2], { yLow: Float64Array.of(1, 1, 1, 1, 1) }),
      line("b", [4, 4, 4, 4, 4]),
    ];
    const paths = painted(data({ lines }), "light");
    expect(paths.map((path) => path.has("stroke"))).toEqual([false, true, true]);
    const heights = (paths[1]?.get("d") ?? "").matchAll(/[ML]\S+ ([\d.]+)/g);
    const top = Math.min(...Array.from(heights, ([, y]) => Number(y)));
    expect(top).toBe(projectY(frame)(9));
  });

  it("keeps the raw line, faint, under the smoothed one", () => {
    const lines = [line("a", [1, 9, 1, 9, 1])];
    const paths = painted(data({ lines, smoothing: 0.9 }), "dark");
    expect(paths.length).toBe(2);
    expect(Number(paths[0]?.get("stroke-opacity"))).toBeLessThan(0.5);
    expect(paths[1]?.has("stroke-opacity")).toBe(false);
  });

  it("draws strong lines last and nothing that is hidden", () => {
    const lines = [
      line("strong", [1, 1, 1, 1, 1], { weight: "strong" }),
      line("normal", [2, 2, 2, 2, 2]),
      line("hidden", [3, 3, 3, 3, 3]),
    ];
    const paths = painted(data({ lines, hidden: new Set(["hidden"]) }), "light");
    expect(paths.map((path) => path.get("stroke-width"))).toEqual(["1.5", "2.25"]);
  });
});

describe("cursorRows", () => {
  it("sorts by value with absence last", () => {
    const lines = [
      line("low", [1, 1, 1, 1, 1]),
      line("gap", [5, 5, NaN, 5, 5]),
      line("high", [9, 9, 9, 9, 9]),
    ];
    expect(cursorRows(lines, 2.2).map((row) => row.line.id)).toEqual([
      "high",
      "low",
      "gap",
    ]);
    expect(cursorRows(lines, 1).map((row) => row.line.id)).toEqual([
      "high",
      "gap",
      "low",
    ]);
  });

  it("says nothing where a line does not reach", () => {
    expect(pointAt(X, 4.4)).toBe(4);
    expect(pointAt(X, 40)).toBe(-1);
    expect(pointAt(Float64Array.of(3), 1e9)).toBe(0);
    expect(pointAt(Float64Array.of(0, 1, 100, 101), 50)).toBe(-1);
  });
});

describe("the cursor", () => {
  it("stands on recorded points and stops at the ends", () => {
    const cursor = onColumns(() => envelopeOf([line("a", [1, 1, 1, 1, 1])], null));
    expect(cursor.snap(2.4)).toBe(2);
    expect(cursor.step(1.1, 2)).toBe(3);
    expect(cursor.step(3, 10)).toBe(4);
    expect(onColumns(() => envelopeOf([], null)).snap(3)).toBe(null);
  });

  it("knows the highest of all that is drawn", () => {
    const other = line("b", [2, 8], { x: Float64Array.of(1, 1.5) });
    const { x, y } = envelopeOf([other], BAND);
    expect([...x]).toEqual([0, 1, 1.5, 2, 3, 4]);
    expect([...y]).toEqual([5, 5, 8, 9, 5, 5]);
  });

  it("reads what holds until the next point of a stepped line", () => {
    const stepped = line("a", [1, 2, 3, 4, 5], { isStepped: true });
    const values = [0.9, 1, 7, -1].map((x) => cursorRows([stepped], x)[0]?.value);
    expect(values).toEqual([1, 2, 5, NaN]);
  });
});

describe("nearestLine", () =>
  it("takes the line within reach, envelopes included", () => {
    const lines = [
      line("a", [9, 9, 9, 9, 9], { yLow: Float64Array.of(5, 5, 5, 5, 5) }),
      line("b", [1, 1, 1, 1, 1]),
    ];
    const toY = (value: number): number => 100 - value * 10;
    expect(nearestLine(lines, 2, toY(7), toY, 8)?.id).toBe("a");
    expect(nearestLine(lines, 2, toY(1.5), toY, 8)?.id).toBe("b");
    expect(nearestLine(lines, 2, toY(3), toY, 8)).toBeNull();
  }));

describe("groupMarks", () =>
  it("folds marks of one px together, the gravest first", () => {
    const mark = (kind: Mark["kind"], x: number): Mark => ({
      kind,
      x,
      rank: null,
      label: kind,
    });
    const marks = [
      mark("epoch", 10),
      mark("oom", 10.001),
      mark("user", 50),
      mark("epoch", 500),
    ];
    const groups = groupMarks(marks, { low: 0, high: 100 }, 200);
    expect(groups.map((g) => [g[0].kind, g.length])).toEqual([
      ["oom", 2],
      ["user", 1],
    ]);
  }));

describe("chartTable", () =>
  it("has a column for each line, and the lows only where rows were merged", () => {
    const lines = [
      line("rank 0", [1, 2, 3, 4, 5]),
      line("rank 1", [1, 2, 3, 4, 5], { yLow: Float64Array.of(0, 0, 0, 0, 0) }),
    ];
    const table = chartTable("step", "bytes", lines, BAND, ALL);
    expect(table.columns.map((column) => column.name)).toEqual([
      "step",
      "min (bytes)",
      "p5 (bytes)",
      "median (bytes)",
      "p95 (bytes)",
      "max (bytes)",
      "rank of max",
      "rank 0 (bytes)",
      "rank 1 (bytes)",
      "rank 1 low (bytes)",
    ]);
    expect(table.numRows).toBe(5);
    const part = chartTable("step", "bytes", lines, null, { low: 1, high: 2.5 });
    expect(Array.from({ length: 2 }, (_, i) => part.columns[1]?.values[i])).toEqual([
      2, 3,
    ]);
    expect(part.numRows).toBe(2);
  }));

/** Linear light of "#rrggbb". */
function linear(colour: string): readonly [number, number, number] {
  const value = Number.parseInt(colour.slice(1), 16);
  const channel = (shift: number): number => {
    const c = ((value >> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return [channel(16), channel(8), channel(0)];
}

function luminance([r, g, b]: readonly [number, number, number]): number {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function oklab([r, g, b]: readonly [number, number, number]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ] as const;
}

/** Machado et al. 2009, severity 1: normal sight, then protan, deutan and tritan. */
const SIGHTS = [
  [1, 0, 0, 0, 1, 0, 0, 0, 1],
  [
    0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116,
    1.051998,
  ],
  [
    0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294,
    0.968881,
  ],
  [
    1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367,
    0.3039,
  ],
] as const;

function seen(
  matrix: (typeof SIGHTS)[number],
  [r, g, b]: readonly [number, number, number],
): readonly [number, number, number] {
  const row = (a: number, c: number, d: number): number =>
    Math.min(1, Math.max(0, a * r + c * g + d * b));
  return [
    row(matrix[0], matrix[1], matrix[2]),
    row(matrix[3], matrix[4], matrix[5]),
    row(matrix[6], matrix[7], matrix[8]),
  ];
}

describe("line colours", () => {
  it.each([
    ["light", "#ffffff", 0.15],
    ["dark", "#303030", 0.135],
  ] as const)(
    "stay apart for every kind of sight in %s",
    (theme, background, least) => {
      const colours = Array.from({ length: NUM_COLOURS }, (_, i) =>
        linear(lineColour(theme, i)),
      );
      const behind = luminance(linear(background)) + 0.05;
      for (const colour of colours) {
        const front = luminance(colour) + 0.05;
        expect(Math.max(front / behind, behind / front)).toBeGreaterThanOrEqual(3);
      }
      for (const matrix of SIGHTS) {
        const labs = colours.map((colour) => oklab(seen(matrix, colour)));
        for (const [i, a] of labs.entries()) {
          for (const b of labs.slice(i + 1)) {
            const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
            expect(distance).toBeGreaterThan(least);
          }
        }
      }
    },
  );

  it("repeats with a dash, so that sixteen lines differ", () => {
    const looks = Array.from(
      { length: 16 },
      (_, i) => `${lineColour("light", i)}${dashOf(i).join()}`,
    );
    expect(new Set(looks).size).toBe(16);
  });
});

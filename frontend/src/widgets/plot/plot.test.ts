import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SvgPen } from "../export/pen";
import { paintAxes } from "./axes";
import { Pace } from "./canvas";
import { paintBands, type BandLook } from "../stack/stack";

const SIZE = { widthPx: 400, heightPx: 100 };

function written(paint: (pen: SvgPen) => void): string {
  const pen = new SvgPen();
  paint(pen);
  return pen.written();
}

describe("bands", () => {
  const bands = {
    edges: [100, 120, 130, 140],
    layers: [
      { values: [20, 20, 0], colour: "#0000ff" },
      { values: [10, 30, NaN], colour: "#00ff00" },
    ],
  };
  const LOOK = {
    edgedPx: 1000,
    linedPx: 0,
    apartPx: 1000,
  };
  const paths = (look: BandLook, view = { x0: 100, x1: 140, y0: 50, y1: 0 }) =>
    Array.from(
      written((pen) => paintBands(pen, bands, look, view, SIZE, "light")).matchAll(
        /<path d="([^"]*)" fill="([^"]*)"/g,
      ),
      ([, d, fill]) => [fill, d],
    );

  it("stand upon each other and leave out what takes no room", () =>
    expect(paths(LOOK)).toEqual([
      ["#0000ff", "M0 60h300v40h-300Z"],
      ["#00ff00", "M0 40h200v20h-200ZM200 0h100v60h-100Z"],
    ]));

  it("never vanish, and end at the plot", () => {
    const seen = paths(LOOK, { x0: 119, x1: 519, y0: 1000, y1: 0 });
    expect(seen[0]?.[1]).toBe("M0 98h11v2h-11Z");
    expect(seen[1]?.[1]).toBe("M0 97h1v1h-1ZM1 95h10v3h-10Z");
  });

  it("have a line at an upper edge and a gap to the next column where they are large", () => {
    const drawn = paths({ ...LOOK, edgedPx: 30, apartPx: 150 });
    expect(drawn[1]?.[1]).toBe("M0 40h199v20h-199ZM200 0h100v60h-100Z");
    expect(drawn[2]).toEqual([
      "#ffffff",
      "M0 60h199v1h-199ZM200 60h100v1h-100ZM200 0h100v1h-100Z",
    ]);
  });
});

describe("axes", () =>
  it("have their texts beside them, none of them cut at the picture's edge", () => {
    const svg = written((pen) =>
      paintAxes(pen, {
        left: 72,
        top: 0,
        size: SIZE,
        theme: "light",
        grid: "y",
        view: { x0: 0, x1: SIZE.widthPx, y0: 0, y1: SIZE.heightPx },
        x: [
          { value: 10, text: "10" },
          { value: 400, text: "a long text" },
        ],
        y: [{ value: 50, text: "5 GiB" }],
      }),
    );
    expect(svg).toContain('text-anchor="end">5 GiB<');
    expect(svg).toContain('text-anchor="middle">10<');
    expect(svg).toContain('x="484" y="117" fill="#616161" text-anchor="end">a long');
    expect(svg.match(/<path/g)).toHaveLength(3);
  }));

describe("Pace", () => {
  const pass = (ms: number) => vi.advanceTimersByTime(ms);
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("draws a drag at its own rate and never loses where it ended", () => {
    const pace = new Pace(50);
    const drawn: number[] = [];
    for (let frame = 0; frame <= 30; frame += 1) {
      pace.ask(() => drawn.push(frame), false);
      pass(16);
    }
    pass(50);
    expect(drawn.length).toBeLessThanOrEqual(12);
    expect(drawn.length).toBeGreaterThanOrEqual(8);
    expect(drawn[0]).toBe(0);
    expect(drawn.at(-1)).toBe(30);
    expect(drawn).toEqual([...drawn].sort((a, b) => a - b));
  });

  it("draws at once what is urgent, and not again what it overtook", () => {
    const pace = new Pace(50);
    const drawn: string[] = [];
    for (const word of ["first", "waits"]) pace.ask(() => drawn.push(word), false);
    pace.ask(() => drawn.push("urgent"), true);
    pass(1000);
    expect(drawn).toEqual(["first", "urgent"]);
  });

  it("forgets what waits once it is stopped", () => {
    const pace = new Pace(50);
    let drawn = 0;
    for (let i = 0; i < 2; i += 1) pace.ask(() => (drawn += 1), false);
    pace.stop();
    pass(1000);
    expect(drawn).toBe(1);
  });
});

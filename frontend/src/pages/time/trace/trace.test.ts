import { describe, expect, it } from "vitest";
import { nameHash, TraceColours, pictureOf } from "./paint/quads";
import {
  COUNTER_PX,
  LANE_PX,
  laneTop,
  layoutOf,
  pinnedTracks,
  rowsBetween,
  tracksNamed,
  tracksOf,
  tracksQuery,
} from "./plot/layout";
import {
  shownTiles,
  tileQuery,
  wantedTile,
  type Look,
  type World,
} from "./tiles/loader";
import { overviewOf } from "./panels/strip";
import { fitting } from "./paint/canvas";
import { absolute, times, toggled } from "./state/params";
import { perfettoFile, perfettoAt } from "./perfetto";
import { BASE, testSlices, testSource, testTrace } from "./test_trace";
import { TraceTile } from "./tiles/tile";
import { firstWindow } from "./state/timeline";
import { hitWords } from "./panels/head";
import { formatNs, formatTick } from "./text";

const NONE = "";

function tile(
  more = {},
  high = 1_000,
  tracks = ["a:0", "a:1", "b:0", "b:3"],
): TraceTile {
  return new TraceTile(testSlices(more), BASE, high, new Set(tracks));
}

describe("the words of the URL", () => {
  const word = times(BASE, "w0", "w1");
  const read = (low: string, high: string) =>
    word.read(
      new Map([
        ["w0", low],
        ["w1", high],
      ]),
    );

  it("hold times that no number holds", () => {
    const window = read("1780000000000000123", "1780000000000000130");
    expect(window).toEqual({ low: 0, high: 7 });
    expect(word.write(window)["w1"]).toBe("1780000000000000130");
    expect(absolute(BASE, 7.4)).toBe("1780000000000000130");
  });

  it("are passed over where they mean nothing", () => {
    expect(read("1", "")).toBeNull();
    expect(read("5", "5")).toBeNull();
    expect(read("1e9", "2e9")).toBeNull();
  });
});

describe("the layout", () => {
  it("puts ranks over processes over tracks, with room for every level", () => {
    const layout = layoutOf(testTrace(), NONE);
    expect(layout.rows.map(({ kind, label }) => `${kind} ${label}`)).toEqual([
      "rank Rank 0",
      "process python 7",
      "track thread 1",
      "process GPU 0",
      "track stream 7",
      "rank Rank 1",
      "process python 7",
      "track thread 1",
      "process Memory",
      "track Allocated peak",
    ]);
    const first = layout.byTrack.get("a:0");
    expect(first?.heightPx).toBeGreaterThanOrEqual(2 * LANE_PX);
    expect(laneTop(layout, "a:0", 1)).toBe((first?.y ?? 0) + LANE_PX);
    expect(layout.byTrack.get("b:3")?.heightPx).toBeGreaterThanOrEqual(COUNTER_PX);
    const ys = layout.rows.map(({ y }) => y);
    expect([...ys].sort((a, b) => a - b)).toEqual(ys);
  });

  it("folds ranks, processes and tracks, these to their outermost level", () => {
    expect(layoutOf(testTrace(), "r0").byTrack.has("a:0")).toBe(false);
    const folded = layoutOf(testTrace(), "a:0");
    expect(folded.byTrack.get("a:0")?.lanes).toBe(1);
    expect(laneTop(folded, "a:0", 5)).toBe(folded.byTrack.get("a:0")?.y);
  });

  it("holds those with all words in their names alone", () => {
    const labels = (text: string) =>
      layoutOf(tracksNamed(testTrace(), text), NONE).rows.map(({ label }) => label);
    expect(labels("STREAM")).toEqual(["Rank 0", "GPU 0", "stream 7"]);
    expect(labels("rank 1 python")).toEqual(["Rank 1", "python 7", "thread 1"]);
    expect(labels("allocated peak")).toEqual(["Rank 1", "Memory", "Allocated peak"]);
    expect(labels("nobody")).toEqual([]);
    expect(labels("").length).toBe(10);
  });

  it("puts pinned tracks below no headings, each with its rank", () => {
    const pins = "b:0,a:1";
    const { rows } = layoutOf(pinnedTracks(testTrace(), pins), NONE, true);
    expect(rows.map(({ label, y }) => [label, y])).toEqual([
      ["0: stream 7", 0],
      ["1: thread 1", 22],
    ]);
    expect(toggled(pins, "a:1")).toBe("b:0");
    expect(toggled(pins, "a:0")).toBe("b:0,a:1,a:0");
  });

  it("names tracks as the routes read them", () => {
    const layout = layoutOf(testTrace(), NONE);
    expect(tracksQuery(layout.rows)).toBe("a:0-1;b:0,3");
    expect([...tracksOf("a:0-1;b:0,3")]).toEqual(["a:0", "a:1", "b:0", "b:3"]);
    expect(tracksQuery(rowsBetween(layout, 0, 30))).toBe("");
  });
});

describe("a tile", () => {
  it("knows its pieces in nanoseconds since the base", () => {
    const piece = tile().piece(3);
    expect(piece).toEqual({
      trackKey: "a:0",
      level: 1,
      row: 7,
      startNs: 600,
      endNs: 800,
      name: "launch",
      family: "runtime",
      count: 9,
      busyNs: 80,
    });
    expect(tile({ t0: (BASE + 40n).toString() }).piece(0).startNs).toBe(40);
  });

  it("tells a counter's value at a time", () => {
    const traceTile = tile();
    const [line] = traceTile.linesOf("b:3");
    if (line === undefined) throw new Error("there is a line");
    expect(traceTile.valueAt(line, -1)).toBeNull();
    expect(traceTile.valueAt(line, 99)).toBe(1024);
    expect(traceTile.valueAt(line, 100)).toBe(4096);
    expect(traceTile.valueAt(line, 9_000)).toBe(2048);
  });
});

describe("the picture", () => {
  const layout = layoutOf(testTrace(), NONE);
  const colours = new TraceColours("light");

  it("has a quad for each piece in sight, blocks lighter", () => {
    const { quads, pieceOf } = pictureOf([tile()], layout, colours, "");
    expect([...quads.x0]).toEqual([0, 20, 200, 600]);
    expect([...quads.x1]).toEqual([1_000, 120, 400, 800]);
    // The block of launches is a lighter plain tone of their colour.
    expect(quads.colour[3]).not.toBe(colours.of("runtime", "launch"));
    expect([0, 1, 2, 3].map((id) => pieceOf(id)?.row)).toEqual([0, 1, 2, 7]);
    expect(quads.y0[1]).toBe((quads.y0[0] ?? 0) + LANE_PX);
  });

  it("leaves out what is folded away", () => {
    const folded = layoutOf(testTrace(), "a:0");
    expect(pictureOf([tile()], folded, colours, "").quads.colour.length).toBe(1);
  });

  it("shows the coarser tile where the finer one does not reach", () => {
    // From 10 to 500 ns: two pieces of the coarser one lie in it wholly.
    const part = tile({ t0: (BASE + 10n).toString() }, 500, ["a:0"]);
    const { quads, pieceOf } = pictureOf([tile(), part], layout, colours, "");
    const pieces = [...quads.colour].map((_, id) => pieceOf(id));
    // Those of the finer one begin 10 ns later.
    expect(pieces.map((piece) => [piece?.row, piece?.startNs])).toEqual([
      [0, 0],
      [7, 600],
      [0, 10],
      [1, 30],
      [2, 210],
      [7, 610],
    ]);
  });

  it("dims what a search does not find", () => {
    const plain = pictureOf([tile()], layout, colours, "").quads.colour;
    const searched = pictureOf([tile()], layout, colours, "ATEN").quads.colour;
    expect(searched[1]).toBe(plain[1]);
    expect(searched[0]).not.toBe(plain[0]);
  });
});

describe("colours", () => {
  it("are the same for a name, and differ between names of a family", () => {
    const colours = new TraceColours("dark");
    expect(colours.of("kernel", "mm")).toBe(
      new TraceColours("dark").of("kernel", "mm"),
    );
    const kinds = ["a", "b", "c", "d", "e"].map((name) => colours.of("kernel", name));
    expect(new Set(kinds).size).toBeGreaterThan(1);
    expect(nameHash("mm")).toBe(nameHash("mm"));
  });
});

describe("what is asked for", () => {
  const layout = layoutOf(testTrace(), NONE);
  const world: World = { base: BASE, low: -4, high: 1_004 };
  const all: Look = { x0: -4, x1: 1_004, y0: 0, y1: 600, widthPx: 800 };

  it("is everything first, then sharply what is looked at, and then nothing", () => {
    const first = wantedTile([], all, layout, world);
    expect(first).toMatchObject({ low: -4, high: 1_004, px: 800 });
    if (first === null) throw new Error("something is wanted");
    expect(tracksQuery(first.rows)).toBe("a:0-1;b:0,3");
    expect(tileQuery("r", BASE, "", first)).toMatchObject({
      t0: (BASE - 4n).toString(),
      t1: (BASE + 1_004n).toString(),
    });
    const whole = tile({ t0: (BASE - 4n).toString(), zoom: 0 }, 1_004);
    expect(wantedTile([whole], all, layout, world)).toBeNull();
    const coarse = tile({ t0: (BASE - 4n).toString(), zoom: 9 }, 1_004);
    const near: Look = { ...all, x0: 400, x1: 500 };
    const second = wantedTile([coarse], near, layout, world);
    expect(second?.low).toBeLessThanOrEqual(350);
    expect(second?.high).toBeGreaterThanOrEqual(550);
    expect(second?.px).toBeGreaterThanOrEqual(1_600);
  });

  it("is shown as it comes: the sharp one, else the coarse one with a part", () => {
    const coarse = tile({ t0: (BASE - 4n).toString(), zoom: 9 }, 1_004);
    const sharp = tile({ t0: (BASE + 300n).toString(), zoom: 0 }, 700);
    const near: Look = { ...all, x0: 400, x1: 500 };
    expect(shownTiles([coarse, sharp], near, layout, world)).toEqual([sharp]);
    const beside: Look = { ...all, x0: 600, x1: 900 };
    expect(shownTiles([coarse, sharp], beside, layout, world)).toEqual([coarse, sharp]);
    expect(shownTiles([coarse], near, layout, world)).toEqual([coarse]);
  });
});

describe("words", () => {
  it("say times as finely as they are", () => {
    expect(formatNs(812)).toBe("812 ns");
    expect(formatNs(1_240)).toBe("1.24 µs");
    expect(formatNs(3.7e6)).toBe("3.70 ms");
    expect(formatTick(1_250_000_000, 50_000_000)).toBe("1,250 ms");
    expect(formatTick(1_200_000_000, 200_000_000)).toBe("1.2 s");
    expect(formatTick(-5, 1)).toBe("−5 ns");
  });

  it("say where the pointer is in the unit of the ticks", () => {
    expect(formatTick(672_207_400, 5e4, 5e6)).toBe("672.21 ms");
    expect(formatTick(672_207_400, 5e4)).toBe("672,207 µs");
  });

  it("say what there is", () => {
    expect(hitWords(2, 1_204)).toBe("3 of 1,204");
    expect(hitWords(-1, 0)).toBe("nothing found");
    expect(fitting("aten::linear", 60, 30)).toBe("ate…r");
    expect(fitting("aten::linear", 60, 12)).toBe("");
  });
});

describe("what is looked at first", () => {
  const extent = { low: 0, high: 1e9 };

  it("is the step that the server found, with a little around it", () => {
    const focus = { words: "", startNs: 4e8, endNs: 5e8 };
    const { low, high } = firstWindow(focus, extent);
    expect([low, high]).toEqual([3.98e8, 5.02e8]);
    expect(firstWindow(null, extent)).toBe(extent);
  });

  it("is handed to Perfetto as one file, or merged", () => {
    const [first, two] = [testSource("t"), testSource("u")];
    const run = { id: "r", name: "exp" };
    expect(perfettoFile({ sources: [first] }, run)).toEqual([
      "./trace_file?run=r&source=t",
      "t.pt.trace.json",
    ]);
    expect(perfettoFile({ sources: [first, two] }, run)[0]).toBe(
      "./trace_merged?run=r",
    );
    expect(perfettoAt("hosted", "http://h/app.html").origin).toBe(
      "https://ui.perfetto.dev",
    );
    expect(perfettoAt("local", "http://h/data/app.html").href).toBe(
      "http://h/data/perfetto/index.html",
    );
  });
});

describe("the strip of all the time", () =>
  it("holds the busy time of what is work", () => {
    const { busy, totals } = overviewOf(tile(), { low: 0, high: 1_000 }, 100);
    const columns = 100;
    const sum = (family: number): number =>
      busy
        .subarray(family * columns, (family + 1) * columns)
        .reduce((total, value) => total + value, 0);
    expect(totals[25]).toBeCloseTo(1);
    // Ten nanoseconds are a column: 300 ns of mm, 80 ns of launches, no step.
    expect(sum(0)).toBeCloseTo(30);
    expect(sum(1)).toBe(0);
    expect(sum(2)).toBeCloseTo(8);
  }));

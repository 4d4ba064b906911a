import { describe, expect, it } from "vitest";
import type { SegmentsResponse } from "../../api/types.gen";
import { PATTERN } from "../../render/raster";
import { legendOf } from "./fills";
import { mapFigure } from "./figure";
import {
  BAR_PX,
  LINE_PX,
  pieces,
  rowAt,
  rowOfBlock,
  rowsBetween,
  segmentLayout,
} from "./layout";
import { obstacleBlocks } from "./overlay";
import { firstSegmentId, segmentQuads } from "./quads";
import { steppedBlock } from "./segment_map";
import { segmentsAnswer } from "./test_segments";
import { addressText, headWords, segmentKind, segmentTable } from "./words";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const FACTS = { pools: ["default", "(0, 1)"], streams: ["default"] };

const ANSWER = segmentsAnswer([
  {
    address: 0x7f0000000000,
    blocks: [
      [1, 1 * MIB],
      [0, 5 * MIB],
      [2, 2 * MIB],
    ],
  },
  { address: 0x7f0010000000, blocks: [[0, 20 * MIB]] },
  {
    address: 0x7f0020000000,
    blocks: [
      [1, 3 * MIB],
      [1, 1 * MIB],
    ],
  },
  { address: 0x7f0030000000, blocks: [[1, 2 * MIB]], unlisted: true },
]);

/** Segments of these sizes, each full of one block. */
function full(sizes: readonly number[]) {
  return segmentsAnswer(
    sizes.map((size, i) => ({ address: 0x7f0000000000 + i, blocks: [[1, size]] })),
  );
}

describe("the map's rows", () => {
  it("gives every segment a line, and long ones as many as they need", () => {
    const { segments } = full([2 * MIB, 20 * MIB, 21 * MIB]);
    const layout = segmentLayout(segments, 10 * MIB);
    expect([...layout.numLines]).toEqual([1, 2, 3]);
    expect(layout.top[1]).toBe(LINE_PX + 12);
    expect(layout.equalBytes).toBe(10 * MIB);
  });

  it("fills each line where lengths need not compare", () => {
    const layout = segmentLayout(full([2 * MIB, 4 * GIB]).segments, "fit");
    expect([...layout.numLines]).toEqual([1, 1]);
    expect(layout.equalBytes).toBeNull();
  });

  it("chooses lines that a few huge segments do not make endless", () => {
    const lineBytes = (sizes: readonly number[]): number =>
      segmentLayout(full(sizes).segments, "auto").equalBytes ?? 0;
    expect((80 * GIB) / lineBytes([80 * GIB])).toBeLessThanOrEqual(32);
    const many = Array.from({ length: 200 }, (_, i) => (20 + i) * MIB);
    expect(lineBytes(many)).toBeLessThanOrEqual(256 * MIB);
  });

  it("folds equal full segments into one line, until they are unfolded", () => {
    const answer = full([4 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, MIB, MIB]);
    const { segments } = answer;

    const layout = segmentLayout(segments, "auto");
    expect([...layout.runs]).toEqual([1, 3, 1, 1, 1, 1]);
    expect([...layout.numFolded]).toEqual([1, 3, 0, 0, 1, 1]);
    expect(rowsBetween(layout, (layout.top[1] ?? 0) + 1, layout.top[1] ?? 0)).toEqual([
      1, 4,
    ]);
    // Together they fill the line, one after another.
    expect(pieces(layout, 2, 0, 2 * MIB)).toMatchObject([{ x0: 1 / 3, x1: 2 / 3 }]);
    expect(pieces(layout, 3, 0, 2 * MIB)[0]?.y0).toBe(
      pieces(layout, 1, 0, 2 * MIB)[0]?.y0,
    );
    expect(headWords(answer, 1, 3, FACTS, "auto")).toMatchObject({
      size: "3 × 2.00 MiB",
      address: "",
      below: "full · large",
    });
    const unfolded = segmentLayout(segments, "auto", new Set([0x7f0000000001]));
    expect([...unfolded.numFolded]).toEqual([1, 1, 1, 1, 1, 1]);
    expect(unfolded.runs[1]).toBe(3);
  });

  it("is never longer than a browser can scroll, whatever is asked for", () => {
    const layout = segmentLayout(
      full(Array.from({ length: 2000 }, (_, i) => 80 * GIB + i)).segments,
      1,
    );
    expect(layout.top.at(-1)).toBeLessThan(2_000_000);
  });

  it("finds the row at a height, and rows in sight", () => {
    const layout = segmentLayout(ANSWER.segments, "fit");
    const row = LINE_PX + 12;
    expect(
      [-1, 0, row - 1, row, 4 * row - 1, 4 * row].map((y) => rowAt(layout, y)),
    ).toEqual([-1, 0, 0, 1, 3, -1]);
    expect(rowsBetween(layout, row + 1, 2 * row + 1)).toEqual([1, 3]);
    expect(rowsBetween(segmentLayout(full([]).segments, "auto"), 0, 100)).toEqual([
      0, 0,
    ]);
  });

  it("breaks a block where its line ends", () => {
    const layout = segmentLayout(full([30]).segments, 10);
    // Lines have a least size, so this layout is made by hand.
    const own = { ...layout, lineBytes: Float64Array.of(10) };
    const found = pieces(own, 0, 5, 17);
    expect(found.map(({ x0, x1 }) => [x0, x1])).toEqual([
      [0.5, 1],
      [0, 1],
      [0, 0.2],
    ]);
    expect(found.map(({ y0 }) => y0)).toEqual([3, 3 + LINE_PX, 3 + 2 * LINE_PX]);
    expect((found[0]?.y1 ?? 0) - (found[0]?.y0 ?? 0)).toBe(BAR_PX);
    expect(pieces(own, 0, 10, 10)).toHaveLength(1);
  });
});

describe("blocks of the map", () => {
  it("know their segment", () => {
    expect([0, 2, 3, 4, 5, 6].map((block) => rowOfBlock(ANSWER, block))).toEqual([
      0, 0, 1, 2, 2, -1,
    ]);
  });

  it("are stepped through across segments", () => {
    expect(steppedBlock(ANSWER, 2, 1, false)).toBe(3);
    expect(steppedBlock(ANSWER, 1, 1, true)).toBe(3);
    expect(steppedBlock(ANSWER, 5, 1, true)).toBe(5);
    expect(steppedBlock(ANSWER, -1, -1, false)).toBe(5);
  });

  it("are drawn with live ones upon free ones, by pattern and id", () => {
    const layout = segmentLayout(ANSWER.segments, "fit");
    const quads = segmentQuads(ANSWER, layout, "category", "light");
    expect([...quads.id]).toEqual([1, 3, 0, 2, 4, 5, firstSegmentId(ANSWER) + 3]);
    expect([...quads.pattern]).toEqual([
      PATTERN.hatched,
      PATTERN.solid,
      PATTERN.solid,
      PATTERN.striped,
      PATTERN.solid,
      PATTERN.solid,
      PATTERN.dotted,
    ]);
    // Neighbours differ in tone.
    expect(quads.colour[4]).not.toBe(quads.colour[5]);
  });

  it("add up in the legend", () => {
    const entries = legendOf(ANSWER, "category", "light");
    const bytes = new Map(entries.map((entry) => [entry.key, entry.bytes]));
    expect(bytes.get("whole")).toBe(20 * MIB);
    expect(bytes.get("split")).toBe(5 * MIB);
    expect(bytes.get("pending")).toBe(2 * MIB);
    expect(bytes.has("param")).toBe(false);
    const [allocated] = legendOf(ANSWER, "state", "dark");
    expect(allocated?.bytes).toBe(ANSWER.allocatedBytes);
  });
});

describe("what is in the way of a request", () => {
  it("is the live blocks of its stretch", () => {
    const obstacle = {
      ...{ segmentAddress: 0x7f0000000000, offset: 1 * MIB, size: 7 * MIB },
      ...{ numLive: 1, liveBytes: 2 * MIB, stack: 2 },
    };
    const request = { obstacle } as SegmentsResponse["request"];
    expect(obstacleBlocks({ ...ANSWER, request })).toEqual([2]);
    expect(obstacleBlocks(ANSWER)).toEqual([]);
  });
});

describe("words of the map", () => {
  it("say what a segment is", () => {
    expect(segmentKind(ANSWER, 0, FACTS)).toBe("large");
    const pooled = { ...ANSWER.segments, pool: Int32Array.of(1, 0, 0, 0) };
    expect(
      segmentKind({ segments: pooled }, 0, { ...FACTS, streams: ["default", "0x7"] }),
    ).toBe("large · pool (0, 1) · stream default");
    expect(addressText(0x7f0000000000)).toBe("0x7f0000000000");
  });

  it("stand left of a segment, with its stream and pool", () => {
    const facts = { ...FACTS, streams: ["default", "0x55d2c0a1b2c0"] };
    const segments = {
      ...ANSWER.segments,
      stream: Int32Array.of(0, 1, 0, 0),
      pool: Int32Array.of(1, 1, 0, 0),
      isExpandable: new Uint8Array(4).fill(1),
    };
    expect(headWords({ segments }, 1, 1, facts, "auto")).toEqual({
      size: "20.0 MiB",
      address: "0x7f0010000000",
      stream: "stream 0x55d2c0a1b2c0",
      below: "20.0 MiB free · large · expandable · pool (0, 1)",
    });
  });

  it("list every segment in the table", () => {
    const table = segmentTable(
      ANSWER,
      FACTS,
      null,
      new Map([[0x7f0010000000, "pinned"]]),
    );
    expect(table.numRows).toBe(4);
    expect(table.columns.every(({ values }) => values.length === 4)).toBe(true);
  });

  it("stand in the picture", () => {
    const figure = mapFigure({
      title: "Segments <now>",
      answer: ANSWER,
      facts: FACTS,
      layout: segmentLayout(ANSWER.segments, "fit"),
      fill: "category",
      theme: "light",
      byteUnit: "auto",
      cellsUrl: "data:image/png;base64,AA==",
      widthPx: 600,
      heightPx: 300,
      headPx: 220,
      rows: [0, 4],
      scrollPx: 0,
      pinned: new Map(),
    });
    expect(figure.svg).toContain("Segments &lt;now&gt;");
    expect(figure.svg).toContain("0x7f0030000000");
  });
});

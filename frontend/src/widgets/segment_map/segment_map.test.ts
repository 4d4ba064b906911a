import { describe, expect, it } from "vitest";
import { PATTERN } from "../../render/raster";
import { legendOf } from "./fills";
import { mapFigure } from "./figure";
import {
  BAR_PX,
  chosenLineBytes,
  LINE_PX,
  pieces,
  rowAt,
  rowOfBlock,
  rowsBetween,
  segmentLayout,
} from "./layout";
import { headWidth, headWords } from "./head";
import { firstSegmentId, segmentQuads } from "./quads";
import { steppedBlock } from "./segment_map";
import { segmentsAnswer } from "./test_segments";
import { addressText, segmentKind, segmentTable } from "./words";

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

describe("the map's rows", () => {
  it("gives every segment a line, and long ones as many as they need", () => {
    const sizes = Float64Array.of(2 * MIB, 20 * MIB, 21 * MIB);
    const layout = segmentLayout(sizes, 10 * MIB);
    expect([...layout.numLines]).toEqual([1, 2, 3]);
    expect(layout.top[1]).toBe(LINE_PX + 12);
    expect(layout.equalBytes).toBe(10 * MIB);
  });

  it("fills each line where lengths need not compare", () => {
    const layout = segmentLayout(Float64Array.of(2 * MIB, 4 * GIB), "fit");
    expect([...layout.numLines]).toEqual([1, 1]);
    expect(layout.equalBytes).toBeNull();
  });

  it("chooses lines that a few huge segments do not make endless", () => {
    const one = Float64Array.of(80 * GIB);
    expect((80 * GIB) / chosenLineBytes(one)).toBeLessThanOrEqual(32);
    const many = new Float64Array(200).fill(20 * MIB);
    expect(chosenLineBytes(many)).toBeLessThanOrEqual(64 * MIB);
  });

  it("is never longer than a browser can scroll, whatever is asked for", () => {
    const layout = segmentLayout(new Float64Array(2000).fill(80 * GIB), 1);
    expect(layout.top.at(-1)).toBeLessThan(2_000_000);
  });

  it("finds the row at a height, and rows in sight", () => {
    const layout = segmentLayout(ANSWER.segments.totalBytes, "fit");
    const row = LINE_PX + 12;
    expect(
      [-1, 0, row - 1, row, 4 * row - 1, 4 * row].map((y) => rowAt(layout, y)),
    ).toEqual([-1, 0, 0, 1, 3, -1]);
    expect(rowsBetween(layout, row + 1, 2 * row + 1)).toEqual([1, 3]);
    expect(rowsBetween(segmentLayout(new Float64Array(0), "auto"), 0, 100)).toEqual([
      0, 0,
    ]);
  });

  it("breaks a block where its line ends", () => {
    const layout = segmentLayout(Float64Array.of(30), 10);
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
    const layout = segmentLayout(ANSWER.segments.totalBytes, "fit");
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

describe("words of the map", () => {
  it("say what a segment is", () => {
    expect(segmentKind(ANSWER, 0, FACTS)).toBe("large");
    const pooled = { ...ANSWER.segments, pool: Int32Array.of(1, 0, 0, 0) };
    expect(
      segmentKind({ segments: pooled }, 0, { ...FACTS, streams: ["default", "0x7"] }),
    ).toBe("large · pool (0, 1) · stream default");
    expect(addressText(0x7f0000000000)).toBe("0x7f0000000000");
  });

  it("have the room that streams and pools need, and no more than there is", () => {
    expect(headWidth(ANSWER, FACTS, "auto")).toBe(220);
    const streams = ["default", "0x55d2c0a1b2c0"];
    const segments = {
      ...ANSWER.segments,
      stream: Int32Array.of(0, 1, 0, 0),
      pool: Int32Array.of(1, 1, 0, 0),
      isExpandable: new Uint8Array(4).fill(1),
    };
    const facts = { ...FACTS, streams };
    expect(headWords({ segments }, 1, facts, "auto")).toEqual({
      size: "20.0 MiB",
      address: "0x7f0010000000",
      stream: "stream 0x55d2c0a1b2c0",
      below: "20.0 MiB free · large · expandable · pool (0, 1)",
    });
    const room = headWidth({ segments }, facts, "auto");
    expect(room).toBeGreaterThan(280);
    expect(room).toBeLessThanOrEqual(320);
    const full = { ...segments, freeBytes: new Float64Array(4) };
    expect(headWidth({ segments: full }, facts, "auto")).toBe(room);
    const long = { ...facts, streams: ["default", "0x".padEnd(80, "f")] };
    expect(headWidth({ segments }, long, "auto")).toBe(320);
  });

  it("list every segment in the table", () => {
    const table = segmentTable(ANSWER, FACTS, null);
    expect(table.numRows).toBe(4);
    expect(table.columns.every(({ values }) => values.length === 4)).toBe(true);
  });

  it("stand in the picture", () => {
    const figure = mapFigure({
      title: "Segments <now>",
      answer: ANSWER,
      facts: FACTS,
      layout: segmentLayout(ANSWER.segments.totalBytes, "fit"),
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

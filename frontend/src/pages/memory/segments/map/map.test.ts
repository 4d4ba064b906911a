import { describe, expect, it } from "vitest";
import type { SegmentsResponse } from "../../../../api/types.gen";
import { SvgPen } from "../../../../widgets/export/pen";
import { declaredTable } from "../../../shared/table/test_tables";
import {
  BAR_PX,
  HEAD_PX,
  hitAt,
  LINE_PX,
  pieces,
  rowOfBlock,
  rowsBetween,
  segmentLayout,
  steppedBlock,
} from "./layout";
import { legendOf, paintMap, paintMarks } from "./paint";
import type { MapPicture } from "./picture";
import { addressText, headWords, pinText, segmentTable } from "./text";

const NO_ROWS = declaredTable({
  title: "",
  empty: "",
  columns: [],
  numRows: 0,
  usual: "",
});

/** State (0 free, 1 allocated, 2 pending) and bytes. */
type TestBlock = readonly [state: 0 | 1 | 2, bytes: number];

interface TestSegment {
  readonly address: number;
  readonly blocks: readonly TestBlock[];
  /** Set where the answer lists no blocks of it. */
  readonly unlisted?: boolean;
  readonly numAlike?: number;
}

function segmentsAnswer(of: readonly TestSegment[]): SegmentsResponse {
  const listed = of.map((segment) => (segment.unlisted === true ? [] : segment.blocks));
  const blocks = listed.flat();
  const sum = (segment: TestSegment, state: number): number =>
    segment.blocks.reduce(
      (bytes, [own, size]) => bytes + (own === state ? size : 0),
      0,
    );
  const total = (state: number): number =>
    of.reduce((bytes, segment) => bytes + sum(segment, state), 0);
  const column = (value: (segment: TestSegment) => number): Float64Array =>
    Float64Array.from(of, value);
  const offsets = listed.flatMap((own) =>
    own.map((_, i) => own.slice(0, i).reduce((bytes, [, size]) => bytes + size, 0)),
  );
  const ones = Int32Array.from(blocks, ([state], i) => (state === 0 ? -1 : i));
  return {
    device: 0,
    moment: { moment: 7, timeMs: null, step: null, phase: "" },
    action: "alloc",
    actionBytes: null,
    numSegments: of.length,
    reservedBytes: total(0) + total(1) + total(2),
    allocatedBytes: total(1),
    pendingBytes: total(2),
    freeBytes: total(0),
    wholeBytes: of.reduce(
      (bytes, segment) =>
        bytes + (sum(segment, 1) + sum(segment, 2) === 0 ? sum(segment, 0) : 0),
      0,
    ),
    pinnedBytes: 0,
    segments: {
      address: column(({ address }) => address),
      totalBytes: column(
        (segment) => sum(segment, 0) + sum(segment, 1) + sum(segment, 2),
      ),
      allocatedBytes: column((segment) => sum(segment, 1)),
      pendingBytes: column((segment) => sum(segment, 2)),
      freeBytes: column((segment) => sum(segment, 0)),
      requestedBytes: column((segment) => sum(segment, 1) + sum(segment, 2)),
      largestFreeBytes: column((segment) =>
        Math.max(0, ...segment.blocks.map(([state, size]) => (state === 0 ? size : 0))),
      ),
      numActive: Int32Array.from(
        of,
        (segment) => segment.blocks.filter(([state]) => state > 0).length,
      ),
      kind: new Int32Array(of.length),
      numAlike: Int32Array.from(of, (segment) => segment.numAlike ?? 1),
      opened: Int32Array.from(of, (_, i) => i - 1),
      stack: new Int32Array(of.length).fill(-1),
      firstBlock: Int32Array.from(listed, (_, i) => listed.slice(0, i).flat().length),
      numBlocks: Int32Array.from(listed, (own) => own.length),
    },
    blocks: {
      offset: Float64Array.from(offsets),
      size: Float64Array.from(blocks, ([, size]) => size),
      state: Uint8Array.from(blocks, ([state]) => state),
      life: ones,
      stack: ones.slice(),
      category: Uint8Array.from(blocks, ([state]) => (state === 0 ? 2 : 1)),
    },
    kinds: ["large"],
    categories: [
      { key: "p", label: "p", category: "param", stack: null, bytes: 0 },
      { key: "a", label: "a", category: "activation", stack: null, bytes: total(1) },
    ],
    freeSizes: NO_ROWS,
    arenas: NO_ROWS,
    why: {
      tone: "plain",
      sentence: "",
      more: [],
      figures: [],
      culprit: -1,
      lives: new Int32Array(0),
    },
    pins: { address: [], text: [] },
    pinners: NO_ROWS,
    oddities: [],
  };
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Lines are 300 px wide. */
const WIDE_PX = 528;

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
function full(sizes: readonly number[], numAlike: readonly number[] = []) {
  return segmentsAnswer(
    sizes.map((size, i) => ({
      address: 0x7f0000000000 + i,
      blocks: [[1, size]],
      numAlike: numAlike[i] ?? 1,
    })),
  );
}

function pictureOf(fill: MapPicture["fill"]): MapPicture {
  return {
    answer: ANSWER,
    layout: segmentLayout(ANSWER.segments, "fit", WIDE_PX),
    fill,
    colours: ["#425ed4", "#065721"],
    theme: "light",
    byteUnit: "auto",
    heightPx: 300,
    scrollPx: 0,
  };
}

describe("the map's rows", () => {
  it("gives every segment a line, and long ones as many as they need", () => {
    const { segments } = full([2 * MIB, 20 * MIB, 21 * MIB]);
    const layout = segmentLayout(segments, 10 * MIB, WIDE_PX);
    const lines = [2, 20, 21].map(
      (mib, row) => pieces(layout, row, 0, mib * MIB).length,
    );
    expect(lines).toEqual([1, 2, 3]);
    expect(layout.top[1]).toBe(LINE_PX + 12);
    expect(layout.equalBytes).toBe(10 * MIB);
  });

  it("fills each line where lengths need not compare", () => {
    const layout = segmentLayout(full([2 * MIB, 4 * GIB]).segments, "fit", WIDE_PX);
    expect(pieces(layout, 1, 0, 4 * GIB)).toHaveLength(1);
    expect(layout.equalBytes).toBeNull();
  });

  it("chooses lines that a few huge segments do not make endless", () => {
    const lineBytes = (sizes: readonly number[]): number =>
      segmentLayout(full(sizes).segments, "auto", WIDE_PX).equalBytes ?? 0;
    expect((80 * GIB) / lineBytes([80 * GIB])).toBeLessThanOrEqual(32);
    const many = Array.from({ length: 200 }, (_, i) => (20 + i) * MIB);
    expect(lineBytes(many)).toBeLessThanOrEqual(256 * MIB);
  });

  it("folds equal full segments into one line, until they are unfolded", () => {
    const sizes = [4 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, MIB, MIB];
    const answer = full(sizes, [1, 3, 1, 1, 1, 1]);
    const { segments } = answer;
    const layout = segmentLayout(segments, "auto", WIDE_PX);
    expect([...layout.numFolded]).toEqual([1, 3, 0, 0, 1, 1]);
    expect(rowsBetween(layout, (layout.top[1] ?? 0) + 1, layout.top[1] ?? 0)).toEqual([
      1, 4,
    ]);
    // Together they fill the line, one after another.
    expect(pieces(layout, 2, 0, 2 * MIB)).toMatchObject([
      { x: HEAD_PX + 100, width: 100 },
    ]);
    const [last] = pieces(layout, 3, 0, 2 * MIB);
    expect(last?.y).toBe(pieces(layout, 1, 0, 2 * MIB)[0]?.y);
    const y = (layout.top[1] ?? 0) + 10;
    expect(hitAt(answer, layout, { x: HEAD_PX + 150, y })).toEqual({
      row: 2,
      block: 2,
    });
    expect(headWords({ answer, layout, byteUnit: "auto" }, 1)).toMatchObject({
      size: "3 × 2.00 MiB",
      address: "",
      below: "full · large",
    });
    const unfolded = segmentLayout(
      segments,
      "auto",
      WIDE_PX,
      new Set([0x7f0000000001]),
    );
    expect([...unfolded.numFolded]).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it("is never longer than a browser can scroll, whatever is asked for", () => {
    const layout = segmentLayout(
      full(Array.from({ length: 2000 }, (_, i) => 80 * GIB + i)).segments,
      1,
      WIDE_PX,
    );
    expect(layout.top.at(-1)).toBeLessThan(2_000_000);
  });

  it("finds the rows in sight", () => {
    const layout = segmentLayout(ANSWER.segments, "fit", WIDE_PX);
    const row = LINE_PX + 12;
    expect(rowsBetween(layout, row + 1, 2 * row + 1)).toEqual([1, 3]);
    expect(
      rowsBetween(segmentLayout(full([]).segments, "auto", WIDE_PX), 0, 100),
    ).toEqual([0, 0]);
  });

  it("breaks a block where its line ends", () => {
    const layout = segmentLayout(full([30]).segments, 10, WIDE_PX);
    // Lines have a least size, so this layout is made by hand.
    const own = { ...layout, lineBytes: Float64Array.of(10) };
    const bars = pieces(own, 0, 5, 17);
    expect(bars.map(({ x, width }) => [x - HEAD_PX, width])).toEqual([
      [150, 150],
      [0, 300],
      [0, 60],
    ]);
    expect(bars.map(({ y }) => y)).toEqual([3, 3 + LINE_PX, 3 + 2 * LINE_PX]);
    expect(bars[0]?.height).toBe(BAR_PX);
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

  it("are found where they lie, live ones first", () => {
    const layout = segmentLayout(ANSWER.segments, "fit", WIDE_PX);
    const hit = (x: number, y: number) => hitAt(ANSWER, layout, { x: HEAD_PX + x, y });
    const row = LINE_PX + 12;
    expect(hit(150, 10)).toEqual({ row: 0, block: 1 });
    expect(hit(224.5, 10)).toEqual({ row: 0, block: 2 });
    expect(hit(150, row + 10)).toEqual({ row: 1, block: 3 });
    expect(hit(150, 3 * row + 10)).toEqual({ row: 3, block: -1 });
    expect(hit(150, 4 * row + 10)).toBeNull();
    // Beside the blocks stand their segment's words.
    expect(hit(-20, row + 30)).toEqual({ row: 1, block: -1 });
    expect(hit(301, 10)).toBeNull();
  });

  it("add up in the legend", () => {
    const entries = legendOf(pictureOf("category"));
    const notes = ["7.00 MiB", "2.00 MiB", "5.00 MiB", "20.0 MiB"];
    expect(entries.map(({ note }) => note)).toEqual(notes);
    expect(entries[0]?.colour).toBe("#065721");
    const [allocated] = legendOf(pictureOf("state"));
    expect(allocated).toMatchObject({ label: "allocated", note: notes[0] });
  });
});

describe("words of the map", () => {
  it("say what a segment is", () => {
    expect(headWords(pictureOf("category"), 1)).toEqual({
      size: "20.0 MiB",
      address: "0x7f0010000000",
      below: "20.0 MiB free · large",
    });
    expect(addressText(0x7f0000000000)).toBe("0x7f0000000000");
  });

  it("list every segment in the table", () => {
    const pins = { address: [0x7f0010000000], text: ["pinned by one block"] };
    const table = segmentTable({ ...ANSWER, pins }, null);
    expect(table.numRows).toBe(4);
    expect(table.columns.every(({ values }) => values.length === 4)).toBe(true);
    expect(pinText({ ...ANSWER, pins }, 0x7f0010000000)).toBe("pinned by one block");
  });
});

describe("the picture", () => {
  const picture = {
    ...pictureOf("category"),
    answer: { ...ANSWER, why: { ...ANSWER.why, lives: Int32Array.of(2) } },
  };
  /** Elements as their names, their attributes and what is written in them. */
  const painted = (paint: (pen: SvgPen) => void) => {
    const pen = new SvgPen();
    paint(pen);
    const elements = pen.written().matchAll(/<(rect|path|text)([^>]*)>([^<]*)/g);
    return Array.from(elements, ([, name, attributeText = "", text]) => {
      const pairs = attributeText.matchAll(/([\w-]+)="([^"]*)"/g);
      const attributes = Object.fromEntries(
        Array.from(pairs, ([, key = "", value = ""]) => [key, value]),
      );
      return { name, text, attributes };
    });
  };

  it("has every segment's words, live blocks upon free ones, and what is in the way", () => {
    const nodes = painted((pen) => paintMap(pen, picture));
    const texts = nodes.filter(({ name }) => name === "text");
    expect(texts.map(({ text }) => text)).toContain("0x7f0030000000");
    const rects = nodes.filter(({ name }) => name === "rect");
    const filled = rects.filter(({ attributes }) => attributes["fill"] !== "none");
    // Four segments, then the live blocks of three; neighbours differ in tone.
    expect(filled).toHaveLength(8);
    const [last, other] = filled.slice(-2).map(({ attributes }) => attributes["fill"]);
    expect(last).not.toBe(other);
    expect(rects.some(({ attributes }) => attributes["stroke-width"] === "3")).toBe(
      true,
    );
  });

  it("marks what is under the pointer and what is chosen", () => {
    const marks = { hovered: 0, selected: 4, segment: 0x7f0010000000 };
    const nodes = painted((pen) => paintMarks(pen, picture, marks));
    const widths = nodes.map(({ attributes }) =>
      Number(attributes["stroke-width"] ?? 1),
    );
    expect(widths).toEqual([1, 1, 1.5, 2.5]);
    expect(nodes.every(({ attributes }) => Number(attributes["x"]) < 600)).toBe(true);
    expect(Number(nodes.at(-1)?.attributes["x"])).toBeGreaterThan(HEAD_PX);
  });
});

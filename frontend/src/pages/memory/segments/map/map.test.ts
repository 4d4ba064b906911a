import { describe, expect, it } from "vitest";
import { SvgPen } from "../../../../widgets/export/pen";
import {
  BAR_PX,
  hitAt,
  LINE_PX,
  pieces,
  rowAt,
  rowOfBlock,
  rowsBetween,
  segmentLayout,
  steppedBlock,
} from "./layout";
import { HEAD_PX, legendOf, paintMap, paintMarks, type MapPicture } from "./paint";
import { segmentsAnswer } from "./test_segments";
import { addressText, headWords, pinText, segmentTable } from "./words";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

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
    ...{ answer: ANSWER, layout: segmentLayout(ANSWER.segments, "fit"), fill },
    colours: ["#425ed4", "#065721"],
    theme: "light",
    byteUnit: "auto",
    ...{ widthPx: 600, heightPx: 300, scrollPx: 0 },
  };
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
    const sizes = [4 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, MIB, MIB];
    const answer = full(sizes, [1, 3, 1, 1, 1, 1]);
    const { segments } = answer;
    const layout = segmentLayout(segments, "auto");
    expect([...layout.numFolded]).toEqual([1, 3, 0, 0, 1, 1]);
    expect(rowsBetween(layout, (layout.top[1] ?? 0) + 1, layout.top[1] ?? 0)).toEqual([
      1, 4,
    ]);
    // Together they fill the line, one after another.
    expect(pieces(layout, 2, 0, 2 * MIB)).toMatchObject([{ x0: 1 / 3, x1: 2 / 3 }]);
    expect(pieces(layout, 3, 0, 2 * MIB)[0]?.y0).toBe(
      pieces(layout, 1, 0, 2 * MIB)[0]?.y0,
    );
    const y = (layout.top[1] ?? 0) + 10;
    expect(hitAt(answer, layout, 0.5, y, 0)).toEqual({ row: 2, block: 2 });
    expect(headWords({ answer, layout, byteUnit: "auto" }, 1)).toMatchObject({
      size: "3 × 2.00 MiB",
      address: "",
      below: "full · large",
    });
    const unfolded = segmentLayout(segments, "auto", new Set([0x7f0000000001]));
    expect([...unfolded.numFolded]).toEqual([1, 1, 1, 1, 1, 1]);
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

  it("are found where they lie, live ones first", () => {
    const layout = segmentLayout(ANSWER.segments, "fit");
    const at = (x: number, y: number, wide = 0) => hitAt(ANSWER, layout, x, y, wide);
    const row = LINE_PX + 12;
    expect(at(0.5, 10)).toEqual({ row: 0, block: 1 });
    expect(at(0.74, 10, 0.02)).toEqual({ row: 0, block: 2 });
    expect(at(0.5, row + 10)).toEqual({ row: 1, block: 3 });
    expect(at(0.5, 3 * row + 10)).toEqual({ row: 3, block: -1 });
    expect(at(0.5, 4 * row + 10)).toBeNull();
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
  const painted = (paint: (pen: SvgPen) => void) => {
    const pen = new SvgPen();
    paint(pen);
    const groups = pen.nodes().flatMap((node) => [node, ...node.children]);
    return groups.filter((node) => typeof node !== "string");
  };

  it("has every segment's words, live blocks upon free ones, and what is in the way", () => {
    const nodes = painted((pen) => paintMap(pen, picture));
    const texts = nodes.filter(({ name }) => name === "text");
    expect(texts.map(({ children }) => children[0])).toContain("0x7f0030000000");
    const rects = nodes.filter(({ name }) => name === "rect");
    const filled = rects.filter(({ attributes }) => attributes["fill"] !== "none");
    // Four segments, then the live blocks of three; neighbours differ in tone.
    expect(filled).toHaveLength(8);
    const [one, other] = filled.slice(-2).map(({ attributes }) => attributes["fill"]);
    expect(one).not.toBe(other);
    expect(rects.some(({ attributes }) => attributes["stroke-width"] === 3)).toBe(true);
  });

  it("marks what is under the pointer and what is chosen", () => {
    const marks = { hovered: 0, selected: 4, segment: 0x7f0010000000 };
    const nodes = painted((pen) => paintMarks(pen, picture, marks));
    const widths = nodes.map(({ attributes }) => attributes["stroke-width"] ?? null);
    expect(widths).toEqual([null, null, 1.5, 2.5]);
    expect(nodes.every(({ attributes }) => Number(attributes["x"]) < 600)).toBe(true);
    expect(Number(nodes.at(-1)?.attributes["x"])).toBeGreaterThan(HEAD_PX);
  });
});

import { describe, expect, it } from "vitest";
import { alignTo, mergeX } from "../../model/table";
import { figureTitle, type Unreal } from "../../model/words/origin";
import { numberText } from "./data_table";
import { safeFileName } from "./download";
import { exportCsv, exportJson, fileStem, toCsv, type ExportSource } from "./source";
import { figureOf } from "./figure";
import { SvgPen } from "./pen";

const TABLE = {
  numRows: 3,
  columns: [
    { name: "step", values: Float64Array.of(1, 2, 3) },
    { name: "rank 0 (bytes)", values: Float64Array.of(-5, NaN, 2 ** 52) },
    { name: "host", values: ["a,b", '=HYPERLINK("x")', "@sum"] },
  ],
};

describe("toCsv", () => {
  it("quotes, disarms formulas in text, keeps numbers whole and absence empty", () =>
    expect(toCsv(TABLE)).toBe(
      "step,rank 0 (bytes),host\r\n" +
        '1,-5,"a,b"\r\n' +
        `2,,"'=HYPERLINK(""x"")"\r\n` +
        "3,4503599627370496,'@sum\r\n",
    ));

  it("disarms headings too: run names reach them", () => {
    const columns = [{ name: "+1", values: Float64Array.of() }];
    expect(toCsv({ numRows: 0, columns })).toBe("'+1\r\n");
  });
});

describe("exportJson", () =>
  it("writes absence as null", () => {
    const origin = { run: "job", unreal: null };
    const about = () => ({ unit: "bytes" });
    const of = { origin, about, name: "a", table: () => TABLE };
    const parsed: unknown = JSON.parse(exportJson(of));
    expect(parsed).toMatchObject({
      unit: "bytes",
      columns: { "rank 0 (bytes)": [-5, null, 2 ** 52] },
    });
  }));

describe("the pen of pictures", () => {
  const written = (paint: (pen: SvgPen) => void): string => {
    const pen = new SvgPen();
    paint(pen);
    return pen.written();
  };

  it("lets no markup, quote or control character through", () => {
    const pen = new SvgPen();
    pen.fillStyle = '"><x y="';
    pen.fillText("a\u0000\ud800<b>\u{1f600}", 0, 0);
    const text = pen.file("<script>&", 10, 10, "#fff");
    expect(text).toContain("<title>&lt;script&gt;&amp;</title>");
    expect(text).toContain('fill="&quot;&gt;&lt;x y=&quot;"');
    expect(text).toContain("a\ufffd\ufffd&lt;b&gt;\u{1f600}");
  });

  it("writes what a canvas would paint, where it is painted", () => {
    const text = written((pen) => {
      pen.translate(10, 20);
      pen.fillStyle = "#ff0000";
      pen.globalAlpha = 0.5;
      pen.fillRect(1, 2, 3, 4);
      pen.globalAlpha = 1;
      pen.strokeStyle = "#00ff00";
      pen.lineWidth = 2;
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(0, 1.234);
      pen.lineTo(5, 6);
      pen.closePath();
      pen.stroke();
    });
    expect(text).toContain(
      '<g transform="translate(10 20)"><rect x="1" y="2" width="3" height="4" fill="#ff0000" fill-opacity="0.5">',
    );
    expect(text).toContain(
      '<path d="M0 1.23L5 6Z" fill="none" stroke="#00ff00" stroke-width="2" stroke-dasharray="4 3">',
    );
  });

  it("aligns and escapes text, and names what is painted next", () => {
    const text = written((pen) => {
      pen.fillStyle = "#111111";
      pen.font = "bold 20px Roboto";
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText("<a> & b", 50, 10);
      pen.name("it & all");
      pen.fillRect(0, 0, 1, 1);
      pen.fillRect(1, 1, 1, 1);
    });
    expect(text).toContain(
      '<text x="50" y="17.2" fill="#111111" text-anchor="end" font-size="20" font-weight="bold">&lt;a&gt; &amp; b<',
    );
    expect(text.match(/<title>it &amp; all<\/title>/g)).toHaveLength(1);
  });

  it("clips until it is restored, inside what clipped before", () => {
    const text = written((pen) => {
      pen.save();
      pen.beginPath();
      pen.rect(0, 0, 5, 5);
      pen.clip();
      pen.fillRect(0, 0, 9, 9);
      pen.save();
      pen.beginPath();
      pen.rect(1, 1, 2, 2);
      pen.clip();
      pen.fillRect(1, 0, 9, 9);
      pen.restore();
      pen.restore();
      pen.fillRect(2, 0, 9, 9);
    });
    expect(text).toContain('<clipPath id="clip1"><path d="M0 0h5v5h-5Z"/>');
    expect(text).toMatch(
      /<g clip-path="url\(#clip1\)"><rect x="0".*<clipPath id="clip2"/,
    );
    expect(text).toContain('<g clip-path="url(#clip2)"><rect x="1"');
    expect(text).toMatch(/<\/g><\/g><rect x="2"/);
  });

  it("leaves out what has no place, as a canvas does", () => {
    const text = written((pen) => {
      pen.beginPath();
      pen.moveTo(NaN, 1);
      pen.stroke();
      pen.rect(0, NaN, 1, 1);
      pen.fill();
      pen.fillRect(0, 0, NaN, 1);
      pen.fillText("x", NaN, 0);
    });
    expect(text).not.toMatch(/<path|<rect|<text|NaN/);
  });
});

describe("figureOf", () =>
  it("has its title, its axis and all of its legend, in as many rows as that takes", () => {
    const legend = Array.from({ length: 9 }, (_, i) => ({
      label: `line <${i}>`,
      colour: "#123456",
      ...(i % 2 === 0 ? { dash: [2, 3] } : {}),
    }));
    const parts = { title: "A & b", axisName: "step", theme: "dark" as const, legend };
    const paint = (pen: SvgPen): void => pen.fillText("data", 0, 0);
    const { svg, heightPx } = figureOf({
      ...parts,
      widthPx: 300,
      heightPx: 100,
      paint,
    });
    expect(svg).toContain("A &amp; b</text>");
    expect(svg).toContain(">step</text>");
    expect(svg).toContain(
      '<g transform="translate(0 32)"><text x="0" y="0" fill="#bdbdbd">data<',
    );
    expect(svg.match(/line &lt;\d&gt;/g)).toHaveLength(9);
    expect(svg.match(/stroke-dasharray="2 3"/g)).toHaveLength(5);
    expect(heightPx).toBeGreaterThan(100 + 3 * 18);
    const none = figureOf({ ...parts, legend: [], widthPx: 300, heightPx: 100, paint });
    expect(none.heightPx).toBeLessThan(150);
  }));

describe("a cell of a table", () =>
  it("has its thousands apart, and shows addresses as they are written", () => {
    expect(numberText("2097152")).toBe("2,097,152");
    expect(numberText("0x48cc000000")).toBe("0x48cc000000");
    expect(numberText("")).toBe("–");
    expect(numberText("models.py:176")).toBe("models.py:176");
  }));

describe("safeFileName", () =>
  it("keeps letters of every script and nothing a path could use", () => {
    expect(safeFileName("../../etc/passwd", "csv")).toBe("etc_passwd.csv");
    expect(safeFileName("запуск 7/rank:3", "svg")).toBe("запуск_7_rank_3.svg");
    expect(safeFileName("///", "png")).toBe("memboard.png");
  }));

describe("mergeX and alignTo", () => {
  it("put columns of different x side by side without inventing values", () => {
    const a = Float64Array.of(1, 2, 4);
    const b = Float64Array.of(2, 3);
    const x = mergeX([a, b]);
    expect([...x]).toEqual([1, 2, 3, 4]);
    expect([...alignTo(x, a, Float64Array.of(10, 20, 40))]).toEqual([10, 20, NaN, 40]);
    expect([...alignTo(x, b, Float64Array.of(7, 8))]).toEqual([NaN, 7, 8, NaN]);
  });

  it("costs nothing where all columns share one x", () => {
    const x = Float64Array.of(1, 2);
    const y = Float64Array.of(3, 4);
    expect(mergeX([x, x])).toBe(x);
    expect(alignTo(x, x, y)).toBe(y);
  });
});

describe("an exported table", () => {
  const source = (unreal: Unreal | null): ExportSource => ({
    origin: { run: "job 7", unreal },
    name: "host",
    table: () => ({ numRows: 2, columns: [{ name: "a", values: [1, 2] }] }),
    about: () => ({ rank: 3 }),
  });

  it("says in its name, its rows and its facts that data are simulated", () => {
    const simulated = source("simulated data");
    expect(fileStem(simulated)).toBe("job 7 host simulated");
    expect(exportCsv(simulated)).toBe("a,simulated\r\n1,1\r\n2,1\r\n");
    expect(JSON.parse(exportJson(simulated))).toMatchObject({
      run: "job 7",
      simulated: true,
      virtual_gpu: false,
      rank: 3,
    });
    expect(figureTitle("RSS", simulated.origin)).toBe("RSS (simulated data)");
  });

  it("says the same of a virtual GPU", () => {
    const virtual = source("virtual GPU");
    expect(fileStem(virtual)).toBe("job 7 host virtual_gpu");
    expect(exportCsv(virtual)).toBe("a,virtual_gpu\r\n1,1\r\n2,1\r\n");
    expect(JSON.parse(exportJson(virtual))).toMatchObject({
      simulated: false,
      virtual_gpu: true,
    });
    expect(figureTitle("RSS", virtual.origin)).toBe("RSS (virtual GPU)");
  });

  it("says nothing of it where data are real", () => {
    expect(fileStem(source(null))).toBe("job 7 host");
    expect(exportCsv(source(null))).toBe("a\r\n1\r\n2\r\n");
    expect(figureTitle("RSS", source(null).origin)).toBe("RSS");
  });
});

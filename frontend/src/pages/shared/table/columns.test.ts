import { describe, expect, it } from "vitest";
import type { TableColumn, TableRows } from "../../../api/types.gen";
import { tableOf } from "../../../widgets/row_table/columns";
import { columnsOf, rowsHolding } from "./columns";
import { declared } from "./test_tables";
import { formatFlops } from "./units";
import { partsOf } from "../../time/profiled/part_bar";
import { mostWords } from "../../time/profiled/profiled_page";

function column(changes: Partial<TableColumn>): TableColumn {
  return declared({
    key: "a",
    title: "A",
    help: "What it is",
    unit: "count",
    ...changes,
  });
}

const TABLE: TableRows = {
  title: "Kernels",
  summary: "",
  empty: "",
  columns: [
    column({ key: "name", unit: "name", texts: ["void gemm<int>(a)", "aten::add"] }),
    column({ key: "rank", unit: "rank", numbers: Float64Array.of(3, 12) }),
    column({
      key: "total_ms",
      unit: "ms",
      numbers: Float64Array.of(7.5, NaN),
      absent: "Not said",
      bar: "row",
      longest: 10,
      sum: 10,
      shareOf: "of the device's time",
    }),
    column({
      key: "category",
      unit: "category",
      texts: ["activation", ""],
      absent: "Nothing says it",
      absentText: "unknown",
      notes: ["8 ranks", ""],
    }),
    column({ key: "hidden", title: "", numbers: Float64Array.of(1, 0) }),
  ],
  numRows: 2,
  numAll: 2,
  usual: "total_ms",
  colours: ["kernel", "communication"],
};

describe("a table that is sent", () => {
  const columns = columnsOf(
    TABLE,
    { theme: "light", byteUnit: "auto" },
    { colours: { activation: "#0a0" } },
  );
  const cells = (row: number) => columns.map(({ cell }) => cell(row));

  it("has cells by unit, with shares, bars and notes", () => {
    const [name, rank, total, category] = cells(0);
    expect(name?.text).toBe("gemm<…>");
    expect([rank?.text, total?.text]).toEqual(["3", "7.50 ms"]);
    expect(total?.title).toBe("7.5 ms: 75.0 % of the device's time");
    expect(total?.bar?.share).toBe(0.75);
    expect(category).toEqual({ text: "Activations", swatch: "#0a0", note: "8 ranks" });
  });

  it("marks errors, what is bad, and the causes of findings", () => {
    const table = {
      ...TABLE,
      columns: [
        column({ unit: "errors", numbers: Float64Array.of(2, 0) }),
        column({ unit: "problem", texts: ["lost", ""] }),
        column({ unit: "text", texts: ["model.py:3", "main.py:1"] }),
      ],
    };
    const look = { theme: "light", byteUnit: "auto" } as const;
    const marked = columnsOf(table, look, { culprits: new Set(["model.py:3"]) });
    expect(marked.map(({ cell }) => cell(0))).toEqual([
      { text: "✖ 2", tone: "bad" },
      { text: "lost", tone: "bad" },
      { text: "model.py:3", isCause: true },
    ]);
    expect(marked.map(({ cell }) => cell(1).text)).toEqual(["0", "", "main.py:1"]);
  });

  it("says why something is not known", () => {
    expect(cells(1)[2]).toEqual({ text: "–", title: "Not said" });
    expect(cells(1)[3]).toMatchObject({ text: "unknown", title: "Nothing says it" });
  });

  it("shows changes with their sign, and a bar of less or of more", () => {
    const numbers = Float64Array.of(20, -5, 0);
    const parts = {
      numbers,
      unit: "change_bytes",
      bar: "change",
      longest: 20,
    } as const;
    const table = { ...TABLE, columns: [column(parts)] };
    const [change] = columnsOf(table, { theme: "dark", byteUnit: "B" });
    expect(change?.cell(0)).toMatchObject({
      text: "+20 B",
      bar: { from: 0.5, share: 0.5 },
    });
    expect(change?.cell(1)).toMatchObject({
      text: "−5 B",
      bar: { from: 0.375, share: 0.125 },
    });
    expect(change?.cell(2)).toMatchObject({ text: "0 B", bar: { share: 0 } });
  });

  it("sorts ranks from the lowest, and sends all columns to files", () => {
    expect(columns[1]?.ascends).toBe(true);
    const { columns: sent } = tableOf(columns, [1, 0]);
    expect(sent.map(({ name }) => name)).toEqual(TABLE.columns.map(({ key }) => key));
    expect(sent[0]?.values).toEqual(["aten::add", "void gemm<int>(a)"]);
  });

  it("has the parts of a row in their colours, in seconds", () => {
    const table = {
      ...TABLE,
      columns: [column({ bar: "other", unit: "ms", numbers: Float64Array.of(7) })],
    };
    expect(partsOf(table, 0, "light")[0]).toMatchObject({
      colour: "#8a8f98",
      value: 0.007,
    });
    expect(partsOf(TABLE, 0, "light")).toEqual([]);
  });

  it("is searched by every word, and by ranks", () => {
    expect(rowsHolding(TABLE, " ")).toBeNull();
    expect([...(rowsHolding(TABLE, "0-3,64") ?? [])]).toEqual([0]);
    expect([...(rowsHolding(TABLE, "12-") ?? [])]).toEqual([1]);
    expect([...(rowsHolding(TABLE, "GEMM 3") ?? [])]).toEqual([0]);
    expect([...(rowsHolding(TABLE, "1") ?? [])]).toEqual([]);
  });

  it("says what takes most, and nothing where nothing took any time", () => {
    expect(mostWords(TABLE)).toBe(
      "gemm<…> takes 75.0 % of the device's time: 7.50 ms of 10.0 ms.",
    );
    expect(mostWords({ ...TABLE, usual: "rank" })).toBe("");
  });
});

it("rows may have different units, and so have their changes", () => {
  const numbers = Float64Array.of(2 ** 30, 0.5, 7);
  const columns = (["of_row", "change_of_row"] as const).map((unit) =>
    column({ unit, numbers }),
  );
  const units = column({
    key: "unit",
    unit: "text",
    texts: ["bytes", "seconds", "count"],
  });
  const table = { ...TABLE, columns: [...columns, units] };
  const shown = columnsOf(table, { theme: "light", byteUnit: "auto" }).slice(0, 2);
  const cells = shown.map((rowColumn) =>
    [0, 1, 2].map((row) => rowColumn.cell(row).text),
  );
  expect(cells).toEqual([
    ["1.00 GiB", "500 ms", "7"],
    ["+1.00 GiB", "+500 ms", "+7"],
  ]);
});

it("counts of operations can be read", () => {
  expect(formatFlops(0)).toBe("0");
  expect(formatFlops(738_200_000)).toBe("738 M");
  expect(formatFlops(999_600)).toBe("1.00 M");
  expect(formatFlops(1.14e9)).toBe("1.14 G");
});

import { describe, expect, it } from "vitest";
import { declared, declaredTable } from "../../shared/table/test_tables";
import { withDifferences } from "./run_table";

const texts = (key: string, ...values: readonly string[]) =>
  declared({ key, title: key, help: "", unit: "text", texts: values });

const TABLE = declaredTable({
  title: "Runs",
  empty: "",
  usual: "name",
  numRows: 4,
  columns: [
    texts("name", "base-1", "base-2", "large-1", "snapshots"),
    texts("setting:Ranks", "8", "8", "64", ""),
    texts("setting:PyTorch", "2.12", "2.13", "2.13", ""),
    texts("setting:Device", "H100", "H100", "H100", ""),
  ],
});

const shown = (search: string): readonly string[] =>
  withDifferences(TABLE, search)
    .columns.map(({ title }) => title)
    .filter(Boolean);

describe("settings of the table of runs", () => {
  it("are shown where the runs differ that a search leaves", () => {
    expect(shown("")).toEqual(["name", "setting:Ranks", "setting:PyTorch"]);
    expect(shown("base")).toEqual(["name", "setting:PyTorch"]);
    expect(shown("large")).toEqual(["name"]);
  });
});

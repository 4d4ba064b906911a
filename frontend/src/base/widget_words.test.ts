import { expect, it } from "vitest";
import { readWidgets, writeWidgets } from "./widget_words";

it("keeps the texts of each widget, letter by letter", () => {
  const byWidget = new Map([
    ["allocated-peak", ["rank 3", "rank 41"]],
    ["modules", ["model.layers.0", "a,b;c:d~e", "Größe"]],
  ]);
  const text = writeWidgets(byWidget);
  expect(text).toContain("allocated-peak:rank 3,rank 41;modules:model.layers.0");
  expect(readWidgets(text ?? "")).toEqual(byWidget);
});

it("takes no place where nothing was changed", () => {
  expect(writeWidgets(new Map())).toBeNull();
  expect(readWidgets("")).toEqual(new Map());
});

it("reads of what was typed by hand what it can", () => {
  const typed = readWidgets(";:;a;b:;c:1,2;d:~zz,~2c");
  expect(typed).toEqual(
    new Map([
      ["c", ["1", "2"]],
      ["d", ["~zz", ","]],
    ]),
  );
});

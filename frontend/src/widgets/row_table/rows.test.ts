import { describe, expect, it } from "vitest";
import type { TreeRow } from "../../model/tree";
import { afterKey } from "./rows";

function row(id: number, depth: number, numChildren = 0, expanded = false): TreeRow {
  return { id, depth, numChildren, expanded };
}

const ROWS = [row(7, 0, 2, true), row(3, 1, 4), row(4, 1)];
const IDS = ROWS.map(({ id }) => id);

describe("afterKey", () => {
  it.each([
    ["ArrowDown", 7, { kind: "select", row: 3 }],
    ["ArrowDown", 4, { kind: "select", row: 4 }],
    ["ArrowDown", null, { kind: "select", row: 7 }],
    ["ArrowUp", 7, { kind: "select", row: 7 }],
    ["ArrowUp", null, { kind: "select", row: 7 }],
    ["End", null, { kind: "select", row: 4 }],
    ["ArrowRight", 3, { kind: "toggle", row: 3 }],
    ["ArrowRight", 7, { kind: "select", row: 3 }],
    ["ArrowRight", 4, null],
    ["ArrowLeft", 4, { kind: "select", row: 7 }],
    ["ArrowLeft", 7, { kind: "toggle", row: 7 }],
    ["x", 7, null],
  ] as const)("%s on row %s", (key, selected, effect) =>
    expect(afterKey(key, IDS, selected, 15, ROWS)).toEqual(effect),
  );

  it("does nothing without rows", () =>
    expect(afterKey("ArrowDown", [], null, 15)).toBeNull());
});

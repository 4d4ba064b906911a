import { describe, expect, it } from "vitest";
import type { TreeRow } from "../../model/tree";
import { afterKey } from "./keys";

function row(id: number, depth: number, numChildren = 0, expanded = false): TreeRow {
  return { id, depth, numChildren, expanded };
}

const ROWS = [row(7, 0, 2, true), row(3, 1, 4), row(4, 1)];

describe("afterKey", () => {
  it.each([
    ["ArrowDown", 7, { kind: "select", id: 3 }],
    ["ArrowDown", 4, { kind: "select", id: 4 }],
    ["ArrowDown", null, { kind: "select", id: 7 }],
    ["ArrowUp", 7, { kind: "select", id: 7 }],
    ["ArrowUp", null, { kind: "select", id: 7 }],
    ["End", null, { kind: "select", id: 4 }],
    ["ArrowRight", 3, { kind: "toggle", id: 3 }],
    ["ArrowRight", 7, { kind: "select", id: 3 }],
    ["ArrowRight", 4, null],
    ["ArrowLeft", 4, { kind: "select", id: 7 }],
    ["ArrowLeft", 7, { kind: "toggle", id: 7 }],
    ["x", 7, null],
  ] as const)("%s on row %s", (key, selected, effect) =>
    expect(afterKey(key, ROWS, selected)).toEqual(effect),
  );

  it("does nothing without rows", () =>
    expect(afterKey("ArrowDown", [], null)).toBeNull());
});

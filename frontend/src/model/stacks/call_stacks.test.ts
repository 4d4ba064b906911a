import { describe, expect, test } from "vitest";
import { linkOf, USUAL_TEMPLATE, type SourcePlace } from "./source_link";
import { baseName, NO_STACK, OTHER_STACKS } from "./call_stacks";
import { testStacks, TRAINING } from "./test_stacks";

const stacks = testStacks(TRAINING);
const labels = (path: Int32Array): string[] =>
  Array.from(path, (frame) => stacks.frameLabel(frame));

describe("call stacks", () => {
  test("a path runs from the root to the leaf and leaves out what is not asked for", () => {
    expect(labels(stacks.path(0, "user"))).toEqual([
      "train.py:9 main",
      "model.py:3 forward",
    ]);
    expect(labels(stacks.path(1, "python")).at(-1)).toBe("flash.py:2 attention");
    expect(labels(stacks.path(0, "all"))).toHaveLength(4);
    expect(labels(stacks.path(0, "all")).at(-1)).toBe("mm");
  });

  test("a stack without a frame of the kind is shown by what stands for it", () =>
    expect(labels(stacks.path(3, "user"))).toEqual(["autograd.py:8 backward"]));

  test("memory without a stack, and the sum of the others, have a name of their own", () => {
    expect(labels(stacks.path(NO_STACK, "user"))).toEqual(["no stack recorded"]);
    expect(stacks.stackLabel(OTHER_STACKS)).toContain("other stacks");
  });

  test("the frame of the user's own code stands for a stack", () => {
    expect(stacks.stackLabel(0)).toBe("model.py:3 forward");
    expect(stacks.stackPlace(2)).toBe("train.py:12");
    expect(stacks.module(1)).toBe("Attention");
    expect(stacks.module(2)).toBe("");
  });

  test("the text names file, line and function, innermost first", () =>
    expect(stacks.text(2)).toBe(
      "/torch/adam.py:44 in step\n/home/me/train.py:12 in main",
    ));

  test("only real paths become links, and nothing in them can break out", () => {
    const frame = { name: "f", line: 7 };
    const sourceLink = (place: SourcePlace) =>
      linkOf(place, { template: USUAL_TEMPLATE, mapping: [] });
    expect(sourceLink({ ...frame, filename: "/a b/c?.py" })).toBe(
      "vscode://file/a%20b/c%3F.py:7",
    );
    expect(sourceLink({ ...frame, filename: "C:\\x\\y.py", line: 0 })).toBe(
      "vscode://file/C:/x/y.py",
    );
    expect(sourceLink({ ...frame, filename: "<frozen runpy>" })).toBeNull();
    expect(sourceLink({ ...frame, filename: "javascript:alert(1)" })).toBeNull();
    expect(baseName("a/b\\c.py")).toBe("c.py");
  });
});

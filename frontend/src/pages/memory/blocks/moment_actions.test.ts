import { describe, expect, it } from "vitest";
import { testDevice } from "../../../widgets/block_stack/test_tile";
import type { DrawnMarks } from "../../../widgets/block_stack/marks";
import { momentActions, type ActionInputs } from "./moment_actions";
import { readAllocations } from "./state/params";

const point = (kind: "oom" | "snapshot", moment: number) => ({
  kind,
  moment,
  x: moment,
  label: "",
  bytes: NaN,
  deviceFree: NaN,
});

function actionsAt(words: Readonly<Record<string, string>>) {
  const said: string[] = [];
  const set: Readonly<Record<string, string | null>>[] = [];
  const pages: [string, Readonly<Record<string, string | null>>][] = [];
  const inputs: ActionInputs = {
    view: {
      say: (sentence) => said.push(sentence),
      setParams: (changes) => set.push(changes),
      showPage: (name, changes) => pages.push([name, changes]),
    },
    params: readAllocations(new Map(Object.entries(words))),
    place: { history: "h", device: testDevice() },
    controller: null,
    marks: {
      points: [point("snapshot", 2), point("oom", 5), point("oom", 9)],
      spans: [],
      numRows: 0,
    } satisfies DrawnMarks,
    anchor: 4,
  };
  return { ...momentActions(inputs), said, set, pages };
}

describe("what keys and buttons do to the moment", () => {
  it("goes from one out-of-memory error to the next, and round", () => {
    for (const [from, to] of [
      [undefined, "5"],
      ["5", "9"],
      ["9", "5"],
    ]) {
      const { actions, set } = actionsAt(from === undefined ? {} : { moment: from });
      actions.toOom();
      expect(set.at(-1)?.["moment"]).toBe(to);
    }
  });

  it("marks the moment that is shown, and lets go of the same one", () => {
    const first = actionsAt({});
    first.actions.mark();
    expect(first.set).toEqual([{ mark: "4", flame: "difference" }]);
    const again = actionsAt({ mark: "4" });
    again.actions.mark();
    expect(again.set).toEqual([{ mark: null, flame: null }]);
  });

  it("compares with the marked moment, or leaves the other side open", () => {
    const { actions, pages } = actionsAt({ mark: "1" });
    actions.compare();
    expect(pages[0]?.[0]).toBe("compare");
    expect(pages[0]?.[1]).toMatchObject({ moment: "4", a_history: "h", a_moment: "1" });
  });

  it("lets go of what was chosen last", () => {
    const all = { life: "1", r0: "0", r1: "9", stack: "2", moment: "3", mark: "4" };
    const { clear, set } = actionsAt(all);
    clear();
    expect(set).toEqual([{ life: null }]);
    const { clear: next, set: then } = actionsAt({ moment: "3", mark: "4" });
    next();
    expect(then).toEqual([{ moment: null }]);
  });
});

import { describe, expect, it } from "vitest";
import type { XRange } from "../../../widgets/plot/range";
import { rangeAfter, rangeCommands } from "./commands";

const EXTENT = { low: 0, high: 1000 };

function timeline(start: XRange | null) {
  let range = start;
  const commands = () =>
    rangeCommands("Timeline", {
      extent: EXTENT,
      range,
      setRange: (next) => {
        range = next;
      },
    });
  return {
    press: (key: string) => {
      commands()
        .find((command) => command.key === key)
        ?.run();
      return range;
    },
  };
}

describe("rangeCommands", () => {
  it("zooms in around the middle and finds its way back to everything", () => {
    const { press } = timeline(null);
    expect(press("w")).toEqual({ low: 100, high: 900 });
    expect(press("s")).toBeNull();
  });

  it("pans to the end and stays there", () => {
    const { press } = timeline({ low: 700, high: 900 });
    for (let i = 0; i < 20; i += 1) press("d");
    expect(press("d")).toEqual({ low: 800, high: 1000 });
    expect(press("f")).toBeNull();
  });

  it("gives every command a key of its own", () => {
    const keys = rangeCommands("Timeline", {
      extent: EXTENT,
      range: null,
      setRange: () => undefined,
    }).map((command) => command.key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("rangeAfter", () =>
  it("never shrinks to nothing", () => {
    const range = rangeAfter(
      { extent: EXTENT, range: { low: 5, high: 5.02 } },
      (view) => ({ ...view, x1: view.x0 + 0.01 }),
    );
    expect((range?.high ?? 0) - (range?.low ?? 0)).toBeGreaterThan(0);
  }));

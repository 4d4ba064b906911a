import { describe, expect, it } from "vitest";
import {
  between,
  flag,
  oneOf,
  optional,
  readState,
  text,
  whole,
  writeState,
} from "./page_state";
import { xRange } from "./range/params";

const SCHEMA = {
  by: oneOf("by", ["name", "shapes"], "name"),
  rate: oneOf("rate", ["steps", "tokens"], null),
  find: text("text"),
  source: optional("source"),
  log: flag("log"),
  step: whole("step"),
  smoothing: between("smooth", 0, 0.99),
  range: xRange(),
};

describe("a page's state", () => {
  const read = (params: Record<string, string>) =>
    readState(SCHEMA, new Map(Object.entries(params)));

  it("is what is usual where nothing, or nonsense, is said", () => {
    const usual = {
      by: "name",
      rate: null,
      find: "",
      source: null,
      log: false,
      step: null,
      smoothing: 0,
      range: null,
    };
    expect(read({})).toEqual(usual);
    const nonsense = {
      by: "x",
      rate: "y",
      log: "yes",
      step: "-1",
      smooth: "-",
      x0: "a",
    };
    expect(read(nonsense)).toEqual(usual);
  });

  it("comes back from its words", () => {
    const state = {
      ...({
        by: "shapes",
        rate: "tokens",
        find: "a b",
        source: "s",
        log: true,
      } as const),
      step: 12,
      smoothing: 0.5,
      range: { low: 1, high: 9 },
    };
    const params = writeState(SCHEMA, state);
    expect(params).toMatchObject({ by: "shapes", x0: "1", x1: "9", log: "1" });
    expect(read(params as Record<string, string>)).toEqual(state);
  });

  it("changes only what is named, and needs no word for what is usual", () => {
    expect(writeState(SCHEMA, { by: "name", find: "" })).toEqual({
      by: null,
      text: null,
    });
    expect(writeState(SCHEMA, { range: null })).toEqual({ x0: null, x1: null });
  });
});

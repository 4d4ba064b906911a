import { describe, expect, it } from "vitest";
import type {
  FindingsResponse,
  HistoriesResponse,
  HistoryChoice,
  HistoryState,
} from "../../../api/types.gen";
import { eventOf } from "../../shared/controls/event_field";
import { chosenHistory, culpritLines, nextHistory } from "./use_history";

function choice(id: string, state: HistoryState = "closed"): HistoryChoice {
  return { reference: { id }, origin: "file", state, problem: "" } as HistoryChoice;
}

function listing(...histories: readonly HistoryChoice[]): HistoriesResponse {
  return {
    histories,
    numHistories: histories.length,
    default: "b",
  } as unknown as HistoriesResponse;
}

describe("the history that is shown", () => {
  it("is the one a link names where the list has it, else the server's choice", () => {
    const answer = listing(choice("a"), choice("b"));
    expect(chosenHistory(answer, "a")).toBe("a");
    expect(chosenHistory(answer, "gone")).toBe("b");
    expect(chosenHistory(answer, "")).toBe("b");
  });

  it("may be among those that the list leaves out", () => {
    const answer = { ...listing(choice("a")), numHistories: 2000 };
    expect(chosenHistory(answer, "old")).toBe("old");
  });
});

describe("the history to go on with where one cannot be opened", () => {
  it("is the next that nothing is known against, else the nearest before", () => {
    const answer = listing(
      choice("a"),
      choice("b"),
      choice("c", "failed"),
      choice("d"),
    );
    expect(nextHistory(answer, "b")?.reference.id).toBe("d");
    expect(nextHistory(answer, "d")?.reference.id).toBe("b");
    expect(nextHistory(answer, "gone")?.reference.id).toBe("a");
  });

  it("is none where there is no other", () => {
    expect(nextHistory(listing(choice("a")), "a")).toBeNull();
    expect(nextHistory(listing(choice("a"), choice("b", "failed")), "a")).toBeNull();
  });
});

describe("the number of an event, as it is typed", () => {
  it("may have its thousands apart, and may be the moment before all events", () => {
    expect(eventOf(" 12,345 ")).toBe(12345);
    expect(eventOf("-1")).toBe(-1);
    expect(eventOf("Start")).toBe(-1);
  });

  it("is none where it is no number", () => {
    for (const text of ["", "  ", "abc", "1e999", "NaN"]) {
      expect(eventOf(text)).toBeNull();
    }
  });
});

it("blames the lines of errors and warnings, each once", () => {
  const finding = (severity: string, line: string) => ({ severity, line });
  const findings = [
    finding("error", "evaluate.py:52 append"),
    finding("warning", "evaluate.py:52 append"),
    finding("warning", ""),
    finding("info", "model.py:1 forward"),
  ];
  expect(culpritLines({ findings } as unknown as FindingsResponse)).toEqual([
    "evaluate.py:52 append",
  ]);
});

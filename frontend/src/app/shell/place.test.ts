import { describe, expect, it } from "vitest";
import { START, type Place } from "../location";
import { entriesOf } from "./place";

/** The browser's history: the newest entry last. */
function openHistory() {
  const entries: Place[] = [START];
  const shown = entriesOf({
    show: (place, how) => {
      if (how === "push") entries.push(place);
      else entries[entries.length - 1] = place;
    },
  });
  return { ...shown, views: () => entries.map(({ view }) => view) };
}

const placeAt = (view: string): Place => ({ ...START, view });

describe("entries of the history", () => {
  it("are one for all that one action changes", async () => {
    const { show, views } = openHistory();
    show(placeAt("rank"), "push");
    show(placeAt("page"), "push");
    show(placeAt("moment"), "replace");
    expect(views()).toEqual(["", "moment"]);
    await Promise.resolve();
    show(placeAt("next"), "push");
    expect(views()).toEqual(["", "moment", "next"]);
  });

  it("part a gesture that has just ended from the click that follows it", () => {
    const { show, apart, views } = openHistory();
    apart(() => show(placeAt("zoom"), "push"));
    show(placeAt("page"), "push");
    apart(() => undefined);
    show(placeAt("moment"), "push");
    expect(views()).toEqual(["", "zoom", "moment"]);
  });

  it("stay as many as they were where nothing asks for one", () => {
    const { show, views } = openHistory();
    show(placeAt("typed"), "replace");
    expect(views()).toEqual(["typed"]);
  });
});

import { useEffect, useMemo, useState } from "preact/hooks";
import { listen } from "../../base/browser";
import { writePendingUrls } from "../../base/debounced_url";
import type { Changes } from "../../pages/shared/view_props";
import type { HostPage } from "../host_page";
import { withParams, type Place } from "../location";

/**
 * One action, one entry: a button that chooses rank, step and page pushes once, and the
 * back button returns to the state before all of them.
 */
export function entriesOf(host: Pick<HostPage, "show">) {
  /** Until the browser has run the handler of the event. */
  let hasEntry = false;
  return {
    show: (place: Place, how: "replace" | "push"): void => {
      host.show(place, hasEntry ? "replace" : how);
      if (how === "replace" || hasEntry) return;
      hasEntry = true;
      queueMicrotask(() => {
        hasEntry = false;
      });
    },
    /** What `write` shows belongs to an earlier action: a gesture that now rests. */
    apart: (write: () => void): void => {
      const had = hasEntry;
      write();
      hasEntry = had;
    },
  };
}

/** Where the user is, as in the URL, and the ways to go elsewhere. */
export function usePlace(host: HostPage) {
  const [place, setPlace] = useState(host.place);
  useEffect(() => {
    setPlace(host.place());
    return host.onPlace(setPlace);
  }, [host]);
  useEffect(() => listen(window, ["pagehide"], writePendingUrls), []);
  const { show: write, apart } = useMemo(() => entriesOf(host), [host]);
  const show = (next: Place, how: "replace" | "push"): void => {
    write(next, how);
    setPlace(next);
  };
  /** With changes on their way to the URL: every change starts from it. */
  const here = (): Place => {
    apart(writePendingUrls);
    return host.place();
  };
  const go = (changes: Partial<Place>, how: "replace" | "push" = "push"): void =>
    show({ ...here(), ...changes }, how);
  return {
    place,
    here,
    go,
    setPinned: (pinned: readonly number[]): void => go({ pinned }, "replace"),
    // Two changes within one frame must not undo each other.
    setParams: (changes: Changes, how: "replace" | "push" = "replace"): void =>
      show(withParams(here(), changes), how),
    showPage: (name: string, changes: Changes): void =>
      show(withParams({ ...here(), view: name }, changes), "push"),
    // A trace is of one rank and run, and so are its cycles and times.
    chooseRank: (rank: number | null): void =>
      show({ ...withParams(here(), { source: null }), rank }, "push"),
    chooseRun: (id: string): void => {
      const changes = { source: null, cycle: null, w0: null, w1: null };
      const next = withParams(here(), changes);
      show({ ...next, run: id, rank: null, ranks: "", pinned: [] }, "push");
    },
  };
}

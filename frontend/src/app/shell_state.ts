/** The shell's small decisions and pieces of state, apart from its drawing. */

import { useEffect, useRef, useState } from "preact/hooks";
import { pagePulse } from "../api/pulse";
import type { RunsResponse, RunSummary } from "../api/types.gen";
import { commandsOf, type Command } from "../base/commands";
import { readPreference, writePreference } from "../base/preferences";
import { writeLateWords } from "../base/late_words";
import type { HostPage } from "./host_page";
import type { Place } from "./location";

export interface ShownPlace {
  readonly place: Place;
  /** The place with all that is on its way there: what every change starts from. */
  readonly here: () => Place;
  readonly show: (place: Place, how: "replace" | "push") => void;
}

/** The place shown, and how to go elsewhere; follows the address bar. */
export function usePlace(host: HostPage): ShownPlace {
  const [place, setPlace] = useState(host.place);
  useEffect(() => {
    setPlace(host.place());
    window.addEventListener("pagehide", writeLateWords);
    const stop = host.onPlace(setPlace);
    return () => {
      window.removeEventListener("pagehide", writeLateWords);
      stop();
    };
  }, [host]);
  const show = (next: Place, how: "replace" | "push"): void => {
    host.show(next, how);
    setPlace(next);
  };
  const here = (): Place => {
    writeLateWords();
    return host.place();
  };
  return { place, here, show };
}

/**
 * Keys go to the document that has the focus, which is TensorBoard's until something
 * in our page is clicked: so it is taken when the tab is opened, and when the pointer
 * comes in.
 */
export function useFocus(host: HostPage): void {
  useEffect(() => {
    host.takeFocus();
    const entered = (): void => {
      if (!document.hasFocus()) host.takeFocus();
    };
    document.documentElement.addEventListener("pointerenter", entered);
    const stop = pagePulse.onShown(host.takeFocus);
    return () => {
      document.documentElement.removeEventListener("pointerenter", entered);
      stop();
    };
  }, [host]);
}

const SAID_FOR_MS = 5_000;

/** A sentence shown for a moment and read out. */
export function useSaid(): readonly [string, (sentence: string) => void] {
  const [said, setSaid] = useState("");
  const timer = useRef(0);
  const say = (sentence: string): void => {
    window.clearTimeout(timer.current);
    setSaid(sentence);
    timer.current = window.setTimeout(() => setSaid(""), SAID_FOR_MS);
  };
  return [said, say];
}

/** Below this width the rail starts hidden. */
const NARROW_PX = 760;

/** Whether `delayMs` have passed since `subject` was last another one (null: never). */
export function useElapsed(subject: string | null, delayMs: number): boolean {
  const [elapsed, setElapsed] = useState<string | null>(null);
  useEffect(() => {
    if (subject === null) return undefined;
    const timer = window.setTimeout(() => setElapsed(subject), delayMs);
    return () => window.clearTimeout(timer);
  }, [subject, delayMs]);
  return subject !== null && elapsed === subject;
}

export function useRail(): readonly [boolean, () => void] {
  const [shown, setShown] = useState(() => {
    const kept = readPreference("rail");
    return kept === null ? window.innerWidth >= NARROW_PX : kept === "shown";
  });
  const toggle = (): void => {
    writePreference("rail", shown ? "hidden" : "shown");
    setShown(!shown);
  };
  return [shown, toggle];
}

/**
 * The run a link names, by id or, where a person typed it, by name; without a name the
 * one that needs a look. null where the named one is not there.
 */
export function findRun(
  runs: readonly RunSummary[],
  id: string,
  first: string,
): RunSummary | null {
  const wanted = id === "" ? first : id;
  return (
    runs.find((run) => run.id === wanted) ??
    runs.find((run) => run.name === wanted) ??
    null
  );
}

/**
 * The run that needs a look most. It stays while more becomes known of the runs there
 * are; another one is chosen once a run appears or goes.
 */
export function useFirstRun(data: RunsResponse | null): string {
  const kept = useRef({ runs: "", first: "" });
  if (data === null) return "";
  const runs = data.runs.map((run) => run.id).join();
  if (runs !== kept.current.runs) {
    kept.current = { runs, first: data.standings[0]?.run ?? "" };
  }
  return kept.current.first;
}

export interface Neighbours {
  readonly before: number | null;
  readonly after: number | null;
}

/** The ranks that exist just below and above the chosen one; `known` ascends. */
export function neighbourRanks(
  known: Int32Array | null,
  rank: number | null,
): Neighbours {
  if (known === null || rank === null) return { before: null, after: null };
  return {
    before: known.findLast((other) => other < rank) ?? null,
    after: known.find((other) => other > rank) ?? null,
  };
}

/** The chosen rank where the run does not have it. */
export function missingRank(
  known: Int32Array | null,
  rank: number | null,
): number | null {
  return known !== null && rank !== null && !known.includes(rank) ? rank : null;
}

export interface ShellActions {
  readonly search: () => void;
  readonly allRanks: () => void;
  readonly before: () => void;
  readonly after: () => void;
  readonly help: () => void;
  readonly palette: () => void;
  readonly clear: () => void;
  readonly copyLink: () => void;
  readonly exportMenu: () => void;
  readonly openFiles: () => void;
  readonly nextTheme: () => void;
}

export function shellCommands(actions: ShellActions): readonly Command[] {
  return [
    ...commandsOf("ranks", "Ranks", [
      ["search", "Choose ranks", actions.search, "/"],
      ["before", "Previous rank", actions.before, ","],
      ["after", "Next rank", actions.after, "."],
      ["all", "Show all ranks", actions.allRanks],
    ]),
    ...commandsOf("page", "Page", [
      ["clear", "Clear the cursor", actions.clear, "Escape"],
      ["copy", "Copy a link to what is shown", actions.copyLink, "c"],
      ["export", "Export", actions.exportMenu, "e"],
      ["open", "Open memory snapshots or traces", actions.openFiles, "o"],
      ["theme", "Change the theme", actions.nextTheme],
      ["palette", "Find a command", actions.palette, "Ctrl+k"],
      ["help", "Keyboard and help", actions.help, "?"],
    ]),
  ];
}

/** Moves the focus; a plain link would replace the state in the hash. */
export function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** All state of the shell; its parts only draw it. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Client } from "../api/client";
import { pagePulse } from "../api/pulse";
import type { EmptyTab, RunsResponse, RunSummary } from "../api/types.gen";
import { useLive } from "../api/use_live";
import { copyText, listen, readPreference, writePreference } from "../base/browser";
import {
  Commands,
  commandsOf,
  keyName,
  useCommands,
  type Command,
  type CommandRow,
} from "../base/commands";
import { writePendingUrls } from "../base/debounced_url";
import type { Theme } from "../base/tokens";
import type { ViewProps } from "../pages/shared/view_props";
import { isTyping, type HostPage } from "./host_page";
import { withParams, type Place } from "./location";
import { findTab, nextTab, PAGES, TABS, tabsOf } from "./pages";

/** A run that grows is polled often. */
const LIVE_POLL_MS = 750;
const RESTING_POLL_MS = 10_000;
const RUNS_POLL_MS = 1_000;
/** Here the overview feeds only the rail and the tabs. */
const OVERVIEW_POLL_MS = 5_000;
/** Big runs are read once per answer, in turn: the page goes first, the rail waits. */
const BIG_RUN_RANKS = 512;
const BIG_RUN_DELAY_MS = 2_500;
const SAID_FOR_MS = 5_000;
/** Below this width the rail starts hidden. */
const NARROW_PX = 760;
const NOWHERE_EMPTY: readonly EmptyTab[] = [];

const THEMES = ["auto", "light", "dark"] as const;

export type Shell = ReturnType<typeof useShell>;

export function useShell(client: Client, host: HostPage) {
  const { place, here, show } = usePlace(host);
  client.unit = place.unit === "auto" ? "" : place.unit;
  const go = (changes: Partial<Place>, how: "replace" | "push" = "push"): void =>
    show({ ...here(), ...changes }, how);
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS);
  const first = useFirstRun(runs.data);
  const run = runs.data === null ? null : findRun(runs.data.runs, place.run, first);
  const tab = findTab(place.view);
  const asksFirst = tab.name === "overview" || (run?.numRanks ?? 0) <= BIG_RUN_RANKS;
  const waited = useElapsed(run?.id ?? null, BIG_RUN_DELAY_MS);
  /** A page that was pressed before the run's tabs were known. */
  const [wanted, setWanted] = useState<string | null>(null);
  const { data: answer, error } = useLive(
    client,
    "overview",
    run !== null && (asksFirst || waited || wanted !== null) ? { run: run.id } : null,
    run?.live === true ? OVERVIEW_POLL_MS : RESTING_POLL_MS,
  );
  // The answer of the run before stays while the next one is read.
  const overview = answer?.run.id === run?.id ? answer : null;
  const isReading = run !== null && overview === null && error === null;
  const strip = overview?.strip ?? null;
  const empty = overview?.empty ?? NOWHERE_EMPTY;
  const neighbours = neighbourRanks(strip?.rank ?? null, place.rank);
  const { theme, themeChoice, nextTheme } = useTheme(host);
  useFocus(host);
  const commands = useMemo(() => new Commands(), []);
  const cursor = useSignal<number | null>(null);
  const axis = `${tab.name} ${place.params.get("x") ?? ""}`;
  useEffect(() => {
    cursor.value = null;
  }, [cursor, axis]);
  const [overlay, setOverlay] = useState<"help" | "palette" | null>(null);
  const [said, say] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => say(""), SAID_FOR_MS);
    return () => window.clearTimeout(timer);
  }, [said]);
  const [rail, setRail] = usePreference("rail", () =>
    window.innerWidth >= NARROW_PX ? "shown" : "hidden",
  );
  const toggleRail = (): void => setRail(rail === "shown" ? "hidden" : "shown");

  // A trace is of one rank and run, and so are its cycles and times.
  const chooseRank = (rank: number | null): void =>
    show({ ...withParams(here(), { source: null }), rank }, "push");
  const chooseRun = (id: string): void => {
    const words = { source: null, cycle: null, w0: null, w1: null };
    const place = withParams(here(), words);
    show({ ...place, run: id, rank: null, ranks: "", pinned: [] }, "push");
  };
  const lastTabs = useRef(new Map<string, string>());
  lastTabs.current.set(tab.page, tab.name);
  const openPage = (page: string): void =>
    go({ view: nextTab(page, tab, empty, lastTabs.current.get(page)).name });
  const choosePage = (page: string): void =>
    isReading ? setWanted(page) : openPage(page);
  useEffect(() => {
    if (wanted === null || isReading) return;
    setWanted(null);
    openPage(wanted);
  }, [wanted, isReading]);
  const searchRanks = (): void => {
    setRail("shown");
    window.setTimeout(() => element("rank-search")?.focus());
  };
  const copyLink = (): void => {
    void copyText(host.link({ ...here(), run: run?.id ?? "" })).then((copied) =>
      say(copied ? "Link copied" : "The browser refused to copy; use the address bar"),
    );
  };
  const byTab = TABS.filter((one) => one.title !== one.page);
  useKeyboard(commands, overlay === null, [
    ...commandsOf("go", "Go to", [
      ...PAGES.map((page, i): CommandRow => {
        const label = tabsOf(page).length > 1 ? `${page}; again: its next tab` : page;
        return [page, label, () => choosePage(page), (i + 1).toString()];
      }),
      ...byTab.map(({ name, page, title }): CommandRow => {
        return [name, `${page}: ${title}`, () => go({ view: name })];
      }),
      ...(runs.data?.runs ?? []).map(({ id, name }): CommandRow => {
        return [id, `Run ${name}`, () => chooseRun(id)];
      }),
    ]),
    ...commandsOf("ranks", "Ranks", [
      ["search", "Choose ranks", searchRanks, "/"],
      [
        "before",
        "Previous rank",
        () => chooseRank(neighbours.before ?? place.rank),
        ",",
      ],
      ["after", "Next rank", () => chooseRank(neighbours.after ?? place.rank), "."],
      ["all", "Show all ranks", () => go({ rank: null, ranks: "" })],
    ]),
    ...commandsOf("page", "Page", [
      ["clear", "Clear the cursor", () => (cursor.value = null), "Escape"],
      ["copy", "Copy a link to what is shown", copyLink, "c"],
      ["export", "Export", () => element("export")?.click(), "e"],
      [
        "open",
        "Open memory snapshots or traces",
        () => element("open-files")?.click(),
        "o",
      ],
      ["theme", "Change the theme", nextTheme],
      ["palette", "Find a command", () => setOverlay("palette"), "Ctrl+k"],
      ["help", "Keyboard and help", () => setOverlay("help"), "?"],
    ]),
  ]);
  const view: Omit<ViewProps, "run"> = {
    client,
    ranks: { rank: place.rank, filter: place.ranks, pinned: place.pinned },
    chooseRank,
    setPinned: (pinned) => go({ pinned }, "replace"),
    theme,
    byteUnit: place.unit,
    params: place.params,
    // Two changes within one frame must not undo each other.
    setParams: (changes, how = "replace") => show(withParams(here(), changes), how),
    showPage: (name, changes) =>
      show(withParams({ ...here(), view: name }, changes), "push"),
    say,
    cursor,
    pollMs: run?.live === true ? LIVE_POLL_MS : RESTING_POLL_MS,
    commands,
  };
  return {
    place,
    go,
    runs,
    run,
    tab,
    strip,
    empty,
    neighbours,
    view,
    commands,
    chooseRank,
    chooseRun,
    choosePage,
    copyLink,
    themeChoice,
    nextTheme,
    overlay,
    setOverlay,
    said,
    rail,
    toggleRail,
  };
}

function element(id: string): HTMLElement | null {
  return document.getElementById(id);
}

/** `here` includes changes on their way to the URL: every change starts from it. */
function usePlace(host: HostPage) {
  const [place, setPlace] = useState(host.place);
  useEffect(() => {
    setPlace(host.place());
    return host.onPlace(setPlace);
  }, [host]);
  useEffect(() => listen(window, ["pagehide"], writePendingUrls), []);
  const show = (next: Place, how: "replace" | "push"): void => {
    host.show(next, how);
    setPlace(next);
  };
  const here = (): Place => {
    writePendingUrls();
    return host.place();
  };
  return { place, here, show };
}

/** TensorBoard's document has the focus, and so the keys, until our page takes it. */
function useFocus(host: HostPage): void {
  useEffect(() => {
    host.takeFocus();
    return pagePulse.onShown(host.takeFocus);
  }, [host]);
  useEffect(() => {
    const entered = (): void => {
      if (!document.hasFocus()) host.takeFocus();
    };
    return listen(document.documentElement, ["pointerenter"], entered);
  }, [host]);
}

function useKeyboard(
  commands: Commands,
  listening: boolean,
  own: readonly Command[],
): void {
  useCommands(commands, () => own);
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (!listening || event.defaultPrevented) return;
      const key = keyName(event);
      if (key === null || (isTyping(event.target) && !key.startsWith("Ctrl+"))) return;
      const command = commands.forKey(key, event.shiftKey);
      if (command === undefined) return;
      event.preventDefault();
      command.run();
    };
    return listen(document, ["keydown"], pressed);
  }, [commands, listening]);
}

/** Outlives the page; `usual` where nothing was chosen. */
function usePreference(name: string, usual: () => string) {
  const [value, setValue] = useState(() => readPreference(name) ?? usual());
  const set = (next: string): void => {
    writePreference(name, next);
    setValue(next);
  };
  return [value, set] as const;
}

/** As the page around ours, unless the user chose one. */
function useTheme(host: HostPage) {
  const [kept, keep] = usePreference("theme", () => "auto");
  const themeChoice = THEMES.find((one) => one === kept) ?? "auto";
  const [around, setAround] = useState(host.theme);
  useEffect(() => {
    const read = (): void => setAround(host.theme());
    // It may have changed between the first render and now.
    read();
    return host.onTheme(read);
  }, [host]);
  const theme: Theme = themeChoice === "auto" ? around : themeChoice;
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const nextTheme = (): void =>
    keep(THEMES[(THEMES.indexOf(themeChoice) + 1) % THEMES.length] ?? "auto");
  return { theme, themeChoice, nextTheme };
}

/** Since `subject` last changed; null: never. */
function useElapsed(subject: string | null, delayMs: number): boolean {
  const [elapsed, setElapsed] = useState<string | null>(null);
  useEffect(() => {
    const timer = window.setTimeout(() => setElapsed(subject), delayMs);
    return () => window.clearTimeout(timer);
  }, [subject, delayMs]);
  return subject !== null && elapsed === subject;
}

/** By id or, typed by a person, by name; no name: the one that needs a look. */
export function findRun(
  runs: readonly RunSummary[],
  id: string,
  first: string,
): RunSummary | null {
  const wanted = id === "" ? first : id;
  const byId = runs.find((run) => run.id === wanted);
  return byId ?? runs.find((run) => run.name === wanted) ?? null;
}

/** Stays while more becomes known of the runs; changes when a run appears or goes. */
function useFirstRun(data: RunsResponse | null): string {
  const ids = data?.runs.map((run) => run.id).join();
  return useMemo(() => data?.standings[0]?.run ?? "", [ids]);
}

/** Just below and above the chosen rank; the last and first where none is chosen. */
export function neighbourRanks(known: Int32Array | null, rank: number | null) {
  return {
    before: known?.findLast((other) => other < (rank ?? Infinity)) ?? null,
    after: known?.find((other) => other > (rank ?? -1)) ?? null,
  };
}

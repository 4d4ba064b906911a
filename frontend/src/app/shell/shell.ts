/** All state of the shell; its parts only draw it. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Client } from "../../api/client";
import type { EmptyTab } from "../../api/types.gen";
import { Commands } from "../../base/commands";
import type { ViewProps } from "../../pages/shared/view_props";
import type { HostPage } from "../host_page";
import { findTab, nextTab, type Tab } from "../pages";
import { shellCommands } from "./commands";
import { copying } from "./copying";
import { useFocus, useKeyboard } from "./keyboard";
import { usePlace } from "./place";
import { RESTING_POLL_MS, useOpenRun } from "./run";
import { usePreference, useTheme } from "./theme";

/** A run that grows is polled often. */
const LIVE_POLL_MS = 750;
const SAID_FOR_MS = 5_000;
/** Below this width the rail starts hidden. */
const NARROW_PX = 760;

export type Shell = ReturnType<typeof useShell>;

export function useShell(client: Client, host: HostPage) {
  const address = usePlace(host);
  const { place, here, go, chooseRank, chooseRun, setPinned } = address;
  client.unit = place.unit === "auto" ? "" : place.unit;
  const tab = findTab(place.view);
  /** A page that was pressed before the run's tabs were known. */
  const [pressedPage, setPressedPage] = useState<string | null>(null);
  const isUrgent = tab.name === "overview" || pressedPage !== null;
  const openRun = useOpenRun(client, place, isUrgent);
  const { runs, run, isReading, empty, neighbours } = openRun;
  const openPage = useLastTabs(tab, empty, (view) => go({ view }));
  const choosePage = (page: string): void =>
    isReading ? setPressedPage(page) : openPage(page);
  useEffect(() => {
    if (pressedPage === null || isReading) return;
    setPressedPage(null);
    openPage(pressedPage);
  }, [pressedPage, isReading]);

  const { theme, themeChoice, nextTheme } = useTheme(host);
  useFocus(host);
  const commands = useMemo(() => new Commands(), []);
  const cursor = useCursor(`${tab.name} ${place.params.get("x") ?? ""}`);
  const [overlay, setOverlay] = useState<"help" | "palette" | null>(null);
  const [message, say] = useMessage();
  const { setRail, ...railLook } = useRail();

  const { copyLink, copyMarkdown } = copying(host, here, run, say);
  const ownCommands = shellCommands(runs.data?.runs ?? [], {
    choosePage,
    showTab: (view) => go({ view }),
    chooseRun,
    searchRanks: () => {
      setRail("shown");
      window.setTimeout(() => document.getElementById("rank-search")?.focus());
    },
    stepRank: (sign) =>
      chooseRank((sign < 0 ? neighbours.before : neighbours.after) ?? place.rank),
    showAllRanks: () => go({ rank: null, ranks: "" }),
    clearCursor: () => {
      cursor.value = null;
    },
    copyLink,
    nextTheme,
    openOverlay: setOverlay,
  });
  useKeyboard(commands, overlay === null, ownCommands);

  const view: Omit<ViewProps, "run"> = {
    client,
    ranks: { rank: place.rank, filter: place.ranks, pinned: place.pinned },
    chooseRank,
    chooseRun,
    setPinned,
    theme,
    byteUnit: place.unit,
    params: place.params,
    setParams: address.setParams,
    showPage: address.showPage,
    say,
    copyMarkdown,
    cursor,
    pollMs: run?.live === true ? LIVE_POLL_MS : RESTING_POLL_MS,
    commands,
  };
  return {
    address,
    openRun,
    pages: { tab, choosePage },
    look: { theme, themeChoice, nextTheme, ...railLook },
    overlays: { overlay, setOverlay },
    commands,
    message,
    copyLink,
    view,
  };
}

/** Opens a page at its next tab, or at the one that was shown last. */
function useLastTabs(
  tab: Tab,
  empty: readonly EmptyTab[],
  showTab: (name: string) => void,
): (page: string) => void {
  const lastTabs = useRef(new Map<string, string>());
  lastTabs.current.set(tab.page, tab.name);
  return (page) => showTab(nextTab(page, tab, empty, lastTabs.current.get(page)).name);
}

/** Shared by the charts of a page; cleared where its axis changes. */
function useCursor(axis: string) {
  const cursor = useSignal<number | null>(null);
  useEffect(() => {
    cursor.value = null;
  }, [cursor, axis]);
  return cursor;
}

/** A message, gone after a while; "": none. */
function useMessage() {
  const [message, say] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => say(""), SAID_FOR_MS);
    return () => window.clearTimeout(timer);
  }, [message]);
  return [message, say] as const;
}

function useRail() {
  const [rail, setRail] = usePreference("rail", () =>
    window.innerWidth >= NARROW_PX ? "shown" : "hidden",
  );
  const toggleRail = (): void => setRail(rail === "shown" ? "hidden" : "shown");
  return { rail, setRail, toggleRail };
}

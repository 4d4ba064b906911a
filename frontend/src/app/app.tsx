/**
 * The shell: one place (run, ranks, view, the views' words) kept in the URL, the frame
 * around the view shown, and what holds on every page: keyboard, theme, banners.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Client } from "../api/client";
import { useLive } from "../api/use_live";
import { copyText } from "../base/clipboard";
import { Commands } from "../base/commands";
import { rankNotes } from "../model/words/rank_notes";
import type { ViewProps } from "../pages/shared/view_props";
import { Banners } from "./chrome/banners";
import { Content } from "./content";
import { DropTarget } from "./drop/drop";
import type { HostPage } from "./host_page";
import { START, withParams } from "./location";
import { Help, Palette } from "./chrome/overlays";
import { findTab, nextTab, PAGES, TABS, tabsOf, type PageName } from "./pages";
import { Rail } from "./chrome/rail";
import {
  findRun,
  missingRank,
  neighbourRanks,
  shellCommands,
  skipToContent,
  useElapsed,
  useFirstRun,
  useFocus,
  usePlace,
  useRail,
  useSaid,
} from "./shell_state";
import { TopStrip } from "./chrome/top_strip";
import { useKeyboard } from "./chrome/use_keyboard";
import { useTheme } from "./use_theme";
import { ViewFrame } from "./view_frame";

/** A run that grows is asked often, one that rests now and then. */
const LIVE_POLL_MS = 750;
const RESTING_POLL_MS = 10_000;
const RUNS_POLL_MS = 1_000;
/** The strip only feeds the rail's chips here. */
const CHIPS_POLL_MS = 5_000;
const MAX_CHIPS = 10;
/**
 * The server reads a big run once for each of its answers, one after another: the page
 * that is looked at goes first, the chips wait for it.
 */
const BIG_RUN_RANKS = 512;
const BIG_RUN_CHIPS_DELAY_MS = 2_500;

export function App({
  client,
  host,
}: {
  readonly client: Client;
  readonly host: HostPage;
}) {
  const { place, here, show } = usePlace(host);
  const runs = useLive(client, "runs", {}, RUNS_POLL_MS);
  const first = useFirstRun(runs.data);
  const run = runs.data === null ? null : findRun(runs.data.runs, place.run, first);
  const tab = findTab(place.view);
  const asksFirst = tab.name === "overview" || (run?.numRanks ?? 0) <= BIG_RUN_RANKS;
  const waited = useElapsed(run?.id ?? null, BIG_RUN_CHIPS_DELAY_MS);
  const strip =
    useLive(
      client,
      "overview",
      run !== null && (asksFirst || waited) ? { run: run.id } : null,
      run?.live === true ? CHIPS_POLL_MS : RESTING_POLL_MS,
    ).data?.strip ?? null;
  const notes = useMemo(
    () => (strip === null ? [] : rankNotes(strip, MAX_CHIPS)),
    [strip],
  );
  const { theme, choice: themeChoice, next: nextTheme } = useTheme(host);
  useFocus(host);
  const commands = useMemo(() => new Commands(), []);
  const cursor = useSignal<number | null>(null);
  const axis = `${tab.name} ${place.params.get("x") ?? ""}`;
  useEffect(() => {
    cursor.value = null;
  }, [cursor, axis]);
  const [overlay, setOverlay] = useState<"help" | "palette" | null>(null);
  const [searchFocused, setSearchFocused] = useState(0);
  const [exportOpened, setExportOpened] = useState(0);
  const [openAsked, setOpenAsked] = useState(0);
  const [said, say] = useSaid();
  const [railShown, toggleRail] = useRail();

  const chooseRank = (rank: number | null): void => show({ ...here(), rank }, "push");
  const chooseRun = (id: string): void =>
    show({ ...here(), run: id, rank: null, ranks: "", pinned: [] }, "push");
  const showTab = (name: string): void => show({ ...here(), view: name }, "push");
  const lastTabs = useRef(new Map<PageName, string>());
  lastTabs.current.set(tab.page, tab.name);
  const choosePage = (page: PageName): void =>
    showTab(
      page === tab.page
        ? nextTab(page, tab).name
        : (lastTabs.current.get(page) ?? nextTab(page, tab).name),
    );
  const neighbours = neighbourRanks(strip?.rank ?? null, place.rank);
  const copyLink = (): void => {
    void copyText(host.link({ ...here(), run: run?.id ?? "" })).then((copied) =>
      say(copied ? "Link copied" : "The browser refused to copy; use the address bar"),
    );
  };
  useKeyboard(commands, overlay === null, [
    ...PAGES.map((page, i) => ({
      id: `page.${page.toLowerCase()}`,
      label: tabsOf(page).length > 1 ? `${page}; again: its next tab` : page,
      group: "Go to",
      key: (i + 1).toString(),
      run: () => choosePage(page),
    })),
    ...TABS.filter((one) => one.title !== one.page).map((one) => ({
      id: `tab.${one.name}`,
      label: `${one.page}: ${one.title}`,
      group: "Go to",
      run: () => showTab(one.name),
    })),
    ...(runs.data?.runs ?? []).map((one) => ({
      id: `run.${one.id}`,
      label: `Run ${one.name}`,
      group: "Go to",
      run: () => chooseRun(one.id),
    })),
    ...shellCommands({
      search: () => {
        if (!railShown) toggleRail();
        setSearchFocused((times) => times + 1);
      },
      allRanks: () => show({ ...here(), rank: null, ranks: "" }, "push"),
      before: () => {
        if (neighbours.before !== null) chooseRank(neighbours.before);
      },
      after: () => {
        if (neighbours.after !== null) chooseRank(neighbours.after);
      },
      help: () => setOverlay("help"),
      palette: () => setOverlay("palette"),
      clear: () => {
        cursor.value = null;
      },
      copyLink,
      exportMenu: () => setExportOpened((times) => times + 1),
      openFiles: () => setOpenAsked((times) => times + 1),
      nextTheme,
    }),
  ]);

  const choice = { rank: place.rank, filter: place.ranks, pinned: place.pinned };
  const setPinned = (pinned: readonly number[]): void =>
    show({ ...here(), pinned }, "replace");
  const view: Omit<ViewProps, "run"> = {
    client,
    ranks: choice,
    chooseRank,
    setPinned,
    theme,
    byteUnit: place.unit,
    params: place.params,
    setParams: (changes, how = "replace") => {
      // Two changes within one frame must not undo each other.
      show(withParams(here(), changes), how);
    },
    showPage: (name, changes) =>
      show(withParams({ ...here(), view: name }, changes), "push"),
    say,
    cursor,
    pollMs: run?.live === true ? LIVE_POLL_MS : RESTING_POLL_MS,
    commands,
  };
  return (
    <div class={railShown ? "shell" : "shell rail-hidden"}>
      <a class="skip-link" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <Rail
        runs={runs.data}
        run={run}
        page={tab.page}
        byteUnit={place.unit}
        chooseRun={chooseRun}
        choosePage={choosePage}
        ranks={
          run === null || run.numRanks === 0
            ? null
            : {
                numRanks: run.numRanks,
                known: strip?.rank ?? null,
                choice,
                notes,
                chooseRank,
                setFilter: (ranks) => show({ ...here(), rank: null, ranks }, "push"),
                setPinned,
                focused: searchFocused,
              }
        }
      />
      <div class="stage">
        <TopStrip
          run={run}
          tab={tab}
          chooseTab={showTab}
          choice={choice}
          chooseRank={chooseRank}
          neighbours={neighbours}
          clearFilter={() => show({ ...here(), ranks: "" }, "push")}
          byteUnit={place.unit}
          setByteUnit={(unit) => show({ ...here(), unit }, "replace")}
          themeChoice={themeChoice}
          nextTheme={nextTheme}
          exports={commands.all.value.filter((command) => command.group === "Export")}
          exportOpened={exportOpened}
          copyLink={copyLink}
          showHelp={() => setOverlay("help")}
          toggleRail={toggleRail}
        />
        <Banners error={runs.data === null ? null : runs.error} />
        <div id="content" class="content" tabIndex={-1}>
          <Content
            runs={runs}
            run={run}
            missingRank={missingRank(strip?.rank ?? null, place.rank)}
            showAllRanks={() => chooseRank(null)}
            showNewest={() =>
              show({ ...here(), run: "", rank: null, ranks: "" }, "push")
            }
          >
            {run !== null && (
              <ViewFrame key={tab.name} tab={tab} view={{ ...view, run }} />
            )}
          </Content>
        </div>
      </div>
      <DropTarget
        limitBytes={runs.data?.dropLimitBytes ?? null}
        runs={runs.data?.runs ?? []}
        asked={openAsked}
        show={({ run: id, history, view: name }) => {
          const params = new Map(history === "" ? [] : [["history", history]]);
          const { unit } = here();
          show({ ...START, unit, view: name, run: id, params }, "push");
        }}
      />
      <p class={said === "" ? "off-screen" : "toast"} role="status">
        {said}
      </p>
      {overlay === "help" && (
        <Help commands={commands.all.value} close={() => setOverlay(null)} />
      )}
      {overlay === "palette" && (
        <Palette commands={commands.all.value} close={() => setOverlay(null)} />
      )}
    </div>
  );
}

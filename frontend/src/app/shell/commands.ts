import type { RunSummary } from "../../api/types.gen";
import { commandsOf, type Command, type CommandRow } from "../../base/commands";
import { PAGES, TABS, tabsOf } from "../pages";

/** What the commands of the shell do. */
export interface ShellActions {
  readonly choosePage: (page: string) => void;
  readonly showTab: (name: string) => void;
  readonly chooseRun: (id: string) => void;
  readonly searchRanks: () => void;
  /** To the rank before (-1) or after (1) the chosen one. */
  readonly stepRank: (sign: -1 | 1) => void;
  readonly showAllRanks: () => void;
  readonly clearCursor: () => void;
  readonly copyLink: () => void;
  readonly nextTheme: () => void;
  readonly openOverlay: (name: "help" | "palette") => void;
}

export function shellCommands(
  runs: readonly RunSummary[],
  actions: ShellActions,
): readonly Command[] {
  const { choosePage, showTab, chooseRun, stepRank, openOverlay } = actions;
  const pages = PAGES.map((page, i): CommandRow => {
    const label = tabsOf(page).length > 1 ? `${page}; again: its next tab` : page;
    return [page, label, () => choosePage(page), (i + 1).toString()];
  });
  const tabs = TABS.filter(({ title, page }) => title !== page).map(
    ({ name, page, title }): CommandRow => [
      name,
      `${page}: ${title}`,
      () => showTab(name),
    ],
  );
  const ofRuns = runs.map(({ id, name }): CommandRow => [
    id,
    `Run ${name}`,
    () => chooseRun(id),
  ]);
  return [
    ...commandsOf("go", "Go to", [...pages, ...tabs, ...ofRuns]),
    ...commandsOf("ranks", "Ranks", [
      ["search", "Choose ranks", actions.searchRanks, "/"],
      ["before", "Previous rank", () => stepRank(-1), ","],
      ["after", "Next rank", () => stepRank(1), "."],
      ["all", "Show all ranks", actions.showAllRanks],
    ]),
    ...commandsOf("page", "Page", [
      ["clear", "Clear the cursor", actions.clearCursor, "Escape"],
      ["copy", "Copy a link to what is shown", actions.copyLink, "c"],
      ["export", "Export", () => press("export"), "e"],
      ["open", "Open memory snapshots or traces", () => press("open-files"), "o"],
      ["theme", "Change the theme", actions.nextTheme],
      ["palette", "Find a command", () => openOverlay("palette"), "Ctrl+k"],
      ["help", "Keyboard and help", () => openOverlay("help"), "?"],
    ]),
  ];
}

function press(id: string): void {
  document.getElementById(id)?.click();
}

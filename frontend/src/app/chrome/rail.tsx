import { PAGES, tabsOf } from "../pages";
import type { Shell } from "../shell/shell";
import { RankChooser } from "./rank_chooser";
import { RunList } from "./run_list";

export function Rail(props: Pick<Shell, "address" | "openRun" | "pages">) {
  const { address, openRun, pages } = props;
  const { run, runs, strip } = openRun;
  return (
    <nav class="rail" aria-label="Pages, runs and ranks">
      <PageList pages={pages} openRun={openRun} />
      <RunList address={address} openRun={openRun} />
      {run !== null && run.numRanks > 0 && (
        <RankChooser address={address} strip={strip} numRanks={run.numRanks} />
      )}
      <p class="rail-foot small quiet">MemBoard {runs.data?.pluginVersion ?? ""}</p>
    </nav>
  );
}

function PageList({ pages, openRun }: Pick<Shell, "openRun" | "pages">) {
  return (
    <ul class="pages">
      {PAGES.map((page, i) => {
        const absent = tabsOf(page).map((tab) =>
          openRun.empty.find((emptyTab) => emptyTab.tab === tab.name),
        );
        const isEmpty = absent.every((emptyTab) => emptyTab !== undefined);
        return (
          <li key={page}>
            <button
              type="button"
              class={isEmpty ? "page-link is-empty" : "page-link"}
              title={isEmpty ? absent[0]?.how : undefined}
              aria-current={page === pages.tab.page ? "page" : undefined}
              onClick={() => pages.choosePage(page)}
            >
              {page}
              <kbd>{i + 1}</kbd>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

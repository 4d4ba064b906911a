import { useMemo } from "preact/hooks";
import type { RankStrip, TableRows } from "../../api/types.gen";
import type { ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { parseRankSet } from "../../model/words/rank_set";
import { IconButton } from "../../widgets/icon/icon";
import type { RankFact } from "../../widgets/rank_bars/rank_bars";
import { AnswerTable } from "./table/answer_table";
import { columnsOf } from "./table/columns";
import type { ViewProps } from "./view_props";
import type { RowCell, RowColumn } from "../../widgets/row_table/columns";

const TABLE_PX = 360;
const COLOURS = { room: "var(--link)", full: "var(--bad)" };

/** null, which shows all, for an invalid filter. */
export function filteredRanks(filter: string): ReadonlySet<number> | null {
  const parsed = parseRankSet(filter);
  return parsed.ok && parsed.ranks.length > 0 ? new Set(parsed.ranks) : null;
}

export function RanksTable(props: {
  readonly view: ViewProps;
  readonly strip: RankStrip;
}) {
  const { view, strip } = props;
  const { table, rank } = strip;
  const { pinned, filter } = view.ranks;
  const isPinned = (row: number): boolean => pinned.includes(rank[row] ?? -1);
  const pins = useMemo<RowColumn>(
    () => ({
      key: "pin",
      title: "Pin",
      hint: "Pinned ranks are always drawn",
      numeric: false,
      width: "44px",
      ascends: false,
      exported: null,
      values: Float64Array.from(rank, (_, row) => Number(isPinned(row))),
      cell: (row) => pinCell(rank[row] ?? -1, view),
    }),
    [rank, pinned],
  );
  return (
    <AnswerTable
      view={view}
      table={table}
      word="ranksort"
      text={filter}
      colours={COLOURS}
      before={[pins]}
      isMarked={isPinned}
      onSelect={(row) => view.chooseRank(rank[row] ?? null)}
      heightPx={TABLE_PX}
      about={{ peak_series: strip.peakSeries }}
    />
  );
}

function pinCell(rank: number, { ranks: { pinned }, setPinned }: ViewProps): RowCell {
  const isPinned = pinned.includes(rank);
  const title = isPinned ? "Stop always drawing this rank" : "Always draw this rank";
  const next = isPinned
    ? pinned.filter((pinnedRank) => pinnedRank !== rank)
    : [...pinned, rank].sort((a, b) => a - b);
  const content = (
    <span onClick={(event) => event.stopPropagation()}>
      <IconButton
        icon="pin"
        sizePx={14}
        label={`${isPinned ? "Unpin" : "Pin"} rank ${rank}`}
        title={title}
        pressed={isPinned}
        onClick={() => setPinned(next)}
      />
    </span>
  );
  return { text: "", title, content };
}

/** Of a row, for a tip that names the rank. */
export function rankFacts(
  table: TableRows,
  look: { readonly theme: Theme; readonly byteUnit: ByteUnit },
): (row: number) => readonly RankFact[] {
  const columns = columnsOf(table, look).filter(
    ({ key, title }) => key !== "rank" && title !== "",
  );
  return (row) =>
    columns.flatMap(({ key, title, cell }): readonly RankFact[] => {
      const { text, title: exact = "" } = cell(row);
      if (key === "peak_bytes") {
        return text === "–" ? [[title, "not recorded"]] : [[title, text, exact]];
      }
      // No retries and no errors are normal.
      const isUsual = text === "0" && key.startsWith("num_");
      return isUsual || text === "" || text === "–" ? [] : [[title, text]];
    });
}

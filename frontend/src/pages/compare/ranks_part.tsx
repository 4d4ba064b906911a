import { useMemo, useState } from "preact/hooks";
import type { RankHistoriesResponse, RankHistory } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { formatBytes, formatInteger } from "../../base/bytes";
import { sortedRows } from "../../model/shown_rows";
import { originOf } from "../../model/words/origin";
import { ExportMenu } from "../../widgets/export/export_menu";
import { Blaming } from "../../widgets/finding/finding";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import {
  bytesCell,
  countCell,
  longestOf,
  numberColumn,
  tableOf,
  textColumn,
} from "../../widgets/row_table/columns";
import { headingWidth } from "../../widgets/row_table/headings";
import type { RowCell, RowColumn } from "../../widgets/row_table/row_table";
import { SortedTable } from "../../widgets/row_table/sorted_table";
import { Nothing, Waiting } from "../../widgets/state/state";
import { NoHistory } from "../memory/history/opening";
import { chosenHistory, useCulprits } from "../memory/history/use_history";
import { Segmented } from "../shared/controls/choices";
import { lookOf, type ViewProps } from "../shared/view_props";
import { LineHeat } from "./charts/line_heat";
import { changeCell } from "./difference_rows";
import type { PartProps } from "./params";

const RESTING_POLL_MS = 20_000;
const BARS_PX = 150;
const TABLE_PX = 340;
const BY_PEAK = { key: "peak", descending: true };

const ORDER_WORDS = {
  rank: ["By rank", "In order of ranks"],
  peak: ["By peak", "Highest first"],
} as const;

export function RanksPart({ view, params }: PartProps) {
  const run = view.run.id;
  const list = useLive(view.client, "histories", { run }, view.pollMs);
  const id = list.data === null ? "" : chosenHistory(list.data, params.b.history);
  const query = id === "" ? null : { run, history: id };
  const live = useLive(view.client, "rank_histories", query, RESTING_POLL_MS);
  const { data } = live;
  if (list.data?.histories.length === 0) {
    return (
      <NoHistory histories={list.data} rank={null} showAllRanks={() => undefined} />
    );
  }
  return (
    <>
      <Waiting
        error={list.error ?? live.error}
        hasContent={data !== null}
        blocksPx={[480]}
      />
      {data?.ranks.length === 0 && (
        <Nothing title="No history has a known rank">
          <p>
            Snapshots get their rank from their name, such as rank3_snapshot.pickle; the
            recorder writes it by itself.
          </p>
        </Nothing>
      )}
      {data !== null && data.ranks.length > 0 && <Ranks view={view} answer={data} />}
    </>
  );
}

function Ranks(props: {
  readonly view: ViewProps;
  readonly answer: RankHistoriesResponse;
}) {
  const { view, answer } = props;
  const { theme, byteUnit } = view;
  const { ranks } = answer;
  const [barOrder, setBarOrder] = useState<"rank" | "peak">("rank");
  const culprits = useCulprits(view, null);
  const columns = useMemo(
    () => rankColumns(answer, view, culprits),
    [answer, theme, byteUnit, culprits],
  );
  const line = [...culprits].find((one) => answer.sentence.includes(one)) ?? "";
  const strip = useMemo(
    () => ({
      rank: Int32Array.from(ranks, (one) => one.rank),
      peakBytes: numbersOf(answer, (one) => one.peakActiveBytes),
      numOoms: numbersOf(answer, (one) => one.numOoms),
    }),
    [answer],
  );
  const bytesOf = (one: number | null = null) => formatBytes(one, byteUnit);
  const open = (row: number): void => {
    const one = ranks[row];
    if (one === undefined) return;
    view.showPage("blocks", {
      history: one.reference.id,
      history_device: one.device?.toString() ?? null,
      moment: one.peakMoment?.toString() ?? null,
      life: null,
      part: null,
    });
  };
  return (
    <>
      <p class="compare-sentence" role="status">
        <strong>
          <Blaming text={answer.sentence} line={line} />
        </strong>{" "}
        <span class="quiet">{answer.note}</span>
      </p>
      <section aria-label="Peaks of all ranks">
        <RankBars
          label="Peak of live memory in the history"
          title={<h2>Peak of live memory in each rank’s history</h2>}
          bar={
            <Segmented
              label="Order of the bars"
              chosen={barOrder}
              words={ORDER_WORDS}
              onChoose={setBarOrder}
            />
          }
          {...lookOf(view)}
          strip={strip}
          order={barOrder}
          rank={null}
          filter={null}
          facts={(i) => [
            ["peak of its history", bytesOf(ranks[i]?.peakActiveBytes)],
            ["fragmentation", bytesOf(ranks[i]?.fragmentationBytes)],
            ["holds most", ranks[i]?.topLabel ?? ""],
          ]}
          onPick={(rank) => open(ranks.findIndex((one) => one.rank === rank))}
          heightPx={BARS_PX}
        />
      </section>
      <section aria-label="Ranks">
        <div class="panel-head">
          <h2>Ranks</h2>
          <span class="quiet">a click opens the rank’s history at its peak</span>
          <ExportMenu
            subject="the table of ranks"
            source={{
              origin: originOf(view.run),
              name: "ranks",
              table: () =>
                tableOf([...columns, ...lineColumns(answer)], [...ranks.keys()]),
              about: () => ({
                title: answer.title,
                median_history_peak_bytes: answer.medianHistoryPeakBytes,
              }),
            }}
            shell={view}
          />
        </div>
        <SortedTable
          label="Ranks"
          columns={columns}
          numRows={ranks.length}
          usual={BY_PEAK}
          onSelect={open}
          empty="No rank."
          heightPx={TABLE_PX}
        />
      </section>
      <LineHeat
        answer={answer}
        order={rankOrder(answer, barOrder)}
        onRank={open}
        theme={theme}
        byteUnit={byteUnit}
      />
    </>
  );
}

export function rankOrder(
  { ranks }: Pick<RankHistoriesResponse, "ranks">,
  by: keyof typeof ORDER_WORDS,
): Int32Array {
  const values = ranks.map((one) =>
    by === "rank" ? one.rank : (one.peakActiveBytes ?? NaN),
  );
  return Int32Array.from(sortedRows(ranks.length, values, by === "peak"));
}

function numbersOf(
  { ranks }: Pick<RankHistoriesResponse, "ranks">,
  of: (one: RankHistory) => number | null,
): Float64Array {
  return Float64Array.from(ranks, (one) => of(one) ?? NaN);
}

export function lineOf(
  { lineBytes, ranks }: Pick<RankHistoriesResponse, "lineBytes" | "ranks">,
  line: number,
): Float64Array {
  return lineBytes.subarray(line * ranks.length, (line + 1) * ranks.length);
}

function lineColumns(answer: RankHistoriesResponse) {
  return answer.lines.map((line, at) => ({
    key: `${line} (bytes)`,
    values: lineOf(answer, at),
  }));
}

type Cell = (value: number, row: number) => RowCell;

export function rankColumns(
  answer: RankHistoriesResponse,
  view: Pick<ViewProps, "theme" | "byteUnit">,
  culprits: ReadonlySet<string>,
): readonly RowColumn[] {
  const { ranks, medianHistoryPeakBytes: median } = answer;
  const number = (
    key: string,
    title: string,
    name: string,
    read: (one: RankHistory) => number | null,
    hint?: string,
    cell: Cell = (bytes) => bytesCell(bytes, view.byteUnit),
  ): RowColumn => {
    const values = numbersOf(answer, read);
    return {
      ...numberColumn(
        key,
        title,
        `${Math.max(96, headingWidth(title, false))}px`,
        values,
        cell,
        hint,
      ),
      exported: { name, values },
    };
  };
  const beyondMedian = ({ peakActiveBytes: peak }: RankHistory): number | null =>
    peak === null || median === null ? null : peak - median;
  const farthest = longestOf(numbersOf(answer, beyondMedian).filter(Number.isFinite));
  const reading: Cell = (_, row) => {
    const { problem = "", state = "closed", topLabel = "" } = ranks[row] ?? {};
    const text = problem || (state === "ready" ? topLabel : "being opened…");
    return { text, isCause: culprits.has(topLabel) };
  };
  const lines = ranks.map(({ topLabel }) => topLabel);
  return [
    {
      ...number("rank", "Rank", "rank", ({ rank }) => rank, undefined, countCell),
      ...{ width: "56px", ascends: true },
    },
    number(
      ...(["peak", "Peak", "history_peak_active_bytes"] as const),
      (one) => one.peakActiveBytes,
      "Highest live bytes in the history, which shows a few steps of the run",
    ),
    number(
      ...(["delta", "From the median"] as const),
      "difference_from_median_of_histories_bytes",
      beyondMedian,
      "Of the histories that are read",
      (by) => changeCell(by, "bytes", farthest, view),
    ),
    number(
      ...(["reserved", "Reserved", "reserved_bytes"] as const),
      (one) => one.reservedBytes,
      "At the peak",
    ),
    number(
      ...(["fragmentation", "Fragmentation", "fragmentation_bytes"] as const),
      (one) => one.fragmentationBytes,
      "Reserved less live bytes, at the peak",
    ),
    number(
      ...(["top", "Top allocation site", "top_bytes"] as const),
      (one) => one.topBytes,
      "Live bytes of the top allocation site",
    ),
    textColumn(
      ...(["top_holder", "Site", "minmax(140px, 1fr)", lines, undefined] as const),
      (_, row) => reading(NaN, row),
    ),
    number(
      ...(["ooms", "Out of memory", "num_ooms"] as const),
      (one) => one.numOoms,
      undefined,
      (num) => ({
        text: Number.isNaN(num) ? "–" : num === 0 ? "" : `✖ ${formatInteger(num)}`,
      }),
    ),
  ];
}

/** All ranks: peaks, what holds them, the difference from the median, line by line. */

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
import {
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../widgets/row_table/row_table";
import { useSort } from "../../widgets/row_table/use_sort";
import { Nothing, Waiting } from "../../widgets/state/state";
import { NoHistory } from "../memory/history/opening";
import { chosenHistory, useCulprits } from "../memory/history/use_history";
import { Segmented } from "../shared/controls/choices";
import type { ViewProps } from "../shared/view_props";
import { LineHeat } from "./charts/line_heat";
import { changeCell } from "./difference_rows";
import { keysOf, type PartProps } from "./params";

const READING_POLL_MS = 700;
const RESTING_POLL_MS = 20_000;
const BARS_PX = 150;
const TABLE_PX = 340;
const BY_PEAK = { key: "peak", descending: true };

const ORDER_WORDS = {
  rank: ["By rank", "In order of ranks"],
  peak: ["By peak", "Highest first"],
} as const;

export function RanksPart({ view, params }: PartProps) {
  const [pollMs, setPollMs] = useState(READING_POLL_MS);
  const run = view.run.id;
  const list = useLive(view.client, "histories", { run }, view.pollMs);
  const id = list.data === null ? "" : chosenHistory(list.data, params.b.history);
  const query = id === "" ? null : { run, history: id };
  const live = useLive(view.client, "rank_histories", query, pollMs);
  const { data } = live;
  const wanted = data?.stillReading === false ? RESTING_POLL_MS : READING_POLL_MS;
  if (wanted !== pollMs) setPollMs(wanted);
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
  const [word, setWord] = useState<string | null>(null);
  const [barOrder, setBarOrder] = useState<"rank" | "peak">("rank");
  const culprits = useCulprits(view, null);
  const columns = useMemo(
    () => rankColumns(answer, view, culprits),
    [answer, theme, byteUnit, culprits],
  );
  const line = [...culprits].find((one) => answer.sentence.includes(one)) ?? "";
  const { rows, ...sorting } = useSort(
    columns,
    ranks.length,
    BY_PEAK,
    word ?? undefined,
    setWord,
  );
  const strip = useMemo(
    () => ({
      rank: Int32Array.from(ranksOf(answer)),
      peakBytes: numbersOf(answer, (one) => one.peakActiveBytes),
      numOoms: numbersOf(answer, (one) => one.numOoms),
    }),
    [answer],
  );
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
              options={keysOf(ORDER_WORDS)}
              chosen={barOrder}
              words={(one) => ORDER_WORDS[one]}
              onChoose={setBarOrder}
            />
          }
          origin={originOf(view.run)}
          strip={strip}
          order={barOrder}
          rank={null}
          filter={null}
          facts={(i) => [
            [
              "peak of its history",
              formatBytes(ranks[i]?.peakActiveBytes ?? null, byteUnit),
            ],
            [
              "fragmentation",
              formatBytes(ranks[i]?.fragmentationBytes ?? null, byteUnit),
            ],
            ["holds most", ranks[i]?.topLabel ?? ""],
          ]}
          onPick={(rank) => open(ranks.findIndex((one) => one.rank === rank))}
          theme={theme}
          byteUnit={byteUnit}
          heightPx={BARS_PX}
        />
      </section>
      <section aria-label="Ranks">
        <div class="panel-head">
          <h2>Ranks</h2>
          <span class="quiet">a click opens the rank’s history at its peak</span>
          <span class="compare-fill" />
          <ExportMenu
            subject="the table of ranks"
            source={{
              origin: originOf(view.run),
              name: "ranks",
              table: () => tableOf([...columns, ...lineColumns(answer)], rows),
              about: () => ({
                title: answer.title,
                median_history_peak_bytes: answer.medianHistoryPeakBytes,
              }),
            }}
            shell={view}
          />
        </div>
        <RowTable
          label="Ranks"
          columns={columns}
          rows={rows}
          onSelect={open}
          {...sorting}
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

/** Rows in order; ranks that are not read yet go last, whichever way it is. */
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

function ranksOf(answer: RankHistoriesResponse): Float64Array {
  return numbersOf(answer, ({ rank }) => rank);
}

/** The row of the heat table that holds a line's bytes in every rank. */
export function lineOf(
  { lineBytes, ranks }: Pick<RankHistoriesResponse, "lineBytes" | "ranks">,
  line: number,
): Float64Array {
  return lineBytes.subarray(line * ranks.length, (line + 1) * ranks.length);
}

/** What files have besides the table: every line's bytes. */
function lineColumns(answer: RankHistoriesResponse) {
  return answer.lines.map((line, at) => ({
    key: `${line} (bytes)`,
    values: lineOf(answer, at),
  }));
}

type Read = (one: RankHistory) => number | null;

/** Key, title, name in files, help and number. */
const BYTES: readonly (readonly [string, string, string, string, Read])[] = [
  [
    ...(["peak", "Peak", "history_peak_active_bytes"] as const),
    "Highest live bytes in the history, which shows a few steps of the run",
    (one) => one.peakActiveBytes,
  ],
  ["reserved", "Reserved", "reserved_bytes", "At the peak", (one) => one.reservedBytes],
  [
    ...(["fragmentation", "Fragmentation", "fragmentation_bytes"] as const),
    "Reserved less live bytes, at the peak",
    (one) => one.fragmentationBytes,
  ],
  [
    ...(["top", "Top allocation site", "top_bytes"] as const),
    "Bytes of the line that holds most",
    (one) => one.topBytes,
  ],
];

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
    values: Float64Array,
    cell: (value: number) => RowCell,
    hint?: string,
  ): RowColumn => ({
    ...numberColumn(key, title, "96px", values, cell, hint),
    exported: { name, values },
  });
  const peaks = numbersOf(answer, (one) => one.peakActiveBytes);
  const beyond = peaks.map((peak) => peak - (median ?? NaN));
  const farthest = longestOf(beyond.filter(Number.isFinite));
  const ooms = (num: number): RowCell => ({
    text: Number.isNaN(num) ? "–" : num === 0 ? "" : `✖ ${formatInteger(num)}`,
  });
  const [peak, ...others] = BYTES.map(([key, title, name, hint, read]) =>
    number(
      key,
      title,
      name,
      numbersOf(answer, read),
      (one) => bytesCell(one, view.byteUnit),
      hint,
    ),
  );
  const all = [
    {
      ...number("rank", "Rank", "rank", ranksOf(answer), countCell),
      ...{ width: "56px", ascends: true },
    },
    peak,
    number(
      ...(["delta", "From the median"] as const),
      "difference_from_median_of_histories_bytes",
      beyond,
      (by) => changeCell(by, "bytes", farthest, view),
      "Of the histories that are read",
    ),
    ...others,
    textColumn(
      "top_holder",
      "At line",
      "minmax(140px, 1fr)",
      ranks.map(({ topLabel }) => topLabel),
      undefined,
      (text, row) => {
        const { problem = "", state = "closed" } = ranks[row] ?? {};
        const isCause = culprits.has(text);
        return {
          text: problem || (state === "ready" ? text : "being opened…"),
          isCause,
        };
      },
    ),
    number(
      ...(["ooms", "Out of memory", "num_ooms"] as const),
      numbersOf(answer, (one) => one.numOoms),
      ooms,
    ),
  ];
  return all.filter((one) => one !== undefined);
}

/** All ranks: peaks, what holds them, the difference from the median, line by line. */

import { useMemo, useState } from "preact/hooks";
import type { RankHistoriesResponse, RankHistory } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { formatBytes, formatInteger } from "../../base/bytes";
import { divergingColours } from "../../model/category";
import { originOf } from "../../model/words/origin";
import { formatSigned, formatSignedExact } from "../../model/words/signed";
import { ExportMenu } from "../../widgets/export/export_menu";
import type { ExportSource } from "../../widgets/export/source";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import {
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../widgets/row_table/row_table";
import {
  barOf,
  bytesCell,
  countCell,
  longestOf,
  numberColumn,
} from "../../widgets/row_table/columns";
import { useSort } from "../../widgets/row_table/use_sort";
import { Nothing, Waiting } from "../../widgets/state/state";
import { Segmented } from "../shared/controls/choices";
import { NoHistory } from "../memory/history/opening";
import { chosenHistory } from "../memory/history/use_history";
import type { ViewProps } from "../shared/view_props";
import { LineHeat } from "./charts/line_heat";
import { rankOrder, ranksTable, rankStrip } from "./ranks";

const READING_POLL_MS = 700;
const RESTING_POLL_MS = 20_000;
const BARS_PX = 150;
const TABLE_PX = 340;

export interface RanksPartProps {
  readonly view: ViewProps;
  readonly history: string;
  readonly exporter: { current: ExportSource | null };
}

export function RanksPart({ view, history, exporter }: RanksPartProps) {
  const [pollMs, setPollMs] = useState(READING_POLL_MS);
  const run = view.run.id;
  const list = useLive(view.client, "histories", { run }, view.pollMs);
  const id = list.data === null ? "" : chosenHistory(list.data, history);
  const query = id === "" ? null : { run, history: id };
  const live = useLive(view.client, "rank_histories", query, pollMs);
  const { data } = live;
  const error = list.error ?? live.error;
  const wanted = data?.stillReading === false ? RESTING_POLL_MS : READING_POLL_MS;
  if (wanted !== pollMs) setPollMs(wanted);
  if (list.data?.histories.length === 0) {
    return (
      <NoHistory histories={list.data} rank={null} showAllRanks={() => undefined} />
    );
  }
  return (
    <>
      <Waiting error={error} hasContent={data !== null} blocksPx={[480]} />
      {data?.ranks.length === 0 && (
        <Nothing title="No history has a known rank">
          <p>
            Snapshots get their rank from their name, such as rank3_snapshot.pickle; the
            recorder writes it by itself.
          </p>
        </Nothing>
      )}
      {data !== null && data.ranks.length > 0 && (
        <Ranks view={view} answer={data} exporter={exporter} />
      )}
    </>
  );
}

function Ranks({
  view,
  answer,
  exporter,
}: {
  readonly view: ViewProps;
  readonly answer: RankHistoriesResponse;
  readonly exporter: { current: ExportSource | null };
}) {
  const { theme, byteUnit } = view;
  const [word, setWord] = useState<string | null>(null);
  const columns = useMemo(
    () => columnsOf(answer, theme, byteUnit),
    [answer, theme, byteUnit],
  );
  const num = answer.ranks.length;
  const { rows, ...sorting } = useSort(
    columns,
    num,
    BY_PEAK,
    word ?? undefined,
    setWord,
  );
  const strip = useMemo(() => rankStrip(answer), [answer]);
  const [barOrder, setBarOrder] = useState<"rank" | "peak">("rank");
  const { ranks, numRanks, numReady, stillReading, medianHistoryPeakBytes } = answer;
  const source: ExportSource = {
    origin: originOf(view.run),
    name: "ranks",
    table: () => ranksTable(answer, rows),
    about: () => ({
      title: answer.title,
      median_history_peak_bytes: medianHistoryPeakBytes,
    }),
  };
  exporter.current = source;
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
  const failed = ranks.filter(({ problem }) => problem !== "").length;
  return (
    <>
      <p class="compare-sentence" role="status">
        <strong>{sentence(answer, byteUnit)}</strong>{" "}
        <span class="quiet">
          {answer.title !== "" && `${answer.title} · `}
          {formatInteger(numReady)} of {formatInteger(ranks.length)} ranks read
          {numRanks > ranks.length && `, spread over all ${formatInteger(numRanks)}`}
          {view.run.numRanks > numRanks &&
            `; the other ${formatInteger(view.run.numRanks - numRanks)} of the run have no history`}
          {stillReading && "; the rest is being opened"}
          {failed > 0 && `; ${formatInteger(failed)} cannot be opened`}
        </span>
      </p>
      <section aria-label="Peaks of all ranks">
        <div class="panel-head">
          <h2>Peak of live memory in each rank’s history</h2>
          <Segmented
            label="Order of the bars"
            options={["rank", "peak"] as const}
            chosen={barOrder}
            words={(one) =>
              one === "rank"
                ? ["By rank", "In order of ranks"]
                : ["By peak", "Highest first"]
            }
            onChoose={setBarOrder}
          />
        </div>
        <RankBars
          label="Peak of live memory in the history"
          strip={strip}
          order={barOrder}
          rank={null}
          filter={null}
          facts={(i) => {
            const one = ranks[i];
            if (one === undefined) return [];
            return [
              ["peak of its history", formatBytes(one.peakActiveBytes, byteUnit)],
              ["fragmentation", formatBytes(one.fragmentationBytes, byteUnit)],
              ["holds most", one.topLabel],
            ];
          }}
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
          <ExportMenu subject="the table of ranks" source={source} />
        </div>
        <RowTable
          label="Ranks"
          columns={columns}
          rows={rows}
          selected={null}
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

const BY_PEAK = { key: "peak", descending: true };

/** Who stands out, in one sentence. */
function sentence(
  { ranks, medianHistoryPeakBytes, numReady, stillReading }: RankHistoriesResponse,
  byteUnit: ViewProps["byteUnit"],
): string {
  if (numReady === 0 || medianHistoryPeakBytes === null) return "No rank is read yet";
  const known = ranks.filter((one) => one.peakActiveBytes !== null);
  const top = known.reduce((best, one) =>
    (one.peakActiveBytes ?? 0) > (best.peakActiveBytes ?? 0) ? one : best,
  );
  const by = (top.peakActiveBytes ?? 0) - medianHistoryPeakBytes;
  const peak = formatBytes(top.peakActiveBytes, byteUnit);
  const ooms = known.filter((one) => (one.numOoms ?? 0) > 0).map(({ rank }) => rank);
  const failed =
    ooms.length === 0
      ? ""
      : ooms.length === 1
        ? `; rank ${ooms[0] ?? 0} ran out of memory`
        : `; ${formatInteger(ooms.length)} ranks ran out of memory`;
  const start = stillReading ? "So far: " : "";
  const all = `${formatInteger(numReady)} histories`;
  if (by <= 0.005 * medianHistoryPeakBytes)
    return `${start}${all} peak at about ${peak}${failed}`;
  return `${start}the history of rank ${top.rank} peaks at ${peak}, ${formatBytes(by, byteUnit)} above the median of ${all}${failed}`.replace(
    /^t/,
    "T",
  );
}

function columnsOf(
  answer: RankHistoriesResponse,
  theme: ViewProps["theme"],
  byteUnit: ViewProps["byteUnit"],
): readonly RowColumn[] {
  const { ranks, medianHistoryPeakBytes: median } = answer;
  const [less, more] = divergingColours(theme);
  const of = (read: (one: RankHistory) => number | null): Float64Array =>
    Float64Array.from(ranks, (one) => read(one) ?? NaN);
  const beyond = of(({ peakActiveBytes: peak }) =>
    peak === null || median === null ? null : peak - median,
  );
  const farthest = longestOf(beyond.filter(Number.isFinite));
  const bytes = (
    key: string,
    title: string,
    hint: string,
    read: (one: RankHistory) => number | null,
  ): RowColumn =>
    numberColumn(
      key,
      title,
      "100px",
      of(read),
      (one) => bytesCell(one, byteUnit),
      hint,
    );
  const delta = (by: number): RowCell =>
    Number.isNaN(by)
      ? { text: "–" }
      : {
          text: formatSigned(by, "bytes", byteUnit),
          title: formatSignedExact(by, "bytes"),
          bar: barOf(Math.abs(by), farthest, by > 0 ? more : less),
        };
  const ooms = (num: number): RowCell => ({
    text: Number.isNaN(num) ? "–" : num === 0 ? "" : `✖ ${formatInteger(num)}`,
  });
  return [
    {
      ...numberColumn(
        "rank",
        "Rank",
        "56px",
        of(({ rank }) => rank),
        countCell,
      ),
      ascends: true,
    },
    bytes(
      "peak",
      "Peak",
      "Highest live bytes in the history, which shows a few steps of the run",
      (one) => one.peakActiveBytes,
    ),
    numberColumn(
      "delta",
      "From the median",
      "120px",
      beyond,
      delta,
      "Of the histories that are read",
    ),
    bytes("reserved", "Reserved", "At the peak", (one) => one.reservedBytes),
    bytes(
      "fragmentation",
      "Fragmentation",
      "Reserved less live bytes, at the peak",
      (one) => one.fragmentationBytes,
    ),
    bytes(
      "top",
      "Holds most",
      "Bytes of the line that holds most",
      (one) => one.topBytes,
    ),
    {
      key: "line",
      title: "At line",
      numeric: false,
      width: "minmax(140px, 1fr)",
      cell: (row) => {
        const one = ranks[row];
        if (one === undefined) return { text: "" };
        if (one.problem !== "") return { text: one.problem };
        return { text: one.state === "ready" ? one.topLabel : "being opened…" };
      },
    },
    numberColumn(
      "ooms",
      "Out of memory",
      "104px",
      of(({ numOoms }) => numOoms),
      ooms,
    ),
  ];
}

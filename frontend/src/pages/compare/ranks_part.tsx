import { useMemo, useState } from "preact/hooks";
import type { RankHistoriesResponse } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { Blaming } from "../../widgets/finding/finding";
import { orderRanks } from "../../widgets/rank_bars/bars";
import { RankBars } from "../../widgets/rank_bars/rank_bars";
import { Nothing, Waiting } from "../../widgets/state/state";
import { NoHistory } from "../memory/history/frame";
import { chosenHistory, useCulprits } from "../memory/history/use_history";
import { Segmented } from "../shared/controls/choices";
import { rankFacts } from "../shared/ranks_table";
import { lookOf, type ViewProps } from "../shared/view_props";
import { AnswerTable } from "../shared/table/answer_table";
import { LineHeat } from "./charts/line_heat";
import type { PartProps } from "./params";

const RESTING_POLL_MS = 20_000;
const BARS_PX = 150;
const TABLE_PX = 340;

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
            A snapshot&apos;s rank is read from its name, such as rank3_snapshot.pickle.
            Recordings name theirs.
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
  const { ranks, table } = answer;
  const [barOrder, setBarOrder] = useState<"rank" | "peak">("rank");
  const culprits = useCulprits(view, null);
  const line = [...culprits].find((culprit) => answer.sentence.includes(culprit)) ?? "";
  const strip = useMemo(() => barsOf(answer), [answer]);
  const facts = useMemo(
    () => rankFacts(table, { theme, byteUnit }),
    [table, theme, byteUnit],
  );
  const open = (row: number): void => {
    const history = ranks[row];
    if (history === undefined) return;
    view.showPage("blocks", {
      history: history.reference.id,
      history_device: history.device?.toString() ?? null,
      moment: history.peakMoment?.toString() ?? null,
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
      <RankBars
        label="Peak of live memory in the history"
        title={<h2>Peak of live memory in each rank’s history</h2>}
        bar={
          <Segmented
            label="Order of the bars"
            chosen={barOrder}
            labels={ORDER_WORDS}
            onChoose={setBarOrder}
          />
        }
        {...lookOf(view)}
        strip={strip}
        order={barOrder}
        rank={null}
        filter={null}
        facts={facts}
        onPick={(rank) => open(strip.rank.indexOf(rank))}
        heightPx={BARS_PX}
      />
      <AnswerTable
        view={view}
        table={table}
        word="ranksort"
        culprits={culprits}
        onSelect={open}
        heightPx={TABLE_PX}
        about={{
          title: answer.title,
          median_history_peak_bytes: answer.medianHistoryPeakBytes,
        }}
        shell={view}
      />
      <LineHeat
        answer={answer}
        order={Int32Array.from(orderRanks(strip, barOrder))}
        onRank={open}
        theme={theme}
        byteUnit={byteUnit}
      />
    </>
  );
}

function barsOf({ ranks }: RankHistoriesResponse) {
  return {
    rank: Int32Array.from(ranks, (history) => history.rank),
    peakBytes: Float64Array.from(ranks, (history) => history.peakActiveBytes ?? NaN),
    numOoms: Float64Array.from(ranks, (history) => history.numOoms ?? NaN),
  };
}

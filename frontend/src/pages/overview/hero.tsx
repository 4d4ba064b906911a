/**
 * How it went: of several ranks who is far from the others, and when, with failures
 * marked; of one rank its memory over the run.
 */

import { useRef, useState } from "preact/hooks";
import { useLive } from "../../api/use_live";
import type { XRange } from "../../widgets/plot/range";
import { useWidth } from "../../widgets/plot/canvas";
import { Failure, Skeleton } from "../../widgets/state/state";
import type { ViewProps } from "../shared/view_props";
import { readParams } from "../shared/series/params";
import { RankMap } from "../shared/series/rank_map";
import { SeriesChart } from "../shared/series/series_chart";

const MOST_PX = 216;
const LINE_PX = 176;
/** Of fewer ranks none is in the middle: they are drawn as lines. */
const FEWEST = 3;

export function Hero(props: {
  readonly view: ViewProps;
  /** All ranks of the run. */
  readonly known: Int32Array;
}) {
  const { view, known } = props;
  const box = useRef<HTMLDivElement>(null);
  const px = useWidth(box);
  const [range, setRange] = useState<XRange | null>(null);
  const { rank } = view.ranks;
  return (
    <div ref={box} class="hero">
      {rank === null && known.length >= FEWEST ? (
        <RankMap
          view={view}
          // What the Timeline shows is not what happened at a glance.
          params={PARAMS}
          available={null}
          known={known}
          range={range}
          setRange={setRange}
          onPick={(picked) => view.chooseRank(picked)}
          px={px}
          excess
          mostPx={MOST_PX}
        />
      ) : (
        <RankTimeline view={view} px={px} range={range} setRange={setRange} />
      )}
    </div>
  );
}

const PARAMS = readParams(new Map());

function RankTimeline(props: {
  readonly view: ViewProps;
  readonly px: number;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
}) {
  const { view, px, range, setRange } = props;
  const { client, run, ranks, pollMs } = view;
  const query = px === 0 ? null : { run: run.id, rank: ranks.rank, px };
  const { data, error } = useLive(client, "timeline", query, pollMs);
  if (data === null) {
    return error === null ? (
      <Skeleton heightPx={LINE_PX} />
    ) : (
      <Failure failure={error} />
    );
  }
  const { series } = data;
  if (series === null) return null;
  return (
    <SeriesChart
      view={view}
      answer={{ ...data, series }}
      extent={{ low: data.xLow - 0.5, high: data.xHigh + 0.5 }}
      range={range}
      onRange={setRange}
      heightPx={LINE_PX}
      legend={false}
    />
  );
}

/**
 * The page of one rank has room: its other headline series stand below the chosen one,
 * over the same range and under the same cursor.
 */

import { useMemo } from "preact/hooks";
import type { SeriesInfo } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { originOf } from "../../model/words/origin";
import { LineChart } from "../../widgets/line_chart/line_chart";
import type { XRange } from "../../widgets/line_chart/types";
import { Skeleton } from "../../widgets/state/state";
import type { ViewProps } from "../shared/view_props";
import { askedRange } from "../shared/range/params";
import { chartLimit, chartLines, seriesLabel } from "../shared/series/lines";
import type { TimelineParams } from "../shared/series/params";

const CHART_PX = 132;
const MOST_CHARTS = 8;
/** Memory first: it is what people come for. */
const GROUPS: readonly SeriesInfo["group"][] = [
  "device",
  "process",
  "timing",
  "host",
  "sensor",
  "progress",
];

export interface CompanionsProps {
  readonly view: ViewProps;
  readonly params: TimelineParams;
  /** The series drawn above. */
  readonly chosen: SeriesInfo;
  readonly available: readonly SeriesInfo[];
  readonly extent: XRange;
  readonly shown: XRange | null;
  readonly settled: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly px: number;
}

export function Companions(props: CompanionsProps) {
  const others = props.available
    .filter((one) => one.headline && one.key !== props.chosen.key)
    .sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group))
    .slice(0, MOST_CHARTS);
  return (
    <div class="timeline-companions">
      {others.map((series) => (
        <Companion key={series.key} {...props} series={series} />
      ))}
    </div>
  );
}

const NO_SLOTS: ReadonlyMap<string, number> = new Map();

function Companion(props: CompanionsProps & { readonly series: SeriesInfo }) {
  const { view, params, series, settled } = props;
  const { client, run, ranks, byteUnit } = view;
  const asked = askedRange(settled);
  const { data } = useLive(
    client,
    "timeline",
    {
      run: run.id,
      rank: ranks.rank,
      ranks: ranks.filter,
      series: series.key,
      x: params.x,
      phase: params.phase,
      px: asked === null ? props.px : 2 * props.px,
      x0: asked?.low ?? null,
      x1: asked?.high ?? null,
    },
    view.pollMs,
  );
  const lines = useMemo(
    () => (data === null ? [] : chartLines(data.lines, NO_SLOTS)),
    [data],
  );
  if (data === null) return <Skeleton heightPx={CHART_PX} />;
  return (
    <LineChart
      label={seriesLabel(series, props.available)}
      unit={series.unit}
      byteUnit={byteUnit}
      x={params.x}
      lines={lines}
      marks={data.marks}
      limit={chartLimit(data, byteUnit)}
      extent={props.extent}
      range={props.shown}
      onRange={props.setRange}
      cursor={view.cursor}
      theme={view.theme}
      heightPx={CHART_PX}
      logScale={params.logScale}
      smoothing={params.smoothing}
      legend={false}
      origin={originOf(run)}
    />
  );
}

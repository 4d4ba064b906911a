/** The step's memory peak, on the same axis and under the same cursor. */

import { useMemo, useRef } from "preact/hooks";
import type { XRange } from "../../../widgets/line_chart/types";
import { useLive } from "../../../api/use_live";
import { columnLabel } from "../../../model/words/column_label";
import { originOf } from "../../../model/words/origin";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import { Skeleton } from "../../../widgets/state/state";
import { chartBand, chartLines, nextSlots } from "../../shared/rank_lines";
import type { ViewProps } from "../../shared/view_props";
import { askedRange } from "../../shared/range/params";
import type { StepsParams } from "./params";

const NO_SLOTS: ReadonlyMap<string, number> = new Map();

export function MemoryChart(props: {
  readonly view: ViewProps;
  readonly params: StepsParams;
  readonly series: string;
  readonly extent: XRange;
  readonly shown: XRange | null;
  readonly settled: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly px: number;
  readonly heightPx: number;
}) {
  const { view, params, series, settled, px } = props;
  const { client, run, ranks } = view;
  const asked = askedRange(settled);
  const { data } = useLive(
    client,
    "timeline",
    px === 0
      ? null
      : {
          run: run.id,
          rank: ranks.rank,
          ranks: ranks.filter,
          pinned: ranks.pinned.join(","),
          series,
          x: params.x,
          phase: params.phase,
          px: asked === null ? px : 2 * px,
          x0: asked?.low ?? null,
          x1: asked?.high ?? null,
        },
    view.pollMs,
  );
  const slots = useRef(NO_SLOTS);
  const parts = useMemo(() => {
    if (data === null) return null;
    slots.current = nextSlots(data.lines, slots.current);
    const band = chartBand(data);
    return { lines: chartLines(data.lines, slots.current, band !== null), band };
  }, [data]);
  if (data === null || parts === null) return <Skeleton heightPx={props.heightPx} />;
  return (
    <LineChart
      label={columnLabel(series)}
      title={`${columnLabel(series)} of each step`}
      unit="bytes"
      byteUnit={view.byteUnit}
      x={params.x}
      lines={parts.lines}
      band={parts.band}
      marks={data.marks}
      extent={props.extent}
      range={props.shown}
      onRange={props.setRange}
      cursor={view.cursor}
      theme={view.theme}
      heightPx={props.heightPx}
      legend={false}
      origin={originOf(run)}
    />
  );
}

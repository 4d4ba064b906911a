import { useMemo, useRef } from "preact/hooks";
import type { SeriesInfo, TimelineResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import { LineChart, type LineChartProps } from "../../../widgets/line_chart/line_chart";
import { fitY } from "../../../widgets/line_chart/frame";
import { paintLines } from "../../../widgets/line_chart/paint";
import type { XRange } from "../../../widgets/plot/range";
import { Minimap, MINIMAP_PX } from "../../../widgets/minimap/minimap";
import { Waiting } from "../../../widgets/state/state";
import { rangeQuery } from "../range/params";
import type { RangeState } from "../range/use_range";
import { lookOf, type ViewProps } from "../view_props";
import { chartBand, chartLimit, chartLines, nextSlots } from "./lines";
import type { TimelineParams } from "./params";

type ChartProps = Partial<LineChartProps> &
  Pick<LineChartProps, "extent" | "heightPx" | "onRange" | "range">;

export function SeriesChart(
  props: ChartProps & {
    readonly view: ViewProps;
    readonly answer: TimelineResponse & { readonly series: SeriesInfo };
    /** The whole run, for the strip below; null until loaded. */
    readonly whole?: TimelineResponse | null;
  },
) {
  const { view, answer, whole = null, extent } = props;
  const { byteUnit, theme } = view;
  const slots = useRef<ReadonlyMap<string, number>>(new Map());
  // While the chart moves, the answer may be a new object with the same columns.
  const drawn = useMemo(() => {
    slots.current = nextSlots(answer.lines, slots.current);
    const band = chartBand(answer);
    return { band, lines: chartLines(answer.lines, slots.current, band !== null) };
  }, [answer.lines, answer.band]);
  const limit = useMemo(
    () => chartLimit(answer, byteUnit),
    [answer.capacityBytes, answer.capacityKind, answer.series.unit, byteUnit],
  );
  const drawMap = useMemo(() => {
    if (whole === null) return null;
    const band = chartBand(whole);
    const lines = chartLines(whole.lines, slots.current, band !== null);
    const map = { lines, band, limit: null, hidden: new Set<string>(), smoothing: 0 };
    return (context: CanvasRenderingContext2D, widthPx: number): void => {
      const y = fitY(map, extent, { logScale: false, fromZero: false });
      const view = { x0: extent.low, x1: extent.high, y0: y.high, y1: y.low };
      const size = { widthPx, heightPx: MINIMAP_PX };
      paintLines(context, { view, size, logScale: false }, map, theme);
    };
  }, [whole, drawn, extent.low, extent.high, theme]);
  return (
    <LineChart
      label={answer.series.label}
      unit={answer.series.unit}
      x={answer.x}
      marks={answer.marks}
      limit={limit}
      cursor={view.cursor}
      {...lookOf(view)}
      {...drawn}
      {...props}
    >
      {drawMap !== null && (
        <Minimap
          extent={extent}
          draw={drawMap}
          range={props.range}
          onRange={props.onRange}
        />
      )}
    </LineChart>
  );
}

export function seriesQuery(
  { run, ranks }: Pick<ViewProps, "ranks" | "run">,
  { x, phase }: Pick<TimelineParams, "phase" | "x">,
  series: string,
) {
  const { rank, filter, pinned } = ranks;
  return {
    run: run.id,
    rank,
    ranks: filter,
    pinned: pinned.join(","),
    series,
    x,
    phase,
  };
}

/**
 * Half a step more per side, as in the heatmap's cells. A step that ran out of memory has
 * a mark, and no row.
 */
export function extentOf({
  x,
  xLow,
  xHigh,
  marks,
}: Pick<TimelineResponse, "x" | "xLow" | "xHigh" | "marks">): XRange {
  const half = x === "step" ? 0.5 : 0;
  const ends = marks.filter(({ kind }) => kind === "oom").map((mark) => mark.x);
  return { low: xLow - half, high: Math.max(xHigh, ...ends) + half };
}

/** Shares the range and cursor of another chart; "": the default series. */
export function SeriesBelow(
  props: Omit<ChartProps, "extent" | "onRange" | "range"> & {
    readonly view: ViewProps;
    readonly params: Pick<TimelineParams, "phase" | "x">;
    readonly series: string;
    /** `px`: 0 until known; `extent`: its own without another chart. */
    readonly range: RangeState & { readonly extent?: XRange; readonly px: number };
  },
) {
  const { view, params, series, range, ...chart } = props;
  const { px } = range;
  const query = {
    ...seriesQuery(view, params, series),
    ...rangeQuery(range.settled, px),
  };
  const asked = px === 0 ? null : query;
  const { data, error } = useLive(view.client, "timeline", asked, view.pollMs);
  if (data === null) {
    return <Waiting error={error} hasContent={false} blocksPx={[props.heightPx]} />;
  }
  if (data.series === null) return null;
  return (
    <SeriesChart
      legend={false}
      {...chart}
      view={view}
      answer={{ ...data, series: data.series }}
      extent={range.extent ?? extentOf(data)}
      range={range.shown}
      onRange={range.setRange}
    />
  );
}

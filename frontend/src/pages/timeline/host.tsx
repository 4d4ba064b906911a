import { useState } from "preact/hooks";
import type { HostResponse, HostTrack, XKind } from "../../api/types.gen";
import { useLive } from "../../api/live/use_live";
import { counted } from "../../base/bytes";
import { X_AXES } from "../../model/lines/axis";
import type { Table } from "../../model/table";
import { originOf } from "../../model/words/origin";
import { useExports } from "../../widgets/export/export_menu";
import { Findings } from "../../widgets/finding/finding";
import { LineChart } from "../../widgets/line_chart/line_chart";
import type { ChartLine, ChartLimit } from "../../widgets/line_chart/types";
import { Waiting } from "../../widgets/state/state";
import { Segmented } from "../shared/controls/choices";
import { AbsentList } from "../shared/panels/absent_list";
import type { RangeState } from "../shared/range/use_range";
import { lookOf, type ViewProps } from "../shared/view_props";
import { FlatSeries } from "./flat_series";

const TRACK_PX = 172;
/** A longer legend is taller than its chart; the tooltip names the lines then. */
const MAX_LEGEND = 8;
const GROWING: readonly string[] = ["growing_host", "growing_workers"];

export function Host(props: {
  readonly view: ViewProps;
  readonly x: XKind;
  readonly range: RangeState;
  readonly px: number;
}) {
  const { view, x, range, px } = props;
  const { client, run, ranks, pollMs } = view;
  const { settled } = range;
  const of = { run: run.id, rank: ranks.rank };
  const query = { ...of, x, x0: settled?.low ?? null, x1: settled?.high ?? null };
  const asked = px === 0 ? null : { ...query, px: Math.round(px) };
  const { data, stale, error } = useLive(client, "host", asked, pollMs);
  // Findings on the memory drawn below.
  const findings = useLive(client, "findings", data && of, pollMs).data?.findings ?? [];
  const source = data && {
    origin: originOf(data.run),
    name: "host",
    table: () => hostTable(data),
    about: () => ({ x: data.x, rank: data.rank }),
  };
  useExports(view, "the table of all tracks", source);
  if (data === null || data.tracks.length === 0) {
    return (
      <>
        <Waiting error={error} hasContent />
        {data !== null && <AbsentList absent={data.absent} />}
      </>
    );
  }
  const flat = data.tracks.filter(isFlat);
  const tracks = (some: readonly HostTrack[]) =>
    some.map((track) => (
      <Track key={track.key} track={track} data={data} view={view} range={range} />
    ));
  return (
    <section class="column host" aria-label="Host" aria-busy={stale}>
      <header class="panel-head">
        <h2>{hostTitle(data)}</h2>
      </header>
      <Findings
        {...view}
        findings={findings.filter(({ key }) => GROWING.includes(key))}
      />
      {tracks(data.tracks.filter((track) => !isFlat(track)))}
      <FlatSeries count={flat.reduce((sum, { lines }) => sum + lines.length, 0)}>
        {tracks(flat)}
      </FlatSeries>
      <AbsentList absent={data.absent} />
    </section>
  );
}

/** A track moves with any of its lines. */
export function isFlat({ lines }: Pick<HostTrack, "lines">): boolean {
  return lines.every((line) => line.isFlat);
}

function hostTitle({ hosts, numHosts, rank, tracks }: HostResponse): string {
  const [only] = hosts;
  const all = counted(numHosts, "host");
  const named =
    numHosts === 1 && only !== undefined
      ? `Host ${only}`
      : hosts.length < numHosts
        ? `The ${hosts.length} fullest of ${all}`
        : all;
  const sensors = tracks.some((track) => track.key.startsWith("gpu_"));
  return `${named} · process${sensors ? " and GPU" : ""} of rank ${rank}`;
}

function Track(props: {
  readonly track: HostTrack;
  readonly data: HostResponse;
  readonly range: RangeState;
  readonly view: ViewProps;
}) {
  const { track, data, view, range } = props;
  const columns = trackColumns(track);
  const many = hasManyHosts(track);
  const [chosen, setChosen] = useState<string | null>(null);
  const column = columns.find((name) => name === chosen) ?? columns[0] ?? "";
  const lines = trackLines(track, column);
  const { title } = track;
  const labelOf = (name: string): string =>
    track.lines.find((line) => line.name === name)?.label ?? name;
  return (
    <section class="track" aria-label={title}>
      <LineChart
        label={title}
        title={many ? `${labelOf(column)} by host` : title}
        {...lookOf(view)}
        unit={track.unit}
        x={data.x}
        lines={lines}
        marks={data.marks}
        limit={trackLimit(track)}
        extent={{ low: data.xLow, high: data.xHigh }}
        range={range.shown}
        onRange={range.setRange}
        cursor={view.cursor}
        heightPx={TRACK_PX}
        legend={lines.length > 1 && lines.length <= MAX_LEGEND}
      />
      {many && columns.length > 1 && (
        <Segmented
          label={`What ${title} shows`}
          options={columns}
          chosen={column}
          labels={(option) => [labelOf(option), ""]}
          onChoose={setChosen}
        />
      )}
    </section>
  );
}

/** In the server's order: the most important first. */
export function trackColumns(track: HostTrack): readonly string[] {
  return [...new Set(track.lines.map((line) => line.name))];
}

/** With several hosts one column is drawn at a time. */
function hasManyHosts(track: HostTrack): boolean {
  return new Set(track.lines.map((line) => line.rank)).size > 1;
}

/**
 * One host: every column. Several hosts: only `column`, as eight hosts times four
 * columns cannot be distinguished.
 */
export function trackLines(track: HostTrack, column: string): readonly ChartLine[] {
  const many = hasManyHosts(track);
  const drawn = track.lines.filter(({ name }) => !many || name === column);
  return drawn.map(({ name, label, rank, host, x, y, yLow }, i) => ({
    x,
    y,
    yLow,
    id: `${name}#${rank}`,
    colour: i,
    label: many ? host : label,
  }));
}

export function trackLimit({ limit, limitLabel, unit }: HostTrack): ChartLimit | null {
  // Without swap there is no limit to reach; a percent axis ends at 100 anyway.
  if (limit === null || limit <= 0 || unit === "percent") return null;
  return { value: limit, label: limitLabel };
}

/** A row per point: lines sampled at different times share no x. */
export function hostTable({ tracks, x }: Pick<HostResponse, "tracks" | "x">): Table {
  const lines = tracks.flatMap((track) => track.lines.map((line) => ({ track, line })));
  const each = <T,>(read: (of: (typeof lines)[number], i: number) => T): T[] =>
    lines.flatMap((of) => Array.from(of.line.x, (_, i) => read(of, i)));
  const values = each(({ line }, i) => line.y[i] ?? NaN);
  return {
    numRows: values.length,
    columns: [
      { name: "track", values: each(({ track }) => track.key) },
      { name: "column", values: each(({ line }) => line.name) },
      { name: "unit", values: each(({ track }) => track.unit) },
      { name: "host", values: each(({ line }) => line.host) },
      { name: "rank", values: each(({ line }) => line.rank) },
      { name: X_AXES[x].column, values: each(({ line }, i) => line.x[i] ?? NaN) },
      { name: "high", values },
      { name: "low", values: each(({ line }, i) => line.yLow[i] ?? NaN) },
    ],
  };
}

/** CPU, memory, disk, network and GPU sensors of the hosts, on the timeline’s x axis. */

import { useState } from "preact/hooks";
import type { HostResponse, HostTrack, XKind } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { columnLabel } from "../../../model/words/column_label";
import { originOf } from "../../../model/words/origin";
import { useExports } from "../../../widgets/export/export_menu";
import { Findings } from "../../../widgets/finding/finding";
import { LineChart } from "../../../widgets/line_chart/line_chart";
import { Waiting } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import { AbsentList } from "../../shared/panels/absent_list";
import type { RangeState } from "../../shared/range/use_range";
import type { ViewProps } from "../../shared/view_props";
import {
  hasManyHosts,
  hostTable,
  trackColumns,
  trackLimit,
  trackLines,
  TRACKS,
} from "./tracks";

const TRACK_PX = 172;
/** A longer legend is higher than its chart; the tooltip names the lines then. */
const MAX_LEGEND = 8;
const GROWING: readonly string[] = ["growing_host", "growing_workers"];

interface HostProps {
  readonly view: ViewProps;
  readonly x: XKind;
  readonly range: RangeState;
  readonly px: number;
}

export function Host({ view, x, range, px }: HostProps) {
  const { client, run, ranks, pollMs } = view;
  const { settled } = range;
  const of = { run: run.id, rank: ranks.rank };
  const query = { ...of, x, x0: settled?.low ?? null, x1: settled?.high ?? null };
  const asked = px === 0 ? null : { ...query, px: Math.round(px) };
  const { data, stale, error } = useLive(client, "host", asked, pollMs);
  // Those of the memory that is drawn below.
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
  return (
    <section class="host" aria-label="Host" aria-busy={stale}>
      <header class="panel-head">
        <h2>{hostTitle(data)}</h2>
      </header>
      <Findings
        {...view}
        findings={findings.filter(({ key }) => GROWING.includes(key))}
      />
      {data.tracks.map((track) => (
        <Track key={track.key} track={track} data={data} view={view} range={range} />
      ))}
      <AbsentList absent={data.absent} />
    </section>
  );
}

function hostTitle({ hosts, numHosts, rank, tracks }: HostResponse): string {
  const [only] = hosts;
  const all = `${formatInteger(numHosts)} hosts`;
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
  const column = columns.find((one) => one === chosen) ?? columns[0] ?? "";
  const lines = trackLines(track, column);
  const [title] = TRACKS[track.key];
  return (
    <section class="track" aria-label={title}>
      <LineChart
        label={title}
        title={many ? `${columnLabel(column)} by host` : title}
        unit={track.unit}
        byteUnit={view.byteUnit}
        x={data.x}
        lines={lines}
        marks={data.marks}
        limit={trackLimit(track)}
        extent={{ low: data.xLow, high: data.xHigh }}
        range={range.shown}
        onRange={range.setRange}
        cursor={view.cursor}
        theme={view.theme}
        heightPx={TRACK_PX}
        legend={lines.length > 1 && lines.length <= MAX_LEGEND}
        origin={originOf(data.run)}
      />
      {many && columns.length > 1 && (
        <Segmented
          label={`What ${title} shows`}
          options={columns}
          chosen={column}
          words={(one) => [columnLabel(one), ""]}
          onChoose={setChosen}
        />
      )}
    </section>
  );
}

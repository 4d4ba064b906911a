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
import type { XRange } from "../../../widgets/plot/range";
import { Waiting } from "../../../widgets/state/state";
import { AbsentList } from "../../shared/panels/absent_list";
import type { ViewProps } from "../../shared/view_props";
import { hostTable } from "./commands";
import { hasManyHosts, trackColumns, trackLimit, trackLines, TRACKS } from "./tracks";
import "./host.css";

const TRACK_PX = 172;
/** A longer legend is higher than its chart; the tooltip names the lines then. */
const MAX_LEGEND = 8;

interface HostProps {
  readonly view: ViewProps;
  readonly x: XKind;
  readonly shown: XRange | null;
  readonly settled: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly px: number;
}

export function Host({ view, x, shown, settled, setRange, px }: HostProps) {
  const query =
    px === 0
      ? null
      : {
          run: view.run.id,
          rank: view.ranks.rank,
          x,
          x0: settled?.low ?? null,
          x1: settled?.high ?? null,
          px: Math.round(px),
        };
  const { data, stale, error } = useLive(view.client, "host", query, view.pollMs);
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
      <Growing view={view} />
      {data.tracks.map((track) => (
        <Track
          key={track.key}
          track={track}
          data={data}
          x={data.x}
          range={shown}
          setRange={setRange}
          view={view}
        />
      ))}
      <AbsentList absent={data.absent} />
    </section>
  );
}

const GROWING: readonly string[] = ["growing_host", "growing_workers"];

/** Findings of the memory that is drawn below. */
function Growing({ view }: { readonly view: ViewProps }) {
  const query = { run: view.run.id, rank: view.ranks.rank };
  const { data } = useLive(view.client, "findings", query, view.pollMs);
  const found = (data?.findings ?? []).filter(({ key }) => GROWING.includes(key));
  return <Findings {...view} findings={found} />;
}

function extentOf(data: HostResponse | null): XRange {
  return data === null ? { low: 0, high: 1 } : { low: data.xLow, high: data.xHigh };
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
  readonly x: XKind;
  readonly range: XRange | null;
  readonly setRange: (range: XRange | null) => void;
  readonly view: ViewProps;
}) {
  const { track, data, view } = props;
  const columns = trackColumns(track);
  const many = hasManyHosts(track);
  const [chosen, setChosen] = useState<string | null>(null);
  const column = columns.find((one) => one === chosen) ?? columns[0] ?? "";
  const { lines, numLeftOut } = trackLines(track, column);
  const { title } = TRACKS[track.key];
  return (
    <section class="track" aria-label={title}>
      <LineChart
        label={title}
        title={many ? `${columnLabel(column)} by host` : title}
        unit={track.unit}
        byteUnit={view.byteUnit}
        x={props.x}
        lines={lines}
        marks={data.marks}
        limit={trackLimit(track)}
        extent={extentOf(data)}
        range={props.range}
        onRange={props.setRange}
        cursor={view.cursor}
        theme={view.theme}
        heightPx={TRACK_PX}
        legend={lines.length > 1 && lines.length <= MAX_LEGEND}
        origin={originOf(data.run)}
      />
      {many && columns.length > 1 && (
        <div
          class="segmented track-columns"
          role="group"
          aria-label={`What ${title} shows`}
        >
          {columns.map((one) => (
            <button
              key={one}
              type="button"
              class="button"
              aria-pressed={one === column}
              onClick={() => setChosen(one)}
            >
              {columnLabel(one)}
            </button>
          ))}
        </div>
      )}
      {numLeftOut > 0 && (
        <p class="quiet">
          {lines.length} of {formatInteger(lines.length + numLeftOut)} lines are drawn:
          those that go highest. Choose a rank to see its host alone.
        </p>
      )}
    </section>
  );
}

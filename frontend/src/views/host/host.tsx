/** Host: CPU, memory, disk, network and GPU sensors over one shared x axis. */

import { useRef, useState } from "preact/hooks";
import type { AbsentSeries, HostResponse, HostTrack, XKind } from "../../api/types.gen";
import { useLive } from "../../api/use_live";
import { formatInteger } from "../../base/bytes";
import { useCommands } from "../../base/use_commands";
import { columnLabel } from "../../model/words/column_label";
import { originOf } from "../../model/words/origin";
import { asSentence, sourceLabel } from "../../model/words/source_label";
import { LineChart } from "../../widgets/line_chart/line_chart";
import type { XRange } from "../../widgets/line_chart/types";
import { useWidth } from "../../widgets/line_chart/use_size";
import { Nothing, Waiting } from "../../widgets/state/state";
import { rangeCommands } from "../range/commands";
import { useRange } from "../range/use_range";
import type { ViewProps } from "../view_props";
import { readX } from "../range/params";
import { XSwitch } from "../controls/x_switch";
import { hostExports } from "./commands";
import { hasManyHosts, trackColumns, trackLimit, trackLines, TRACKS } from "./tracks";
import "./host.css";

const TRACK_PX = 172;
/** A longer legend is higher than its chart; the tooltip names the lines then. */
const MAX_LEGEND = 8;

export function HostView(props: ViewProps) {
  const { client, run, ranks, params, setParams } = props;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  // Hosts are sampled by time, also before the first step.
  const { x } = readX(params, "relative");
  const { shown, settled, setRange } = useRange(params, (changes) => {
    // The range says of which axis it is, so that every view reads it alike.
    setParams({ x, ...changes });
  });
  const query =
    widthPx === 0
      ? null
      : {
          run: run.id,
          rank: ranks.rank,
          x,
          x0: settled?.low ?? null,
          x1: settled?.high ?? null,
          px: Math.round(widthPx),
        };
  const { data, stale, error } = useLive(client, "host", query, props.pollMs);
  useCommands(props.commands, () => [
    ...rangeCommands("Host", { extent: extentOf(data), range: shown, setRange }),
    ...hostExports(data, props.say),
  ]);
  return (
    <div class="host" ref={box} aria-busy={stale}>
      <header class="panel-head">
        <h2>{data === null ? "Host" : hostTitle(data)}</h2>
        <XSwitch
          x={x}
          setX={(next) => setParams({ x: next, x0: null, x1: null }, "push")}
        />
        {shown !== null && (
          <button type="button" class="button" onClick={() => setRange(null)}>
            Fit
          </button>
        )}
      </header>
      <Waiting error={error} hasContent={data !== null} blocksPx={[480]} />
      {data !== null && data.tracks.length === 0 && (
        <Nothing title="No host measurements in this run">
          <p>The reasons stand below, with what to do about each.</p>
        </Nothing>
      )}
      {data?.tracks.map((track) => (
        <Track
          key={track.key}
          track={track}
          data={data}
          x={data.x}
          range={shown}
          setRange={setRange}
          view={props}
        />
      ))}
      {data !== null && data.absent.length > 0 && <Absent absent={data.absent} />}
    </div>
  );
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

function Absent({ absent }: { readonly absent: readonly AbsentSeries[] }) {
  return (
    <section aria-labelledby="absent-title">
      <header class="panel-head">
        <h2 id="absent-title">Not recorded</h2>
      </header>
      <div class="table-scroll">
        <table class="data-table">
          <thead>
            <tr>
              <th scope="col">Source</th>
              <th scope="col">Why</th>
              <th scope="col">What to do</th>
            </tr>
          </thead>
          <tbody>
            {absent.map((one) => (
              <tr key={`${one.source} ${one.reason}`}>
                <th scope="row" class="source">
                  {sourceLabel(one.source)}
                </th>
                <td>{asSentence(one.reason)}</td>
                <td class="quiet">{asSentence(one.remedy)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** One step on every rank: its parts, who was slowest, and the way to its trace. */

import { useMemo } from "preact/hooks";
import type { StepResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import { formatInteger } from "../../../base/bytes";
import { formatInstant, formatSeconds } from "../../../base/durations";
import { columnLabel } from "../../../model/words/column_label";
import { originOf } from "../../../model/words/origin";
import { formatQuantity } from "../../../model/words/quantity";
import { partLabel } from "../../../model/words/step_part";
import type { Table } from "../../../model/table";
import { partColours } from "../../../render/palette";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import {
  RowTable,
  type RowColumn,
  type RowCell,
} from "../../../widgets/row_table/row_table";
import { numberColumn, textColumn } from "../../../widgets/row_table/columns";
import { Waiting } from "../../../widgets/state/state";
import { PartBar } from "./part_bar";
import { traceNs } from "./ways";
import { Drawer } from "../../shared/panels/drawer";
import type { ViewProps } from "../../shared/view_props";

const TABLE_PX = 196;
const PART_WIDTH = "minmax(70px, 1fr)";

export function stepTable(data: StepResponse): Table {
  return {
    numRows: data.ranks.length,
    columns: [
      { name: "rank", values: data.ranks },
      { name: "host", values: Array.from(data.host, (row) => data.hosts[row] ?? "") },
      { name: "step_time_seconds", values: data.seconds },
      ...data.parts.map(({ name, seconds }) => ({
        name: `${name}_seconds`,
        values: seconds,
      })),
      ...(data.memorySeries === null
        ? []
        : [{ name: data.memorySeries.replace(/^.*\//, ""), values: data.memoryBytes }]),
      { name: "start_ms", values: data.startMs },
      { name: "end_ms", values: data.endMs },
    ],
  };
}

export function StepDrawer(props: {
  readonly view: ViewProps;
  readonly step: number;
  readonly phase: string;
  readonly close: () => void;
}) {
  const { view, step, phase } = props;
  const { client, run, ranks, pollMs } = view;
  const query = { run: run.id, rank: ranks.rank, ranks: ranks.filter, phase, step };
  const live = useLive(client, "step", query, pollMs);
  const data = live.data?.step === step ? live.data : null;
  const slowest = data?.ranks[0];
  return (
    <Drawer
      label="The pinned step"
      title={`Step ${formatInteger(step)}${
        data === null || data.ranks.length === 0
          ? ""
          : ` · ${formatSeconds(data.seconds[0] ?? NaN)} on rank ${slowest ?? "–"}${
              data.numRanks > 1
                ? `, the slowest of ${formatInteger(data.numRanks)}`
                : ""
            }`
      }`}
      actions={
        data !== null && data.ranks.length > 0 && <Actions {...props} data={data} />
      }
      close={props.close}
    >
      <Waiting error={live.error} hasContent={data !== null} blocksPx={[TABLE_PX]} />
      {data !== null && data.ranks.length > 0 && <Step view={view} data={data} />}
    </Drawer>
  );
}

function Actions(props: { readonly view: ViewProps; readonly data: StepResponse }) {
  const { view, data } = props;
  const source: ExportSource = {
    origin: originOf(data.run),
    name: `step ${data.step}`,
    table: () => stepTable(data),
    about: () => ({ step: data.step, num_ranks: data.numRanks }),
  };
  return (
    <>
      <button
        type="button"
        class="button"
        title="The spans and traces that were recorded while this step ran"
        onClick={() =>
          view.showPage("trace", {
            w0: traceNs(data.startMs[0] ?? NaN),
            w1: traceNs(data.endMs[0] ?? NaN),
          })
        }
      >
        Show in Trace
      </button>
      <ExportMenu subject="the step" source={source} />
    </>
  );
}

function Step({
  view,
  data,
}: {
  readonly view: ViewProps;
  readonly data: StepResponse;
}) {
  const colours = partColours(
    view.theme,
    data.parts.map(({ name }) => name),
  );
  const middle = Math.floor(data.ranks.length / 2);
  const rows: readonly (readonly [number, string])[] =
    data.ranks.length > 1
      ? [
          [0, "slowest"],
          [middle, "median"],
        ]
      : [[0, ""]];
  return (
    <div class="step-detail">
      <div class="step-bars">
        {rows.map(([row, note]) => (
          <PartBar
            key={row}
            label={`rank ${data.ranks[row] ?? "–"}`}
            note={note}
            parts={
              data.parts.length > 0
                ? data.parts.map(({ name, seconds }) => ({
                    name,
                    seconds: seconds[row] ?? NaN,
                  }))
                : [{ name: "step", seconds: data.seconds[row] ?? NaN }]
            }
            total={data.seconds[row] ?? NaN}
            longest={data.seconds[0] ?? NaN}
            theme={view.theme}
          />
        ))}
        <p class="quiet">
          {formatInstant(data.startMs[0] ?? NaN)}
          {data.numUnread > 0 &&
            ` · ${formatInteger(data.numUnread)} ranks were not read yet`}
          {data.ranks.length < data.numRanks &&
            ` · the slowest ${formatInteger(data.ranks.length)} are listed`}
        </p>
      </div>
      <RankRows view={view} data={data} colours={colours} />
    </div>
  );
}

function RankRows(props: {
  readonly view: ViewProps;
  readonly data: StepResponse;
  readonly colours: readonly string[];
}) {
  const { view, data, colours } = props;
  const columns = useMemo<readonly RowColumn[]>(() => {
    const longest = data.seconds[0] ?? NaN;
    const grey = partColours(view.theme, ["other"])[0] ?? "grey";
    const seconds = (value: number, colour: string): RowCell => ({
      text: formatQuantity(value, "seconds"),
      bar: { share: Math.max(0, value / longest) || 0, colour },
    });
    const hosts = Array.from(data.host, (host) => data.hosts[host] ?? "");
    return [
      numberColumn("rank", "Rank", "52px", data.ranks, (rank) => ({
        text: String(rank),
      })),
      textColumn("host", "Host", "minmax(56px, 1fr)", hosts),
      numberColumn("seconds", "Step time", "84px", data.seconds, (value) =>
        seconds(value, grey),
      ),
      ...data.parts.map(({ name, seconds: values }, part) =>
        numberColumn(
          name,
          partLabel(name),
          PART_WIDTH,
          values,
          (value) => seconds(value, colours[part] ?? "grey"),
          `${partLabel(name)}; the bar is its share of the longest step`,
        ),
      ),
      ...(data.memorySeries === null
        ? []
        : [
            numberColumn(
              "memory",
              columnLabel(data.memorySeries),
              "96px",
              data.memoryBytes,
              (value) => ({ text: formatQuantity(value, "bytes", view.byteUnit) }),
            ),
          ]),
    ];
  }, [data, colours, view.theme, view.byteUnit]);
  return (
    <RowTable
      label="The step on every rank, the slowest first"
      columns={columns}
      rows={Array.from(data.ranks.keys())}
      selected={null}
      onSelect={(i) => {
        const rank = data.ranks[i];
        if (rank !== undefined) view.chooseRank(rank);
      }}
      sort={{ key: "seconds", descending: true }}
      empty="No rank has this step."
      heightPx={Math.min(TABLE_PX, 32 + 24 * data.ranks.length)}
    />
  );
}

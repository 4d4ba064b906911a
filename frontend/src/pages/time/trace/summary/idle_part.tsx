/** Why the devices of a trace were idle, how late work started, how much was queued. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { DeviceIdle } from "../../../../api/types.gen";
import { useLive } from "../../../../api/use_live";
import { formatShare } from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import {
  absentCell,
  durationCell,
  numberColumn,
  textColumn,
} from "../../../../widgets/row_table/columns";
import {
  ROW_PX,
  RowTable,
  type RowColumn,
} from "../../../../widgets/row_table/row_table";
import type { ViewProps } from "../../../shared/view_props";

const OPENING_POLL_MS = 1_000;
const MOST_ROWS = 8;
const HEAD_PX = 30;

export function IdlePart({ view }: { readonly view: ViewProps }) {
  const [opening, setOpening] = useState(true);
  const { data } = useLive(
    view.client,
    "trace_idle",
    {
      run: view.run.id,
      rank: view.ranks.rank,
      source: view.params.get("source") ?? null,
    },
    opening ? OPENING_POLL_MS : view.pollMs,
  );
  useEffect(() => setOpening(data === null || data.state === "opening"), [data]);
  const rows = data?.rows ?? [];
  const columns = useMemo(() => idleColumns(rows), [data]);
  if (rows.length === 0) return null;
  return (
    <section class="trace-report-part" aria-label="Idle time of the device">
      <h3>Idle time of the device</h3>
      {rows
        .filter(({ stream }) => stream === null)
        .map((one) => (
          <p key={one.device}>{idleSentence(one)}</p>
        ))}
      <RowTable
        label="Idle time by device and stream"
        columns={columns}
        rows={rows.map((_, row) => row)}
        sort={null}
        empty=""
        heightPx={HEAD_PX + ROW_PX * Math.min(rows.length, MOST_ROWS)}
      />
    </section>
  );
}

function idleMs({ hostMs, kernelMs, otherMs }: DeviceIdle): number {
  return hostMs + kernelMs + otherMs;
}

/** How idle a device was, the largest cause, and what to do about it. */
export function idleSentence(one: DeviceIdle): string {
  const idle = idleMs(one);
  const share = (ms: number): string => formatShare(ms, one.spanMs);
  const causes = [
    [one.hostMs, "the host launched late"],
    [one.kernelMs, "gaps between kernels"],
    [one.otherMs, "other causes"],
  ] as const;
  const said = [...causes]
    .filter(([ms]) => ms > 0)
    .sort(([a], [b]) => b - a)
    .map(([ms, cause]) => `${share(ms)} ${cause}`);
  const advice =
    one.hostMs > idle / 2 && idle > 0.1 * one.spanMs
      ? " Fewer or larger launches help: a larger batch, fused operators, CUDA graphs."
      : "";
  const why = said.length === 0 ? "" : `: ${said.join(", ")}`;
  const span = formatSeconds(one.spanMs / 1e3);
  return `GPU ${one.device} was idle ${share(idle)} of ${span}${why}.${advice}`;
}

export function idleColumns(rows: readonly DeviceIdle[]): readonly RowColumn[] {
  const of = (value: (one: DeviceIdle) => number | null) =>
    rows.map((one) => value(one) ?? NaN);
  const time = (
    key: string,
    title: string,
    ms: (one: DeviceIdle) => number | null,
    hint: string,
  ) =>
    numberColumn(
      key,
      title,
      "minmax(76px, 1fr)",
      of(ms),
      (value) =>
        Number.isNaN(value) ? absentCell("No launch is known") : durationCell(value),
      hint,
    );
  const idle = (
    key: string,
    title: string,
    ms: (one: DeviceIdle) => number,
    hint: string,
  ) =>
    numberColumn(
      key,
      title,
      "minmax(112px, 1fr)",
      of(ms),
      (value, row) => ({
        ...durationCell(value),
        note: formatShare(value, rows[row]?.spanMs ?? 0),
      }),
      hint,
    );
  const us = (value: number | null): number | null => value && value / 1e3;
  const queue = (value: number) =>
    Number.isNaN(value)
      ? absentCell("No launch is known")
      : { text: value.toLocaleString("en-US", { maximumFractionDigits: 1 }) };
  const names = rows.map(({ device, stream }) =>
    stream === null ? `GPU ${device}` : `stream ${stream}`,
  );
  return [
    textColumn("where", "Where", "minmax(88px, 1fr)", names),
    time(
      "span",
      "Span",
      (one) => one.spanMs,
      "From the first work's start to the last one's end",
    ),
    idle("idle", "Idle", idleMs, "Nothing ran"),
    idle(
      "host",
      "Host late",
      (one) => one.hostMs,
      "The next work was launched after the device had run dry",
    ),
    idle(
      "kernel",
      "Between kernels",
      (one) => one.kernelMs,
      "Launched in time; the device's own moment between two kernels",
    ),
    idle(
      "other",
      "Other",
      (one) => one.otherMs,
      "Launched in time, and started late (it waits for another stream, say); or the call is not known",
    ),
    time(
      "p50",
      "Launch delay",
      (one) => us(one.delayP50Us),
      "Median from the end of the call to the start of the work",
    ),
    time(
      "p95",
      "95 %",
      (one) => us(one.delayP95Us),
      "95 of 100 launches have a shorter delay",
    ),
    numberColumn(
      "queue",
      "Queued",
      "64px",
      of((one) => one.queueMean),
      queue,
      "Works that were launched and had not begun: mean over time",
    ),
    numberColumn(
      "most",
      "Most",
      "56px",
      of((one) => one.queueMax),
      queue,
      "The longest queue; from 1,024 on the host has to wait",
    ),
  ];
}

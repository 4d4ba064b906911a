import { useMemo, useRef } from "preact/hooks";
import type { Query } from "../../../api/client";
import type { AllocatorAction, AllocatorEventsResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
} from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { formatSigned } from "../../../model/words/quantity";
import {
  bytesCell,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { RowTable } from "../../../widgets/row_table/row_table";
import { Waiting } from "../../../widgets/state/state";
import { Switch } from "../../shared/controls/choices";
import { useAnswers } from "./answers";
import { actionWords } from "./moment";
import { SEGMENTS, type SegmentsState, type OpenSegments } from "./params";

const HEIGHT_PX = 560;
const CHUNK_ROWS = 400;

const ACTIONS: Readonly<Record<SegmentsState["events"], string | null>> = {
  all: null,
  segments: "segment_alloc,segment_free,segment_map,segment_unmap",
  marks: "oom,snapshot,annotate",
};

/** Whether an event's bytes add to live or reserved memory. */
const SIGNS: Partial<Record<AllocatorAction, number>> = {
  alloc: 1,
  free: -1,
  free_completed: -1,
  segment_alloc: 1,
  segment_map: 1,
  segment_free: -1,
  segment_unmap: -1,
};

export function EventList(props: OpenSegments) {
  const { view, open, params, setParams, moment } = props;
  const { client } = view;
  const choice = params.events;
  const actions = ACTIONS[choice];
  const subject: Query = { ...open.place, actions };
  const head = useLive(client, "allocator_events", {
    ...subject,
    moment: actions === null ? null : moment,
    count: 1,
  });
  const numRows = head.data?.numRows ?? 0;
  const rows = useMemo(
    () => Int32Array.from({ length: numRows }, (_, i) => i),
    [numRows],
  );
  const { error, get, want } = useAnswers<AllocatorEventsResponse>(
    subject,
    (chunk, signal) => {
      const query = { ...subject, e0: chunk * CHUNK_ROWS, count: CHUNK_ROWS };
      return client.get("allocator_events", query, signal);
    },
  );
  // Rows drawn before they arrived.
  const missing = useRef(new Set<number>());
  const chunkOf = (row: number): AllocatorEventsResponse | null => {
    const chunk = Math.floor(row / CHUNK_ROWS);
    const known = get(chunk);
    if (known !== undefined) return known;
    if (missing.current.size === 0) {
      queueMicrotask(() => {
        want([...missing.current]);
        missing.current.clear();
      });
    }
    missing.current.add(chunk);
    return null;
  };
  const choose = ({ event, life }: AllocatorEventsResponse, at: number): void => {
    const own = life[at] ?? -1;
    props.go(event[at] ?? 0);
    setParams({ life: own < 0 ? null : own });
  };
  return (
    <section aria-label="Allocator events">
      <div class="panel-head">
        <h2>Allocator events</h2>
        <Switch view={view} of={SEGMENTS.events} label="Events shown" />
        <span class="quiet">{head.data !== null && counted(numRows, "event")}</span>
      </div>
      <Waiting error={error} hasContent={false} />
      <RowTable
        label="Allocator events"
        columns={eventColumns(props, chunkOf)}
        rows={rows}
        selected={actions === null ? moment : (head.data?.rowOfMoment ?? -1)}
        onSelect={(row) => {
          const chunk = chunkOf(row);
          if (chunk !== null) choose(chunk, row % CHUNK_ROWS);
          // A row never in sight, such as the last one by its key.
          else
            void client.get("allocator_events", { ...subject, e0: row, count: 1 }).then(
              (one) => choose(one, 0),
              () => undefined,
            );
        }}
        sort={null}
        empty={
          head.data === null
            ? ""
            : choice === "all"
              ? "This history holds no events: only what was live when it was taken is known."
              : "None of these is in this history."
        }
        heightPx={HEIGHT_PX}
        steady
      />
    </section>
  );
}

type EventCell = (
  chunk: AllocatorEventsResponse,
  at: number,
  action: AllocatorAction,
) => RowCell;

function eventColumns(
  { open: { facts, device }, stacks, view: { byteUnit } }: OpenSegments,
  chunkOf: (row: number) => AllocatorEventsResponse | null,
): readonly RowColumn[] {
  const column = (
    title: string,
    width: string,
    hint: string,
    cell: EventCell,
    numeric = false,
  ): RowColumn => ({
    key: title,
    title,
    width,
    hint,
    numeric,
    cell: (row) => {
      const chunk = chunkOf(row);
      if (chunk === null) return { text: "…", tone: "quiet" };
      const at = row % CHUNK_ROWS;
      const action = chunk.actions[chunk.action[at] ?? -1] ?? "unknown";
      const found = cell(chunk, at, action);
      return action === "oom" ? { ...found, tone: "bad" } : found;
    },
  });
  const { streams } = facts;
  const event: EventCell = (chunk, at) => ({
    text: formatInteger(chunk.event[at] ?? NaN),
    tone: "quiet",
  });
  const what: EventCell = (chunk, at, action) => {
    const [text, free] = [actionWords(action), chunk.deviceFree[at] ?? NaN];
    if (!Number.isFinite(free)) return { text, title: action };
    const title = `${action}, device had ${formatBytesExact(free)}`;
    return { text, title, note: `device had ${formatBytes(free, byteUnit)}` };
  };
  const bytes: EventCell = (chunk, at, action) => {
    const [own, sign] = [chunk.bytes[at] ?? NaN, SIGNS[action]];
    const cell = bytesCell(own, byteUnit);
    if (sign === undefined) return cell;
    return { ...cell, text: formatSigned(sign * own, "bytes", byteUnit) };
  };
  const block: EventCell = (chunk, at) => ({
    text: blockName(chunk.address[at] ?? NaN, chunk.version[at] ?? -1),
    tone: "quiet",
    note: streams.length > 1 ? `stream ${streams[chunk.stream[at] ?? 0] ?? "?"}` : "",
  });
  const level =
    (name: "active" | "reserved"): EventCell =>
    (chunk, at) =>
      bytesCell(chunk[name][at] ?? NaN, byteUnit);
  const time: EventCell = (chunk, at) => {
    const since = (chunk.timeMs[at] ?? NaN) - (device.firstMs ?? NaN);
    const text = Number.isFinite(since) ? formatSeconds(since / 1000) : "";
    return { text, tone: "quiet" };
  };
  const where: EventCell = (chunk, at) => {
    const stack = chunk.stack[at] ?? -1;
    if (stack < 0 || stacks === null) return { text: "" };
    return { text: stacks.stackLabel(stack), title: stacks.text(stack) };
  };
  const named = "Address and how often it was used before, as memory_viz names it";
  const wide = streams.length > 1 ? "minmax(200px, 1.4fr)" : "minmax(140px, 1fr)";
  return [
    column("Event", "64px", "A click shows the state just after it", event, true),
    column("What", "minmax(140px, 1.2fr)", "What the allocator did", what),
    column("Bytes", "80px", "As requested; of segments theirs", bytes, true),
    column("Block", wide, named, block),
    column("Active", "72px", "Live bytes after the event", level("active"), true),
    column(
      "Reserved",
      "72px",
      "Reserved bytes after the event",
      level("reserved"),
      true,
    ),
    column("Time", "72px", "Since the first event", time, true),
    column("Where", "minmax(140px, 2fr)", "The line that requested it", where),
  ];
}

/** `b7f3a40000000_2` of a block, `s7f…` of a segment, as in memory_viz. */
function blockName(address: number, version: number): string {
  if (!Number.isFinite(address)) return "";
  const hex = address.toString(16);
  return version < 0 ? `s${hex}` : `b${hex}_${version}`;
}

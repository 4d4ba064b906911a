import { useMemo, useRef } from "preact/hooks";
import type { Query } from "../../../api/client";
import type {
  AllocatorAction,
  AllocatorEventsResponse,
  HistoryDevice,
  HistoryFacts,
  TableRows,
} from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import {
  counted,
  formatBytes,
  formatBytesExact,
  type ByteUnit,
} from "../../../base/bytes";
import { Waiting } from "../../../widgets/state/state";
import { Switch } from "../../shared/controls/choices";
import { PagedTable } from "../../shared/table/answer_table";
import { declared, declaredTable } from "../../shared/table/columns";
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
    const loaded = get(chunk);
    if (loaded !== undefined) return loaded;
    if (missing.current.size === 0) {
      queueMicrotask(() => {
        want([...missing.current]);
        missing.current.clear();
      });
    }
    missing.current.add(chunk);
    return null;
  };
  const choose = ({ event, life }: AllocatorEventsResponse, index: number): void => {
    const own = life[index] ?? -1;
    props.go(event[index] ?? 0);
    setParams({ life: own < 0 ? null : own });
  };
  const tables = useRef(new WeakMap<AllocatorEventsResponse, TableRows>());
  const subjectOfTable = {
    facts: open.facts,
    device: open.device,
    byteUnit: view.byteUnit,
  };
  const tableOfChunk = (chunk: AllocatorEventsResponse): TableRows => {
    const table = tables.current.get(chunk) ?? eventTable(chunk, subjectOfTable);
    tables.current.set(chunk, table);
    return table;
  };
  const header = useMemo(
    () => ({
      ...eventTable(null, subjectOfTable),
      numRows,
      numAll: numRows,
      empty:
        head.data === null
          ? ""
          : choice === "all"
            ? "This history holds no events: only what was live when it was taken is known."
            : "None of these is in this history.",
    }),
    [open.facts, open.device, numRows, head.data === null, choice],
  );
  return (
    <>
      <Waiting error={error} hasContent={false} />
      <PagedTable
        view={view}
        table={header}
        partOf={(row) => {
          const chunk = chunkOf(row);
          return chunk && { table: tableOfChunk(chunk), row: row % CHUNK_ROWS };
        }}
        stacks={props.stacks}
        culprits={OOMS}
        head={
          <>
            <h2>Allocator events</h2>
            <Switch view={view} of={SEGMENTS.events} label="Events shown" />
            <span class="quiet">{head.data !== null && counted(numRows, "event")}</span>
          </>
        }
        selected={actions === null ? moment : (head.data?.rowOfMoment ?? -1)}
        onSelect={(row) => {
          const chunk = chunkOf(row);
          if (chunk !== null) choose(chunk, row % CHUNK_ROWS);
          // A row never in sight, such as the last one by its key.
          else
            void client.get("allocator_events", { ...subject, e0: row, count: 1 }).then(
              (answer) => choose(answer, 0),
              () => undefined,
            );
        }}
        heightPx={HEIGHT_PX}
        steady
      />
    </>
  );
}

const OOMS: ReadonlySet<string> = new Set([actionWords("oom")]);

interface EventSubject {
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly byteUnit: ByteUnit;
}

/** null: no event has arrived. */
function eventTable(
  chunk: AllocatorEventsResponse | null,
  { facts: { streams }, device: { firstMs }, byteUnit }: EventSubject,
): TableRows {
  const numRows = chunk?.event.length ?? 0;
  const rows = Array.from({ length: numRows }, (_, row) => row);
  const numbers = (of: (events: AllocatorEventsResponse, row: number) => number) =>
    Float64Array.from(rows, (row) => (chunk === null ? NaN : of(chunk, row)));
  const actions = rows.map(
    (row) => chunk?.actions[chunk.action[row] ?? -1] ?? "unknown",
  );
  const free = numbers(({ deviceFree }, row) => deviceFree[row] ?? NaN);
  const bytes = numbers((events, row) => {
    const sign = SIGNS[actions[row] ?? "unknown"] ?? 1;
    return sign * (events.bytes[row] ?? NaN);
  });
  return declaredTable({
    title: "Allocator events",
    empty: "",
    usual: "",
    numRows,
    columns: [
      declared({
        key: "event",
        title: "Event",
        help: "A click shows the state just after it",
        unit: "count",
        numbers: numbers(({ event }, row) => event[row] ?? NaN),
      }),
      declared({
        key: "action",
        title: "What",
        help: "What the allocator did",
        unit: "text",
        texts: actions.map(actionWords),
        notes: rows.map((row) =>
          Number.isFinite(free[row])
            ? `device had ${formatBytes(free[row] ?? NaN, byteUnit)}`
            : "",
        ),
        hints: actions.map((action, row) =>
          Number.isFinite(free[row])
            ? `${action}, device had ${formatBytesExact(free[row] ?? NaN)}`
            : action,
        ),
      }),
      declared({
        key: "unit",
        title: "",
        help: "",
        unit: "text",
        texts: actions.map((action) =>
          SIGNS[action] === undefined ? "bytes" : "change_bytes",
        ),
      }),
      declared({
        key: "bytes",
        title: "Bytes",
        help: "As requested; of segments theirs",
        unit: "of_row",
        numbers: bytes,
      }),
      declared({
        key: "block",
        title: "Block",
        help: "Address and how often it was used before, as memory_viz names it",
        unit: "text",
        texts: rows.map((row) =>
          blockName(chunk?.address[row] ?? NaN, chunk?.version[row] ?? -1),
        ),
        notes:
          streams.length > 1
            ? rows.map((row) => `stream ${streams[chunk?.stream[row] ?? 0] ?? "?"}`)
            : [],
      }),
      declared({
        key: "active",
        title: "Active",
        help: "Live bytes after the event",
        unit: "bytes",
        numbers: numbers(({ active }, row) => active[row] ?? NaN),
      }),
      declared({
        key: "reserved",
        title: "Reserved",
        help: "Reserved bytes after the event",
        unit: "bytes",
        numbers: numbers(({ reserved }, row) => reserved[row] ?? NaN),
      }),
      declared({
        key: "time_ms",
        title: firstMs === null ? "" : "Time",
        help: "Since the first event",
        unit: "ms",
        numbers: numbers(({ timeMs }, row) => (timeMs[row] ?? NaN) - (firstMs ?? NaN)),
        absent: "Not recorded",
      }),
      declared({
        key: "allocated_at",
        title: "Where",
        help: "The line that requested it",
        unit: "stack",
        numbers: numbers(({ stack }, row) => stack[row] ?? -1),
      }),
    ],
  });
}

/** `b7f3a40000000_2` of a block, `s7f…` of a segment, as in memory_viz. */
function blockName(address: number, version: number): string {
  if (!Number.isFinite(address)) return "";
  const hex = address.toString(16);
  return version < 0 ? `s${hex}` : `b${hex}_${version}`;
}

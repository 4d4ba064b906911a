/** What the allocator did, event by event, as many as there are; a click is a moment. */

import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { type ApiError, type Client, type Query } from "../../../../api/client";
import type { HistoryFacts } from "../../../../api/types.gen";
import { useOnce } from "../../../../api/use_once";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../../base/bytes";
import { formatSeconds } from "../../../../base/durations";
import type { CallStacks } from "../../../../model/stacks/call_stacks";
import { formatSigned } from "../../../../model/words/signed";
import { Waiting } from "../../../../widgets/state/state";
import { Segmented } from "../../../shared/controls/choices";
import { EventChunks, type EventRow } from "./chunks";
import { EVENT_CHOICES, type EventChoice } from "../state/params";
import { actionWords, EVENT_ACTIONS, EVENT_WORDS } from "../words";

export interface EventListProps {
  readonly client: Client;
  /** run, history and device. */
  readonly place: Query;
  readonly facts: HistoryFacts;
  readonly firstMs: number | null;
  readonly stacks: CallStacks | null;
  readonly moment: number;
  readonly onMoment: (moment: number) => void;
  readonly onLife: (life: number, moment: number) => void;
  readonly choice: EventChoice;
  readonly onChoice: (choice: EventChoice) => void;
  readonly byteUnit: ByteUnit;
  readonly heightPx: number;
}

export function EventList(props: EventListProps) {
  const { client, place, choice, moment, heightPx, onMoment } = props;
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const [error, setError] = useState<ApiError | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const actions = EVENT_ACTIONS[choice]?.join(",") ?? null;
  const subject = useMemo<Query>(() => ({ ...place, actions }), [place, actions]);
  // Where the moment stands among the rows; of all events it is its own number.
  const head = useOnce(client, "allocator_events", {
    ...subject,
    moment: actions === null ? null : moment,
    count: 1,
  });
  const numRows = head.data?.numRows ?? 0;
  const at = actions === null ? moment : (head.data?.rowOfMoment ?? -1);
  const chunks = useMemo(
    () =>
      new EventChunks(client, (problem) => {
        setError(problem);
        redraw(0);
      }),
    [client],
  );
  chunks.about(subject);
  useEffect(() => () => chunks.close(), [chunks]);
  const bodyPx = heightPx - ROW_PX;
  const shown = Math.min(numRows, Math.ceil(bodyPx / ROW_PX) + 1);
  const from = Math.max(0, Math.min(Math.floor(first), numRows - shown + 1));
  useEffect(() => {
    if (numRows > 0) chunks.want(from, from + shown);
  }, [chunks, subject, numRows, from, shown]);
  const scrollTo = (row: number): void => {
    setFirst(row);
    scroller.current?.scrollTo({ top: scrollOfRow(row, numRows, bodyPx) });
  };
  useEffect(() => {
    if (numRows === 0 || at < 0) return;
    const next = rowInSight(first, at, bodyPx);
    const jumped = Math.abs(next - first) * ROW_PX > bodyPx;
    if (next !== first)
      scrollTo(Math.max(0, jumped ? at - Math.floor(bodyPx / ROW_PX / 2) : next));
  }, [at, numRows]);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.floor(bodyPx / ROW_PX) - 1;
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -numRows,
      End: numRows,
    };
    const by = steps[event.key];
    if (by === undefined || numRows === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(Math.max(at + by, 0), numRows - 1);
    const row = chunks.row(next);
    if (row !== null) onMoment(row.chunk.event[row.at] ?? next);
    else if (actions === null) onMoment(next);
    else scrollTo(next);
  }

  return (
    <section aria-label="Allocator events">
      <div class="panel-head">
        <h2>Allocator events</h2>
        <Segmented
          label="Which events"
          options={EVENT_CHOICES}
          chosen={choice}
          words={(one) => EVENT_WORDS[one]}
          onChoose={props.onChoice}
        />
        <span class="quiet">
          {head.data !== null && `${formatInteger(numRows)} events`}
        </span>
      </div>
      <Waiting error={error} hasContent={false} />
      <div
        class={props.facts.streams.length > 1 ? "event-list has-streams" : "event-list"}
        role="grid"
        aria-label="Allocator events"
        aria-rowcount={numRows + 1}
        style={{ height: `${heightPx}px` }}
      >
        <div class="event-row event-head" role="row" aria-rowindex={1}>
          {HEADINGS.map(([title, kind, hint]) => (
            <span key={title} role="columnheader" class={kind} title={hint}>
              {title}
            </span>
          ))}
        </div>
        <div
          ref={scroller}
          class="event-body"
          tabIndex={0}
          style={{ height: `${bodyPx}px` }}
          onKeyDown={onKeyDown}
          onScroll={(event) => {
            const top = event.currentTarget.scrollTop;
            // Where it is scaled, only a scroll of the hand moves the rows.
            if (Math.abs(top - scrollOfRow(first, numRows, bodyPx)) < 1) return;
            setFirst(rowAtScroll(top, numRows, bodyPx));
          }}
          onWheel={(event) => {
            if (listPx(numRows) >= numRows * ROW_PX) return;
            // Scaled, one turn of the wheel would leap over hundreds of rows.
            event.preventDefault();
            const row = first + event.deltaY / ROW_PX;
            scrollTo(Math.max(0, Math.min(row, numRows - bodyPx / ROW_PX)));
          }}
        >
          <div class="event-sight" style={{ height: `${bodyPx}px` }}>
            {numRows === 0 && head.data !== null && (
              <p class="quiet event-empty">
                {choice === "all"
                  ? "This history holds no events: only what was live when it was taken is known."
                  : "None of these is in this history."}
              </p>
            )}
            {Array.from(
              { length: Math.max(0, Math.min(shown, numRows - from)) },
              (_, i) => (
                <Row
                  key={from + i}
                  index={from + i}
                  topPx={(from + i - Math.max(first, 0)) * ROW_PX}
                  row={chunks.row(from + i)}
                  chosen={from + i === at}
                  {...props}
                />
              ),
            )}
          </div>
          <div style={{ height: `${Math.max(0, listPx(numRows) - bodyPx)}px` }} />
        </div>
      </div>
    </section>
  );
}

const HEADINGS: readonly (readonly [string, string, string])[] = [
  ["Event", "num", "Its number; a click shows the state just after it"],
  ["What", "", "What the allocator did"],
  ["Bytes", "num", "As asked for; of segments theirs"],
  ["Block", "", "Address and how often it was used before, as memory_viz names it"],
  ["Active", "num", "Live bytes after the event"],
  ["Reserved", "num", "Reserved bytes after the event"],
  ["Time", "num", "Since the first event"],
  ["Where", "", "The line that asked for it"],
];

function Row(
  props: EventListProps & {
    readonly index: number;
    readonly topPx: number;
    readonly row: EventRow | null;
    readonly chosen: boolean;
  },
) {
  const { row, topPx, chosen, index, byteUnit, stacks, onMoment, onLife } = props;
  const style = { top: `${topPx}px` };
  if (row === null) {
    return (
      <div
        class="event-row is-waiting"
        role="row"
        style={style}
        aria-rowindex={index + 2}
      >
        <span class="num quiet">…</span>
      </div>
    );
  }
  const { chunk, at } = row;
  const action = chunk.actions[chunk.action[at] ?? -1] ?? "unknown";
  const bytes = chunk.bytes[at] ?? NaN;
  const event = chunk.event[at] ?? index;
  const stack = chunk.stack[at] ?? -1;
  const life = chunk.life[at] ?? -1;
  const free = chunk.deviceFree[at] ?? NaN;
  const label = stack < 0 || stacks === null ? "" : stacks.stackLabel(stack);
  const sign = SIGNS[action] ?? 0;
  const since = (chunk.timeMs[at] ?? NaN) - (props.firstMs ?? NaN);
  const stream = chunk.stream[at] ?? 0;
  const streams = props.facts.streams;
  return (
    <div
      class={`event-row is-${action}${chosen ? " is-chosen" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={chosen}
      style={style}
      onClick={() => onMoment(event)}
      onDblClick={() => {
        if (life >= 0) onLife(life, event);
      }}
    >
      <span role="gridcell" class="num quiet">
        {formatInteger(event)}
      </span>
      <span
        role="gridcell"
        title={
          Number.isFinite(free)
            ? `${action}, device had ${formatBytesExact(free)}`
            : action
        }
      >
        {actionWords(action)}
        {Number.isFinite(free) && (
          <span class="quiet"> device had {formatBytes(free, byteUnit)}</span>
        )}
      </span>
      <span role="gridcell" class="num" title={formatBytesExact(bytes)}>
        {sign === 0
          ? formatBytes(bytes, byteUnit)
          : formatSigned(sign * bytes, "bytes", byteUnit)}
      </span>
      <span role="gridcell" class="quiet event-block">
        {nameOf(chunk.address[at] ?? NaN, chunk.version[at] ?? -1)}
        {streams.length > 1 && ` stream ${streams[stream] ?? "?"}`}
      </span>
      <span
        role="gridcell"
        class="num"
        title={formatBytesExact(chunk.active[at] ?? NaN)}
      >
        {formatBytes(chunk.active[at] ?? NaN, byteUnit)}
      </span>
      <span
        role="gridcell"
        class="num"
        title={formatBytesExact(chunk.reserved[at] ?? NaN)}
      >
        {formatBytes(chunk.reserved[at] ?? NaN, byteUnit)}
      </span>
      <span role="gridcell" class="num quiet">
        {Number.isFinite(since) ? formatSeconds(since / 1000) : ""}
      </span>
      <span role="gridcell" title={stack < 0 ? "" : (stacks?.text(stack) ?? "")}>
        {label}
      </span>
    </div>
  );
}

/** Whether live or reserved memory grows or shrinks by an event's bytes. */
const SIGNS: Readonly<Record<string, number>> = {
  alloc: 1,
  free: -1,
  free_completed: -1,
  segment_alloc: 1,
  segment_map: 1,
  segment_free: -1,
  segment_unmap: -1,
};

/** `b7f3a40000000_2` of a block, `s7f…` of a segment, as memory_viz names them. */
function nameOf(address: number, version: number): string {
  if (!Number.isFinite(address)) return "";
  const hex = address.toString(16);
  return version < 0 ? `s${hex}` : `b${hex}_${version}`;
}

/** Scrolling through more rows than a browser lets an element be tall. Pure. */
const ROW_PX = 22;
/** Browsers give up on taller elements. */
const TALLEST_PX = 8_000_000;

/** Height of the element that is scrolled. */
function listPx(numRows: number): number {
  return Math.min(numRows * ROW_PX, TALLEST_PX);
}

/** The first row in sight, with a fraction where rows scroll smoothly. */
function rowAtScroll(scrollPx: number, numRows: number, heightPx: number): number {
  const shown = listPx(numRows);
  const full = numRows * ROW_PX;
  const scale = shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
  const row = (scrollPx * scale) / ROW_PX;
  return Math.max(0, Math.min(row, Math.max(0, numRows - heightPx / ROW_PX)));
}

/** Where the list is scrolled to when a row is the first in sight. */
function scrollOfRow(row: number, numRows: number, heightPx: number): number {
  const shown = listPx(numRows);
  const full = numRows * ROW_PX;
  const scale = shown > heightPx ? (full - heightPx) / (shown - heightPx) : 1;
  return Math.max(0, (row * ROW_PX) / scale);
}

/** A first row that keeps one in sight, moving no further than needed. */
function rowInSight(first: number, row: number, heightPx: number): number {
  const rows = Math.floor(heightPx / ROW_PX);
  if (row < first) return row;
  if (row > first + rows - 1) return row - rows + 1;
  return first;
}

/** Below the map: who keeps segments open, memory by arena, and the allocator's settings. */

import { useMemo, useState } from "preact/hooks";
import type { HistoryFacts, SegmentsResponse } from "../../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import type { Table } from "../../../model/table";
import {
  ROW_PX,
  RowTable,
  type RowColumn,
  type RowCell,
} from "../../../widgets/row_table/row_table";
import { bytesCell, countCell, numberColumn } from "../../../widgets/row_table/columns";
import { addressText } from "../../../widgets/segment_map/words";
import { Segmented } from "../../shared/controls/choices";

const MOST_PX = 244;
const LEAST_PX = 80;
const HEAD_PX = 30;

/** As tall as its rows; from some on they scroll. */
function tablePx(rows: ArrayLike<number>): number {
  return Math.min(Math.max(HEAD_PX + ROW_PX * rows.length, LEAST_PX), MOST_PX);
}

export interface TablesProps {
  readonly state: SegmentsResponse;
  readonly facts: HistoryFacts;
  readonly stacks: CallStacks | null;
  readonly segment: number | null;
  readonly onSegment: (address: number) => void;
  readonly byteUnit: ByteUnit;
}

type Below = "pinners" | "pins";

export function Tables(props: TablesProps) {
  const [below, setBelow] = useState<Below>("pinners");
  return (
    <div class="segments-below">
      <section aria-label="What keeps segments open">
        <div class="panel-head">
          <h2>What keeps free memory from going back</h2>
          <Segmented
            label="By what"
            options={["pinners", "pins"] as const}
            chosen={below}
            words={(one) =>
              one === "pinners"
                ? [
                    "By line",
                    "Lines whose blocks lie in segments that are free but for them",
                  ]
                : ["By segment", "Partly free segments, and who holds most in each"]
            }
            onChoose={setBelow}
          />
        </div>
        {below === "pinners" ? <Pinners {...props} /> : <Pins {...props} />}
      </section>
      <section aria-label="Arenas">
        <div class="panel-head">
          <h2>Arenas</h2>
          <span class="quiet">no free block leaves its own</span>
        </div>
        <Arenas {...props} />
      </section>
      <Settings facts={props.facts} />
    </div>
  );
}

/** A column of call stacks, as wide as there is room. */
function stackColumn(
  title: string,
  rows: ArrayLike<number>,
  stacks: CallStacks | null,
): RowColumn {
  return {
    ...{ key: "stack", title, numeric: false, width: "minmax(120px, 1fr)" },
    cell: (row) => stackCell(rows[row] ?? -1, stacks),
  };
}

function stackCell(row: number, stacks: CallStacks | null): RowCell {
  if (stacks === null) return { text: "…", title: "Stacks are being read" };
  const text = stacks.stackLabel(row);
  return { text, title: row < 0 ? text : stacks.text(row) };
}

function Pinners({ state, stacks, byteUnit }: TablesProps) {
  const { pinners } = state;
  const rows = useMemo(() => Int32Array.from(pinners.stack, (_, i) => i), [pinners]);
  const most = Math.max(1, ...pinners.aloneBytes);
  const bytes = (value: number): RowCell => bytesCell(value, byteUnit);
  const alone = (value: number): RowCell => ({
    ...bytes(value),
    bar: { share: value / most, colour: "var(--warn)" },
  });
  const columns: readonly RowColumn[] = [
    stackColumn("Allocated at", pinners.stack, stacks),
    numberColumn(
      "alone",
      "Pins alone",
      "84px",
      pinners.aloneBytes,
      alone,
      "Free bytes of segments where no other line has a live block",
    ),
    numberColumn(
      "shared",
      "With others",
      "84px",
      pinners.sharedBytes,
      bytes,
      "Free bytes of segments where other lines have live blocks too",
    ),
    numberColumn(
      "live",
      "Its blocks",
      "76px",
      pinners.liveBytes,
      bytes,
      "Live bytes of its own in these segments",
    ),
    numberColumn("segments", "Segments", "64px", pinners.numSegments, countCell),
  ];
  return (
    <RowTable
      label="Lines that keep segments open"
      columns={columns}
      rows={rows}
      sort={null}
      empty="No segment is partly free: nothing is kept from going back."
      heightPx={tablePx(rows)}
    />
  );
}

function Pins({ state, stacks, byteUnit, segment, onSegment }: TablesProps) {
  const { pins } = state;
  const rows = useMemo(() => Int32Array.from(pins.segmentAddress, (_, i) => i), [pins]);
  const bytes = (value: number): RowCell => bytesCell(value, byteUnit);
  const columns: readonly RowColumn[] = [
    {
      key: "address",
      title: "Segment",
      numeric: false,
      width: "120px",
      cell: (row) => ({ text: addressText(pins.segmentAddress[row] ?? 0) }),
    },
    numberColumn("free", "Free", "76px", pins.freeBytes, bytes),
    numberColumn("live", "Live", "76px", pins.liveBytes, bytes),
    numberColumn("num", "Blocks", "52px", pins.numLive, countCell),
    stackColumn("Held most by", pins.stack, stacks),
  ];
  return (
    <RowTable
      label="Partly free segments"
      columns={columns}
      rows={rows}
      selected={segment === null ? null : pins.segmentAddress.indexOf(segment)}
      onSelect={(row) => onSegment(pins.segmentAddress[row] ?? 0)}
      sort={null}
      empty="No segment is partly free."
      heightPx={tablePx(rows)}
    />
  );
}

function Arenas({ state, facts, byteUnit }: TablesProps) {
  const { arenas } = state;
  const rows = useMemo(() => Int32Array.from(arenas.pool, (_, i) => i), [arenas]);
  const bytes = (key: string, title: string, hint: string, values: Float64Array) =>
    numberColumn(key, title, "76px", values, (one) => bytesCell(one, byteUnit), hint);
  const columns: readonly RowColumn[] = [
    {
      key: "arena",
      title: "Pool, stream, size class",
      numeric: false,
      width: "minmax(110px, 1fr)",
      cell: (row) => {
        const pool = facts.pools[arenas.pool[row] ?? -1] ?? "pool not recorded";
        const stream = facts.streams[arenas.stream[row] ?? -1] ?? "?";
        const kind = arenas.isLarge[row] === 1 ? "large" : "small";
        const streams = facts.streams.length > 1 ? `, stream ${stream}` : "";
        return { text: `${pool}${streams}, ${kind}` };
      },
    },
    bytes("reserved", "Reserved", "All its segments", arenas.reservedBytes),
    bytes("free", "Free", "All its free blocks", arenas.freeBytes),
    bytes(
      "largest",
      "Largest free",
      "The largest request that fits",
      arenas.largestFreeBytes,
    ),
    bytes(
      "releasable",
      "Can go back",
      "What torch.cuda.empty_cache() would give back to the device",
      arenas.releasableBytes,
    ),
  ];
  return (
    <RowTable
      label="Arenas"
      columns={columns}
      rows={rows}
      sort={null}
      empty="Nothing is reserved."
      heightPx={tablePx(rows)}
    />
  );
}

function Settings({ facts }: { readonly facts: HistoryFacts }) {
  const { settings } = facts;
  return (
    <details class="segments-settings">
      <summary>
        Allocator settings{" "}
        <span class="quiet">
          {settings.length === 0
            ? "not recorded in this file"
            : `${formatInteger(settings.length)} as torch names them`}
        </span>
      </summary>
      {settings.length === 0 ? (
        <p class="quiet">
          Snapshots of torch 2.1 and later hold them; this one does not.
        </p>
      ) : (
        <dl>
          {settings.map(({ name, value }) => (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                <code>{value === "" ? "not set" : value}</code>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </details>
  );
}

/** Who keeps a mostly free segment, in a few words, by its address. */
export function pinWords(
  state: SegmentsResponse,
  stacks: CallStacks | null,
  byteUnit: ByteUnit,
): ReadonlyMap<number, string> {
  const { pins } = state;
  return new Map(
    Array.from(pins.segmentAddress, (address, i) => {
      const num = pins.numLive[i] ?? 0;
      const blocks = num === 1 ? "one block" : `${formatInteger(num)} blocks`;
      const stack = pins.stack[i] ?? -1;
      const at = stacks === null || stack < 0 ? "" : `, ${stacks.stackPlace(stack)}`;
      const live = formatBytes(pins.liveBytes[i] ?? 0, byteUnit);
      return [address, `kept open by ${blocks} of ${live}${at}`];
    }),
  );
}

/** Lines that keep segments open, for files. */
export function pinnersTable(
  state: SegmentsResponse,
  stacks: CallStacks | null,
): Table {
  const { pinners } = state;
  return {
    numRows: pinners.stack.length,
    columns: [
      {
        name: "allocated_at",
        values: Array.from(pinners.stack, (stack) => stacks?.stackLabel(stack) ?? ""),
      },
      { name: "alone_bytes", values: pinners.aloneBytes },
      { name: "shared_bytes", values: pinners.sharedBytes },
      { name: "live_bytes", values: pinners.liveBytes },
      { name: "num_segments", values: pinners.numSegments },
    ],
  };
}

/** Below the map: reserved and free memory by kind, size and arena, and the settings. */

import { useMemo } from "preact/hooks";
import type {
  HistoryDevice,
  HistoryFacts,
  SegmentsResponse,
} from "../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../base/bytes";
import { bytesCell, numberColumn } from "../../../widgets/row_table/columns";
import { ROW_PX, RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import { FreeHistogram } from "./free_histogram";

const HEAD_PX = 40;
const MOST_PX = 244;

export interface BelowProps {
  readonly state: SegmentsResponse;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly byteUnit: ByteUnit;
}

export function Below(props: BelowProps) {
  const { state, byteUnit } = props;
  return (
    <div class="segments-below">
      <Reserved {...props} />
      <FreeHistogram
        sizes={state.freeSizes}
        request={state.request}
        byteUnit={byteUnit}
      />
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

function Reserved({ state, device, byteUnit }: BelowProps) {
  const { reservedBytes } = state;
  const parts = reservedParts(state);
  const capacity = device.capacityBytes;
  return (
    <section class="segments-card" aria-label="Reserved memory">
      <div class="panel-head">
        <h2>Reserved</h2>
        <b title={formatBytesExact(reservedBytes)}>
          {formatBytes(reservedBytes, byteUnit)}
        </b>
        {capacity !== null && (
          <span class="quiet">of {formatBytes(capacity, byteUnit)} of the device</span>
        )}
      </div>
      <div class="reserved-bar" aria-hidden="true">
        {parts.map(({ key, bytes }) => (
          <span
            key={key}
            class={`is-${key}`}
            style={{ width: `${(100 * bytes) / Math.max(reservedBytes, 1)}%` }}
          />
        ))}
      </div>
      <table class="reserved-parts">
        <tbody>
          {parts.map(({ key, label, hint, bytes }) => (
            <tr key={key} title={`${hint}. ${formatBytesExact(bytes)}`}>
              <td>
                <span class={`segment-swatch is-${key}`} /> {label}
              </td>
              <td class="num">{formatBytes(bytes, byteUnit)}</td>
              <td class="num quiet">{formatShare(bytes, reservedBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {parts.length === 0 && <p class="quiet">Nothing is reserved at this moment.</p>}
    </section>
  );
}

function Arenas({ state, facts, byteUnit }: BelowProps) {
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
      heightPx={Math.min(HEAD_PX + ROW_PX * rows.length, MOST_PX)}
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

/** What reserved memory is made of at a moment. Pure. */
export interface ReservedPart {
  readonly key: "requested" | "rounding" | "split" | "whole";
  readonly label: string;
  readonly hint: string;
  readonly bytes: number;
}

/** Parts that add up to `reservedBytes`; those of nothing are left out. */
function reservedParts(state: SegmentsResponse): readonly ReservedPart[] {
  const active = state.allocatedBytes + state.pendingBytes;
  const requested = Math.min(state.requestedBytes, active);
  const { freeBytes, numActive } = state.segments;
  let whole = 0;
  numActive.forEach((num, row) => {
    if (num === 0) whole += freeBytes[row] ?? 0;
  });
  const parts: ReservedPart[] = [
    {
      key: "requested",
      label: "live, as asked for",
      hint: "What the program asked for and still holds, or waits to be freed",
      bytes: requested,
    },
    {
      key: "rounding",
      label: "rounding",
      hint: "Blocks are larger than what was asked for: multiples of 512 bytes, or what was not worth splitting",
      bytes: active - requested,
    },
    {
      key: "split",
      label: "free, beside live blocks",
      hint: "inactive_split: fragmentation; it can serve requests that fit, but not go back to the device",
      bytes: Math.max(0, state.freeBytes - whole),
    },
    {
      key: "whole",
      label: "free segments",
      hint: "Wholly free: torch.cuda.empty_cache() gives these back",
      bytes: whole,
    },
  ];
  return parts.filter(({ bytes }) => bytes > 0);
}

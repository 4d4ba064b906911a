/** What pins free memory, free blocks by size, and memory by arena: tables of a moment. */

import { formatBytes, formatBytesExact, formatInteger } from "../../../base/bytes";
import {
  absentCell,
  barOf,
  bytesCell,
  countCell,
  longestOf,
  numberColumn,
  textColumn,
} from "../../../widgets/row_table/columns";
import { ROW_PX, RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import type { Shown } from "./params";

const HEAD_PX = 32;
const MOST_ROWS = 8;

export function Panels(props: Shown) {
  const { state, view, open } = props;
  const { byteUnit } = view;
  const { pinners, freeSizes, arenas, pinnedBytes } = state;
  const { capacityBytes } = open.device;
  const sizes = (row: number): number =>
    (freeSizes.numSplit[row] ?? 0) + (freeSizes.numWhole[row] ?? 0);
  return (
    <>
      <Panel
        title="What pins free memory"
        note={
          pinnedBytes > 0
            ? `${formatBytes(pinnedBytes, byteUnit)} by ${lines(pinners.stack.length)}`
            : ""
        }
        columns={pinnerColumns(props)}
        rows={pinners.stack.map((_, row) => row)}
        empty="Nothing: every free byte can be returned to the device."
      />
      <Panel
        title="Free blocks by size"
        note=""
        columns={sizeColumns(props)}
        rows={freeSizes.fromBytes
          .map((_, row) => row)
          .filter((row) => sizes(row) > 0)
          .reverse()}
        empty="No block is free."
      />
      <Panel
        title="Arenas"
        note={`${formatBytes(state.reservedBytes, byteUnit)} reserved${
          capacityBytes === null ? "" : ` of ${formatBytes(capacityBytes, byteUnit)}`
        }`}
        columns={arenaColumns(props)}
        rows={arenas.pool.map((_, row) => row)}
        empty="Nothing is reserved."
      />
    </>
  );
}

function lines(num: number): string {
  return num === 1 ? "one line" : `${formatInteger(num)} lines`;
}

function Panel(props: {
  readonly title: string;
  readonly note: string;
  readonly columns: readonly RowColumn[];
  readonly rows: ArrayLike<number>;
  readonly empty: string;
}) {
  const { title, rows } = props;
  const numRows = Math.min(Math.max(rows.length, 2), MOST_ROWS);
  return (
    <section aria-label={title}>
      <h2>
        {title} <span class="quiet">{props.note}</span>
      </h2>
      <RowTable
        label={title}
        columns={props.columns}
        rows={rows}
        sort={null}
        empty={props.empty}
        heightPx={HEAD_PX + ROW_PX * numRows}
        steady
      />
    </section>
  );
}

const SHARED =
  "Other lines have live blocks in the same segments or pages: nothing is returned before theirs are freed too";

/** Lines that pin free memory. */
export function pinnerColumns({
  state: { pinners, why },
  stacks,
  view,
}: Pick<Shown, "state" | "stacks" | "view">): readonly RowColumn[] {
  const most = longestOf(pinners.aloneBytes);
  const places = Array.from(pinners.stack, (stack) => stacks?.stackLabel(stack) ?? "…");
  const bytes = (value: number) => bytesCell(value, view.byteUnit);
  return [
    textColumn(
      "allocated_at",
      "Allocated at",
      "minmax(120px, 1fr)",
      places,
      undefined,
      (text, row) => {
        const stack = pinners.stack[row] ?? -1;
        const title = stack < 0 ? text : (stacks?.text(stack) ?? "");
        return { text, title, isCause: stack >= 0 && stack === why.culprit };
      },
    ),
    numberColumn(
      "alone_bytes",
      "Gain",
      "68px",
      pinners.aloneBytes,
      (value) =>
        value > 0
          ? { ...bytes(value), bar: barOf(value, most, "var(--warn)") }
          : absentCell(SHARED),
      "Free bytes that could be returned without its blocks: no other line has a live block in these segments, or pages of expandable ones",
    ),
    numberColumn(
      "shared_bytes",
      "With others",
      "76px",
      pinners.sharedBytes,
      bytes,
      "Free bytes that could be returned without its blocks and those of other lines",
    ),
    numberColumn(
      "live_bytes",
      "Its blocks",
      "76px",
      pinners.liveBytes,
      bytes,
      "Live bytes of its own in these segments",
    ),
    numberColumn("num_segments", "Segments", "64px", pinners.numSegments, countCell),
  ];
}

/** Powers of two; the request stands in the one it would need. */
function sizeColumns({ state, view }: Shown): readonly RowColumn[] {
  const { freeSizes: sizes, why } = state;
  const asked = why.askedBytes ?? NaN;
  const most = Math.max(longestOf(sizes.splitBytes), longestOf(sizes.wholeBytes));
  const bytes = (
    key: string,
    title: string,
    values: Float64Array,
    num: Int32Array,
    hint: string,
  ) =>
    numberColumn(
      key,
      title,
      "84px",
      values,
      (value, row) => ({
        ...bytesCell(value, view.byteUnit),
        note: num[row] === 0 ? "" : `× ${formatInteger(num[row] ?? 0)}`,
        bar: barOf(value, most, "var(--control-border)"),
      }),
      hint,
    );
  return [
    numberColumn(
      "from_bytes",
      "Blocks of",
      "minmax(88px, 1fr)",
      sizes.fromBytes,
      (from) => ({
        text: `${sizeName(from)} to ${sizeName(2 * from)}`,
        ...(asked >= from && asked < 2 * from
          ? { note: "requested", isCause: why.tone === "bad" }
          : {}),
      }),
      "Up to twice as large",
    ),
    bytes(
      "split_bytes",
      "Beside live",
      sizes.splitBytes,
      sizes.numSplit,
      "inactive_split: they serve requests that fit, and are not returned to the device",
    ),
    bytes(
      "whole_bytes",
      "Whole",
      sizes.wholeBytes,
      sizes.numWhole,
      "torch.cuda.empty_cache() returns these",
    ),
  ];
}

/** Powers of two are whole in their unit: `32 KiB`, not `32.0 KiB`. */
function sizeName(bytes: number): string {
  return formatBytes(bytes).replace(/\.0+ /, " ");
}

function arenaColumns({ state, open: { facts }, view }: Shown): readonly RowColumn[] {
  const { arenas } = state;
  const names = Array.from(arenas.pool, (pool, row) => {
    const stream = facts.streams[arenas.stream[row] ?? -1] ?? "?";
    const words = [
      arenas.isLarge[row] === 1 ? "large" : "small",
      facts.streams.length > 1 ? `stream ${stream}` : "",
      facts.pools.length > 1 ? `pool ${facts.pools[pool] ?? "not recorded"}` : "",
    ];
    return words.filter((word) => word !== "").join(", ");
  });
  const bytes = (key: string, title: string, values: Float64Array, hint: string) =>
    numberColumn(
      key,
      title,
      "66px",
      values,
      (one) => bytesCell(one, view.byteUnit),
      hint,
    );
  return [
    textColumn(
      "arena",
      "Requests",
      "minmax(48px, 1fr)",
      names,
      "No free block leaves its pool, stream and size class",
    ),
    numberColumn(
      "free_bytes",
      "Free",
      "66px",
      arenas.freeBytes,
      (free, row) => ({
        text: formatBytes(free, view.byteUnit),
        title: `${formatBytesExact(free)} in ${formatInteger(arenas.numFree[row] ?? 0)} blocks`,
      }),
      "All its free blocks",
    ),
    bytes(
      "largest_free_bytes",
      "Largest",
      arenas.largestFreeBytes,
      "The largest free block: the largest request that fits",
    ),
    bytes(
      "releasable_bytes",
      "Returnable",
      arenas.releasableBytes,
      "What torch.cuda.empty_cache() would return to the device",
    ),
    bytes("reserved_bytes", "Reserved", arenas.reservedBytes, "All its segments"),
  ];
}

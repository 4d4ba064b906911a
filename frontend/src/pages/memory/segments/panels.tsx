import { useState } from "preact/hooks";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import { parseSize } from "../../../model/block_search";
import { Icon } from "../../../widgets/icon/icon";
import {
  absentCell,
  barOf,
  bytesCell,
  countCell,
  longestOf,
  numberColumn,
  textColumn,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { ROW_PX, RowTable } from "../../../widgets/row_table/row_table";
import { TextButton } from "../../shared/controls/choices";
import type { OpenSegments } from "./params";

const HEAD_PX = 32;
const MOST_ROWS = 8;

export function Panels(props: OpenSegments) {
  const { state, view, open } = props;
  const { pinners, freeSizes, arenas, pinnedBytes } = state;
  const { capacityBytes } = open.device;
  const bytes = (of: number): string => formatBytes(of, view.byteUnit);
  const num = pinners.stack.length;
  const ofDevice = capacityBytes === null ? "" : ` of ${bytes(capacityBytes)}`;
  const isThere = (row: number): boolean =>
    (freeSizes.numSplit[row] ?? 0) + (freeSizes.numWhole[row] ?? 0) > 0;
  const panels = [
    {
      title: "What pins free memory",
      note: pinnedBytes > 0 ? `${bytes(pinnedBytes)} by ${counted(num, "line")}` : "",
      columns: pinnerColumns(props),
      rows: [...pinners.stack.keys()],
      empty: "Nothing: every free byte can be returned to the device.",
    },
    {
      title: "Free blocks by size",
      note: "",
      columns: sizeColumns(props),
      rows: [...freeSizes.fromBytes.keys()].filter(isThere).reverse(),
      empty: "No block is free.",
    },
    {
      title: "Arenas",
      note: `${bytes(state.reservedBytes)} reserved${ofDevice}`,
      columns: arenaColumns(props),
      rows: [...arenas.pool.keys()],
      empty: "Nothing is reserved.",
    },
  ];
  return panels.map(({ title, note, ...table }) => (
    <section key={title} aria-label={title}>
      <h2>
        {title} <span class="quiet">{note}</span>
      </h2>
      <RowTable
        {...table}
        label={title}
        sort={null}
        heightPx={
          HEAD_PX + ROW_PX * Math.min(Math.max(table.rows.length, 2), MOST_ROWS)
        }
        steady
      />
    </section>
  ));
}

function bytesColumns(
  unit: ByteUnit,
  width: string,
  of: readonly (readonly [string, string, ArrayLike<number>, string])[],
): readonly RowColumn[] {
  return of.map(([key, title, values, hint]) =>
    numberColumn(key, title, width, values, (one) => bytesCell(one, unit), hint),
  );
}

const GAIN =
  "Free bytes that could be returned without its blocks: no other line has a live block in these segments, or pages of expandable ones";
const SHARED =
  "Other lines have live blocks in the same segments or pages: nothing is returned before theirs are freed too";
const WITH_OTHERS =
  "Free bytes that could be returned without its blocks and those of other lines";
const SPLIT =
  "inactive_split: they serve requests that fit, and are not returned to the device";

export function pinnerColumns({
  state: { pinners, why },
  stacks,
  view: { byteUnit },
}: Pick<OpenSegments, "state" | "stacks" | "view">): readonly RowColumn[] {
  const { aloneBytes, sharedBytes, liveBytes, numSegments } = pinners;
  const most = longestOf(aloneBytes);
  const places = Array.from(pinners.stack, (stack) => stacks?.stackLabel(stack) ?? "…");
  const place = (text: string, row: number) => {
    const stack = pinners.stack[row] ?? -1;
    const title = stack < 0 ? text : (stacks?.text(stack) ?? "");
    return { text, title, isCause: stack >= 0 && stack === why.culprit };
  };
  const gain = (bytes: number) =>
    bytes > 0
      ? { ...bytesCell(bytes, byteUnit), bar: barOf(bytes, most, "var(--warn)") }
      : absentCell(SHARED);
  const wide = "minmax(120px, 1fr)";
  return [
    textColumn("allocated_at", "Allocated at", wide, places, undefined, place),
    numberColumn("alone_bytes", "Gain", "68px", aloneBytes, gain, GAIN),
    ...bytesColumns(byteUnit, "76px", [
      ["shared_bytes", "With others", sharedBytes, WITH_OTHERS],
      [
        "live_bytes",
        "Its blocks",
        liveBytes,
        "Live bytes of its own in these segments",
      ],
    ]),
    numberColumn("num_segments", "Segments", "64px", numSegments, countCell),
  ];
}

/** Powers of two; the request is in the row that it would need. */
function sizeColumns({ state, view }: OpenSegments): readonly RowColumn[] {
  const { freeSizes: sizes, why } = state;
  const asked = why.askedBytes ?? NaN;
  const most = Math.max(longestOf(sizes.splitBytes), longestOf(sizes.wholeBytes));
  const range = (from: number) => ({
    text: `${sizeName(from)} to ${sizeName(2 * from)}`,
    ...(asked >= from && asked < 2 * from
      ? { note: "requested", isCause: why.tone === "bad" }
      : {}),
  });
  const counted = (num: Int32Array) => (bytes: number, row: number) => ({
    ...bytesCell(bytes, view.byteUnit),
    note: num[row] === 0 ? "" : `× ${formatInteger(num[row] ?? 0)}`,
    bar: barOf(bytes, most, "var(--control-border)"),
  });
  const [split, whole] = [counted(sizes.numSplit), counted(sizes.numWhole)];
  const returned = "torch.cuda.empty_cache() returns these";
  const up = "Up to twice as large";
  return [
    numberColumn(
      "from_bytes",
      "Blocks of",
      "minmax(88px, 1fr)",
      sizes.fromBytes,
      range,
      up,
    ),
    numberColumn("split_bytes", "Beside live", "84px", sizes.splitBytes, split, SPLIT),
    numberColumn("whole_bytes", "Whole", "84px", sizes.wholeBytes, whole, returned),
  ];
}

/** Powers of two have no decimals: `32 KiB`, not `32.0 KiB`. */
export function sizeName(bytes: number, unit: ByteUnit = "auto"): string {
  return formatBytes(bytes, unit).replace(/\.0+ /, " ");
}

function arenaColumns({
  state,
  open: { facts },
  view,
}: OpenSegments): readonly RowColumn[] {
  const { arenas } = state;
  const { byteUnit } = view;
  const names = Array.from(arenas.pool, (pool, row) => {
    const stream = facts.streams[arenas.stream[row] ?? -1] ?? "?";
    const words = [
      arenas.isLarge[row] === 1 ? "large" : "small",
      facts.streams.length > 1 ? `stream ${stream}` : "",
      facts.pools.length > 1 ? `pool ${facts.pools[pool] ?? "not recorded"}` : "",
    ];
    return words.filter((word) => word !== "").join(", ");
  });
  const kept = "No free block leaves its pool, stream and size class";
  const largest = "The largest free block: the largest request that fits";
  const returned = "What torch.cuda.empty_cache() would return to the device";
  const free = (bytes: number, row: number) => ({
    text: formatBytes(bytes, byteUnit),
    title: `${formatBytesExact(bytes)} in ${counted(arenas.numFree[row] ?? 0, "block")}`,
  });
  return [
    textColumn("arena", "Requests", "minmax(48px, 1fr)", names, kept),
    numberColumn(
      "free_bytes",
      "Free",
      "66px",
      arenas.freeBytes,
      free,
      "All its free blocks",
    ),
    ...bytesColumns(byteUnit, "66px", [
      ["largest_free_bytes", "Largest", arenas.largestFreeBytes, largest],
      ["releasable_bytes", "Returnable", arenas.releasableBytes, returned],
      ["reserved_bytes", "Reserved", arenas.reservedBytes, "All its segments"],
    ]),
  ];
}

export function Why({ state, params, setParams, view }: OpenSegments) {
  const { tone, sentence, more, figures, lives } = state.why;
  const [life] = lives;
  return (
    <section class="column-tight segments-why" aria-label="Why memory cannot be used">
      <p class="row" role="status">
        {tone !== "plain" && (
          <span class={tone === "ok" ? "status-ok" : "tone-bad"}>
            <Icon name={tone === "ok" ? "check" : "warning"} />
          </span>
        )}
        <strong class={tone === "bad" ? "tone-bad" : ""}>{sentence}</strong>
      </p>
      <p>
        {more.join(" ")}{" "}
        {life !== undefined && (
          <TextButton press={() => setParams({ life, segment: null })}>
            Show it on the map
          </TextButton>
        )}
      </p>
      <dl class="row">
        {figures.map(({ name, bytes, hint, isCause }) => (
          <div key={name} title={`${hint}. ${formatBytesExact(bytes)}`}>
            <dt class="quiet small">{name}</dt>
            <dd class={isCause ? "tone-bad" : ""}>
              {formatBytes(bytes, view.byteUnit)}
            </dd>
          </div>
        ))}
      </dl>
      <Ask request={params.request} onRequest={(request) => setParams({ request })} />
    </section>
  );
}

function Ask({
  request,
  onRequest,
}: {
  /** Bytes of a hypothetical request; null: none. */
  readonly request: number | null;
  readonly onRequest: (bytes: number | null) => void;
}) {
  const [problem, setProblem] = useState("");
  const ask = (text: string): void => {
    const bytes = parseSize(text);
    const isEmpty = text.trim() === "";
    setProblem(isEmpty || bytes !== null ? "" : "Write a size like 512 MiB or 2g.");
    if (isEmpty || bytes !== null) onRequest(bytes === null ? null : Math.round(bytes));
  };
  return (
    <form
      class="row small"
      onSubmit={(event) => {
        event.preventDefault();
        const box = event.currentTarget.elements.namedItem("bytes");
        if (box instanceof HTMLInputElement) ask(box.value);
      }}
    >
      <label>
        <span class="quiet">Would</span>{" "}
        <input
          type="text"
          name="bytes"
          key={request ?? "none"}
          placeholder="512 MiB"
          autocomplete="off"
          defaultValue={request === null ? "" : sizeName(request)}
          aria-label="Bytes of a request"
        />{" "}
        <span class="quiet">fit at this moment?</span>
      </label>
      <button type="submit" class="button">
        Check
      </button>
      {request !== null && <TextButton press={() => ask("")}>Clear</TextButton>}
      {problem !== "" && (
        <span class="tone-bad" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}

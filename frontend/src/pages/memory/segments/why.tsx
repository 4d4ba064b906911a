/** Why memory cannot be used, above the map: a sentence, its figures, and who pins it. */

import { useMemo, useState } from "preact/hooks";
import type { HistoryFacts, SegmentsResponse } from "../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import { parseSize } from "../../../model/block_search";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import type { Table } from "../../../model/table";
import { Icon } from "../../../widgets/icon/icon";
import { bytesCell, countCell, numberColumn } from "../../../widgets/row_table/columns";
import {
  RowTable,
  type RowCell,
  type RowColumn,
} from "../../../widgets/row_table/row_table";
import { obstacleBlocks } from "../../../widgets/segment_map/overlay";
import { whyWords } from "./state/why";

const PINNERS_PX = 132;

export interface WhyProps {
  readonly state: SegmentsResponse;
  readonly facts: HistoryFacts;
  readonly stacks: CallStacks | null;
  /** Bytes somebody asks about; null: nobody does. */
  readonly request: number | null;
  readonly onRequest: (bytes: number | null) => void;
  readonly onLife: (life: number) => void;
  readonly byteUnit: ByteUnit;
}

export function Why(props: WhyProps) {
  const { state, facts, stacks, byteUnit, onLife } = props;
  const why = useMemo(
    () => whyWords({ state, facts, stacks, byteUnit }),
    [state, facts, stacks, byteUnit],
  );
  const obstacle = useMemo(() => {
    const [first, ...rest] = obstacleBlocks(state);
    const size = (block: number): number => state.blocks.size[block] ?? 0;
    const largest = rest.reduce((a, b) => (size(b) > size(a) ? b : a), first ?? -1);
    return state.blocks.life[largest] ?? -1;
  }, [state]);
  return (
    <section class="segments-why" aria-label="Why memory cannot be used">
      <div>
        <p class={`why-sentence is-${why.tone}`} role="status">
          {why.tone !== "plain" && (
            <Icon name={why.tone === "ok" ? "check" : "warning"} />
          )}
          <strong>{why.sentence}</strong>
        </p>
        <p class="why-more">
          {why.more.join(" ")}{" "}
          {obstacle >= 0 && (
            <button type="button" class="text-button" onClick={() => onLife(obstacle)}>
              Show it on the map
            </button>
          )}
        </p>
        <dl class="why-figures">
          {why.figures.map(({ name, bytes, hint, isCause }) => (
            <div key={name} title={`${hint}. ${formatBytesExact(bytes)}`}>
              <dt>{name}</dt>
              <dd class={isCause === true ? "is-bad" : ""}>
                {formatBytes(bytes, byteUnit)}
              </dd>
            </div>
          ))}
        </dl>
        <Ask {...props} />
      </div>
      <Pinners {...props} culprit={why.culprit} />
    </section>
  );
}

function Ask({ request, onRequest }: WhyProps) {
  const [problem, setProblem] = useState("");
  const ask = (text: string): void => {
    const bytes = parseSize(text);
    const isEmpty = text.trim() === "";
    setProblem(isEmpty || bytes !== null ? "" : "Write a size like 512 MiB or 2g.");
    if (isEmpty) onRequest(null);
    else if (bytes !== null) onRequest(Math.round(bytes));
  };
  return (
    <form
      class="why-ask"
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
          defaultValue={
            request === null ? "" : formatBytes(request).replace(/\.0+ /, " ")
          }
          aria-label="Bytes of a request"
        />{" "}
        <span class="quiet">fit at this moment?</span>
      </label>
      <button type="submit" class="button">
        Check
      </button>
      {request !== null && (
        <button type="button" class="text-button" onClick={() => ask("")}>
          Clear
        </button>
      )}
      {problem !== "" && (
        <span class="is-bad" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}

function Pinners(props: WhyProps & { readonly culprit: number }) {
  const { state, stacks, byteUnit, culprit } = props;
  const { pinners } = state;
  const rows = useMemo(() => {
    const all = Array.from(pinners.stack, (_, i) => i);
    const isCulprit = (row: number): boolean => pinners.stack[row] === culprit;
    return [...all.filter(isCulprit), ...all.filter((row) => !isCulprit(row))];
  }, [pinners, culprit]);
  const most = Math.max(1, ...pinners.aloneBytes);
  const bytes = (value: number): RowCell => bytesCell(value, byteUnit);
  const alone = (value: number): RowCell => ({
    ...bytes(value),
    bar: { share: value / most, colour: "var(--warn)" },
  });
  const columns: readonly RowColumn[] = [
    {
      key: "stack",
      title: "Allocated at",
      numeric: false,
      width: "minmax(120px, 1fr)",
      cell: (row) => {
        const stack = pinners.stack[row] ?? -1;
        if (stacks === null) return { text: "…", title: "Stacks are being read" };
        const text = stacks.stackLabel(stack);
        const title = stack < 0 ? text : stacks.text(stack);
        return { text, title, isCause: stack >= 0 && stack === culprit };
      },
    },
    numberColumn(
      "alone",
      "Gain",
      "76px",
      pinners.aloneBytes,
      alone,
      "Free bytes that could be returned without its blocks: no other line has a live block in these segments",
    ),
    numberColumn(
      "shared",
      "With others",
      "80px",
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
    <div>
      <h2>
        What pins free memory{" "}
        <span class="quiet">{formatInteger(rows.length)} lines</span>
      </h2>
      <RowTable
        label="Lines that pin free memory"
        columns={columns}
        rows={rows}
        sort={null}
        empty="Nothing: every free byte can be returned to the device."
        heightPx={PINNERS_PX}
      />
    </div>
  );
}

/** Lines that pin free memory, for files. */
export function pinnersTable(
  { pinners }: SegmentsResponse,
  stacks: CallStacks | null,
): Table {
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

/** A chosen range of events: what was allocated in it, what of that is gone, what stays. */

import { useMemo, useState } from "preact/hooks";
import { type Client, type Query } from "../../../api/client";
import type { AllocationRangeResponse } from "../../../api/types.gen";
import { useOnce } from "../../../api/use_once";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import { categoryColour } from "../../../model/category";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { stackMatches } from "../../../model/block_search";
import { momentText } from "../../../widgets/block_stack/axis";
import { RowTable, type RowColumn } from "../../../widgets/row_table/row_table";
import { numberColumn } from "../../../widgets/row_table/columns";
import { useSort } from "../../../widgets/row_table/use_sort";
import { Waiting } from "../../../widgets/state/state";
import { Drawer } from "../../shared/panels/drawer";

const TABLE_PX = 220;

export interface RangeDrawerProps {
  readonly client: Client;
  /** run, history, device, stream and pool. */
  readonly place: Query;
  readonly low: number;
  readonly high: number;
  readonly stacks: CallStacks | null;
  readonly found: Uint8Array | null;
  readonly litStack: number | null;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly onStack: (stack: number | null) => void;
  readonly onZoom: () => void;
  readonly onMoment: (moment: number) => void;
  readonly close: () => void;
}

export function RangeDrawer(props: RangeDrawerProps) {
  const { client, place, low, high } = props;
  const query = { ...place, e0: low, e1: high };
  const { data, stale, error } = useOnce(client, "allocation_range", query);
  const answer = stale ? null : data;
  const num = formatInteger(high - low);
  return (
    <Drawer
      label="The chosen range"
      title={`${num} events, from ${formatInteger(low)} to ${formatInteger(high - 1)}`}
      close={props.close}
      actions={
        <>
          <span class="quiet drawer-name">{answer !== null && spanWords(answer)}</span>
          <button type="button" class="text-button" onClick={props.onZoom}>
            Zoom to it
          </button>
        </>
      }
    >
      <Waiting error={error} hasContent={answer !== null} blocksPx={[TABLE_PX]} />
      {answer !== null && <Answer answer={answer} {...props} />}
    </Drawer>
  );
}

function spanWords({ first, last }: AllocationRangeResponse): string {
  const words: string[] = [];
  if (first.timeMs !== null && last.timeMs !== null) {
    words.push(formatSeconds((last.timeMs - first.timeMs) / 1000));
  }
  if (first.step !== null && last.step !== null) {
    words.push(
      first.step === last.step
        ? `step ${formatInteger(first.step)}`
        : `steps ${formatInteger(first.step)} to ${formatInteger(last.step)}`,
    );
  }
  return words.join(", ");
}

interface AnswerProps extends RangeDrawerProps {
  readonly answer: AllocationRangeResponse;
}

const BY_LIVE = { key: "live", descending: true };

function Answer(props: AnswerProps) {
  const { answer, byteUnit } = props;
  const number = (word: string, bytes: number, num: number) => (
    <div>
      <dt>{word}</dt>
      <dd title={formatBytesExact(bytes)}>
        <strong>{formatBytes(bytes, byteUnit)}</strong>{" "}
        <span class="quiet">{formatInteger(num)} blocks</span>
      </dd>
    </div>
  );
  return (
    <>
      <dl class="range-totals">
        {number("Allocated in it", answer.allocatedBytes, answer.numAllocated)}
        {number("of that freed in it", answer.freedBytes, answer.numFreed)}
        {number("still live at its end", answer.liveBytes, answer.numLive)}
        {number(
          "Freed that was there before",
          answer.earlierFreedBytes,
          answer.numEarlierFreed,
        )}
        <div>
          <dt>Highest in it</dt>
          <dd title={formatBytesExact(answer.highestBytes)}>
            <strong>{formatBytes(answer.highestBytes, byteUnit)}</strong>{" "}
            <button
              type="button"
              class="text-button"
              onClick={() => props.onMoment(answer.highestMoment)}
            >
              {momentText(answer.highestMoment)}
            </button>
          </dd>
        </div>
      </dl>
      <StackTable {...props} />
    </>
  );
}

function StackTable(props: AnswerProps) {
  const { answer, stacks, found, litStack, onStack } = props;
  const { theme, byteUnit } = props;
  const [word, setWord] = useState<string | null>(null);
  const columns = useMemo(
    () => columnsOf(answer, stacks, theme, byteUnit),
    [answer, stacks, theme, byteUnit],
  );
  const num = answer.stack.length;
  const { rows, ...sorting } = useSort(
    columns,
    num,
    BY_LIVE,
    word ?? undefined,
    setWord,
  );
  const shown = useMemo(
    () =>
      found === null
        ? rows
        : rows.filter((row) => stackMatches(found, answer.stack[row] ?? -1)),
    [rows, found, answer],
  );
  const selected = litStack === null ? -1 : answer.stack.indexOf(litStack);
  return (
    <RowTable
      label="Allocations of the range by stack"
      columns={columns}
      rows={shown}
      selected={selected < 0 ? null : selected}
      onSelect={(row) => {
        const stack = answer.stack[row] ?? -1;
        onStack(stack === litStack || stack < 0 ? null : stack);
      }}
      {...sorting}
      empty={
        found === null
          ? "Nothing was allocated in this range."
          : "Nothing of it matches."
      }
      heightPx={TABLE_PX}
    />
  );
}

function columnsOf(
  answer: AnswerProps["answer"],
  stacks: CallStacks | null,
  theme: AnswerProps["theme"],
  byteUnit: AnswerProps["byteUnit"],
): readonly RowColumn[] {
  const colourOf = (row: number): string => {
    const category = answer.categories[answer.stackCategory[row] ?? -1];
    return category === undefined ? "#888888" : categoryColour(theme, category);
  };
  const most = answer.stackAllocatedBytes.reduce((high, one) => Math.max(high, one), 1);
  const column = (key: string, title: string, bytes: Float64Array, num: Int32Array) =>
    numberColumn(key, title, "60px", bytes, (own, row) => ({
      text: formatBytes(own, byteUnit),
      title: `${formatBytesExact(own)}, ${formatInteger(num[row] ?? 0)} blocks`,
      bar: { share: own / most, colour: colourOf(row) },
    }));
  return [
    column(
      "allocated",
      "Allocated",
      answer.stackAllocatedBytes,
      answer.stackNumAllocated,
    ),
    column("freed", "Freed", answer.stackFreedBytes, answer.stackNumFreed),
    column("live", "Still live", answer.stackLiveBytes, answer.stackNumLive),
    {
      key: "place",
      title: "Allocated at",
      numeric: false,
      width: "minmax(96px, 1fr)",
      cell: (row) => {
        const stack = answer.stack[row] ?? -1;
        return {
          text: stacks?.stackLabel(stack) ?? "",
          title: stacks?.text(stack) ?? "",
          swatch: colourOf(row),
        };
      },
    },
  ];
}

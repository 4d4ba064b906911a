import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { AllocationRangeResponse } from "../../../api/types.gen";
import { useLive } from "../../../api/use_live";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import type { Theme } from "../../../base/tokens";
import { categoryColour } from "../../../model/category";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { momentText } from "../../../widgets/block_stack/axis";
import type { XRange } from "../../../widgets/plot/range";
import {
  bytesColumn,
  longestOf,
  type RowColumn,
} from "../../../widgets/row_table/columns";
import { Waiting } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { Drawer, Facts } from "../../shared/panels/drawer";
import { placeColumn, StackTable } from "./held/stack_table";
import type { Blocks } from "./use_blocks";

const TABLE_PX = 220;

export function RangeDrawer(props: { readonly of: Blocks; readonly range: XRange }) {
  const { of } = props;
  const { low, high } = props.range;
  const { stage, actions, picture } = of;
  const query = { ...of.place, e0: low, e1: high };
  const { data, stale, error } = useLive(of.view.client, "allocation_range", query);
  const answer = stale ? null : data;
  const { theme, byteUnit } = of.view;
  const columns = useMemo(
    () => (answer === null ? [] : columnsOf(answer, of.stacks, theme, byteUnit)),
    [answer, of.stacks, theme, byteUnit],
  );
  const ends = `from ${formatInteger(low)} to ${formatInteger(high - 1)}`;
  return (
    <Drawer
      label="The chosen range"
      title={`${counted(high - low, "event")}, ${ends}`}
      close={() => actions.set({ range: null })}
      actions={
        <>
          <span class="quiet small cut">{answer !== null && spanWords(answer)}</span>
          <TextButton
            press={() => {
              const { range: x } = picture;
              if (x !== null) stage.setView({ ...stage.view, x0: x.low, x1: x.high });
            }}
          >
            Zoom to it
          </TextButton>
        </>
      }
    >
      <Waiting error={error} hasContent={answer !== null} blocksPx={[TABLE_PX]} />
      {answer !== null && <Totals of={of} answer={answer} />}
      {answer !== null && (
        <StackTable
          of={of}
          columns={columns}
          stack={answer.stack}
          bytes={null}
          heightPx={TABLE_PX}
          label="Allocations of the range by stack"
          by="live"
          empty="Nothing was allocated in this range."
        />
      )}
    </Drawer>
  );
}

function spanWords({ first, last }: AllocationRangeResponse): string {
  const words: string[] = [];
  if (first.timeMs !== null && last.timeMs !== null) {
    words.push(formatSeconds((last.timeMs - first.timeMs) / 1000));
  }
  if (first.step !== null && last.step !== null) {
    const from = formatInteger(first.step);
    const to = formatInteger(last.step);
    words.push(from === to ? `step ${from}` : `steps ${from} to ${to}`);
  }
  return words.join(", ");
}

interface AnswerProps {
  readonly of: Blocks;
  readonly answer: AllocationRangeResponse;
}

function Totals({ of, answer }: AnswerProps) {
  const { byteUnit } = of.view;
  const blocks = (num: number) => <span class="quiet">{counted(num, "block")}</span>;
  const highest = (
    <TextButton press={() => of.actions.pin(answer.highestMoment)}>
      {momentText(answer.highestMoment)}
    </TextButton>
  );
  const said = (bytes: number, more: ComponentChildren) => (
    <span title={formatBytesExact(bytes)}>
      <b>{formatBytes(bytes, byteUnit)}</b> {more}
    </span>
  );
  const { earlierFreedBytes, numEarlierFreed } = answer;
  return (
    <Facts
      rows={[
        ["Allocated in it", said(answer.allocatedBytes, blocks(answer.numAllocated))],
        ["of that freed in it", said(answer.freedBytes, blocks(answer.numFreed))],
        ["still live at its end", said(answer.liveBytes, blocks(answer.numLive))],
        [
          "Freed that was there before",
          said(earlierFreedBytes, blocks(numEarlierFreed)),
        ],
        ["Highest in it", said(answer.highestBytes, highest)],
      ]}
    />
  );
}

function columnsOf(
  answer: AllocationRangeResponse,
  stacks: CallStacks | null,
  theme: Theme,
  byteUnit: ByteUnit,
): readonly RowColumn[] {
  const colours = answer.categories.map((one) => categoryColour(theme, one));
  const colourOf = (row: number): string =>
    colours[answer.stackCategory[row] ?? -1] ?? "#888888";
  const longest = longestOf(answer.stackAllocatedBytes);
  const column = (key: string, title: string, bytes: Float64Array, num: Int32Array) => {
    const more = (row: number): string => counted(num[row] ?? 0, "block");
    const bars = { colourOf, longest, more };
    return bytesColumn(key, title, "60px", bytes, byteUnit, bars);
  };
  const { stackAllocatedBytes, stackNumAllocated, stackFreedBytes } = answer;
  return [
    column("allocated", "Allocated", stackAllocatedBytes, stackNumAllocated),
    column("freed", "Freed", stackFreedBytes, answer.stackNumFreed),
    column("live", "Still live", answer.stackLiveBytes, answer.stackNumLive),
    placeColumn(answer.stack, stacks, colourOf),
  ];
}

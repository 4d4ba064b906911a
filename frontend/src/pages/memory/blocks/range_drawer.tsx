import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { AllocationRangeResponse, TableRows } from "../../../api/types.gen";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
} from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { groupColoursByName } from "../../../model/category";
import { momentText } from "../../../widgets/block_stack/axis";
import type { XRange } from "../../../widgets/plot/range";
import { Waiting } from "../../../widgets/state/state";
import { TextButton } from "../../shared/controls/choices";
import { Facts } from "../../../widgets/facts/facts";
import { Drawer } from "../../shared/panels/drawer";
import { numbersOf } from "../../shared/table/columns";
import { StackTable } from "./held/stack_table";
import type { Blocks } from "./use_blocks";

const TABLE_PX = 220;

export function RangeDrawer(props: { readonly of: Blocks; readonly range: XRange }) {
  const { of } = props;
  const { low, high } = props.range;
  const { stage, actions, picture } = of;
  const { data, stale, error } = of.inRange;
  const answer = stale ? null : data;
  const { theme } = of.view;
  const colours = useMemo(() => groupColoursByName(theme), [theme]);
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
          table={answer.table}
          colours={colours}
          titles={(key, row) => blocksTitle(answer.table, key, row)}
          heightPx={TABLE_PX}
        />
      )}
    </Drawer>
  );
}

/** `78,643,200 bytes, 12 blocks`. */
function blocksTitle(table: TableRows, key: string, row: number): string {
  if (!key.endsWith("_bytes")) return "";
  const count = numbersOf(table, `num_${key.replace("_bytes", "")}`);
  const bytes = numbersOf(table, key)[row] ?? NaN;
  return `${formatBytesExact(bytes)}, ${counted(count[row] ?? 0, "block")}`;
}

function spanWords({ first, last }: AllocationRangeResponse): string {
  const parts: string[] = [];
  if (first.timeMs !== null && last.timeMs !== null) {
    parts.push(formatSeconds((last.timeMs - first.timeMs) / 1000));
  }
  if (first.step !== null && last.step !== null) {
    const from = formatInteger(first.step);
    const to = formatInteger(last.step);
    parts.push(from === to ? `step ${from}` : `steps ${from} to ${to}`);
  }
  return parts.join(", ");
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
  const withNote = (bytes: number, more: ComponentChildren) => (
    <span title={formatBytesExact(bytes)}>
      <b>{formatBytes(bytes, byteUnit)}</b> {more}
    </span>
  );
  const { earlierFreedBytes, numEarlierFreed } = answer;
  return (
    <Facts
      rows={[
        [
          "Allocated in it",
          withNote(answer.allocatedBytes, blocks(answer.numAllocated)),
        ],
        ["of that freed in it", withNote(answer.freedBytes, blocks(answer.numFreed))],
        ["still live at its end", withNote(answer.liveBytes, blocks(answer.numLive))],
        [
          "Freed that was there before",
          withNote(earlierFreedBytes, blocks(numEarlierFreed)),
        ],
        ["Highest in it", withNote(answer.highestBytes, highest)],
      ]}
    />
  );
}

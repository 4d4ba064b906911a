/** One segment: what it is, since when it is there, and who brought it. */

import type { ComponentChildren } from "preact";
import type { HistoryFacts, SegmentsResponse } from "../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import {
  addressText,
  openedText,
  segmentKind,
} from "../../../widgets/segment_map/words";
import { Drawer } from "../../shared/panels/drawer";
import { StackFrames } from "../history/block_drawer";

export function SegmentDrawer(props: {
  readonly state: SegmentsResponse;
  readonly address: number;
  readonly facts: HistoryFacts;
  readonly stacks: CallStacks | null;
  /** Who keeps it, in words; empty: nobody does. */
  readonly pinned: string;
  readonly onMoment: (moment: number) => void;
  readonly byteUnit: ByteUnit;
  readonly close: () => void;
}) {
  const { state, address, facts, stacks, byteUnit } = props;
  const { segments } = state;
  const row = segments.address.indexOf(address);
  if (row < 0) {
    return (
      <Drawer
        label="The chosen segment"
        title={addressText(address)}
        close={props.close}
      >
        <p class="quiet">
          It is not there at this moment, or the filter leaves it out.
        </p>
      </Drawer>
    );
  }
  const bytes = (value: number | undefined): ComponentChildren => (
    <>
      {formatBytes(value ?? NaN, byteUnit)}{" "}
      <span class="quiet">{formatBytesExact(value ?? NaN)}</span>
    </>
  );
  const opened = segments.opened[row] ?? -1;
  const stack = segments.stack[row] ?? -1;
  const facts_: readonly (readonly [string, ComponentChildren])[] = [
    ["Size", bytes(segments.totalBytes[row])],
    ["Allocated", bytes(segments.allocatedBytes[row])],
    ["Pending free", bytes(segments.pendingBytes[row])],
    ["Free", bytes(segments.freeBytes[row])],
    ["Largest free", bytes(segments.largestFreeBytes[row])],
    ["Live blocks", formatInteger(segments.numActive[row] ?? 0)],
    ["Kind", segmentKind(state, row, facts)],
    [
      "Came with",
      opened < 0 ? (
        openedText(opened)
      ) : (
        <button
          type="button"
          class="text-button"
          onClick={() => props.onMoment(opened)}
        >
          {openedText(opened)}
        </button>
      ),
    ],
  ];
  return (
    <Drawer
      label="The chosen segment"
      title={`${formatBytes(segments.totalBytes[row] ?? 0, byteUnit)} segment`}
      actions={
        <span class="quiet drawer-name one-line">
          <code>{addressText(address)}</code> {props.pinned}
        </span>
      }
      close={props.close}
    >
      <div class="drawer-parts">
        <dl class="drawer-facts">
          {facts_
            .filter(
              ([name]) =>
                name !== "Pending free" || (segments.pendingBytes[row] ?? 0) > 0,
            )
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
        </dl>
        <div class="drawer-stack">
          {stack < 0 || stacks === null ? (
            <p class="quiet">No stack was recorded for the event that brought it.</p>
          ) : (
            <>
              <p class="drawer-siblings quiet">Brought by the allocation at</p>
              <StackFrames stacks={stacks} frames={stacks.of(stack)} all={false} />
            </>
          )}
        </div>
      </div>
    </Drawer>
  );
}

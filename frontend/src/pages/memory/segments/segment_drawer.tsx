/** One segment: what it is, since when it is there, and who brought it. */

import type { ComponentChildren } from "preact";
import type { SegmentsResponse } from "../../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import type { CallStacks } from "../../../model/stacks/call_stacks";
import { addressText, openedText, pinText } from "../../../widgets/segment_map/words";
import { Drawer } from "../../shared/panels/drawer";
import { StackFrames } from "../history/block_drawer";

export function SegmentDrawer(props: {
  readonly state: SegmentsResponse;
  readonly address: number;
  readonly stacks: CallStacks | null;
  readonly onMoment: (moment: number) => void;
  readonly byteUnit: ByteUnit;
  readonly close: () => void;
}) {
  const { state, address, stacks, byteUnit, close } = props;
  const { segments, kinds } = state;
  const row = segments.address.indexOf(address);
  if (row < 0) {
    return (
      <Drawer label="The chosen segment" title={addressText(address)} close={close}>
        <p class="quiet">
          It is not there at this moment, or the filter leaves it out.
        </p>
      </Drawer>
    );
  }
  const bytes = (value = NaN): ComponentChildren => (
    <>
      {formatBytes(value, byteUnit)}{" "}
      <span class="quiet">{formatBytesExact(value)}</span>
    </>
  );
  const opened = segments.opened[row] ?? -1;
  const stack = segments.stack[row] ?? -1;
  const frames = stack < 0 ? undefined : stacks?.of(stack);
  const pending = segments.pendingBytes[row] ?? 0;
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ["Size", bytes(segments.totalBytes[row])],
    ["Allocated", bytes(segments.allocatedBytes[row])],
    ["Pending", pending > 0 && bytes(pending)],
    ["Free", bytes(segments.freeBytes[row])],
    ["Largest", bytes(segments.largestFreeBytes[row])],
    ["Blocks", `${formatInteger(segments.numActive[row] ?? 0)} live`],
    ["Kind", kinds[segments.kind[row] ?? -1]],
    ["Pinned", pinText(state, address).replace("pinned ", "")],
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
      actions={<code class="drawer-name">{addressText(address)}</code>}
      close={close}
    >
      <div class="drawer-parts">
        <dl class="drawer-facts">
          {facts
            .filter(([, value]) => value !== false && value !== "")
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
        </dl>
        <div class="drawer-stack">
          {stacks === null || frames === undefined || frames.length === 0 ? (
            <p class="quiet">No stack was recorded for the event that brought it.</p>
          ) : (
            <>
              <p class="drawer-siblings quiet">Brought by the allocation at</p>
              <StackFrames stacks={stacks} frames={frames} all={false} />
            </>
          )}
        </div>
      </div>
    </Drawer>
  );
}

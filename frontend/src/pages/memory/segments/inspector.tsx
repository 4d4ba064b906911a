import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatBytes, formatBytesExact, formatInteger } from "../../../base/bytes";
import { addressText, openedText, pinText } from "./map/text";
import { TextButton } from "../../shared/controls/choices";
import { Facts } from "../../../widgets/facts/facts";
import { Drawer } from "../../shared/panels/drawer";
import { BlockDrawer, StackFrames } from "../history/block_drawer";
import { momentWords } from "../history/moment";
import { Panels } from "./panels";
import type { OpenSegments } from "./params";

/** Users do not notice an inspector with less of it in sight. */
const LEAST_SEEN_PX = 60;

export function Inspector(props: OpenSegments) {
  const { view, params, setParams, open, moment, go } = props;
  const { life, segment } = params;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    // Without room beside the map it is below.
    if (life === null && segment === null) return;
    const top = box.current?.getBoundingClientRect().top ?? 0;
    if (top > window.innerHeight - LEAST_SEEN_PX)
      box.current?.scrollIntoView({ block: "nearest" });
  }, [life, segment]);
  const inBlocks = (changes: Readonly<Record<string, string | null>>): void =>
    view.showPage("blocks", { ...momentWords(moment, open.momentPlace), ...changes });
  return (
    <aside ref={box} class="inspector" aria-label="Inspector">
      {life !== null ? (
        <BlockDrawer
          view={view}
          open={open}
          life={life}
          moment={moment}
          stacks={props.stacks}
          litStack={null}
          onLife={(next) => setParams({ life: next })}
          onMoment={go}
          onStack={(stack) => inBlocks({ stack: stack?.toString() ?? null })}
          links={
            <TextButton
              title="Show this block among all others, at this moment"
              press={() => inBlocks({ life: life.toString() })}
            >
              Show in Blocks
            </TextButton>
          }
        />
      ) : segment !== null ? (
        <SegmentDrawer address={segment} {...props} />
      ) : (
        params.part === "map" && <Panels {...props} />
      )}
    </aside>
  );
}

function SegmentDrawer(props: OpenSegments & { readonly address: number }) {
  const { state, address, stacks, view, go } = props;
  const { byteUnit } = view;
  const close = (): void => props.setParams({ segment: null });
  const { segments, kinds } = state;
  const row = segments.address.indexOf(address);
  if (row < 0) {
    return (
      <Drawer label="The chosen segment" title={addressText(address)} close={close}>
        <p class="quiet">It does not exist at this moment, or the filter hides it.</p>
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
  const pinned = pinText(state, address).replace("pinned ", "");
  const facts: readonly (readonly [string, ComponentChildren | null])[] = [
    ["Size", bytes(segments.totalBytes[row])],
    ["Allocated", bytes(segments.allocatedBytes[row])],
    ["Pending", pending > 0 ? bytes(pending) : null],
    ["Free", bytes(segments.freeBytes[row])],
    ["Largest", bytes(segments.largestFreeBytes[row])],
    ["Blocks", `${formatInteger(segments.numActive[row] ?? 0)} live`],
    ["Kind", kinds[segments.kind[row] ?? -1]],
    ["Pinned", pinned === "" ? null : pinned],
    [
      "Since",
      opened < 0 ? (
        openedText(opened)
      ) : (
        <TextButton press={() => go(opened)}>{openedText(opened)}</TextButton>
      ),
    ],
  ];
  return (
    <Drawer
      label="The chosen segment"
      title={`${formatBytes(segments.totalBytes[row] ?? 0, byteUnit)} segment`}
      actions={<code class="cut">{addressText(address)}</code>}
      close={close}
    >
      <Facts rows={facts} />
      {stacks === null || frames === undefined || frames.length === 0 ? (
        <p class="quiet">No stack was recorded for its reservation.</p>
      ) : (
        <>
          <p class="quiet">Reserved by the allocation at</p>
          <StackFrames stacks={stacks} frames={frames} all={false} />
        </>
      )}
    </Drawer>
  );
}

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type {
  AllocationBlockResponse,
  AllocationMoment,
  HistoryDevice,
} from "../../../api/types.gen";
import { useLive } from "../../../api/live/use_live";
import {
  counted,
  formatBytes,
  formatBytesExact,
  formatInteger,
} from "../../../base/bytes";
import { copyText } from "../../../base/browser";
import { formatSeconds } from "../../../base/durations";
import { categoryColour, categoryLabel } from "../../../model/category";
import { FRAME_KIND, type CallStacks } from "../../../model/stacks/call_stacks";
import { momentText } from "../../../widgets/block_stack/axis";
import { IconButton } from "../../../widgets/icon/icon";
import { Waiting } from "../../../widgets/state/state";
import { Check, TextButton } from "../../shared/controls/choices";
import { Facts, type FactRows } from "../../../widgets/facts/facts";
import { Drawer } from "../../shared/panels/drawer";
import { SourceMenu, SourcePlaceLink, whereOf } from "../../shared/panels/source_frame";
import type { ViewProps } from "../../shared/view_props";
import type { OpenHistory } from "./use_history";

interface BlockDrawerProps {
  readonly view: Pick<ViewProps, "client" | "run" | "theme" | "byteUnit">;
  readonly open: OpenHistory;
  readonly life: number;
  readonly moment: number | null;
  readonly stacks: CallStacks | null;
  readonly litStack: number | null;
  /** Another block; null: none. */
  readonly onLife: (life: number | null) => void;
  readonly onMoment: (moment: number) => void;
  readonly onStack: (stack: number | null) => void;
  readonly culprits?: ReadonlySet<string>;
  readonly links?: ComponentChildren;
}

export function BlockDrawer(props: BlockDrawerProps) {
  const { view, open, life, moment, onLife } = props;
  const { device, place } = open;
  const query = { ...place, life, moment };
  const { data, error } = useLive(view.client, "allocation_block", query);
  const block = data?.life === life ? data : null;
  const title =
    block === null ? (
      `Allocation ${formatInteger(life)}`
    ) : (
      <>
        {formatBytes(block.sizeBytes, view.byteUnit)}{" "}
        <span
          class="swatch"
          style={{ background: categoryColour(view.theme, block.category) }}
        />
        {block.tensor === "" ? categoryLabel(block.category) : block.tensor}
      </>
    );
  return (
    <Drawer
      label="The pinned block"
      title={title}
      close={() => onLife(null)}
      actions={
        <>
          {props.links}
          {typeof block?.stack === "number" && <SourceMenu opens="left" />}
          <IconButton
            label="Previous allocation"
            icon="left"
            onClick={() => onLife(Math.max(0, life - 1))}
          />
          <IconButton
            label="Next allocation"
            icon="right"
            onClick={() => onLife(Math.min(device.numAllocations - 1, life + 1))}
          />
        </>
      }
    >
      <Waiting error={error} hasContent={block !== null} blocksPx={[160]} />
      {block !== null && (
        <>
          <Source block={block} {...props} />
          <Facts rows={factsOf({ ...props, block })} />
          <Stack block={block} {...props} />
        </>
      )}
    </Drawer>
  );
}

interface PartProps extends BlockDrawerProps {
  readonly block: AllocationBlockResponse;
}

function Source({ block, stacks, culprits }: PartProps) {
  const { stack } = block;
  const frame = stack === null ? -1 : (stacks?.userFrame(stack) ?? -1);
  if (stack === null || stacks === null || frame < 0) return null;
  const module = stacks.module(stack);
  const label = stacks.frameLabel(frame);
  const isCulprit = culprits?.has(label) === true;
  return (
    <p class={isCulprit ? "is-culprit" : ""}>
      <SourcePlaceLink place={stacks.frame(frame)}>{label}</SourcePlaceLink>
      {module !== "" && <span class="quiet"> in {module}</span>}
    </p>
  );
}

/** Tag that our recorder writes: step and phase, shown elsewhere. */
const OWN_TAG = "memboard {";

function factsOf({ block, open, view, onMoment }: PartProps): FactRows {
  const { device, facts } = open;
  const { sizeBytes, blockBytes, isRounded, born, freed, gone } = block;
  const rounding = blockBytes - sizeBytes;
  const bytes = (value: number) => (
    <span title={formatBytesExact(value)}>{formatBytes(value, view.byteUnit)}</span>
  );
  const hex = (address: string) => <code>0x{address.replace(/^0x/, "")}</code>;
  const withNote = (value: ComponentChildren, more: string) => (
    <>
      {value} <span class="quiet">{more}</span>
    </>
  );
  const momentOf = (of: AllocationMoment) => {
    const step = of.step === null ? "" : `step ${formatInteger(of.step)}`;
    const button = (
      <TextButton title="Go to this moment" press={() => onMoment(of.moment)}>
        {momentText(of.moment)}
      </TextButton>
    );
    return withNote(button, [step, of.phase].filter((word) => word !== "").join(", "));
  };
  const wasAsked = freed !== null && freed.moment >= 0;
  const waited = wasAsked && gone !== null ? gone.moment - freed.moment : 0;
  const ended =
    gone !== null ? (
      <>
        {momentOf(gone)}
        {waited > 0 && (
          <span class="quiet"> requested {eventsWords(waited)} before</span>
        )}
      </>
    ) : freed === null ? (
      "still live at the end"
    ) : (
      <>
        requested{wasAsked ? " at" : ""}{" "}
        {withNote(momentOf(freed), "and not completed by the end")}
      </>
    );
  const segment = (
    <>
      {hex(block.segmentAddress)}{" "}
      {block.segmentBytes !== null && bytes(block.segmentBytes)}{" "}
      <span class="quiet">at the end</span>
    </>
  );
  const { evidence, stream, pool, tag } = block;
  const why = evidence === "" ? "nothing says what it is" : evidence;
  const more =
    rounding > 0 ? `rounding adds ${formatBytes(rounding, view.byteUnit)}` : "";
  return [
    [
      isRounded ? "Size, as rounded" : "Asked for",
      withNote(bytes(sizeBytes), formatBytesExact(sizeBytes)),
    ],
    ["Block size", isRounded ? null : withNote(bytes(blockBytes), more)],
    ["Category", withNote(categoryLabel(block.category), why)],
    ["Allocated", born === null ? "before the first event" : momentOf(born)],
    ["Freed", ended],
    ["Lived", lived(block, device)],
    ["Stream", stream === null ? null : (facts.streams[stream] ?? "")],
    ["Pool", pool === null ? null : (facts.pools[pool] ?? "")],
    ["Address", withNote(hex(block.address), block.name)],
    ["Segment", block.segmentAddress === "" ? null : segment],
    ["Tag", tag === "" || tag.startsWith(OWN_TAG) ? null : tag],
    ["Annotated", block.annotations.length === 0 ? null : block.annotations.join("; ")],
    ["Compiled", block.compileContext === "" ? null : block.compileContext],
  ];
}

function eventsWords(num: number): string {
  return counted(num, "event");
}

function lived({ born, gone }: AllocationBlockResponse, device: HistoryDevice): string {
  const first = born?.moment ?? 0;
  const last = gone?.moment ?? device.numEvents;
  const events = eventsWords(Math.max(0, last - first));
  const open = born === null || gone === null ? "at least " : "";
  const begin = born === null ? device.firstMs : born.timeMs;
  const end = gone === null ? device.lastMs : gone.timeMs;
  if (begin === null || end === null) return `${open}${events}`;
  return `${open}${events}, ${formatSeconds((end - begin) / 1000)}`;
}

function Stack({ block, stacks, view, litStack, onStack }: PartProps) {
  const [all, setAll] = useState(false);
  const [copied, setCopied] = useState<boolean | null>(null);
  const { stack, numSiblings } = block;
  if (stack === null) {
    return <p class="row small quiet">No stack was recorded for it.</p>;
  }
  return (
    <>
      <p class="row small">
        <button
          type="button"
          class="text-button"
          aria-pressed={litStack === stack}
          onClick={() => onStack(litStack === stack ? null : stack)}
        >
          {counted(numSiblings, "other block")} of this stack live,{" "}
          {formatBytes(block.siblingBytes, view.byteUnit)}
        </button>
        <span class="quiet">{formatInteger(block.numEver)} over the whole history</span>
        <IconButton
          label="Copy the stack"
          icon={copied === true ? "check" : "copy"}
          onClick={() => {
            void copyText(stacks?.text(stack) ?? "").then(setCopied);
          }}
        />
        <Check
          label="torch’s and native frames"
          checked={all}
          onChange={() => setAll(!all)}
        />
      </p>
      {stacks !== null && (
        <StackFrames stacks={stacks} frames={stacks.of(stack)} all={all} />
      )}
    </>
  );
}

export function StackFrames({
  stacks,
  frames,
  all,
}: {
  readonly stacks: CallStacks;
  readonly frames: Int32Array;
  readonly all: boolean;
}) {
  const most = all ? FRAME_KIND.native : FRAME_KIND.library;
  const every = Array.from(frames, (row) => stacks.frame(row));
  const kept = every.filter(({ kind }) => kind <= most);
  return (
    <ol class="drawer-frames" tabIndex={0} aria-label="Stack, innermost first">
      {(kept.length > 0 ? kept : every).map((frame, i) => (
        <li key={i} class={frame.kind === FRAME_KIND.user ? "is-own" : ""}>
          <span>{frame.name}</span>
          <SourcePlaceLink place={frame}>{whereOf(frame)}</SourcePlaceLink>
        </li>
      ))}
    </ol>
  );
}

/** One allocation: its sizes, its life, its stack, its siblings. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Client, type Query } from "../../../api/client";
import type {
  AllocationBlockResponse,
  AllocationMoment,
  HistoryDevice,
  HistoryFacts,
} from "../../../api/types.gen";
import { useOnce } from "../../../api/use_once";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../../base/bytes";
import { copyText } from "../../../base/clipboard";
import { formatSeconds } from "../../../base/durations";
import { categoryColour, categoryLabel } from "../../../model/category";
import type { Theme } from "../../../base/tokens";
import { FRAME_KIND, type CallStacks } from "../../../model/stacks/call_stacks";
import { momentText } from "../../../widgets/block_stack/axis";
import { ChartButton } from "../../../widgets/line_chart/chart_button";
import { Waiting } from "../../../widgets/state/state";
import { Drawer } from "../../shared/panels/drawer";
import { SourceMenu, SourcePlaceLink, whereOf } from "../../shared/panels/source_frame";

export interface BlockDrawerProps {
  readonly client: Client;
  /** run, history and device. */
  readonly place: Query;
  readonly life: number;
  readonly moment: number | null;
  readonly facts: HistoryFacts;
  readonly device: HistoryDevice;
  readonly stacks: CallStacks | null;
  readonly litStack: number | null;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly onLife: (life: number) => void;
  readonly onMoment: (moment: number) => void;
  readonly onStack: (stack: number | null) => void;
  readonly close: () => void;
  /** Source lines that a finding names. */
  readonly culprits?: ReadonlySet<string>;
  /** Other pages that show it. */
  readonly links?: ComponentChildren;
}

export function BlockDrawer(props: BlockDrawerProps) {
  const { client, place, life, moment, device, byteUnit } = props;
  const query = { ...place, life, moment };
  const live = useOnce(client, "allocation_block", query);
  const block = live.data?.life === life ? live.data : null;
  const title =
    block === null ? (
      `Allocation ${formatInteger(life)}`
    ) : (
      <>
        {formatBytes(block.sizeBytes, byteUnit)}{" "}
        <span
          class="block-swatch"
          style={{ background: categoryColour(props.theme, block.category) }}
        />{" "}
        {block.tensor === "" ? categoryLabel(block.category) : block.tensor}
      </>
    );
  return (
    <Drawer
      label="The pinned block"
      title={title}
      close={props.close}
      actions={
        <>
          <span class="quiet drawer-name">
            {block === null ? "" : <code>{block.name}</code>}
          </span>
          {props.links}
          {typeof block?.stack === "number" && <SourceMenu opens="left" />}
          <ChartButton
            label="Previous allocation"
            icon="left"
            onClick={() => props.onLife(Math.max(0, life - 1))}
          />
          <ChartButton
            label="Next allocation"
            icon="right"
            onClick={() => props.onLife(Math.min(device.numAllocations - 1, life + 1))}
          />
        </>
      }
    >
      <Waiting error={live.error} hasContent={block !== null} blocksPx={[160]} />
      {block !== null && (
        <div class="drawer-parts">
          <Source block={block} {...props} />
          <Facts block={block} {...props} />
          <Stack block={block} {...props} />
        </div>
      )}
    </Drawer>
  );
}

/** What our own recorder writes: step and phase, which stand elsewhere. */
const OWN_TAG = "memboard {";

interface PartProps extends BlockDrawerProps {
  readonly block: AllocationBlockResponse;
}

/** The line that allocated it. */
function Source({ block, stacks, culprits }: PartProps) {
  const { stack } = block;
  const frame = stack === null ? -1 : (stacks?.userFrame(stack) ?? -1);
  if (stack === null || stacks === null || frame < 0) return null;
  const module = stacks.module(stack);
  const label = stacks.frameLabel(frame);
  const isCulprit = culprits?.has(label) === true;
  return (
    <p class={isCulprit ? "block-source is-culprit" : "block-source"}>
      <SourcePlaceLink place={stacks.frame(frame)}>{label}</SourcePlaceLink>
      {module !== "" && <span class="quiet"> in {module}</span>}
    </p>
  );
}

function Facts(props: PartProps) {
  const { block, byteUnit, facts, device } = props;
  const { sizeBytes, blockBytes, isRounded } = block;
  const rounding = blockBytes - sizeBytes;
  const bytes = (value: number): ComponentChildren => (
    <span title={formatBytesExact(value)}>{formatBytes(value, byteUnit)}</span>
  );
  const row = (name: string, value: ComponentChildren) => (
    <div key={name}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
  return (
    <dl class="drawer-facts">
      {row(
        isRounded ? "Size, as rounded" : "Asked for",
        <>
          {bytes(sizeBytes)} <span class="quiet">{formatBytesExact(sizeBytes)}</span>
        </>,
      )}
      {!isRounded &&
        row(
          "Takes",
          <>
            {bytes(blockBytes)}
            {rounding > 0 && (
              <span class="quiet">
                {" "}
                rounding adds {formatBytes(rounding, byteUnit)}
              </span>
            )}
          </>,
        )}
      {row(
        "Category",
        <>
          {categoryLabel(block.category)}{" "}
          <span class="quiet">
            {block.evidence === "" ? "nothing says what it is" : block.evidence}
          </span>
        </>,
      )}
      {row(
        "Allocated",
        block.born === null ? (
          "before the first event"
        ) : (
          <Moment of={block.born} {...props} />
        ),
      )}
      {row("Freed", <Freed {...props} />)}
      {row("Lived", lived(block, device))}
      {block.stream !== null && row("Stream", facts.streams[block.stream] ?? "")}
      {block.pool !== null && row("Pool", facts.pools[block.pool] ?? "")}
      {row("Address", <code>0x{block.address.replace(/^0x/, "")}</code>)}
      {block.segmentAddress !== "" &&
        row(
          "Segment",
          <>
            <code>0x{block.segmentAddress.replace(/^0x/, "")}</code>{" "}
            {block.segmentBytes !== null && bytes(block.segmentBytes)}{" "}
            <span class="quiet">at the end</span>
          </>,
        )}
      {block.tag !== "" && !block.tag.startsWith(OWN_TAG) && row("Tag", block.tag)}
      {block.compileContext !== "" && row("Compiled", block.compileContext)}
    </dl>
  );
}

function Moment({
  of,
  onMoment,
}: {
  readonly of: AllocationMoment;
  readonly onMoment: (moment: number) => void;
}) {
  const step = of.step === null ? "" : `step ${formatInteger(of.step)}`;
  const where = [step, of.phase].filter((word) => word !== "").join(", ");
  return (
    <>
      <button
        type="button"
        class="text-button"
        title="Go to this moment"
        onClick={() => onMoment(of.moment)}
      >
        {momentText(of.moment)}
      </button>
      {where !== "" && <span class="quiet"> {where}</span>}
    </>
  );
}

function Freed(props: PartProps) {
  const { freed, gone } = props.block;
  if (gone === null) {
    return freed === null ? (
      <>still live at the end</>
    ) : (
      <>
        requested at <Moment of={freed} {...props} />
        <span class="quiet"> and not completed by the end</span>
      </>
    );
  }
  const waited = freed !== null && freed.moment < gone.moment;
  return (
    <>
      <Moment of={gone} {...props} />
      {waited && (
        <span class="quiet">
          {" "}
          requested {eventsWords(gone.moment - freed.moment)} before
        </span>
      )}
    </>
  );
}

function eventsWords(num: number): string {
  return num === 1 ? "1 event" : `${formatInteger(num)} events`;
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

function Stack(props: PartProps) {
  const { block, stacks, byteUnit, litStack, onStack } = props;
  const [all, setAll] = useState(false);
  const [copied, setCopied] = useState<boolean | null>(null);
  const { stack } = block;
  const frames = stack === null || stacks === null ? null : stacks.of(stack);
  return (
    <div class="drawer-stack">
      <p class="drawer-siblings">
        {stack === null ? (
          <span class="quiet">No stack was recorded for it.</span>
        ) : (
          <>
            <button
              type="button"
              class="text-button"
              aria-pressed={litStack === stack}
              onClick={() => onStack(litStack === stack ? null : stack)}
            >
              {formatInteger(block.numSiblings)} other{" "}
              {block.numSiblings === 1 ? "block" : "blocks"} of this stack live,{" "}
              {formatBytes(block.siblingBytes, byteUnit)}
            </button>
            <span class="quiet">
              {formatInteger(block.numEver)} over the whole history
            </span>
            <ChartButton
              label="Copy the stack"
              icon={copied === true ? "check" : "copy"}
              onClick={() => {
                void copyText(stacks?.text(stack) ?? "").then(setCopied);
              }}
            />
            <label>
              <input
                type="checkbox"
                checked={all}
                onChange={(event) => setAll(event.currentTarget.checked)}
              />{" "}
              torch’s and native frames
            </label>
          </>
        )}
      </p>
      {frames !== null && stacks !== null && (
        <StackFrames stacks={stacks} frames={frames} all={all} />
      )}
    </div>
  );
}

/** A stack as lines that open in an editor, the user’s own first to be seen. */
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
  const kept = Array.from(frames).filter((row) => stacks.frame(row).kind <= most);
  const shown = kept.length > 0 ? kept : Array.from(frames);
  return (
    <ol class="drawer-frames" tabIndex={0} aria-label="Stack, innermost first">
      {shown.map((row, i) => {
        const frame = stacks.frame(row);
        return (
          <li key={i} class={frame.kind === FRAME_KIND.user ? "is-own" : ""}>
            <span>{frame.name}</span>
            <SourcePlaceLink place={frame}>{whereOf(frame)}</SourcePlaceLink>
          </li>
        );
      })}
    </ol>
  );
}

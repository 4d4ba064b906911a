/** What is under the pointer: from the picture alone, and where it rests all of it. */

import type { ComponentChildren } from "preact";
import type { AllocationGroup } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  type ByteUnit,
} from "../../base/bytes";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { ChartTip } from "../tip/chart_tip";
import { momentText, type BlockAxis } from "./axis";
import { groupLabel } from "./colours";
import type { BlockHover } from "./inputs";
import { GUTTER } from "./paint";
import type { BlockFacts } from "./tile";
import type { BlockDetail } from "./types";

export interface BlockCardProps {
  readonly hover: BlockHover;
  readonly axis: BlockAxis;
  readonly numEvents: number;
  readonly stacks: CallStacks | null;
  /** By group and band of the hovered tile. */
  readonly colours: readonly string[];
  readonly bandColours: readonly string[];
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Of the block that the pointer rests on; null: not known. */
  readonly detail: BlockDetail | null;
  /** What a click does. */
  readonly hint: string;
}

/** Room the card needs below the pointer, and at rest. */
const CARD_PX = 190;
const DETAIL_PX = 340;

export function BlockCard(props: BlockCardProps) {
  const { hover, widthPx, heightPx } = props;
  const { at, block, rest } = hover;
  if (block === null && rest === null) return null;
  const room = detailOf(props) === null ? CARD_PX : DETAIL_PX;
  const place = {
    leftPx: GUTTER.left + at.x,
    topPx: GUTTER.top + at.y,
    flip: at.x > widthPx / 2,
    above: at.y + room > heightPx && at.y > heightPx / 2,
  };
  return (
    <ChartTip at={place} belowPx={10} kind="block-card">
      {block !== null && <OfBlock block={block} {...props} />}
      {rest !== null && <OfRest rest={rest} {...props} />}
    </ChartTip>
  );
}

function Title(props: {
  readonly bytes: number;
  readonly byteUnit: ByteUnit;
  readonly group: AllocationGroup | undefined;
  readonly colour: string | undefined;
}) {
  return (
    <div class="block-card-title">
      <span
        class="block-swatch"
        style={{ background: props.colour ?? "transparent" }}
      />
      <strong>{formatBytes(props.bytes, props.byteUnit)}</strong>
      <span>{props.group === undefined ? "" : groupLabel(props.group)}</span>
    </div>
  );
}

function OfBlock({ block, ...props }: BlockCardProps & { readonly block: BlockFacts }) {
  const { stacks, axis, numEvents, hover, byteUnit } = props;
  const frame = stacks?.userFrame(block.stack) ?? -1;
  const module = stacks?.module(block.stack) ?? "";
  const detail = detailOf(props);
  const row = (name: string, value: ComponentChildren) => (
    <tr key={name}>
      <td class="chart-note">{name}</td>
      <td>{value}</td>
    </tr>
  );
  return (
    <>
      <Title
        bytes={block.size}
        byteUnit={byteUnit}
        group={hover.tile.answer.groups[block.group]}
        colour={props.colours[block.group]}
      />
      {stacks !== null && (
        <div class="block-card-place">
          {frame >= 0 ? stacks.frameLabel(frame) : stacks.stackLabel(block.stack)}
          {module !== "" && <span class="chart-note"> in {module}</span>}
        </div>
      )}
      <table>
        <tbody>
          {row("exactly", formatBytesExact(block.size))}
          {row(
            "born",
            block.born < 0 ? "before the first event" : bornText(block, axis),
          )}
          {row("freed", freedText(block, numEvents))}
          {detail?.rows.map(([name, value]) => row(name, value))}
        </tbody>
      </table>
      {detail !== null && detail.frames.length > 1 && (
        <ol class="block-card-frames">
          {detail.frames.map((label, i) => (
            <li key={i}>{label}</li>
          ))}
          {detail.numMore > 0 && (
            <li class="chart-note">and {formatInteger(detail.numMore)} more</li>
          )}
        </ol>
      )}
      <div class="chart-note">{props.hint}</div>
    </>
  );
}

/** Only of the very block: the pointer may have gone on meanwhile. */
function detailOf({
  hover,
  detail,
}: Pick<BlockCardProps, "hover" | "detail">): BlockDetail | null {
  return detail !== null && detail.life === hover.block?.life ? detail : null;
}

function bornText(block: BlockFacts, axis: BlockAxis): string {
  const ms = axis.msOf(block.born);
  const at = Number.isFinite(ms) ? ` (${(ms / 1000).toFixed(3)} s)` : "";
  return `${momentText(block.born)}${at}`;
}

/** Free is asked for first, and done when every stream has gone on. */
export function freedText(
  { born, freed, gone }: Pick<BlockFacts, "born" | "freed" | "gone">,
  numEvents: number,
): string {
  if (gone >= numEvents) {
    return freed >= numEvents
      ? "still live at the end"
      : "asked for, not done at the end";
  }
  const lasted = born < 0 ? "" : `, after ${formatInteger(gone - born)} events`;
  const waited =
    freed >= 0 && freed < gone ? ` (asked for at ${formatInteger(freed)})` : "";
  return `${momentText(gone)}${lasted}${waited}`;
}

function OfRest({
  rest,
  hover,
  bandColours,
  byteUnit,
}: BlockCardProps & { readonly rest: NonNullable<BlockHover["rest"]> }) {
  return (
    <>
      <Title
        bytes={rest.bytes}
        byteUnit={byteUnit}
        group={hover.tile.answer.bands[rest.band]}
        colour={bandColours[rest.band]}
      />
      <div>
        Blocks smaller than a pixel, each below{" "}
        {formatBytes(hover.tile.answer.minBytes, byteUnit)}. Zoom in for them; on the
        axis the wheel zooms the height.
      </div>
    </>
  );
}

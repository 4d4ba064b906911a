/** What is under the pointer, in two lines: the inspector says the rest of it. */

import type { AllocationGroup } from "../../api/types.gen";
import { formatBytes, formatInteger, type ByteUnit } from "../../base/bytes";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { categoryLabel } from "../../model/category";
import { ChartTip } from "../tip/chart_tip";
import { momentText } from "./axis";
import { groupLabel } from "./colours";
import type { BlockHover } from "./inputs";
import { GUTTER } from "./paint";
import type { BlockFacts } from "./tile";

export interface BlockCardProps {
  readonly hover: BlockHover;
  readonly stacks: CallStacks | null;
  /** By group and band of the hovered tile. */
  readonly colours: readonly string[];
  readonly bandColours: readonly string[];
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
}

/** Room the card needs below the pointer. */
const CARD_PX = 64;

export function BlockCard(props: BlockCardProps) {
  const { hover, widthPx, heightPx, stacks, byteUnit } = props;
  const { at, block, rest, tile } = hover;
  if (block === null && rest === null) return null;
  const place = {
    leftPx: GUTTER.left + at.x,
    topPx: GUTTER.top + at.y,
    flip: at.x > widthPx / 2,
    above: at.y + CARD_PX > heightPx,
  };
  return (
    <ChartTip at={place} belowPx={10} kind="block-card">
      {block !== null && (
        <>
          <Title
            bytes={block.size}
            byteUnit={byteUnit}
            name={nameOf(tile.answer.groups[block.group])}
            colour={props.colours[block.group]}
          />
          <div class="block-card-place">{stacks?.stackLabel(block.stack)}</div>
        </>
      )}
      {rest !== null && (
        <>
          <Title
            bytes={rest.bytes}
            byteUnit={byteUnit}
            name={nameOf(tile.answer.bands[rest.band])}
            colour={props.bandColours[rest.band]}
          />
          <div class="chart-note">
            in blocks below {formatBytes(tile.answer.minBytes, byteUnit)}; zoom in for
            them
          </div>
        </>
      )}
    </ChartTip>
  );
}

/** Of a line the category: the line itself stands below. */
function nameOf(group: AllocationGroup | undefined): string {
  if (group === undefined) return "";
  return group.category === null ? groupLabel(group) : categoryLabel(group.category);
}

function Title(props: {
  readonly bytes: number;
  readonly byteUnit: ByteUnit;
  readonly name: string;
  readonly colour: string | undefined;
}) {
  return (
    <div class="block-card-title">
      <span
        class="block-swatch"
        style={{ background: props.colour ?? "transparent" }}
      />
      <strong>{formatBytes(props.bytes, props.byteUnit)}</strong>
      <span>{props.name}</span>
    </div>
  );
}

/** Free is asked for first, and done when every stream has gone on. */
export function freedText(
  { born, freed, gone }: Pick<BlockFacts, "born" | "freed" | "gone">,
  numEvents: number,
): string {
  if (gone >= numEvents) {
    return freed >= numEvents
      ? "still live at the end"
      : "free requested, not completed by the end";
  }
  const lasted = born < 0 ? "" : `, after ${formatInteger(gone - born)} events`;
  const waited =
    freed >= 0 && freed < gone ? ` (requested at ${formatInteger(freed)})` : "";
  return `${momentText(gone)}${lasted}${waited}`;
}

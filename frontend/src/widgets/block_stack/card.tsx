/** What is under the pointer, in two lines: the inspector says the rest of it. */

import { formatBytes } from "../../base/bytes";
import { categoryLabel } from "../../model/category";
import { ChartTip } from "../tip/chart_tip";
import { groupLabel, tileColours } from "./colours";
import type { BlockController } from "./controller";
import { GUTTER } from "./paint";
import type { BlockPicture } from "./picture";

/** Room the card needs below the pointer. */
const CARD_PX = 64;

export function BlockCard(props: {
  readonly controller: BlockController;
  readonly of: BlockPicture;
}) {
  const { controller } = props;
  const { stacks, byteUnit } = props.of;
  const { value: hover } = controller.hovered;
  if (hover === null) return null;
  const { at, block, rest, tile } = hover;
  const { groups, bands, minBytes } = tile.answer;
  const bytes = block?.size ?? rest?.bytes;
  if (bytes === undefined) return null;
  const { colours, bandColours } = tileColours(tile, props.of);
  const group = block === null ? bands[rest?.band ?? -1] : groups[block.group];
  const colour = block === null ? bandColours[rest?.band ?? -1] : colours[block.group];
  const { widthPx, heightPx } = controller.size;
  const place = {
    leftPx: GUTTER.left + at.x,
    topPx: GUTTER.top + at.y,
    flip: at.x > widthPx / 2,
    above: at.y + CARD_PX > heightPx,
  };
  // Of a line the category, where it is known: the line itself stands below.
  const { category = null, stack = null } = group ?? {};
  const name =
    group === undefined || (stack !== null && category === "unknown")
      ? ""
      : category === null
        ? groupLabel(group)
        : categoryLabel(category);
  return (
    <ChartTip at={place} belowPx={10} kind="block-card">
      <div>
        <span class="swatch" style={{ background: colour ?? "transparent" }} />
        <b>{formatBytes(bytes, byteUnit)}</b> {name}
      </div>
      {block === null ? (
        <div class="quiet">
          in blocks below {formatBytes(minBytes, byteUnit)}; zoom in for them
        </div>
      ) : (
        <div class="cut">{stacks?.stackLabel(block.stack)}</div>
      )}
    </ChartTip>
  );
}

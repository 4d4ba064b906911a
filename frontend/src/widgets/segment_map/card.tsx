/** What is under the pointer on the map. */

import type { ReadonlySignal } from "@preact/signals";
import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryLabel } from "../../model/category";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { ChartTip } from "../tip/chart_tip";
import { blockFill, fillColour, fills, STATE, type SegmentFill } from "./fills";
import type { MapHover } from "./segment_map";
import { segmentKind, STATE_WORDS } from "./words";

const CARD_PX = 60;

export interface SegmentCardProps {
  readonly hover: ReadonlySignal<MapHover | null>;
  readonly answer: SegmentsResponse;
  readonly facts: Pick<HistoryFacts, "pools" | "streams">;
  readonly stacks: CallStacks | null;
  readonly fill: SegmentFill;
  readonly theme: Theme;
  readonly byteUnit: ByteUnit;
  readonly widthPx: number;
  readonly heightPx: number;
}

export function SegmentCard(props: SegmentCardProps) {
  const at = props.hover.value;
  const { answer, stacks, byteUnit, widthPx, heightPx } = props;
  const { segments, blocks } = answer;
  if (at === null || at.row >= segments.address.length) return null;
  const { row, block } = at;
  if (block >= blocks.state.length) return null;
  const place = {
    leftPx: at.x,
    topPx: at.y,
    flip: at.x > widthPx / 2,
    above: at.y + CARD_PX > heightPx && at.y > heightPx / 2,
  };
  const isWhole = segments.numActive[row] === 0;
  const bytes = (value: number | undefined): string =>
    formatBytes(value ?? 0, byteUnit);
  const state = block < 0 ? -1 : (blocks.state[block] ?? 0);
  const stack = block < 0 ? -1 : (blocks.stack[block] ?? -1);
  const category = answer.categories[blocks.category[block] ?? -1];
  const words =
    state < 0
      ? "segment"
      : isWhole
        ? "free segment"
        : state === STATE.free
          ? "free, inactive split"
          : STATE_WORDS[state];
  const look = { fill: props.fill, isWhole };
  const known = fills(props.theme, answer.categories);
  const colour =
    block < 0 ? "transparent" : fillColour(blockFill(known, answer, block, look));
  const at_ = stack >= 0 && stacks !== null ? stacks.stackLabel(stack) : "";
  return (
    <ChartTip at={place} belowPx={12} kind="segment-card">
      <div class="segment-card-title">
        <span class="segment-swatch" style={{ background: colour }} />
        <b>{bytes(block < 0 ? segments.totalBytes[row] : blocks.size[block])}</b>{" "}
        {words}
        {state > STATE.free && category !== undefined && (
          <span class="quiet">{categoryLabel(category)}</span>
        )}
      </div>
      <div class="segment-card-place">
        {at_ === ""
          ? `in ${bytes(segments.totalBytes[row])}, ${bytes(segments.freeBytes[row])} free, ${segmentKind(answer, row, props.facts)}`
          : at_}
      </div>
    </ChartTip>
  );
}

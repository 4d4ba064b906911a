/** What is under the pointer on the map. */

import type { ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { HistoryFacts, SegmentsResponse } from "../../api/types.gen";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryLabel } from "../../model/category";
import type { CallStacks } from "../../model/stacks/call_stacks";
import { ChartTip } from "../tip/chart_tip";
import { blockFill, fillColour, fills, STATE, type SegmentFill } from "./fills";
import type { MapHover } from "./segment_map";
import { addressText, openedText, segmentKind, STATE_WORDS } from "./words";

const CARD_PX = 190;

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
  const { answer, facts, stacks, byteUnit, widthPx, heightPx } = props;
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
  const size = block < 0 ? (segments.totalBytes[row] ?? 0) : (blocks.size[block] ?? 0);
  const state = block < 0 ? -1 : (blocks.state[block] ?? 0);
  const stack = block < 0 ? -1 : (blocks.stack[block] ?? -1);
  const requested = block < 0 ? 0 : (blocks.requestedBytes[block] ?? 0);
  const address =
    (segments.address[row] ?? 0) + (block < 0 ? 0 : (blocks.offset[block] ?? 0));
  const category = answer.categories[blocks.category[block] ?? -1];
  const line = (name: string, value: ComponentChildren) => (
    <tr>
      <td class="chart-note">{name}</td>
      <td>{value}</td>
    </tr>
  );
  const colour =
    block < 0
      ? "transparent"
      : fillColour(
          blockFill(fills(props.theme, answer.categories), answer, block, {
            fill: props.fill,
            isWhole,
          }),
        );
  return (
    <ChartTip at={place} belowPx={12} kind="segment-card">
      <div class="chart-tip-x segment-card-title">
        <span class="segment-swatch" style={{ background: colour }} />
        {formatBytes(size, byteUnit)}{" "}
        {state < 0
          ? "segment"
          : isWhole
            ? "free segment"
            : state === STATE.free
              ? "free, inactive split"
              : STATE_WORDS[state]}
        {state > STATE.free && category !== undefined && (
          <span class="quiet">{categoryLabel(category)}</span>
        )}
      </div>
      {stack >= 0 && stacks !== null && (
        <div class="segment-card-place">{stacks.stackLabel(stack)}</div>
      )}
      <table>
        <tbody>
          {line("at", <code>{addressText(address)}</code>)}
          {line("size", formatBytesExact(size))}
          {requested > 0 &&
            requested < size &&
            line(
              "asked for",
              `${formatBytesExact(requested)}, rounding adds ${formatBytes(size - requested, byteUnit)}`,
            )}
          {line(
            "segment",
            `${formatBytes(segments.totalBytes[row] ?? 0, byteUnit)}, ${formatBytes(segments.freeBytes[row] ?? 0, byteUnit)} free`,
          )}
          {line("", segmentKind(answer, row, facts))}
          {line("came with", openedText(segments.opened[row] ?? -1))}
        </tbody>
      </table>
      {state > STATE.free && <div class="chart-note">Click: stack and life.</div>}
    </ChartTip>
  );
}

/** The colours' names, what each holds at the cursor, and which one is looked at. */

import { useMemo } from "preact/hooks";
import { formatBytes, formatBytesExact, type ByteUnit } from "../../base/bytes";
import { groupLabel } from "./colours";
import type { BlockController } from "./controller";
import { groupBytes, type BlockTile, type GroupBytes } from "./tile";

export interface LegendProps {
  readonly controller: BlockController | null;
  /** The tile of everything: its groups are listed. */
  readonly whole: BlockTile;
  readonly colours: readonly string[];
  /** The pinned moment, read where no cursor is; null: the highest. */
  readonly moment: number | null;
  /** Bytes by group at that moment, where they are known exactly. */
  readonly exact: ReadonlyMap<string, number> | null;
  readonly byteUnit: ByteUnit;
  /** Key of the group looked at; "" for all. */
  readonly only: string;
  readonly onOnly: (key: string) => void;
}

/** Sums are made once for each tile. */
const SUMS = new WeakMap<BlockTile, GroupBytes>();

function sumsOf(tile: BlockTile): GroupBytes {
  let sums = SUMS.get(tile);
  if (sums === undefined) {
    sums = groupBytes(tile);
    SUMS.set(tile, sums);
  }
  return sums;
}

export function BlockLegend(props: LegendProps) {
  const { controller, whole, colours, byteUnit, only, onOnly, moment } = props;
  const { groups, peakMoment } = whole.answer;
  const resting = useMemo(
    () => ({ tile: whole, column: whole.columnOf(moment ?? peakMoment) }),
    [whole, moment, peakMoment],
  );
  const hover = controller?.hovered.value ?? null;
  const { tile, column } = hover ?? resting;
  const exact = hover === null ? props.exact : null;
  const { drawn, thin } = sumsOf(tile);
  const bytesOf = (key: string): number => {
    if (exact !== null) return exact.get(key) ?? 0;
    // A tile of a part may list its groups in another order.
    const group = tile.answer.groups.findIndex((one) => one.key === key);
    return group < 0 ? 0 : (drawn[group * tile.numColumns + column] ?? 0);
  };
  const thinBytes = thin[column] ?? 0;
  const { occurs } = sumsOf(whole);
  return (
    <ul class="block-legend">
      {[...groups.keys()].reverse().map((i) => {
        const group = groups[i];
        // Blocks of a group may be too thin to be drawn in the picture of everything.
        const seen = occurs[i] === 1 || (group?.bytes ?? 0) > 0 || group?.key === only;
        if (group === undefined || !seen) return null;
        const own = bytesOf(group.key);
        const alone = only === group.key;
        return (
          <li key={group.key}>
            <button
              type="button"
              aria-pressed={alone}
              class={only !== "" && !alone ? "is-dimmed" : ""}
              title={`${groupLabel(group)}: ${formatBytesExact(own)}. ${
                alone ? "Click for all" : "Click to look at it alone"
              }`}
              onClick={() => onOnly(alone ? "" : group.key)}
            >
              <span
                class="block-swatch"
                style={{ background: colours[i] ?? "transparent" }}
              />
              <span class="block-legend-name">{groupLabel(group)}</span>
              <span class="chart-value">{formatBytes(own, byteUnit)}</span>
            </button>
          </li>
        );
      })}
      {thinBytes > 0 && (
        <li class="block-legend-thin quiet" title={formatBytesExact(thinBytes)}>
          <span class="block-swatch is-hatched" />
          too small to draw
          <span class="chart-value">{formatBytes(thinBytes, byteUnit)}</span>
        </li>
      )}
    </ul>
  );
}

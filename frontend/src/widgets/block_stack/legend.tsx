/** The colours' names, what each holds at the cursor, and which one is looked at. */

import { formatBytes, formatBytesExact } from "../../base/bytes";
import { groupLabel, tileColours } from "./colours";
import type { BlockController } from "./controller";
import type { BlockPicture } from "./picture";
import { groupBytes, type BlockTile, type GroupBytes } from "./tile";

/** Sums are made once for each tile. */
const SUMS = new WeakMap<BlockTile, GroupBytes>();

function sumsOf(tile: BlockTile): GroupBytes {
  const sums = SUMS.get(tile) ?? groupBytes(tile);
  SUMS.set(tile, sums);
  return sums;
}

export function BlockLegend(props: {
  readonly controller: BlockController | null;
  readonly of: BlockPicture;
  /** The tile of everything: its groups are listed. */
  readonly whole: BlockTile;
  /** The moment that is read where no cursor is. */
  readonly anchor: number;
  /** Bytes by group at that moment, where they are known exactly. */
  readonly exact: ReadonlyMap<string, number> | null;
  readonly onOnly: (key: string) => void;
}) {
  const { controller, whole, onOnly, anchor } = props;
  const { byteUnit, only } = props.of;
  const { groups } = whole.answer;
  const { colours } = tileColours(whole, props.of);
  const hover = controller?.hovered.value ?? null;
  const { tile, column } = hover ?? { tile: whole, column: whole.columnOf(anchor) };
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
  // Blocks of a group may be too thin to be drawn in the picture of everything.
  const shown = groups.flatMap((group, i) =>
    occurs[i] === 1 || group.bytes > 0 || group.key === only
      ? [{ group, key: group.key, colour: colours[i] ?? "transparent" }]
      : [],
  );
  return (
    <ul class="plot-legend block-legend">
      {shown.reverse().map(({ group, key, colour }) => {
        const own = bytesOf(key);
        const alone = only === key;
        const hint = alone ? "Click for all" : "Click to look at it alone";
        return (
          <li key={key}>
            <button
              type="button"
              aria-pressed={alone}
              class={only !== "" && !alone ? "is-dimmed" : ""}
              title={`${groupLabel(group)}: ${formatBytesExact(own)}. ${hint}`}
              onClick={() => onOnly(alone ? "" : key)}
            >
              <span class="swatch" style={{ background: colour }} />
              <span class="cut">{groupLabel(group)}</span>
              <span class="chart-value">{formatBytes(own, byteUnit)}</span>
            </button>
          </li>
        );
      })}
      {thinBytes > 0 && (
        <li class="quiet" title={formatBytesExact(thinBytes)}>
          <span class="swatch is-hatched" />
          too small to draw
          <span class="chart-value">{formatBytes(thinBytes, byteUnit)}</span>
        </li>
      )}
    </ul>
  );
}

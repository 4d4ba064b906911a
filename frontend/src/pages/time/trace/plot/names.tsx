/** The tracks' names at the left: they scroll with them, and fold them. */

import type { ByteUnit } from "../../../../base/bytes";
import { Icon } from "../../../../widgets/icon/icon";
import { LANE_PX, type Layout, type Row } from "./layout";
import { counterValue } from "../words";

export const NAMES_PX = 212;

const INDENT_PX = { rank: 4, process: 10, track: 18 } as const;

export function Names(props: {
  readonly layout: Layout;
  readonly byteUnit: ByteUnit;
  readonly onFold: (key: string) => void;
}) {
  return (
    <div class="trace-names" style={{ width: `${NAMES_PX}px` }} aria-label="Tracks">
      {props.layout.rows.map((row) => (
        <Name key={row.key} row={row} onFold={props.onFold} byteUnit={props.byteUnit} />
      ))}
    </div>
  );
}

function Name({
  row,
  onFold,
  byteUnit,
}: {
  readonly row: Row;
  readonly onFold: (key: string) => void;
  readonly byteUnit: ByteUnit;
}) {
  const { kind, key, label, hint, y, heightPx, folded, foldable } = row;
  return (
    <div
      class={`trace-name is-${kind}`}
      style={{
        top: `${y}px`,
        height: `${heightPx}px`,
        paddingLeft: `${INDENT_PX[kind]}px`,
      }}
      title={hint === "" ? label : `${label}\n${hint}`}
    >
      {foldable ? (
        <button
          type="button"
          class="trace-fold"
          aria-expanded={!folded}
          onClick={() => onFold(key)}
        >
          <Icon name={folded ? "right" : "down"} sizePx={12} />
          <span>{label}</span>
        </button>
      ) : (
        <span class="trace-plain">{label}</span>
      )}
      {row.track?.kind === "counter" && heightPx > 2 * LANE_PX && (
        <span class="trace-most" title="The highest of all its values">
          up to {counterValue(row.track.most, row.track, byteUnit)}
        </span>
      )}
    </div>
  );
}

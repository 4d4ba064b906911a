/** What lies under the pointer. */

import type { TraceReduced, TraceTrack } from "../../../../api/types.gen";
import type { PointPx } from "../../../../render/gestures";
import { placeOfMark, type Mark } from "../tiles/instants";
import type { Row } from "./layout";
import type { Place } from "./place";
import type { Picture } from "../paint/quads";
import type { Piece } from "../tiles/tile";

export interface HoveredCounter {
  readonly track: TraceTrack;
  readonly label: string;
  readonly values: readonly {
    readonly series: string;
    readonly value: number | null;
    readonly reduced: TraceReduced;
  }[];
}

export interface Hover {
  readonly at: PointPx;
  readonly ns: number;
  readonly piece: Piece | null;
  readonly mark: Mark | null;
  readonly counter: HoveredCounter | null;
}

export function placeOf(hover: Pick<Hover, "piece" | "mark"> | null): Place | null {
  if (hover?.mark) return placeOfMark(hover.mark);
  if (!hover?.piece) return null;
  const { trackKey, level, startNs, durationNs } = hover.piece;
  return { trackKey, level, startNs, endNs: startNs + durationNs };
}

/** A counter's values at a time; null where the row is none. */
export function counterAt(
  picture: Picture | null,
  row: Row | null,
  ns: number,
): HoveredCounter | null {
  if (row?.track?.kind !== "counter") return null;
  const tile = picture?.tiles.findLast(
    (one) => one.lines.has(row.trackKey) && one.lowNs <= ns && one.highNs >= ns,
  );
  const lines = tile?.lines.get(row.trackKey) ?? [];
  return {
    track: row.track,
    label: row.label,
    values: lines.map((line) => ({
      series: line.series,
      value: tile?.valueAt(line, ns) ?? null,
      reduced: line.reduced,
    })),
  };
}

/** The neighbour on its level of a slice, of those drawn; `fromNs`: where none is chosen. */
export function pieceBeside(
  picture: Picture | null,
  from: Place | null,
  sign: 1 | -1,
  fromNs: number,
): Piece | null {
  const tile = picture?.tiles.at(-1);
  if (tile === undefined) return null;
  let best: Piece | null = null;
  for (let i = 0; i < tile.numPieces; i += 1) {
    const start = tile.start[i] ?? 0;
    if ((tile.answer.count[i] ?? 1) > 1) continue;
    const lane = tile.answer.lanes[tile.lane[i] ?? 0];
    if (from !== null) {
      if (lane?.track !== from.trackKey || lane.level !== from.level) continue;
      if (sign > 0 ? start <= from.startNs : start >= from.startNs) continue;
    } else if (start < fromNs) continue;
    const closer =
      best === null || (sign > 0 ? start < best.startNs : start > best.startNs);
    if (closer) best = tile.piece(i);
    if (from === null && best !== null) break;
  }
  return best;
}

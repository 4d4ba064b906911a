/** What is under the pointer, said beside it. */

import type { ReadonlySignal } from "@preact/signals";
import { formatInteger, formatShare, type ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { familyColour } from "../../profiled/family_colours";
import { FAMILY_WORDS, type Picture } from "../paint/quads";
import { KIND_WORDS, type Mark, type Piece, placeOfMark } from "../tiles/tile";
import { markColour } from "../paint/lines";
import { counterValue, formatNs, formatNsExact } from "../words";
import type { TraceReduced, TraceTrack } from "../../../../api/types.gen";
import type { PointPx } from "../../../../render/gestures";
import type { Row, Place } from "./layout";

export function PlotTip(props: {
  readonly hover: ReadonlySignal<Hover | null>;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly byteUnit: ByteUnit;
  readonly theme: Theme;
}) {
  const hover = props.hover.value;
  if (hover === null) return null;
  const { at, piece, mark, counter } = hover;
  if (piece === null && mark === null && counter === null) return null;
  const side =
    at.x > props.widthPx / 2
      ? { right: `${props.widthPx - at.x + 14}px` }
      : { left: `${at.x + 14}px` };
  const height =
    at.y > props.heightPx * 0.6
      ? { bottom: `${props.heightPx - at.y + 12}px` }
      : { top: `${at.y + 16}px` };
  return (
    <div class="chart-tip trace-tip" style={{ ...side, ...height }} aria-hidden="true">
      {mark !== null && <OfMark mark={mark} theme={props.theme} />}
      {piece !== null && <OfPiece piece={piece} theme={props.theme} />}
      {counter !== null && (
        <>
          <div class="chart-tip-x">{counter.label}</div>
          <div>
            {counter.values
              .map(({ series, value, reduced }) =>
                [
                  ...(counter.values.length > 1 ? [series] : []),
                  counterValue(value, counter.track, props.byteUnit),
                  ...(reduced === "exact" ? [] : [REDUCED_WORDS[reduced]]),
                ].join(" "),
              )
              .join(", ")}
          </div>
        </>
      )}
    </div>
  );
}

const REDUCED_WORDS = {
  highest: "highest of this pixel",
  mean: "mean of this pixel",
} as const;

/** A name, and one line about it; a click says the rest. */
function TwoLines(props: {
  readonly colour: string;
  readonly name: string;
  readonly line: string;
}) {
  return (
    <>
      <div class="chart-tip-x">
        <span class="row-table-swatch" style={{ background: props.colour }} />
        {props.name}
      </div>
      <div>{props.line}</div>
    </>
  );
}

function OfMark({ mark, theme }: { readonly mark: Mark; readonly theme: Theme }) {
  const { name, kind, count, timeNs } = mark;
  const line =
    count > 1
      ? `and ${formatInteger(count - 1)} more within a few pixels: click to zoom in`
      : `${formatNs(timeNs)} · ${KIND_WORDS[kind]}`;
  return <TwoLines colour={markColour(theme, kind)} name={name} line={line} />;
}

function OfPiece({ piece, theme }: { readonly piece: Piece; readonly theme: Theme }) {
  const { name, family, count, durationNs, busyNs } = piece;
  const colour = familyColour(theme, family);
  if (count > 1) {
    const busy = formatShare(busyNs, durationNs);
    return (
      <TwoLines
        colour={colour}
        name={`${formatInteger(count)} slices, the longest ${name}`}
        line={`busy ${busy} of ${formatNs(durationNs)}: click to zoom in`}
      />
    );
  }
  const line = `${formatNs(durationNs)} (${formatNsExact(durationNs)}) · ${FAMILY_WORDS[family]}`;
  return <TwoLines colour={colour} name={name} line={line} />;
}

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

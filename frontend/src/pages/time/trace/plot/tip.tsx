/** What is under the pointer, said beside it. */

import type { ReadonlySignal } from "@preact/signals";
import { formatInteger, formatShare, type ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { familyColour } from "../../profiled/family_colours";
import { FAMILY_WORDS } from "../paint/colours";
import type { Hover } from "./hovering";
import { KIND_WORDS, type Mark } from "../tiles/instants";
import { markColour } from "../paint/instants";
import type { Piece } from "../tiles/tile";
import { counterValue, formatNs, formatNsExact } from "../words";

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
          {counter.values.map(({ series, value, reduced }) => (
            <div key={series}>
              {counter.values.length > 1 && `${series} `}
              {counterValue(value, counter.track, props.byteUnit)}
              {reduced !== "exact" && (
                <span class="quiet"> {REDUCED_WORDS[reduced]}</span>
              )}
            </div>
          ))}
        </>
      )}
    </div>
  );
}

const REDUCED_WORDS = {
  highest: "highest of this pixel",
  mean: "mean of this pixel",
} as const;

function OfMark({ mark, theme }: { readonly mark: Mark; readonly theme: Theme }) {
  const { name, kind, count, timeNs } = mark;
  return (
    <>
      <div class="chart-tip-x">
        <span
          class="row-table-swatch"
          style={{ background: markColour(theme, kind) }}
        />
        {name}
      </div>
      <div>
        {formatNs(timeNs)} <span class="quiet">({formatNsExact(timeNs)})</span>
      </div>
      {count > 1 ? (
        <div class="chart-note">
          and {formatInteger(count - 1)} more within a few pixels. Click: zoom in.
        </div>
      ) : (
        <div class="quiet">{KIND_WORDS[kind]}</div>
      )}
    </>
  );
}

function OfPiece({ piece, theme }: { readonly piece: Piece; readonly theme: Theme }) {
  const { name, family, count, durationNs, busyNs } = piece;
  return (
    <>
      <div class="chart-tip-x">
        <span
          class="row-table-swatch"
          style={{ background: familyColour(theme, family) }}
        />
        {count > 1 ? `${formatInteger(count)} slices` : name}
      </div>
      {count > 1 ? (
        <>
          <div>
            busy {formatShare(busyNs, durationNs)} of {formatNs(durationNs)}
          </div>
          <div class="quiet">longest: {name}</div>
          <div class="chart-note">Shorter than a pixel. Click: zoom in.</div>
        </>
      ) : (
        <>
          <div>
            {formatNs(durationNs)}{" "}
            <span class="quiet">({formatNsExact(durationNs)})</span>
          </div>
          <div class="quiet">{FAMILY_WORDS[family]}</div>
        </>
      )}
    </>
  );
}

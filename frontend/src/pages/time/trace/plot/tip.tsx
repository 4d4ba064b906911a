/** What is under the pointer, in two lines beside it; a click says the rest. */

import { formatInteger, formatShare, type ByteUnit } from "../../../../base/bytes";
import type { Theme } from "../../../../base/tokens";
import { formatQuantity } from "../../../../model/words/quantity";
import { ChartTip } from "../../../../widgets/tip/chart_tip";
import { traceColour } from "../paint/lines";
import type { Picture } from "../paint/quads";
import type { Piece } from "../tiles/tile";
import { FAMILY_WORDS, formatNs, formatNsExact } from "../words";
import type { Row } from "./layout";
import type { PlotStage } from "./stage";

export function PlotTip({ stage }: { readonly stage: PlotStage }) {
  const hover = stage.hover.value;
  if (hover === null) return null;
  const { at, piece, row, ns } = hover;
  const { widthPx, heightPx, trace } = stage.now();
  const { theme, byteUnit } = trace.view;
  const isCounter = row?.track?.kind === "counter";
  if (piece === null && !isCounter) return null;
  const above = at.y > heightPx * 0.6;
  return (
    <ChartTip
      at={{ leftPx: at.x, topPx: at.y, flip: at.x > widthPx / 2, above }}
      belowPx={16}
      kind="trace-tip"
    >
      {piece !== null && <OfPiece piece={piece} theme={theme} />}
      {piece === null && row !== null && (
        <>
          <h4>{row.label}</h4>
          <div class="cut">{counterWords(stage.picture, row, ns, byteUnit)}</div>
        </>
      )}
    </ChartTip>
  );
}

function OfPiece({ piece, theme }: { readonly piece: Piece; readonly theme: Theme }) {
  const { name, family, count, startNs, endNs, level } = piece;
  return (
    <>
      <h4>
        <span class="swatch" style={{ background: traceColour(theme, family) }} />
        {count > 1 && level >= 0
          ? `${formatInteger(count)} slices, the longest ${name}`
          : name}
      </h4>
      <div class="cut">{lineOf()}</div>
    </>
  );

  function lineOf(): string {
    const ns = endNs - startNs;
    if (level < 0) {
      return count > 1
        ? `and ${formatInteger(count - 1)} more within a few pixels: click to zoom in`
        : `${formatNs(startNs)} · ${FAMILY_WORDS[family]}`;
    }
    return count > 1
      ? `busy ${formatShare(piece.busyNs, ns)} of ${formatNs(ns)}: click to zoom in`
      : `${formatNs(ns)} (${formatNsExact(ns)}) · ${FAMILY_WORDS[family]}`;
  }
}

const REDUCED_WORDS = {
  exact: "",
  highest: "highest of this pixel",
  mean: "mean of this pixel",
} as const;

/** A counter's values at a time. */
function counterWords(
  picture: Picture | null,
  { trackKey, track }: Row,
  ns: number,
  byteUnit: ByteUnit,
): string {
  const tile = picture?.tiles.findLast(
    (one) => one.lines.has(trackKey) && one.lowNs <= ns && one.highNs >= ns,
  );
  const lines = tile?.lines.get(trackKey) ?? [];
  const words = lines.map((line) => {
    const value = tile?.valueAt(line, ns) ?? null;
    const said = formatQuantity(value, track?.unit ?? "count", byteUnit);
    const series = lines.length > 1 ? line.series : "";
    return [series, said, REDUCED_WORDS[line.reduced]].filter(Boolean).join(" ");
  });
  return words.join(", ");
}

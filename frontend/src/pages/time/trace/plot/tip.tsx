import {
  counted,
  formatInteger,
  formatShare,
  type ByteUnit,
} from "../../../../base/bytes";
import { formatQuantity } from "../../../../model/words/quantity";
import { PointerTip } from "../../../../widgets/plot/reading";
import { traceColour } from "../paint/lines";
import type { Picture } from "../paint/quads";
import type { Piece } from "../tiles/tile";
import { familyWords, formatNs, formatNsExact } from "../text";
import type { Row } from "./layout";
import type { Hover, PlotStage } from "./stage";
import type { Reading } from "../../../../widgets/plot/reader";

export function PlotTip({ stage }: { readonly stage: PlotStage }) {
  const hover = stage.hover.value;
  const { widthPx, heightPx } = stage.now;
  const reading = hover && readingOf(stage, hover);
  return (
    reading && (
      <PointerTip
        point={hover.point}
        widthPx={widthPx}
        heightPx={heightPx}
        reading={reading}
      />
    )
  );
}

function readingOf(stage: PlotStage, { piece, row, ns }: Hover): Reading | null {
  const { theme, byteUnit } = stage.now.trace.view;
  if (piece !== null) {
    const swatch = traceColour(theme, piece.family);
    return { title: titleOf(piece), swatch, notes: [lineOf(piece)] };
  }
  if (row?.track?.kind !== "counter") return null;
  const text = counterWords(stage.picture, row, ns, byteUnit);
  return { title: row.label, notes: [text] };
}

function titleOf({ name, count, level }: Piece): string {
  return count > 1 && level >= 0
    ? `${counted(count, "slice")}, the longest ${name}`
    : name;
}

function lineOf({ family, count, startNs, endNs, level, busyNs }: Piece): string {
  const ns = endNs - startNs;
  if (count > 1) {
    return level < 0
      ? `and ${formatInteger(count - 1)} more within a few pixels: click to zoom in`
      : `busy ${formatShare(busyNs, ns)} of ${formatNs(ns)}: click to zoom in`;
  }
  const time = level < 0 ? formatNs(startNs) : `${formatNs(ns)} (${formatNsExact(ns)})`;
  return `${time} · ${familyWords(family)}`;
}

const REDUCED_WORDS = {
  exact: "",
  highest: "highest of this pixel",
  mean: "mean of this pixel",
} as const;

function counterWords(
  picture: Picture | null,
  { key, track }: Row,
  ns: number,
  byteUnit: ByteUnit,
): string {
  const tiles = picture?.tiles.filter(({ low, high }) => low <= ns && high >= ns);
  const tile = tiles?.findLast((candidate) => candidate.linesOf(key).length > 0);
  const lines = tile?.linesOf(key) ?? [];
  const parts = lines.map((line) => {
    const value = tile?.valueAt(line, ns) ?? null;
    const valueText = formatQuantity(value, track?.unit ?? "count", byteUnit);
    const series = lines.length > 1 ? line.series : "";
    return [series, valueText, REDUCED_WORDS[line.reduced]].filter(Boolean).join(" ");
  });
  return parts.join(", ");
}
